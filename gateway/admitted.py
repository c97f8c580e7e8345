"""A request that was admitted: what it holds in budgets and at an endpoint, until it ends in whatever way."""

from collections.abc import Callable
from dataclasses import dataclass

from gateway.billed import Billed
from gateway.body_edits import apply_edits
from gateway.budgets import Budgets
from gateway.passage import End, Ending
from gateway.refusals import Refused
from gateway.request_edits import RequestEdits
from gateway.reservations import Reservation, Settled
from gateway.router import Choice, InFlight, Router
from gateway.stopwatch import Stopwatch, Times


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an engine may take."""

    first_byte_seconds: float = 600.0
    """An answer that is not streamed sends nothing until its end."""
    idle_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Ended:
    """An admitted request that is over, for metrics and records."""

    tenant: str
    model: str
    deployment: str
    identity: str
    address: str
    """The engine that had it last; empty = none had it."""
    ending: Ending
    settled: Settled | None
    billed: Billed
    times: Times
    is_stream: bool


class Admitted:
    """One admitted request; it is the `Passage` that the guard knows."""

    def __init__(
        self,
        *,
        reservation: Reservation,
        choice: Choice,
        arm: tuple[str, str],
        edits: RequestEdits,
        budgets: Budgets,
        router: Router,
        clock: Callable[[], float],
        on_end: Callable[["Admitted", Ended], None],
        patience: Patience,
        is_stream: bool,
        billed: Billed,
        stopwatch: Stopwatch,
        is_guarded: bool = True,
    ) -> None:
        self.reservation = reservation
        self.is_stream = is_stream
        self.is_guarded = is_guarded
        """Whether a guard passes it on; else Envoy does, and says now and then that it still runs."""
        self.is_usage_injected = edits.is_usage_injected
        self.first_byte_seconds = patience.first_byte_seconds
        self.idle_seconds = patience.idle_seconds
        self._choice = choice
        self._deployment, self._identity = arm
        self.edits = edits.edits
        self._budgets = budgets
        self._router = router
        self._clock = clock
        self._on_end = on_end
        self._billed = billed
        self._stopwatch = stopwatch
        self._in_flight: InFlight | None = None
        self._address = ""
        self._is_over = False

    async def turn(self) -> tuple[str, ...] | Refused:
        """The engines to try, best first; nobody waits for a turn."""
        return self._choice.addresses

    def edited(self, body: bytes) -> bytes:
        """The body that engines get."""
        return apply_edits(body, self.edits)

    def sent_to(self, address: str) -> None:
        """This engine has it now, and none before it."""
        now = self._clock()
        self._leave_endpoint(now)
        self._address = address
        place = self._choice.addresses.index(address)
        self._in_flight = self._router.send(self._choice, now, place=place, is_watched=self.is_guarded)

    def depart(self) -> None:
        """Envoy takes it to its first engine."""
        self.sent_to(self._choice.addresses[0])

    def answered_by(self, address: str) -> None:
        """Envoy says which engine had it in the end."""
        if address != self._address and address in self._choice.addresses:
            self.sent_to(address)

    def renew(self) -> None:
        """It still runs."""
        self._budgets.renew(self.reservation.number, self._clock())

    def began(self) -> None:
        """The engine's first byte came."""
        self._stopwatch.first_byte()
        if self._in_flight is not None:
            self._in_flight.first_token(self._clock())

    def end(self, ending: Ending) -> None:
        """It is over: nothing is held any more, in budgets or at an endpoint."""
        if self._is_over:
            return
        self._is_over = True
        now = self._clock()
        self._leave_endpoint(now)
        settled = self._settle(ending, now)
        reservation = self.reservation
        self._on_end(
            self,
            Ended(
                reservation.tenant,
                reservation.model,
                self._deployment,
                self._identity,
                self._address,
                ending,
                settled,
                self._billed,
                self._stopwatch.times(),
                self.is_stream,
            ),
        )

    def _leave_endpoint(self, now: float) -> None:
        if self._in_flight is not None:
            self._in_flight.end(now)
            self._in_flight = None

    def _settle(self, ending: Ending, now: float) -> Settled | None:
        """The engine's figures where there are some; else what was counted; else all that was held."""
        budgets, number = self._budgets, self.reservation.number
        if ending.usage is not None:
            return budgets.settle(number, ending.usage, now)
        if not self._address or ending.end in {End.NO_ENGINE, End.REFUSED}:
            return budgets.cancel(number, now)
        if ending.end is End.UNKNOWN:
            return budgets.settle_reserved(number, now)
        if ending.events or ending.end is End.CLIENT_LEFT:
            return budgets.settle_counted(number, ending.events, now)
        if ending.status >= 400 or ending.end is not End.WHOLE:
            return budgets.fail(number, now)
        return budgets.settle_reserved(number, now)

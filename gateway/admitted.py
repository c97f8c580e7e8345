"""A request that was admitted: what it holds in budgets and at an endpoint, until it ends in whatever way."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fleet.snapshot import GatewayTenant
from gateway.answer_filter import AnswerFilter
from gateway.billed import Billed
from gateway.body_edits import Edit, apply_edits
from gateway.budgets import Budgets
from gateway.legs import Leg, Legs
from gateway.mirror import Mirror
from gateway.passage import End, Ending, Patience
from gateway.refusals import Refused
from gateway.reservations import Basis, Reservation, Settled
from gateway.router import InFlight, Router
from gateway.session_budget import SessionBudget
from gateway.stopwatch import Stopwatch, Times
from gateway.targets import Target
from gateway.token_usage import TokenUsage
from gateway.turn_words import Wish
from gateway.turns import Place
from gateway.waiting import WaitingRoom


class Ended(NamedTuple):
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
    asked_model: str = ""
    """The model that was asked for: another one where the model of this record stood in."""
    request_id: str = ""
    """Envoy's, by which its line in the access log is found."""


class Admitted:
    """One admitted request; it is the `Passage` that the guard knows."""

    mirror: Mirror | None = None
    """A copy for a shadow, which goes out when its turn has come."""
    tell: Callable[[Ended], None] | None = None
    """Who else is told of its end."""
    _place: Place | None = None
    _ahead: str = ""
    """The endpoint where it counts already before it is sent."""
    _in_flight: InFlight | None = None
    _address: str = ""
    _is_over: bool = False

    def __init__(
        self,
        *,
        leg: Leg,
        legs: Legs,
        asked_model: str,
        request_id: str,
        budgets: Budgets,
        router: Router,
        clock: Callable[[], float],
        on_end: Callable[["Admitted", Ended], None],
        is_stream: bool,
        stopwatch: Stopwatch,
        tenant: GatewayTenant,
        waiting: WaitingRoom,
        is_guarded: bool = True,
        output_filter: AnswerFilter | None = None,
    ) -> None:
        self.output_filter = output_filter
        self.is_stream = is_stream
        self.is_guarded = is_guarded
        """Whether a guard passes it on; else Envoy does, and says now and then that it still runs."""
        self._leg = leg
        self._legs = legs
        self._asked_model = asked_model
        self._request_id = request_id
        self._budgets = budgets
        self._router = router
        self._clock = clock
        self._on_end = on_end
        self._stopwatch = stopwatch
        self._tenant = tenant
        self._waiting = waiting

    @property
    def is_over(self) -> bool:
        """Whether nothing is held any more."""
        return self._is_over

    def session(self) -> SessionBudget:
        """What the answers of a session hold, each for itself, while the session holds its place."""
        return SessionBudget(self._budgets, self._leg, self._tenant, self._clock, self._answered)

    @property
    def reservation(self) -> Reservation:
        """What is held for it now."""
        return self._leg.held

    @property
    def model(self) -> str:
        """The public name of the model that serves it."""
        return self._leg.model

    @property
    def edits(self) -> Sequence[Edit]:
        """What engines get in the place of the client's words."""
        filtered = self.output_filter.request_edits if self.output_filter else ()
        return (*self._leg.edits.edits, *filtered)

    @property
    def is_usage_injected(self) -> bool:
        """Whether usage was asked for in the client's place."""
        return self._leg.edits.is_usage_injected

    @property
    def patience(self) -> Patience:
        """How long its engines may take."""
        return self._leg.patience

    @property
    def may_fall_back(self) -> bool:
        """Whether another arm or model may be left."""
        return self._legs.may_go_on

    def fall_back(self) -> bool:
        """The engines of this turn have failed: let go of what is held and take the next arm or model."""
        if self._is_over or not self._legs.may_go_on:
            return False
        now = self._clock()
        self._leave_endpoint(now)
        self._leave_place(now, _NOTHING)
        self._budgets.cancel(self.reservation.number, now)
        leg = self._legs.next(now)
        self._leg = leg or self._leg
        return leg is not None

    async def turn(self) -> tuple[str, ...] | Refused:
        """The engines to try, best first, once it is its turn: while they are full it waits."""
        leg = self._leg
        wish = Wish(self._tenant, leg.route, leg.arm, leg.choice, leg.held.output_tokens, self.is_stream)
        place = await self._waiting.turn(wish, self._hold)
        if place.refused is not None:
            return place.refused
        self._leg = leg._replace(arm=place.arm, choice=place.choice)
        self._in_flight, self._ahead = place.in_flight, place.choice.addresses[0]
        return place.choice.addresses

    def edited(self, body: bytes) -> bytes:
        """The body that engines get."""
        return apply_edits(body, self.edits)

    def may_ask(self, address: str) -> bool:
        """Whether the endpoint takes one more request now."""
        is_counted = address == self._ahead
        return self._router.admits(address, self._leg.arm, self._clock(), is_counted=is_counted)

    def target(self, address: str) -> Target:
        """How the endpoint is reached."""
        return self._leg.target(address)

    def went_well(self, address: str) -> None:
        """The endpoint answers."""
        self._router.ejections.well(address, self._clock())

    def failed(self, address: str, pause_seconds: float = 0.0) -> bool:
        """The endpoint was asked in vain; whether it is ejected by that."""
        now = self._clock()
        self._router.ejections.pause(address, now + pause_seconds, now)
        return self._router.ejections.failed(address, now)

    def sent_to(self, address: str) -> None:
        """This engine has it now, and none before it."""
        now = self._clock()
        self._address = address
        if address == self._ahead:
            self._ahead = ""
            return
        self._leave_endpoint(now)
        choice = self._leg.choice
        place = choice.addresses.index(address)
        self._in_flight = self._router.send(choice, now, place=place, is_watched=self.is_guarded and self.is_stream)

    def depart(self) -> None:
        """Envoy takes it to its first engine."""
        self.sent_to(self._leg.choice.candidates[0].address)

    def answered_by(self, address: str, first_byte_seconds: float | None) -> None:
        """Envoy says which engine had it in the end, and when the answer began."""
        if first_byte_seconds is not None:
            self._stopwatch.first_byte_after(first_byte_seconds)
        if address != self._address and address in self._leg.choice.addresses:
            self.sent_to(address)

    def renew(self) -> None:
        """It still runs."""
        self._budgets.renew(self.reservation.number, self._clock())

    def began(self) -> None:
        """The engine's first byte came: from here on no other one can be asked."""
        self._legs.forget()
        self._stopwatch.first_byte()
        if self._in_flight is not None and self._in_flight.is_watched:
            self._in_flight.first_token(self._clock())
            self._waiting.look()

    def never_came(self) -> None:
        """Its client left before Envoy passed it on: no engine had it."""
        self._address = ""
        self.end(Ending(End.CLIENT_LEFT, 0, None))

    def end(self, ending: Ending) -> None:
        """It is over: nothing is held any more, in budgets or at an endpoint."""
        if self._is_over:
            return
        self._is_over = True
        now = self._clock()
        self._leave_endpoint(now)
        settled = self._settle(ending, now)
        self._leave_place(now, _service_of(settled))
        if settled is not None:
            self._router.used(self._address, settled.usage.input_tokens + settled.usage.output_tokens, now)
        ended = self._record(settled, ending, self._stopwatch.times())
        self._on_end(self, ended)
        if self.tell is not None:
            self.tell(ended)

    def _answered(self, settled: Settled | None, ending: Ending, times: Times) -> None:
        """One answer of a session is over."""
        self._on_end(self, self._record(settled, ending, times))

    def _record(self, settled: Settled | None, ending: Ending, times: Times) -> Ended:
        leg, held = self._leg, self._leg.held
        return Ended(
            held.tenant,
            held.model,
            leg.arm.deployment,
            leg.arm.identity,
            self._address,
            ending,
            settled,
            leg.billed,
            times,
            self.is_stream,
            self._asked_model,
            self._request_id,
        )

    def _hold(self, place: Place) -> None:
        self._place = place

    def _leave_endpoint(self, now: float) -> None:
        self._ahead = ""
        if self._in_flight is not None:
            self._in_flight.end(now)
            self._in_flight = None

    def _leave_place(self, now: float, usage: TokenUsage | None) -> None:
        if self._place is not None:
            self._place.leave(now, usage)
            self._place = None

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
        if ending.status >= 400 or ending.end not in {End.WHOLE, End.FILTERED}:
            return budgets.fail(number, now)
        return budgets.settle_reserved(number, now)


_NOTHING = TokenUsage(0, 0, 0)


def _service_of(settled: Settled | None) -> TokenUsage | None:
    """What was served, where it was counted; a hold that was charged whole says nothing about it."""
    return None if settled is None or settled.basis is Basis.RESERVED else settled.usage

"""The decision core as the endpoint picker of somebody else's gateway (Gateway API Inference Extension).

What such a gateway can't do for us is refused: a WebSocket, a hosted engine, a filter that asks a service. After the
pick only the gateway tries again, among the endpoints that it was told.
"""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from itertools import count
from typing import NamedTuple

from gateway.admitted import Admitted
from gateway.asked import Opened, Request
from gateway.decision import Allowed, Answered, Decision, DecisionCore
from gateway.ext_authz import DESTINATION_HEADER, MODEL_HEADER, TENANT_HEADER, header_name
from gateway.ext_proc_contract import ChosenFilter, Pairs, Pick, PickRequest, Reply, ResponseHead, Verdict
from gateway.ext_proc_picking import refusal_reply
from gateway.http_protocol import HttpRequest
from gateway.mirror import Mirror
from gateway.passage import End, Ending
from gateway.paths import public_path
from gateway.picked_request import PickedRequest
from gateway.reach import Reach
from gateway.refusals import Reason, Refused, quoted, refuse
from gateway.second_look import SecondLook
from gateway.server import BeginSpan

_JSON = ("content-type", "application/json")
_OWN_PREFIX = "x-gateway-"
_NOT_FOR_ENGINES = ("accept-encoding",)
"""An answer that is encoded can't be read: neither its usage nor what a filter looks for."""
_NO_SOCKETS = "There are no WebSockets behind this gateway; send the request to its own path."
_NO_ENGINE = "No engine could be reached for this request."


class _Turn(NamedTuple):
    """A request that waits for its turn; most have it at once."""

    admitted: Admitted
    work: Coroutine[None, None, Verdict]


class CorePicker:
    """Decides by the core, and keeps what was picked until it is over."""

    reads_answers = True

    def __init__(
        self,
        core: DecisionCore,
        *,
        now_unix_seconds: Callable[[], float],
        now_monotonic_seconds: Callable[[], float],
        decided: Callable[[Decision, float], None],
        begin_span: BeginSpan = lambda *_: (),
        second_look: SecondLook | None = None,
        send_copy: Callable[[Mirror, HttpRequest], None] = lambda *_: None,
    ) -> None:
        """``decided`` counts a decision and the seconds that it took; ``send_copy`` sends a shadow's."""
        self._core = core
        self._now = now_unix_seconds
        self._stopwatch = now_monotonic_seconds
        self._decided = decided
        self._begin_span = begin_span
        self._second_look = second_look
        self._send_copy = send_copy
        self._numbers = count(1)
        self._picked: dict[str, PickedRequest] = {}

    def __len__(self) -> int:
        """Requests that were picked and are not over."""
        return len(self._picked)

    def pick(self, asked: PickRequest, now: float) -> Verdict | asyncio.Future[Verdict]:
        """Who asks, may they, and where it goes; where it has to wait, later."""
        started = self._stopwatch()
        request = asked.request._replace(reach=Reach(asked.subset))
        decision = self._decide(request)
        look = self._second_look
        waited = None if look is None else look.wanted(decision)
        if waited is not None and look is not None:
            return asyncio.ensure_future(self._look_again(look, waited, request, started))
        verdict = self._verdict(request, decision, started)
        if isinstance(verdict, Reply):
            return verdict
        turn = asyncio.get_running_loop().create_task(verdict.work)
        turn.add_done_callback(partial(_let_go, verdict.admitted))
        return turn

    def responded(self, pick: Pick, status: int, served: str | None) -> None:
        """The engine's status."""
        self._picked[pick.ticket].responded(status, served)

    def filter_of(self, pick: Pick, head: ResponseHead) -> ChosenFilter | None:
        """Whoever reads the usage, and the output filter."""
        return self._picked[pick.ticket].filter_of(head)

    def passed(self, pick: Pick, data: bytes) -> None:
        """What reads the answer sees it itself."""

    def ended(self, pick: Pick, *, is_whole: bool) -> None:
        """The call is over: nothing is held any more."""
        picked = self._picked.pop(pick.ticket, None)
        if picked is not None:
            picked.ended(is_whole=is_whole)

    def _decide(self, request: Request) -> Decision:
        decision = self._core.decide(request, self._now())
        refused = _not_for_proxies(request, decision)
        if refused is not None and isinstance(decision, Allowed):
            decision.admitted.end(Ending(End.REFUSED, 0, None))
        return refused or decision

    async def _look_again(
        self, look: SecondLook, waited: "asyncio.Future[bool]", request: Request, started: float
    ) -> Verdict:
        decision = await look.decided(waited, partial(self._decide, request)) or self._decide(request)
        verdict = self._verdict(request, decision, started)
        if isinstance(verdict, Reply):
            return verdict
        try:
            return await verdict.work
        except BaseException:
            verdict.admitted.never_came()
            raise

    def _verdict(self, request: Request, decision: Decision, started: float) -> Reply | _Turn:
        self._decided(decision, self._stopwatch() - started)
        traced = self._begin_span(request.headers, request.target, decision)
        if isinstance(decision, Refused):
            return refusal_reply(decision, request.target)
        if isinstance(decision, Answered):
            return Reply(200, decision.body, (_JSON,))
        if isinstance(decision, Opened):  # it was refused before
            return refusal_reply(refuse(Reason.NOT_SERVED, _NO_SOCKETS), request.target)
        return _Turn(decision.admitted, self._turn(request, decision, traced))

    async def _turn(self, request: Request, allowed: Allowed, traced: Pairs) -> Verdict:
        """From the first turn on, until one of its engines takes it or nothing is left."""
        admitted, has_fallen_back = allowed.admitted, False
        while True:
            turn = await admitted.turn()
            if not isinstance(turn, Refused):
                endpoints = _order(admitted, turn)
                if endpoints:
                    break
                message = _NO_ENGINE
                turn = refuse(Reason.NO_ENDPOINT, message, tenant=allowed.tenant, model=admitted.model)
            if turn.reason is not Reason.NO_ENDPOINT or not admitted.fall_back():
                admitted.end(Ending(End.REFUSED, 0, None))
                return refusal_reply(turn, request.target)
            has_fallen_back = True
        self._mirror(request, allowed)
        told = _told_of_leg(allowed) if has_fallen_back else allowed.headers_to_set[1:]
        return self._pick(request, allowed, endpoints, (*told, *traced))

    def _pick(self, request: Request, allowed: Allowed, endpoints: tuple[str, ...], told: Pairs) -> Pick:
        ticket = str(next(self._numbers))
        admitted = allowed.admitted
        self._picked[ticket] = PickedRequest(admitted, endpoints, allowed.client_headers)
        removed = _removed(request.headers, allowed, {DESTINATION_HEADER, *(name for name, _ in told)})
        return Pick(endpoints, told, removed, tuple(admitted.edits), ticket)

    def _mirror(self, request: Request, allowed: Allowed) -> None:
        """To the shadow, which this gateway reaches itself."""
        mirror = allowed.admitted.mirror
        if mirror is None:
            return
        hidden = set(_removed(request.headers, allowed, set()))
        headers = {name: value for name, value in request.headers.items() if name[:1] != ":" and name not in hidden}
        self._send_copy(mirror, HttpRequest(request.method, request.target, headers, request.body))


def _let_go(admitted: Admitted, turn: "asyncio.Future[Verdict]") -> None:
    """Its client left while it waited, perhaps before it had begun to, or something raised: no engine had it."""
    if turn.cancelled() or turn.exception() is not None:
        admitted.never_came()


def _order(admitted: Admitted, turn: tuple[str, ...]) -> tuple[str, ...]:
    """The first that takes one more request now, then those after it; empty = none does."""
    for number, address in enumerate(turn):
        if admitted.may_ask(address):
            return turn[number:]
    return ()


def _told_of_leg(allowed: Allowed) -> Pairs:
    """What is known after another arm or model stood in."""
    return ((TENANT_HEADER, allowed.tenant), (MODEL_HEADER, header_name(allowed.admitted.model)))


def _removed(headers: Mapping[str, str], allowed: Allowed, kept: set[str]) -> tuple[str, ...]:
    """What no engine may see, and what a client has said in the gateway's own words."""
    own = (name for name in headers if name.startswith(_OWN_PREFIX) and name not in kept)
    return (*allowed.headers_to_remove, *_NOT_FOR_ENGINES, *own)


def _not_for_proxies(request: Request, decision: Decision) -> Refused | None:
    """Why a request that may go on must not go on through somebody else's gateway."""
    if isinstance(decision, Refused | Answered):
        return None
    path = public_path(request.target)
    if path is None or path.is_socket or isinstance(decision, Opened):
        return refuse(Reason.NOT_SERVED, _NO_SOCKETS, tenant=decision.tenant)
    chosen = decision.admitted.output_filter
    if chosen is not None and chosen.judge is not None:
        message = f"The output filter of the model {quoted(decision.model)} can't be used behind this gateway."
        return refuse(Reason.FILTER_UNAVAILABLE, message, tenant=decision.tenant, model=decision.model)
    decision.admitted.is_guarded = True  # the call tells that it runs, and how it ends
    return None

"""The decision about one request: who asks, what for, may they, and which engine serves it. No I/O, no clock."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import NamedTuple

from fleet.budget import Tariff
from fleet.snapshot import GatewayArm
from gateway.admitted import Admitted, Ended
from gateway.answer_filter import AnswerFilter
from gateway.arm_edits import edits_for
from gateway.arms import arms_of, pool_of
from gateway.asked import Asked, Opened, Request, authorization_of, model_not_found, path_of
from gateway.authentication import Caller, authenticate
from gateway.billed import Billed
from gateway.budget_lines import NewAccount, account_of_unit
from gateway.budget_state import KeptAccount
from gateway.budgets import Budgets
from gateway.cache_salt import arms_that_salt
from gateway.exhausted import Exhausted
from gateway.ext_authz import (
    DEPLOYMENT_HEADER,
    DESTINATION_HEADER,
    IDENTITY_HEADER,
    MODEL_HEADER,
    PIN_HEADER,
    SERVED_MODEL_HEADER,
    TENANT_HEADER,
    header_name,
)
from gateway.guardless import needs_guard, words_for_envoy
from gateway.index import SnapshotIndex
from gateway.legs import Leg, Legs, ways_of
from gateway.mirror import Mirrors
from gateway.passage import Patience
from gateway.paths import Operation
from gateway.rate_limit_headers import Header
from gateway.realtime_asked import asked_at
from gateway.refusals import Reason, Refused, refuse
from gateway.request_filter import filter_for
from gateway.reservations import Reservation
from gateway.routed_prompt import conversation_of, routing_request
from gateway.router import Choice, Router
from gateway.stopwatch import Stopwatch
from gateway.token_estimate import BadField, TokenEstimate, dialect_of, estimate
from gateway.token_lease import THE_WHOLE, Share
from gateway.turn_words import Waited, asleep
from gateway.turns import Turns
from gateway.waiting import WaitingRoom

REMOVED_HEADERS = ("authorization", "x-api-key", PIN_HEADER)
_MOST_ID_CHARS = 64
_MOST_OUTPUT_TOKENS = 131_072
"""Of one answer, where the route does not say how long its model can write."""


class Allowed(NamedTuple):
    """A request that goes to an engine."""

    tenant: str
    model: str
    deployment: str
    identity: str
    endpoints: tuple[str, ...]
    """Best first; the others are for a connection that fails."""
    admitted: Admitted
    """What it holds until it ends: whoever passes it on has to tell."""
    client_headers: tuple[Header, ...] = ()
    """For the client's answer: how its limits stand."""
    headers_to_remove: tuple[str, ...] = REMOVED_HEADERS

    @property
    def headers_to_set(self) -> tuple[Header, ...]:
        """What the data plane is told."""
        admitted, model = self.admitted, header_name(self.model)
        told = (
            (DESTINATION_HEADER, ",".join(self.endpoints)),
            (TENANT_HEADER, self.tenant),
            (MODEL_HEADER, model),
            (DEPLOYMENT_HEADER, self.deployment),
            (IDENTITY_HEADER, self.identity),
        )
        if admitted.is_guarded:
            return told
        words = words_for_envoy(
            admitted.edits, is_stream=admitted.is_stream, is_usage_injected=admitted.is_usage_injected
        )
        return (*told, *words, (SERVED_MODEL_HEADER, model))


@dataclass(frozen=True, slots=True)
class Answered:
    """A request that the gateway answers itself, with 200."""

    tenant: str
    body: bytes


Decision = Allowed | Refused | Answered | Opened


class DecisionCore:
    """The tables, the budgets and the router that decisions are made from."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = lambda: 0.0,
        chance: Random | None = None,
        on_end: Callable[[Ended], None] = lambda _: None,
        patience: Patience | None = None,
        stopwatch: Callable[[], float] = lambda: 0.0,
        on_waited: Callable[[Waited], None] = lambda _: None,
        router: Router | None = None,
        new_account: NewAccount = account_of_unit,
        share: Share = THE_WHOLE,
    ) -> None:
        self._index: SnapshotIndex | None = None
        self._budgets = Budgets(new_account=new_account)
        self._router = router or Router()
        self._clock = clock
        """Unix seconds, for what happens to a request after its decision."""
        self._chance = chance or Random(0)  # noqa: S311 it breaks ties, and nothing secret hangs on it
        self._mirrors = Mirrors(self._router, self._chance, clock)
        self._turns = Turns(self._router, self._chance, on_waited, share=share)
        self._waiting = WaitingRoom(self._turns, clock)
        self._on_end = on_end
        self._stopwatch = stopwatch
        """Monotonic seconds, for how long things take."""
        self._patience = patience or Patience()
        self._running: set[Admitted] = set()
        self._prices: dict[str, Tariff] = {}
        self._kept: tuple[KeptAccount, ...] = ()

    @property
    def index(self) -> SnapshotIndex | None:
        """The tables in use; ``None`` before the first snapshot, when everything is refused."""
        return self._index

    @property
    def router(self) -> Router:
        """Who is told what engines say of themselves."""
        return self._router

    @property
    def turns(self) -> Turns:
        """Who waits for engines."""
        return self._turns

    @property
    def running(self) -> int:
        """Requests that were admitted and have not ended."""
        return len(self._running)

    def replace(self, index: SnapshotIndex, now_unix_seconds: float) -> None:
        """Decide by another snapshot from now on; budgets and what is running go on."""
        pools = {pool_of(arm) for route in index.routes.values() for arm in route.arms}
        self._budgets.replace(index.tenants, index.prices, now_unix_seconds)
        self._router.keep_only(index.addresses | index.hosted, pools)
        self._router.hosted_limits.replace((arm for r in index.routes.values() for arm in arms_of(r)), now_unix_seconds)
        self._prices = {price.model: price.tariff() for price in index.prices}
        self._budgets.restore(self._kept, now_unix_seconds)
        self._kept = ()
        self._turns.replace(index.routes, index.tenants, now_unix_seconds)
        self._index = index

    def start_from(self, kept: tuple[KeptAccount, ...]) -> None:
        """What an earlier gateway charged, from the first snapshot on."""
        self._kept = kept

    def kept_budgets(self, now_unix_seconds: float) -> tuple[KeptAccount, ...]:
        """What should outlive this gateway."""
        return self._budgets.kept(now_unix_seconds)

    def tick(self, now_unix_seconds: float) -> None:
        """Once in a while: what is still running stays, and what was lost is charged."""
        for admitted in filter(lambda one: one.is_guarded, self._running):
            self._budgets.renew(admitted.reservation.number, now_unix_seconds)
        self._budgets.expire(now_unix_seconds)

    def decide(self, request: Request, now_unix_seconds: float) -> Decision:
        """What happens to a request."""
        watch = Stopwatch(self._stopwatch)
        if self._index is None:
            return refuse(Reason.NO_SNAPSHOT, "The gateway has not got its configuration yet; try again in a moment.")
        caller = authenticate(self._index, authorization_of(request), now_unix_seconds)
        if isinstance(caller, Refused):
            return caller
        path = path_of(request, caller)
        if isinstance(path, Refused):
            return path
        if path.operation is Operation.MODELS:
            return _models(self._index, caller, path.model)
        if path.is_socket and path.model is None:
            return Opened(caller.tenant.name)
        asked = asked_at(path, self._index, caller, request)
        return asked if isinstance(asked, Refused) else self._admit(asked, self._index, now_unix_seconds, watch)

    def _admit(self, asked: Asked, index: SnapshotIndex, now: float, watch: Stopwatch) -> Allowed | Refused:
        tenant, route = asked.caller.tenant, asked.route
        size = estimate(asked.document, dialect_of(asked.operation), texts=asked.texts)
        if isinstance(size, BadField):
            return refuse(Reason.BAD_FIELD, size.message, param=size.name, tenant=tenant.name, model=route.model)
        chosen = filter_for(index, asked)
        if isinstance(chosen, Refused):
            return chosen
        ways = ways_of(index, asked)
        if isinstance(ways, Refused):
            return ways
        legs = Legs(ways, partial(self._leg, size), self._router.ejections.pause_left)
        leg = legs.first(now)
        if isinstance(leg, Refused):
            return leg
        is_guarded = self._needs_guard(asked, leg, chosen, now)
        admitted = self._admitted(asked, leg, legs, watch, chosen, is_guarded=is_guarded)
        if route.shadow is not None:
            admitted.mirror = self._mirrors.of(asked, leg.choice.request, _bound(leg.held, size), now)
        headers = self._budgets.headers(tenant.name, leg.model, now)
        arm, addresses = leg.arm, leg.choice.addresses
        return Allowed(
            tenant.name, leg.model, arm.deployment, arm.identity, addresses, admitted, client_headers=headers
        )

    def _leg(self, size: TokenEstimate, asked: Asked, arms: Sequence[GatewayArm], now: float) -> Leg | Refused | None:
        """One way that the request may go, and what is held for it; ``None`` = no engine of these arms is ready."""
        tenant, route = asked.caller.tenant, asked.route
        routed = self._route(asked, arms_that_salt(asked, route, arms), now)
        if routed is None:
            return None
        arm, choice = routed
        demand = size.demand(route.max_output_tokens or _MOST_OUTPUT_TOKENS, tenant.default_output_tokens)
        held = self._budgets.reserve(tenant.name, route.model, demand, now)
        if isinstance(held, Exhausted):
            return held.refused(tenant.name, route.model)
        edits = edits_for(asked, arm, _bound(held, size))
        billed = Billed(asked.caller.key.id, now, self._prices.get(route.model))
        return Leg(route, arm, choice, held, edits, self._patience.of(route), billed)

    def _route(self, asked: Asked, arms: Sequence[GatewayArm], now: float) -> tuple[GatewayArm, Choice] | None:
        wanted = routing_request(asked, self._router.block_tokens(arms))
        conversation = conversation_of(asked) if len(arms) > 1 else b""
        found = self._router.route(arms, conversation, wanted, now, self._chance)
        return found or (None if wanted.reach is not None else asleep(asked.route, arms, wanted))

    def _needs_guard(self, asked: Asked, leg: Leg, chosen: AnswerFilter | None, now: float) -> bool:
        """Whether the guard has to pass it on; who waits for its turn waits there."""
        if chosen is not None or needs_guard(leg.route, leg.arm, asked.operation, asked.document, leg.edits.edits):
            return True
        return bool(len(self._turns)) or not self._router.is_any_roomy(leg.arm.endpoints, now)

    def _admitted(
        self, asked: Asked, leg: Leg, legs: Legs, watch: Stopwatch, chosen: AnswerFilter | None, *, is_guarded: bool
    ) -> Admitted:
        admitted = Admitted(
            leg=leg,
            legs=legs,
            asked_model=asked.route.model,
            request_id=asked.request.headers.get("x-request-id", "")[:_MOST_ID_CHARS],
            budgets=self._budgets,
            router=self._router,
            clock=self._clock,
            on_end=self._ended,
            is_stream=asked.document.get("stream") is True,
            stopwatch=watch,
            tenant=asked.caller.tenant,
            waiting=self._waiting,
            output_filter=chosen,
            is_guarded=is_guarded,
        )
        self._running.add(admitted)
        return admitted

    def _ended(self, admitted: Admitted, ended: Ended) -> None:
        if admitted.is_over:  # else a part of it is
            self._running.discard(admitted)
        self._on_end(ended)


def _bound(held: Reservation, size: TokenEstimate) -> int | None:
    """The longest answer that is paid for, where the client bounds nothing and somebody counts; else ``None``."""
    if size.stated_output_tokens is not None or not size.sequences:
        return None
    is_counted = any(line.tariff is not None for line in held.lines)
    return max(1, held.output_tokens // size.sequences) if is_counted else None


def _models(index: SnapshotIndex, caller: Caller, model: str | None) -> Answered | Refused:
    tenant = caller.tenant.name
    names = [name for name in index.models.get(tenant, ()) if caller.key.admits(index.routes[tenant, name].model)]
    if model is not None and model not in names:
        return model_not_found(caller, model)
    cards = [{"id": name, "object": "model", "created": 0, "owned_by": "enginehouse"} for name in names]
    if model is None:
        return Answered(tenant, json.dumps({"object": "list", "data": cards}).encode())
    return Answered(tenant, json.dumps(cards[names.index(model)]).encode())

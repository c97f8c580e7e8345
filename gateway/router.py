"""Where a request goes: the arm by weight and conversation, then an endpoint of it by a policy. Pure.

The router believes what it sent where (``PrefixIndex``) and counts what has not ended (``LoadBook``); engines correct
both by KV events and metrics. Time and chance are passed in.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from fleet.snapshot import GatewayArm, GatewayEndpoint
from gateway.arms import MAX_TRIES, pick_arm, pool_of, usable_endpoints
from gateway.ejection import DEFAULT_MOST_REQUESTS, Ejections
from gateway.endpoint_load import LEAD_SECONDS
from gateway.hosted_limits import HostedLimits
from gateway.load import DEFAULT_PREFILL_TOKENS_PER_SECOND, EngineMetrics, InFlight, LoadBook
from gateway.prefix_index import DEFAULT_CAPACITY_BLOCKS, DEFAULT_TTL_SECONDS, Block, PrefixIndex
from gateway.prefix_indexes import PrefixIndexes
from gateway.routing_policies import Candidate, PolicyName, RoutingRequest, Situation, for_few_places, policy_of

__all__ = [
    "MAX_TRIES",
    "Choice",
    "EngineMetrics",
    "InFlight",
    "PolicyName",
    "Router",
    "RouterSettings",
    "RoutingRequest",
    "pick_arm",
    "usable_endpoints",
]

_SESSION_SHARE = 0.9
"""Of a prompt, where the last turn of its session went, even if its blocks say less: the session may be kept there."""

_SPREAD_WORK = 8
"""A prefix that many prompts share (a system prompt) gets a place at one more endpoint each time its prompts had eight
times its own tokens to compute per place. Without it a quiet fleet would send them all to the endpoint that saw the
first; with it, computing the prefix anew is at most an eighth more work."""


@dataclass(frozen=True, slots=True)
class RouterSettings:
    """How a router chooses and what it assumes of engines that say nothing."""

    policy: PolicyName = PolicyName.ESTIMATED_TTFT
    prefill_tokens_per_second: float = DEFAULT_PREFILL_TOKENS_PER_SECOND
    capacity_blocks: int = DEFAULT_CAPACITY_BLOCKS
    """Blocks that an engine can hold, where it has not said so."""
    most_blocks: int = 65_536
    """What is remembered of one engine at most, whatever it says."""
    ttl_seconds: float = DEFAULT_TTL_SECONDS
    most_requests: int = DEFAULT_MOST_REQUESTS
    """On their way to one endpoint at once."""
    gateways: int = 1
    """How many gateways decide side by side."""


class Choice(NamedTuple):
    """The endpoints to try, best first, and what each is believed to have cached."""

    request: RoutingRequest
    candidates: tuple[Candidate, ...]

    @property
    def addresses(self) -> tuple[str, ...]:
        """The retry plan."""
        return tuple([candidate.address for candidate in self.candidates])


class Router:
    """Chooses endpoints, and remembers what it sent where."""

    def __init__(self, settings: RouterSettings | None = None) -> None:
        self._settings = settings or RouterSettings()
        self._policy = policy_of(self._settings.policy, self._settings.gateways)
        self._policy_for_few_places = for_few_places(self._policy)
        self.spreads_places = self._policy_for_few_places is not self._policy
        """Whether it makes a difference that places are few."""
        capacity_blocks, ttl_seconds = self._settings.capacity_blocks, self._settings.ttl_seconds
        self._indexes = PrefixIndexes(
            lambda: PrefixIndex(capacity_blocks=capacity_blocks, ttl_seconds=ttl_seconds), self._settings.most_blocks
        )
        self.hosted_limits = HostedLimits()
        self.ejections = Ejections()
        """Told by whoever asks the endpoints."""
        self._loads = LoadBook(prefill_tokens_per_second=self._settings.prefill_tokens_per_second)
        self._turns: dict[str, int] = {}
        self._block_tokens: dict[str, int] = {}

    def route(
        self, arms: Sequence[GatewayArm], conversation: bytes, request: RoutingRequest, now: float, chance: Random
    ) -> tuple[GatewayArm, Choice] | None:
        """The arm first, by weight and conversation alone, then endpoints of it; ``None`` when no arm has any."""
        while (arm := pick_arm(arms, conversation)) is not None:
            choice = self.choose(request, arm.endpoints, now, chance, pool=pool_of(arm))
            if choice.candidates:
                return arm, choice
            arms = [other for other in arms if other is not arm]  # all of its endpoints are full or ask for a pause
        return None

    def choose(
        self,
        request: RoutingRequest,
        endpoints: Iterable[GatewayEndpoint],
        now: float,
        chance: Random,
        *,
        pool: str = "",
        places_are_few: bool = False,
    ) -> Choice:
        """Up to three endpoints, best first, whatever the order they are given in; draining ones get nothing new.

        ``pool`` says whose turn it is in round robin; where places are few, some are left everywhere.
        """
        names = self._open(sorted([one.address for one in endpoints if not one.is_draining]), now)
        if request.reach is not None:
            names = list(filter(request.reach.holds, names))
        if not names:
            return Choice(request, ())
        turn = self._turns.get(pool, 0)
        self._turns[pool] = turn + 1
        situation = Situation(request, self._candidates(request, names, now), turn)
        policy = self._policy_for_few_places if places_are_few else self._policy
        return Choice(request, tuple(policy.order(situation, chance)[:MAX_TRIES]))

    def admits(self, address: str, arm: GatewayArm, now: float, *, is_counted: bool = False) -> bool:
        """Whether an endpoint of an arm takes a request now, which may be counted there already.

        After an ejection a yes is the probe's.
        """
        pool = [endpoint.address for endpoint in usable_endpoints(arm)]
        return (is_counted or not self._is_full(address)) and self.ejections.take(
            address, pool, now, is_counted=is_counted
        )

    def _open(self, pool: Sequence[str], now: float) -> list[str]:
        """Those of a pool that take one more request, whatever it is."""
        return self._loads.below(self.ejections.usable(pool, now), self._settings.most_requests)

    def _is_full(self, address: str) -> bool:
        return self._loads.in_flight(address) >= self._settings.most_requests

    def send(self, choice: Choice, now: float, *, place: int = 0, is_watched: bool = True) -> InFlight:
        """The request goes to an endpoint of the choice; what is returned must be told its end."""
        candidate, request = choice.candidates[place], choice.request
        if self._policy.uses_prefixes and request.blocks:
            deepest = max([other.cached_tokens for other in choice.candidates]) // request.block_tokens
            if 0 < deepest <= len(request.blocks):
                index = self._indexes.of(request.block_tokens)
                index.add_work(request.blocks[deepest - 1], candidate.uncached_tokens)
        self._note(candidate.address, request, now)
        self.ejections.pause(candidate.address, self.hosted_limits.sent(candidate.address, now), now)
        return self._loads.start(candidate.address, candidate.uncached_tokens, now, is_watched=is_watched)

    def used(self, address: str, tokens: int, now: float) -> None:
        """A request at an endpoint took so many tokens, which a hosted one may count."""
        self.ejections.pause(address, self.hosted_limits.used(address, tokens, now), now)

    def heard(
        self, address: str, request: RoutingRequest, uncached_tokens: int, now: float, *, is_watched: bool = True
    ) -> InFlight:
        """Another gateway that shares its state has sent a request; its end will be told as well.

        ``is_watched``: so will its first token.
        """
        self._note(address, request, now)
        return self._loads.start(address, uncached_tokens, now, is_watched=is_watched)

    def _note(self, address: str, request: RoutingRequest, now: float) -> None:
        if self._policy.uses_prefixes:
            index = self._indexes.of(request.block_tokens)
            index.note(address, request.blocks, now)
            if request.session is not None:
                index.note(address, (request.session,), now)

    def _candidates(self, request: RoutingRequest, names: Sequence[str], now: float) -> list[Candidate]:
        index = self._indexes.of(request.block_tokens)
        depths = index.depths(request.blocks, now) if self._policy.uses_prefixes else {}
        homes = index.depths((request.session,), now) if request.session is not None else {}
        common = self._common_tokens(request, [depths.get(name, 0) for name in names]) if depths else 0
        whole, found = request.prompt_tokens or 1, []
        for name, load in zip(names, self._loads.loads(names, now), strict=True):
            cached = depths.get(name, 0) * request.block_tokens
            if name in homes:
                cached = max(cached, int(_SESSION_SHARE * request.prompt_tokens))
            if cached or common:
                uncached, priced = whole - cached, whole - max(cached, common)
                found.append(Candidate(name, load, cached, max(1, uncached), max(1, priced)))
            else:
                found.append(Candidate(name, load, 0, whole, whole))
        return found

    def _common_tokens(self, request: RoutingRequest, depths: Sequence[int]) -> int:
        """The tokens of a prefix that is worth a place at one more endpoint, else 0."""
        deepest = max(depths)
        if deepest == 0 or request.session is not None:
            return 0
        tokens = deepest * request.block_tokens
        worth = _SPREAD_WORK * tokens * depths.count(deepest)
        work = self._indexes.of(request.block_tokens).work_tokens(request.blocks[deepest - 1])
        return tokens if work >= worth else 0

    def saturations(self, addresses: Iterable[str], now: float) -> list[float]:
        """How full each endpoint is by its own metrics, 1.0 = full; stale metrics count as full."""
        return [load.saturation for load in self._loads.loads(addresses, now)]

    def roomy(
        self, endpoints: Iterable[GatewayEndpoint], now: float, lead_seconds: float = LEAD_SECONDS
    ) -> tuple[GatewayEndpoint, ...]:
        """The endpoints that should get something more now, by their metrics and by what was sent to them."""
        names = self._open([one.address for one in endpoints if not one.is_draining], now)
        free = {name for name in names if self._loads.fullness(name, now, lead_seconds) < 1.0}
        return tuple(endpoint for endpoint in endpoints if endpoint.address in free)

    def is_any_roomy(self, endpoints: Iterable[GatewayEndpoint], now: float) -> bool:
        """Whether one of the endpoints should get something more now."""
        for name in self._open([one.address for one in endpoints if not one.is_draining], now):
            if self._loads.fullness(name, now) < 1.0:
                return True
        return False

    def has_room(self, address: str, now: float) -> bool:
        """Whether one endpoint should get something more now; whether it is ejected is not asked."""
        return not self._is_full(address) and self._loads.fullness(address, now, LEAD_SECONDS) < 1.0

    # --- What engines and the snapshot say ---
    def measured(self, address: str, metrics: EngineMetrics) -> None:
        """An engine's metrics were read."""
        self._loads.measured(address, metrics)

    def capacity(self, address: str, tokens: int) -> None:
        """An engine has said how many tokens of prompts it can hold, host memory included."""
        self._indexes.set_capacity(address, tokens)

    def cut_into(self, address: str, block_tokens: int) -> None:
        """An engine has said into blocks of how many tokens it cuts prompts."""
        self._block_tokens[address] = block_tokens

    def block_tokens(self, arms: Iterable[GatewayArm]) -> int | None:
        """Into blocks of how many tokens the engines of a route cut prompts; ``None`` = none has said so."""
        if not self._block_tokens:
            return None
        addresses = (endpoint.address for arm in arms for endpoint in arm.endpoints)
        return next((self._block_tokens[address] for address in addresses if address in self._block_tokens), None)

    def stored(self, address: str, blocks: Sequence[Block], block_tokens: int, now: float) -> None:
        """An engine has said that it holds these blocks of one prompt."""
        self._indexes.of(block_tokens).note(address, blocks, now)

    def removed(self, address: str, blocks: Iterable[Block], block_tokens: int) -> None:
        """An engine has said that it no longer holds these blocks."""
        self._indexes.of(block_tokens).drop(address, blocks)

    def cleared(self, address: str) -> None:
        """An engine has said that it holds nothing."""
        self._indexes.reset(address)

    def restarted(self, address: str) -> None:
        """An engine is a new process: its cache and its queue are empty."""
        self._indexes.reset(address)
        self._loads.restarted(address)

    def keep_only(self, addresses: Collection[str], pools: Collection[str]) -> None:
        """Forget endpoints and arms that are no longer in the snapshot."""
        self._indexes.keep_only(addresses)
        self._block_tokens = {name: size for name, size in self._block_tokens.items() if name in addresses}
        self._loads.keep_only(addresses)
        self.ejections.keep_only(addresses)
        self._turns = {pool: turn for pool, turn in self._turns.items() if pool in pools}

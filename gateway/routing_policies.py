"""How an endpoint is chosen: filters leave some out, scorers price the others, a picker orders them by price. Pure.

A policy is a name for one of each kind; every part has one method. Prices are in seconds where they can be.
"""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from random import Random
from typing import NamedTuple, Protocol

from gateway.load import Load
from gateway.prefix_index import Block
from gateway.reach import Reach


class PolicyName(StrEnum):
    """The policies by name."""

    ROUND_ROBIN = "round_robin"
    RANDOM = "random"
    LEAST_REQUEST = "least_request"
    POWER_OF_TWO = "power_of_two"
    CONSISTENT_HASH = "consistent_hash"
    ESTIMATED_TTFT = "estimated_ttft"


class RoutingRequest(NamedTuple):
    """What the router knows of a request; nothing of its text."""

    blocks: tuple[Block, ...] = ()
    """Chained hashes of the full blocks of the prompt, salt and model in the root."""
    block_tokens: int = 1
    prompt_tokens: int = 0
    session: int | None = None
    """A hash of the client's session, where it sends one and the route takes it."""
    reach: Reach | None = None
    """Where it can get to; ``None`` = to every endpoint."""


class Candidate(NamedTuple):
    """One endpoint that may take the request."""

    address: str
    load: Load
    cached_tokens: int = 0
    uncached_tokens: int = 0
    priced_tokens: int = 0
    """As the uncached tokens, except where the prefix is to spread: then the same for all."""

    @property
    def ttft_seconds(self) -> float:
        """The estimate of the time to first token there."""
        return (self.load.queued_tokens + self.uncached_tokens) / self.load.tokens_per_second


class Situation(NamedTuple):
    """What filters and scorers may look at beside one candidate."""

    request: RoutingRequest
    candidates: Sequence[Candidate]
    turn: int = 0


class Filter(Protocol):
    """Leaves out endpoints that should not take the request."""

    def keep(self, situation: Situation) -> Sequence[Candidate]:
        """The candidates that may take it; none means that this filter has no say."""
        ...


class Scorer(Protocol):
    """Says what an endpoint would cost."""

    def score(self, candidate: Candidate, situation: Situation) -> float:
        """The price; less is better."""
        ...


class Picker(Protocol):
    """Orders the candidates."""

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """The candidates, best first."""
        ...


# --- Filters -------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class KvMemoryLeft:
    """Leaves out endpoints whose KV memory is nearly used up: a new request would wait or push others out."""

    most: float = 0.95

    def keep(self, situation: Situation) -> Sequence[Candidate]:
        """Those with memory left."""
        return [candidate for candidate in situation.candidates if candidate.load.kv_usage < self.most]


@dataclass(frozen=True, slots=True)
class BoundedLoad:
    """Leaves out endpoints that would hold more than their bounded share of the requests in flight."""

    factor: float = 1.25

    def keep(self, situation: Situation) -> Sequence[Candidate]:
        """Those below the bound."""
        candidates = situation.candidates
        total = sum(candidate.load.in_flight for candidate in candidates) + 1
        bound = math.ceil(self.factor * total / len(candidates))
        return [candidate for candidate in candidates if candidate.load.in_flight < bound]


# --- Scorers -------------------------------------------------------------------------------------------------------
class Turn:
    """How many places away the turn is."""

    def score(self, candidate: Candidate, situation: Situation) -> float:
        """0 for the one whose turn it is."""
        candidates = situation.candidates
        return (candidates.index(candidate) - situation.turn) % len(candidates)


class RequestsInFlight:
    """Requests that have not ended."""

    def score(self, candidate: Candidate, situation: Situation) -> float:
        """Their number."""
        return candidate.load.in_flight


class Attraction:
    """Rendezvous hashing of the session, else of the first two blocks: one home that outlives changes of the others."""

    def score(self, candidate: Candidate, situation: Situation) -> float:
        """A number that only (prompt, endpoint) decide."""
        request = situation.request
        key = request.session if request.session is not None else request.blocks[:2][-1] if request.blocks else 0
        data = f"{key}\0{candidate.address}".encode()
        return int.from_bytes(hashlib.blake2b(data, digest_size=6).digest(), "big")


@dataclass(frozen=True, slots=True)
class TimeToFirstToken:
    """Seconds until the first token: the prompts before it, then what of its own prompt is not cached.

    What it has to compute delays those behind it as well, so that it counts for more than the own wait: endpoints that
    hold the prefix keep the request until they are busier than the prefix is worth.
    """

    own_work_weight: float = 1.5
    running_tokens: float = 16.0
    """What a running request costs a new prompt: it takes part in every step while that is computed."""

    def score(self, candidate: Candidate, situation: Situation) -> float:
        """The estimate."""
        load = candidate.load
        work = load.queued_tokens + self.own_work_weight * candidate.priced_tokens
        return (work + self.running_tokens * load.in_flight) / load.tokens_per_second


# --- Pickers -------------------------------------------------------------------------------------------------------
class Cheapest:
    """By price; equals in random order."""

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """The cheapest first."""
        ranked = sorted((price, chance.random(), place) for place, (price, _) in enumerate(priced))
        return [priced[place][1] for _, _, place in ranked]


class Shuffled:
    """By chance alone."""

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """Any order, each as likely as the other."""
        candidates = [candidate for _, candidate in priced]
        chance.shuffle(candidates)
        return candidates


class BetterOfTwo:
    """The cheaper of two that chance picks, then the other one, then the rest by chance."""

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """The better of two first."""
        drawn = chance.sample(range(len(priced)), len(priced))
        drawn[:2] = sorted(drawn[:2], key=lambda place: priced[place][0])
        return [priced[place][1] for place in drawn]


@dataclass(frozen=True, slots=True)
class CheapestOfEquals:
    """By price, but prices that differ by little count as equal: of those the endpoint that was given least goes first.

    So a quiet fleet uses all its endpoints, and their caches. Where places are few, the one with the fewest requests
    goes first instead: an endpoint without a place is lost to whoever comes next, however little it has to compute.
    """

    tolerance: float = 0.05
    places_are_few: bool = False

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """The cheapest first."""
        limit = min([price for price, _ in priced]) * (1 + self.tolerance)
        ranked = []
        for place, (price, candidate) in enumerate(priced):
            is_dear, load = price > limit, candidate.load
            requests = load.in_flight if self.places_are_few and not is_dear else 0
            ranked.append((is_dear, requests, price if is_dear else load.given_tokens, chance.random(), place))
        ranked.sort()
        return [priced[rank[4]][1] for rank in ranked]


@dataclass(frozen=True, slots=True)
class Blurred:
    """By price with a chance in it: gateways that decide at the same moment would else all take the same endpoint."""

    share: float = 0.3

    def order(self, priced: Sequence[tuple[float, Candidate]], chance: Random) -> list[Candidate]:
        """The cheapest first, more or less."""
        ranked = sorted((price * (1 + self.share * chance.random()), place) for place, (price, _) in enumerate(priced))
        return [priced[place][1] for _, place in ranked]


# --- Policies ------------------------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Policy:
    """One way to choose."""

    scorer: Scorer
    picker: Picker
    filters: tuple[Filter, ...] = ()
    uses_prefixes: bool = False

    def order(self, situation: Situation, chance: Random) -> list[Candidate]:
        """All candidates, best first; those that filters left out come last."""
        if len(situation.candidates) == 1:
            return list(situation.candidates)
        kept = situation
        for rule in self.filters:
            left = rule.keep(kept)
            if 0 < len(left) < len(kept.candidates):
                kept = kept._replace(candidates=left)
        ordered = self._ordered(kept, situation, chance)
        if len(ordered) < len(situation.candidates):
            left_out = [candidate for candidate in situation.candidates if candidate not in kept.candidates]
            ordered += self._ordered(situation._replace(candidates=left_out), situation, chance)
        return ordered

    def _ordered(self, chosen: Situation, whole: Situation, chance: Random) -> list[Candidate]:
        priced = [(self.scorer.score(candidate, whole), candidate) for candidate in chosen.candidates]
        return self.picker.order(priced, chance)


POLICIES: Mapping[PolicyName, Policy] = {
    PolicyName.ROUND_ROBIN: Policy(Turn(), Cheapest()),
    PolicyName.RANDOM: Policy(RequestsInFlight(), Shuffled()),
    PolicyName.LEAST_REQUEST: Policy(RequestsInFlight(), Cheapest()),
    PolicyName.POWER_OF_TWO: Policy(RequestsInFlight(), BetterOfTwo()),
    PolicyName.CONSISTENT_HASH: Policy(Attraction(), Cheapest(), (BoundedLoad(),), uses_prefixes=True),
    PolicyName.ESTIMATED_TTFT: Policy(TimeToFirstToken(), CheapestOfEquals(), (KvMemoryLeft(),), uses_prefixes=True),
}


def policy_of(name: PolicyName, gateways: int) -> Policy:
    """A policy, for one gateway or several that decide side by side."""
    policy = POLICIES[name]
    if gateways > 1 and isinstance(policy.picker, CheapestOfEquals):
        return replace(policy, picker=Blurred())
    return policy


def for_few_places(policy: Policy) -> Policy:
    """The same policy, for routes whose places at endpoints run out."""
    if isinstance(policy.picker, CheapestOfEquals):
        return replace(policy, picker=replace(policy.picker, places_are_few=True))
    return policy

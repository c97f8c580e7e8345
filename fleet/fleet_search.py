"""Which choice for each deployment: all combinations where they are few, else good starts improved by moves.

A choice is an option of a deployment on a pool. Scores are compared left to right: deployments left out, nodes whose
price isn't known, dollars an hour, nodes, ranks of the options.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

from fleet.node_pools import NodePool
from fleet.pool_filling import Load, fill, nodes_of_load

EXHAUSTIVE_COMBINATIONS = 2_000
MOVES = 8
"""Rounds in which every deployment may move once."""
Score = tuple[int, int, float, int, int]
_WORST: Score = (sys.maxsize, 0, 0.0, 0, 0)


@dataclass(frozen=True, slots=True)
class Choice:
    """A deployment's option on a pool, by their places."""

    pool: int
    option: int
    load: Load


Chosen = tuple[Choice | None, ...]


@dataclass(frozen=True, slots=True)
class Searched:
    """The best found; ``None`` = the deployment is left out."""

    chosen: Chosen
    is_exhaustive: bool


def search(
    choices: Sequence[tuple[Choice, ...]], pools: Sequence[NodePool], node_prices: Sequence[float | None]
) -> Searched:
    """The best choice for every deployment; ``node_prices`` are dollars an hour of one node of each pool."""
    scale = _Scale(pools, node_prices)
    starts = (_stepped(choices, scale), _stepped([_cheapest(some, scale) for some in choices], scale))
    moved = [_moved(start, choices, scale) for start in starts]
    good = min(moved, key=lambda chosen: scale.score(chosen) or _WORST)
    if prod(len(some) + 1 for some in choices) > EXHAUSTIVE_COMBINATIONS:
        return Searched(good, False)
    every = _Every(choices, scale, good, scale.score(good))
    every.run(())
    return Searched(every.best, True)


@dataclass
class _Scale:
    """Weighs choices; what a pool needs for some loads is worked out once."""

    pools: Sequence[NodePool]
    node_prices: Sequence[float | None]
    _known: dict[tuple[tuple[int, int], ...], int] = field(default_factory=dict)

    def score(self, chosen: Chosen) -> Score | None:
        """The score, or ``None`` when a pool has too few nodes."""
        by_pool: dict[int, list[tuple[int, Choice]]] = {}
        for index, choice in enumerate(chosen):
            if choice is not None:
                by_pool.setdefault(choice.pool, []).append((index, choice))
        unpriced, usd, nodes = 0, 0.0, 0
        for place, there in by_pool.items():
            needed, price = self._nodes(place, there), self.node_prices[place]
            most = self.pools[place].max_nodes
            if most is not None and needed > most:
                return None
            unpriced += needed if price is None else 0
            usd += needed * (price or 0.0)
            nodes += needed
        ranks = sum(choice.option for there in by_pool.values() for _, choice in there)
        return chosen.count(None), unpriced, round(usd, 6), nodes, ranks

    def _nodes(self, pool: int, there: list[tuple[int, Choice]]) -> int:
        key = ((pool, -1), *((index, choice.option) for index, choice in there))
        if key not in self._known:
            self._known[key] = len(fill(self.pools[pool], [choice.load for _, choice in there]).nodes)
        return self._known[key]


def _stepped(choices: Sequence[tuple[Choice, ...]], scale: _Scale) -> Chosen:
    """The least free and largest first, each where the fleet so far stays cheapest."""
    chosen: list[Choice | None] = [None] * len(choices)
    for index in sorted(range(len(choices)), key=lambda at: (len(choices[at]), -_gpus(choices[at]), at)):
        chosen[index] = _best_of(index, choices[index], chosen, scale)
    return tuple(chosen)


def _cheapest(some: tuple[Choice, ...], scale: _Scale) -> tuple[Choice, ...]:
    """The one choice whose part of a node costs least, as if others filled the rest; none where there is none."""

    def cost(choice: Choice) -> tuple[bool, float, int]:
        price = scale.node_prices[choice.pool]
        return price is None, (price or 0.0) * nodes_of_load(scale.pools[choice.pool], choice.load), choice.option

    return (min(some, key=cost),) if some else ()


def _moved(chosen: Chosen, choices: Sequence[tuple[Choice, ...]], scale: _Scale) -> Chosen:
    """Each deployment in turn moves to where the whole fleet scores best, until none moves."""
    current = list(chosen)
    for _ in range(MOVES):
        before = list(current)
        for index, some in enumerate(choices):
            current[index] = _best_of(index, some, current, scale)
        if current == before:
            break
    return tuple(current)


def _best_of(index: int, some: tuple[Choice, ...], chosen: list[Choice | None], scale: _Scale) -> Choice | None:
    best: Choice | None = None
    best_score: Score | None = None
    for choice in some:
        score = scale.score((*chosen[:index], choice, *chosen[index + 1 :]))
        if score is not None and (best_score is None or score < best_score):
            best, best_score = choice, score
    return best


def _gpus(some: tuple[Choice, ...]) -> int:
    return min((choice.load.gpus * choice.load.replicas for choice in some), default=0)


@dataclass
class _Every:
    """Depth first over all combinations; a pool that is already too full ends a branch."""

    choices: Sequence[tuple[Choice, ...]]
    scale: _Scale
    best: Chosen
    best_score: Score | None

    def run(self, chosen: Chosen) -> None:
        score = self.scale.score(chosen)
        if score is None or (self.best_score is not None and score[0] > self.best_score[0]):
            return
        if len(chosen) < len(self.choices):
            for choice in (*self.choices[len(chosen)], None):
                self.run((*chosen, choice))
        elif self.best_score is None or score < self.best_score:
            self.best, self.best_score = chosen, score

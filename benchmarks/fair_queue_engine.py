"""One modelled engine of the fair-queue benchmark.

It batches continuously: each step computes one token for every answer that is being written and, within a budget of
tokens, chunks of prompts in the order in which they came. How long a step takes is the reference model of
`simulator.latency` (10,000 prompt tokens a second, 0.03 s a decode step, a little more for each further answer), its
noise included. So many requests run at once, as long as their tokens fit into its memory; the others wait inside of it,
first come first served.
"""

import heapq
from collections import Counter, defaultdict, deque
from collections.abc import Iterable
from dataclasses import dataclass

from gateway.service_cost import OUTPUT_TOKEN
from simulator.latency import LatencyModel
from simulator.settings import Pace

Served = defaultdict[str, float]
"""The service that each tenant has got."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The engines, and what the route says."""

    engines: int = 4
    most_running: int = 48
    """Requests that one engine runs at once."""
    step_tokens: int = 2_048
    kv_tokens: int = 800_000
    concurrent_requests: int | None = None
    """Of the route."""


@dataclass(slots=True, eq=False)
class Asked:
    """One request and what became of it."""

    at: float
    tenant: str
    input_tokens: int
    output_tokens: int
    weight: float = 1.0
    first_token_at: float = 0.0
    computed: int = 0

    @property
    def ttft_seconds(self) -> float:
        """From its arrival at the gateway."""
        return self.first_token_at - self.at

    @property
    def tokens(self) -> int:
        """What it takes of an engine's memory."""
        return self.input_tokens + self.output_tokens


class Engine:
    """One engine."""

    def __init__(self, fleet: Fleet, seed: int) -> None:
        self._fleet = fleet
        self._latency = LatencyModel(Pace(seed=seed))
        self.waiting: deque[Asked] = deque()
        self._prefilling: deque[Asked] = deque()
        self._ends: list[tuple[int, int, Asked]] = []
        """(step of the last token, order, request) of the answers that are being written."""
        self._writing: Counter[str] = Counter()
        self._steps = self._order = 0
        self._kv_tokens = 0
        self.is_stepping = False

    @property
    def running(self) -> int:
        """Requests that are being computed."""
        return len(self._prefilling) + len(self._ends)

    @property
    def kv_usage(self) -> float:
        """How full its memory is."""
        return self._kv_tokens / self._fleet.kv_tokens

    def plan(self) -> tuple[list[tuple[Asked, int]], float]:
        """The chunks of prompts of the next step, and its seconds; 0 = there is nothing to do."""
        chunks: list[tuple[Asked, int]] = []
        left = self._fleet.step_tokens - len(self._ends)
        for asked in self._prefilling:
            left -= _chunk(asked, left, chunks)
        while left > 0 and self.waiting and self._has_room(self.waiting[0]):
            asked = self.waiting.popleft()
            self._prefilling.append(asked)
            self._kv_tokens += asked.tokens
            left -= _chunk(asked, left, chunks)
        tokens = sum(chunk for _, chunk in chunks)
        return chunks, self._latency.step_seconds(tokens, len(self._ends)) if tokens or self._ends else 0.0

    def commit(self, chunks: Iterable[tuple[Asked, int]], served: Served) -> tuple[list[Asked], list[Asked]]:
        """The step is done: whose first token came, and who is finished; what was served is added up by tenant."""
        self._steps += 1
        for tenant, count in self._writing.items():
            served[tenant] += OUTPUT_TOKEN * count
        begun: list[Asked] = []
        for asked, chunk in chunks:
            asked.computed += chunk
            served[asked.tenant] += chunk
            if asked.computed == asked.input_tokens:
                served[asked.tenant] += OUTPUT_TOKEN
                begun.append(asked)
                self._write(asked)
        done: list[Asked] = []
        while self._ends and self._ends[0][0] <= self._steps:
            asked = heapq.heappop(self._ends)[2]
            self._writing[asked.tenant] -= 1
            self._kv_tokens -= asked.tokens
            done.append(asked)
        return begun, done

    def _write(self, asked: Asked) -> None:
        self._prefilling.remove(asked)
        self._order += 1
        heapq.heappush(self._ends, (self._steps + asked.output_tokens - 1, self._order, asked))
        self._writing[asked.tenant] += 1

    def _has_room(self, asked: Asked) -> bool:
        return self.running < self._fleet.most_running and self._kv_tokens + asked.tokens <= self._fleet.kv_tokens


def _chunk(asked: Asked, left: int, chunks: list[tuple[Asked, int]]) -> int:
    chunk = max(0, min(left, asked.input_tokens - asked.computed))
    if chunk:
        chunks.append((asked, chunk))
    return chunk

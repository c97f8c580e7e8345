"""The gateways of a replay: each drives a real router as a gateway does, and learns late what the others did."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from random import Random

from fleet.snapshot import GatewayEndpoint
from gateway.router import EngineMetrics, InFlight, Router, RouterSettings, RoutingRequest

SHARING_DELAY_SECONDS = 0.05
"""From one gateway's word to the others, and from an engine's KV event to the gateways: more than it takes through a
real server, where notes of 20 ms go together (benchmarks/routing_notes.py)."""


class Sharing(StrEnum):
    """What several gateways know of each other."""

    NONE = "none"
    KV_EVENTS = "kv-events"
    STATE = "state"


@dataclass(slots=True)
class Sent:
    """A request on its way through one endpoint: the sender's count, and those of the gateways that were told."""

    address: str
    request: RoutingRequest
    uncached_tokens: int
    own: InFlight
    told: list[InFlight] = field(default_factory=list)


class Gateways:
    """All gateways; a request comes to any of them by chance."""

    def __init__(
        self, count: int, settings: RouterSettings, capacity_tokens: int, block_tokens: int, replicas: int, seed: int
    ) -> None:
        self.routers = [Router(settings) for _ in range(count)]
        self._block_tokens = block_tokens
        self._chance = Random(seed)  # noqa: S311 (a simulation must be repeatable)
        for router in self.routers:
            for index in range(replicas):
                router.capacity(address_of(index), capacity_tokens)

    def any(self) -> int:
        """The gateway that the next request comes to."""
        return self._chance.randrange(len(self.routers)) if len(self.routers) > 1 else 0

    def send(self, gateway: int, request: RoutingRequest, endpoints: Iterable[GatewayEndpoint], now: float) -> Sent:
        """One gateway decides and sends."""
        router = self.routers[gateway]
        choice = router.choose(request, endpoints, now, self._chance)
        first = choice.candidates[0]
        return Sent(first.address, request, first.uncached_tokens, router.send(choice, now))

    def tell_others(self, gateway: int, sent: Sent, now: float) -> None:
        """The other gateways hear of a request."""
        for router in self.others(gateway):
            if not sent.own.has_ended:
                sent.told.append(router.heard(sent.address, sent.request, sent.uncached_tokens, now))

    def others(self, gateway: int) -> list[Router]:
        """All but one."""
        return [router for index, router in enumerate(self.routers) if index != gateway]

    def stored(self, address: str, blocks: Sequence[int], removed: Sequence[int], now: float) -> None:
        """A KV event of an engine reaches every gateway."""
        for router in self.routers:
            router.removed(address, removed, self._block_tokens)
            router.stored(address, blocks, self._block_tokens, now)

    def measured(self, address: str, metrics: EngineMetrics) -> None:
        """An engine's metrics reach every gateway."""
        for router in self.routers:
            router.measured(address, metrics)

    def restarted(self, address: str) -> None:
        """Every gateway sees that an engine is a new process."""
        for router in self.routers:
            router.restarted(address)


def address_of(index: int) -> str:
    """The name of a replica, in the order of the numbers."""
    return f"replica-{index:04d}"

"""Two real engines behind a whole gateway, once for all tests of the tier."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest

from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute, GatewaySnapshot, GatewayTenant
from tests.engine_tier.real_engine import RealEngine, real_engines, why_not
from tests.gateway.conftest import World, end_gateway, make_gateway, wait_for

BOTH, FIRST, SECOND, FILTERED, PARTED = "both", "first", "second", "filtered", "parted"
MODELS = (BOTH, FIRST, SECOND, FILTERED, PARTED)
SERVES = ("chat", "completion", "responses", "messages", "tokenize")
ENGINES = pytest.StashKey[tuple[RealEngine, ...]]()


@dataclass(frozen=True)
class Fleet:
    """What the tests look at."""

    world: World
    gateway: object
    engines: tuple[RealEngine, ...]

    def client(self, tenant: str = "acme") -> httpx2.Client:
        key = {"acme": self.world.acme_key, "globex": self.world.globex_key}[tenant]
        return httpx2.Client(base_url=self.gateway.url, headers={"authorization": f"Bearer {key}"}, timeout=90)

    def records(self, moment: float, count: int = 1) -> list[dict[str, object]]:
        """The usage records of requests since a moment, once so many are there."""

        def found() -> list[dict[str, object]]:
            return [item for item in self.gateway.control_plane.usage if item["admitted_unix_seconds"] >= moment]

        wait_for(lambda: len(found()) >= count, f"{count} usage records", seconds=30)
        return found()


def snapshot_of(world: World, engines: tuple[RealEngine, ...]) -> GatewaySnapshot:
    one, two = (engine.address for engine in engines)
    tenants = ("acme", "globex")

    def route(model: str, *addresses: str, **more: object) -> GatewayRoute:
        endpoints = tuple(GatewayEndpoint(address=address) for address in addresses)
        arm = GatewayArm(deployment=model, identity="0" * 32, engine="vllm", endpoints=endpoints, serves=SERVES)
        return GatewayRoute(model=model, tenants=tenants, arms=(arm,), **more)

    return GatewaySnapshot(
        tenants=tuple(GatewayTenant(name=name) for name in tenants),
        keys=(world.key("k1", world.acme_key, "acme"), world.key("k2", world.globex_key, "globex")),
        routes=(
            route(BOTH, one, two),
            route(FIRST, one),
            route(SECOND, two),
            route(FILTERED, one, output_filter="pii"),
            route(PARTED, one, salts_cache=True),
        ),
    )


@pytest.fixture(scope="session")
def real_fleet(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[Fleet]:
    """Left out where vLLM is not installed or has no room."""
    if missing := why_not():
        pytest.skip(f"tier engine is left out: {missing}")
    folder, world = tmp_path_factory.mktemp("engines"), World()
    with real_engines(2, folder, served=MODELS) as engines:
        request.config.stash[ENGINES] = engines
        gateway = make_gateway(tmp_path_factory.mktemp("gateway"), world)
        gateway.settings["usage"] = {"batch_seconds": 0.1, "sync_seconds": 0.02}
        gateway.publish(snapshot_of(world, engines))
        try:
            gateway.start_decision()
            gateway.start_envoy()
            yield Fleet(world, gateway, engines)
        finally:
            end_gateway(gateway)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what the engines said last."""
    outcome = yield
    report = outcome.get_result()
    if report.failed and Path(__file__).parent in item.path.parents:
        for engine in item.config.stash.get(ENGINES, ()):
            report.sections.append((f"end of {engine.log}", engine.last_words()))

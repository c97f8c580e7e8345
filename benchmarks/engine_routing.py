"""What the product's routing is worth on real engines: sessions of several turns, beside round robin in the same run.

Run: ``python benchmarks/engine_routing.py [--rounds N]``. Two vLLM on this processor (`make tools-engine` installs it)
stand behind one gateway; their pools hold half of the sessions each. Round robin asks them in turn through the same
gateway, by models that have one engine each. Figures are of all turns but the first of each session, which nobody can
have cached. A round has sessions of its own in an order of its own: in turn, what is found again by luck is 0.45 on
average and 0.23 to 0.66 in nine of ten rounds, so one round says little.
"""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx2

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the engines and the gateway are the tests'

from tests.engine_tier.conftest import BOTH, FIRST, MODELS, SECOND, snapshot_of  # noqa: E402
from tests.engine_tier.real_engine import BLOCK, POOL_BLOCKS, RealEngine, real_engines, why_not  # noqa: E402
from tests.engine_tier.sessions import SESSIONS, TURNS, Turn, cached_ratio, play, ttft_p50  # noqa: E402
from tests.gateway.conftest import WholeGateway, World, end_gateway, make_gateway  # noqa: E402

TTFT_RATIO, CACHED, CACHED_IN_TURN = 5.0, 0.9, 0.5
NOTED = ("scrape_failures", "restarts")
"""What the gateway noted of its engines: a machine that is too busy for its figures makes it forget."""
WAYS: dict[str, Callable[[int], str]] = {
    "the product's routing": lambda _: BOTH,
    "round robin": lambda number: (FIRST, SECOND)[number % 2],
}


def main() -> int:
    """Play and print; 1 when a bar is missed, 3 when no engine can run here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    if missing := why_not():
        print(missing, file=sys.stderr)
        return 3
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # the engines end with it
    with (
        tempfile.TemporaryDirectory() as folder,
        real_engines(2, Path(folder), served=MODELS) as engines,
        gateway_of(Path(folder), engines) as (gateway, client),
    ):
        turns = {name: rounds_of(client, way, options.rounds, name) for name, way in WAYS.items()}
        noted = {name: gateway.metric(f"enginehouse_gateway_engine_{name}_total") for name in NOTED}
    print(", ".join(f"{name.replace('_', ' ')} {count:.0f}" for name, count in noted.items()))
    return 1 if shown(turns) else 0


@contextmanager
def gateway_of(folder: Path, engines: tuple[RealEngine, ...]) -> Iterator[tuple[WholeGateway, httpx2.Client]]:
    """A whole gateway in front of the engines, and a client of it."""
    world = World()
    (folder / "gateway").mkdir()
    gateway = make_gateway(folder / "gateway", world)
    gateway.publish(snapshot_of(world, engines))
    try:
        gateway.start_decision()
        gateway.start_envoy()
        headers = {"authorization": f"Bearer {world.acme_key}"}
        with httpx2.Client(base_url=gateway.url, headers=headers, timeout=120) as client:
            yield gateway, client
    finally:
        end_gateway(gateway)


def rounds_of(client: httpx2.Client, way: Callable[[int], str], rounds: int, name: str) -> list[Turn]:
    """The turns of all rounds; the order of requests is the same for each way."""
    return [turn for seed in range(rounds) for turn in play(client, way, seed, name)]


def shown(turns: dict[str, Sequence[Turn]]) -> int:
    """Print both ways and the bars; how many were missed."""
    tokens = next(iter(turns.values()))[-1].prompt_tokens
    print(
        f"{SESSIONS} sessions of {TURNS} turns, up to {tokens} tokens; 2 engines of {POOL_BLOCKS * BLOCK} cached tokens"
    )
    for name, found in turns.items():
        cached, first = cached_ratio(found), ttft_p50(found)
        print(f"  {name:<24} TTFT p50 {1000 * first:7.0f} ms   cached tokens {cached:.3f}   turns {len(found)}")
    routed, in_turn = turns.values()
    ratio = ttft_p50(in_turn) / ttft_p50(routed)
    bars = (
        (ratio >= TTFT_RATIO, f"TTFT p50 is {ratio:.1f} times better (at least {TTFT_RATIO:g})"),
        (cached_ratio(routed) >= CACHED, f"cached tokens of the product's routing >= {CACHED:g}"),
        (cached_ratio(in_turn) < CACHED_IN_TURN, f"cached tokens of round robin < {CACHED_IN_TURN:g}"),
    )
    for is_met, claim in bars:
        print(f"  {'met   ' if is_met else 'MISSED'} {claim}")
    return sum(not is_met for is_met, _ in bars)


if __name__ == "__main__":
    sys.exit(main())

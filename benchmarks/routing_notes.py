"""How soon gateways hear of each other through a real Valkey or Redis server, and what the replay assumes.

Run: ``python benchmarks/routing_notes.py [--requests N]``. Two of the gateway's routers, each with its own connections;
one sends requests, and the other's index is asked until it knows of each. `benchmarks/routing.py` replays two gateways
with that delay. Needs valkey-server or redis-server (Debian: apt-get install redis-server); else its row says so.
"""

import argparse
import asyncio
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the server is the tests'

from gateway.valkey_settings import SharedStateSettings  # noqa: E402
from simulator.replay_gateways import SHARING_DELAY_SECONDS  # noqa: E402
from tests.gateway.notes_delay import delays  # noqa: E402
from tests.gateway.shared_servers import MISSING, PROGRAM, SharedServer  # noqa: E402


def main() -> int:
    """Measure and print; 1 when the simulator assumes less than is true, 3 when there is no server."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=500)
    options = parser.parse_args()
    if PROGRAM is None:
        print(MISSING)
        return 3
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as folder:
        server = SharedServer(Path(folder), keeps=False)
        server.start()
        try:
            settings = SharedStateSettings(url=server.url, prefix="benchmark", timeout_seconds=5)
            found = asyncio.run(delays(settings, options.requests))
        finally:
            server.kill()
    half, most = (1000 * found[int(share * (len(found) - 1))] for share in (0.5, 0.99))
    print(f"{len(found)} notes through {Path(PROGRAM).name}, load {load:.1f}: p50 {half:.1f} ms, p99 {most:.1f} ms")
    is_met = half <= 1000 * SHARING_DELAY_SECONDS
    print(f"  {'met   ' if is_met else 'MISSED'} p50 <= {1000 * SHARING_DELAY_SECONDS:g} ms, which the replay assumes")
    return 0 if is_met else 1


if __name__ == "__main__":
    sys.exit(main())

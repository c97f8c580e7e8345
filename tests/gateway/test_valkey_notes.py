"""Two routers with a real server between them: what one sends, the other believes as soon as the simulator assumes."""

import statistics

import pytest

from gateway.valkey_settings import SharedStateSettings
from simulator.replay_gateways import SHARING_DELAY_SECONDS
from tests.gateway.notes_delay import delays
from tests.gateway.shared_servers import SharedServer

pytestmark = pytest.mark.valkey
REQUESTS = 60


async def test_notes_reach_the_other_gateways_index_within_the_delay_that_the_simulator_assumes(tmp_path):
    server = SharedServer(tmp_path, keeps=False)
    server.start()
    try:
        found = await delays(SharedStateSettings(url=server.url, prefix="delay", timeout_seconds=5), REQUESTS)
    finally:
        server.kill()
    assert len(found) == REQUESTS
    assert statistics.median(found) <= SHARING_DELAY_SECONDS

"""A gateway of two workers behind one Envoy: what they share, and what the death of one costs."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from tests.gateway.conftest import DEADLINE_SECONDS, START_SECONDS, end_gateway, make_gateway, wait_for

BODY = {"model": "acme-chat", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 4}


PAUSE_SECONDS = 0.6


def start_two(made):
    made.settings["workers"] = 2
    file = made.folder / "settings.json"
    file.write_text(json.dumps(made.settings))
    with (made.folder / "gateway.log").open("ab") as log:
        command = [sys.executable, "-m", "gateway", "--settings", str(file)]
        made.decision = subprocess.Popen(command, stderr=log, stdout=log)
    wait_for(Path(str(made.settings["ready_file"])).exists, "the ready file", START_SECONDS)


@pytest.fixture(scope="module")
def pair(tmp_path_factory, world):
    made = make_gateway(tmp_path_factory.mktemp("pair"), world)
    try:
        start_two(made)
        made.start_envoy()
        yield made
    finally:
        end_gateway(made)


@pytest.fixture
def gateway(pair, world, until):
    """The pair as it was: one engine, no limit, two workers that serve."""
    pair.one.go_on.clear()
    pair.one.heads.clear()
    pair.one.aborted = 0
    until(lambda: pair.metric("enginehouse_gateway_workers ") == 2, "two workers", START_SECONDS)
    publish(pair, world.snapshot(pair.one.address), until)
    assert "x-ratelimit-limit-requests" not in ask(pair, world).headers
    return pair


def publish(gateway, snapshot, until):
    """Each worker follows the control plane for itself: one that is late would decide by the snapshot before."""
    is_there = gateway.control_plane.snapshot.etag == snapshot.etag
    gateway.publish(snapshot)
    published = time.monotonic()

    def both_have_it():
        ages = ages_of_snapshots(gateway)
        return len(ages) == 2 and (is_there or max(ages) < time.monotonic() - published)

    until(both_have_it, "the snapshot at both workers", START_SECONDS)


def ages_of_snapshots(gateway):
    """In those workers that have one."""
    page = httpx2.get(gateway.ready["metrics_url"]).text.splitlines()
    ages = [line.rsplit(" ", 1)[1] for line in page if line.startswith("enginehouse_gateway_snapshot_age")]
    return [float(age) for age in ages if age != "NaN"]


def ask(gateway, world, **more):
    key = {"authorization": f"Bearer {world.acme_key}"}
    return httpx2.post(f"{gateway.url}/v1/chat/completions", json=BODY | more, headers=key, timeout=20)


def allowed(gateway):
    """Of each worker."""
    page = httpx2.get(gateway.ready["metrics_url"]).text.splitlines()
    lines = [line for line in page if line.startswith("enginehouse_gateway_requests_total") and '"allowed"' in line]
    return {line.partition('worker="')[2][0]: float(line.rsplit(" ", 1)[1]) for line in lines}


def test_both_workers_serve_and_one_page_names_their_figures(gateway, world, until):
    before = sum(allowed(gateway).values())
    for _ in range(20):
        assert ask(gateway, world).status_code == 200
    assert set(allowed(gateway)) == {"0", "1"}
    assert sum(allowed(gateway).values()) == before + 20
    assert gateway.metric("enginehouse_gateway_workers ") == 2
    base = str(gateway.ready["metrics_url"]).removesuffix("/metrics")
    assert httpx2.get(f"{base}/readyz").status_code == 200
    assert httpx2.get(f"{base}/livez").status_code == 200
    assert httpx2.get(f"{base}/other").status_code == 404
    page = httpx2.get(str(gateway.ready["metrics_url"])).text
    about = [line for line in page.splitlines() if line.startswith("# TYPE")]
    assert len(about) == len(set(about))


def test_a_stream_comes_back_to_the_worker_that_admitted_it(gateway, world):
    gateway.one.go_on.set()
    for _ in range(10):
        answer = ask(gateway, world, stream=True)
        assert answer.status_code == 200
        assert b"[DONE]" in answer.content


def test_requests_without_the_guard_end_in_the_worker_that_admitted_them(gateway, world, until):
    publish(gateway, world.snapshot(gateway.one.address, is_guarded=False), until)
    before = gateway.metric("enginehouse_gateway_requests_ended_total")
    for _ in range(10):
        assert ask(gateway, world).status_code == 200
    until(lambda: gateway.metric("enginehouse_gateway_requests_ended_total") == before + 10, "every end")


def test_workers_together_admit_no_more_than_a_budget(gateway, world, until):
    limit = 30
    publish(gateway, world.snapshot(gateway.one.address, requests_per_minute=limit), until)
    assert "x-ratelimit-limit-requests" in ask(gateway, world).headers
    started, before = time.monotonic(), sum(allowed(gateway).values())
    with ThreadPoolExecutor(8) as pool:
        statuses = list(pool.map(lambda _: ask(gateway, world).status_code, range(120)))
    seconds = time.monotonic() - started
    assert set(statuses) == {200, 429}
    most = limit + seconds * limit / 60 + 1
    assert limit - 8 <= statuses.count(200) + min(before, 2) <= most + 2


def test_workers_that_are_busy_for_a_moment_are_asked_once(gateway, world):
    before, workers = sum(allowed(gateway).values()), gateway.ready["workers"]

    def wake():
        for pid in workers:
            os.kill(pid, signal.SIGCONT)

    waking = threading.Timer(PAUSE_SECONDS, wake)
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    waking.start()
    try:
        with ThreadPoolExecutor(8) as pool:
            statuses = list(pool.map(lambda _: ask(gateway, world).status_code, range(8)))
    finally:
        waking.join()
    assert statuses == [200] * 8
    assert sum(allowed(gateway).values()) == before + 8


def test_a_killed_worker_ends_its_own_streams_alone_and_comes_back(gateway, world, until):
    first, second = gateway.ready["workers"]
    results = []

    def stream():
        key = {"authorization": f"Bearer {world.acme_key}"}
        try:
            with httpx2.stream(
                "POST", f"{gateway.url}/v1/chat/completions", json=BODY | {"stream": True}, headers=key, timeout=30
            ) as answer:
                results.append(b"[DONE]" in b"".join(answer.iter_raw()))
        except httpx2.HTTPError:
            results.append(False)

    before = allowed(gateway)
    threads = [threading.Thread(target=stream) for _ in range(12)]
    for thread in threads:
        thread.start()
    until(lambda: len(gateway.one.heads) >= 12, "the streams")
    running = {worker: count - before.get(worker, 0) for worker, count in allowed(gateway).items()}
    os.kill(first, signal.SIGKILL)
    until(lambda: len(results) >= running["0"], "the streams of the killed worker end")
    assert not any(results)
    assert [ask(gateway, world).status_code for _ in range(20)] == [200] * 20, "the other one decides"
    gateway.one.go_on.set()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
    assert results.count(True) == running["1"]
    until(lambda: gateway.one.aborted == running["0"], "the engine is freed of the lost streams")
    assert gateway.metric('enginehouse_gateway_worker_restarts_total{worker="0"}') >= 1
    until(lambda: len(ages_of_snapshots(gateway)) == 2, "the worker is back", START_SECONDS)
    assert Path(f"/proc/{second}").exists()


def test_workers_end_with_the_process_that_watches_them_and_clients_are_told(gateway_maker, world, until):
    gateway = gateway_maker()
    start_two(gateway)
    gateway.start_envoy()
    workers = gateway.ready["workers"]
    gateway.end(gateway.decision, signal.SIGKILL)
    until(lambda: not any(is_running(pid) for pid in workers), "the end of the workers")
    refused = ask(gateway, world)
    assert refused.status_code == 503
    assert refused.json()["error"]["type"] == "server_error"


def test_told_to_stop_it_ends_everything_with_0(gateway_maker):
    gateway = gateway_maker()
    start_two(gateway)
    workers = gateway.ready["workers"]
    assert gateway.end(gateway.decision) == 0
    assert not any(is_running(pid) for pid in workers)
    assert not Path(str(gateway.settings["ready_file"])).exists()
    assert not list(gateway.folder.glob("d.sock*"))


def is_running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False

"""Time to block: from an advisory in the watched folder until every deployment is marked and that is read back.

Run: ``python benchmarks/block.py [--deployments 10000] [--identities 100]``. It starts a real control plane on SQLite,
with deployments written straight into its database; the advisory and its id are invented and say so.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2

from control_plane.adapters.clock import SystemClock
from control_plane.records import Scope
from control_plane.services.deployments import stored_from
from control_plane.services.tokens import TokenService
from control_plane.settings import settings_of
from control_plane.storage import open_store
from fleet.canonical import digest
from fleet.manifest import PinnedManifest

EXERCISE = "GHSA-exer-cise-0002"
VERSION, FIXED = "0.32.0", "0.33.0"
PAGE = 500
PATIENCE_SECONDS = 120
TARGETS = {1_000: 1.0, 10_000: 5.0}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--deployments", type=int, nargs="*", default=[1_000, 10_000])
    parser.add_argument("--identities", type=int, default=100)
    options = parser.parse_args()
    for count in options.deployments:
        figures = measure(count, min(options.identities, count))
        print(json.dumps(figures))


def measure(count: int, identities: int) -> dict[str, Any]:
    """One run with its own database."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "advisories").mkdir()
        settings = _settings(folder)
        token = _seed(folder, count, identities)
        with (
            _running(folder, settings) as url,
            httpx2.Client(
                base_url=url, headers={"Authorization": f"Bearer {token}"}, timeout=60, trust_env=False
            ) as client,
        ):
            _wait(lambda: len(_with_status(client, "True")) == count)
            known = _head(client)
            started = time.monotonic()
            _drop(folder / "advisories" / "exercise.json")
            refused = _wait(lambda: _is_refused(client)) - started
            # One look per try, so that looking does not slow down what is looked at.
            _wait(lambda: _first(client) == "False")
            marked = _wait(lambda: len(_with_status(client, "False")) == count) - started
            logged = _wait(lambda: _events(client, known) >= count) - started
    return {
        "deployments": count,
        "identities": identities,
        "new_deployment_refused_seconds": round(refused, 3),
        "all_conditions_read_back_seconds": round(marked, 3),
        "audit_events_read_back_seconds": round(logged, 3),
        "target_seconds": TARGETS.get(count),
    }


def _settings(folder: Path) -> dict[str, object]:
    settings: dict[str, object] = {
        "database_url": f"sqlite:///{folder}/state.db",
        "port": 0,
        "metrics_port": 0,
        "advisory_folders": [str(folder / "advisories")],
        "ready_file": str(folder / "ready.json"),
    }
    (folder / "settings.json").write_text(json.dumps(settings))
    return settings


def _document(index: int, identities: int) -> dict[str, Any]:
    group = index % identities
    spec = {
        "workload": "chat",
        "model": {"id": "example/model", "revision": "0" * 40, "quantization": "fp8"},
        "engine": {"name": "vllm", "version": VERSION, "runtime": "process"},
        "batch": {"max_model_len": 4096 + group, "max_num_seqs": 128},
        "hardware": {"instance_type": "p5.48xlarge", "gpus": 2},
        "parallelism": {"tensor": 2},
        "access": {"tenants": [f"tenant-{index % 50}"]},
    }
    pin = {"source_digest": digest({"n": index}), "facts_digest": "", "catalogue_digest": "", "runtime": "process"}
    metadata = {"name": f"bench-{index:05d}"}
    return {"kind": "PinnedInferenceDeployment", "metadata": metadata, "spec": spec, "pin": pin}


def _seed(folder: Path, count: int, identities: int) -> str:
    store = open_store(settings_of(json.loads((folder / "settings.json").read_text())))
    with store.write() as unit:
        for index in range(count):
            manifest = PinnedManifest.model_validate(_document(index, identities))
            unit.deployments.insert(stored_from(manifest, now="2030-01-01T00:00:00.000000Z"))
    token = TokenService(store=store, clock=SystemClock()).create("bench", Scope.OPERATOR)
    store.close()
    return token


@contextmanager
def _running(folder: Path, _settings: dict[str, object]) -> Iterator[str]:
    argv = [sys.executable, "-m", "control_plane", "serve", "--settings", str(folder / "settings.json")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(argv, stdout=log, stderr=log)  # noqa: S603 - our own program
    try:
        ready = folder / "ready.json"
        _wait(ready.exists)
        yield str(json.loads(ready.read_text())["url"])
    finally:
        process.terminate()
        process.wait(timeout=30)


def _drop(path: Path) -> None:
    record = {
        "schema_version": "1.7.0",
        "id": EXERCISE,
        "modified": "2030-01-01T00:00:00Z",
        "affected": [
            {
                "package": {"ecosystem": "PyPI", "name": "vllm"},
                "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": FIXED}]}],
            }
        ],
        "severity": [{"type": "CVSS_V3", "score": "CVSS:3.1/AV:N/AC:L/PR:N/UI:N/S:U/C:H/I:H/A:H"}],
        "database_specific": {"exercise": True},
    }
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(record))
    os.replace(draft, path)


def _wait(holds: Any) -> float:  # noqa: ANN401 - any question without arguments
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            raise SystemExit(f"not reached within {PATIENCE_SECONDS} s")
        time.sleep(0.05)
    return time.monotonic()


def _is_refused(client: httpx2.Client) -> bool:
    document = _document(99_999, 100_000)
    answer = client.put(f"/v1/deployments/{document['metadata']['name']}", json=document, params={"dry_run": "true"})
    return bool(answer.json()["refused"])


def _pages(client: httpx2.Client, path: str, **query: str) -> Iterator[dict[str, Any]]:
    token: str | None = None
    while True:
        params: dict[str, str | int] = {"page_size": PAGE, **query}
        if token is not None:
            params["page_token"] = token
        page = client.get(path, params=params).json()
        yield from page["items"]
        token = page["next_page_token"]
        if token is None:
            return


def _status(item: dict[str, Any]) -> str:
    return next((c["status"] for c in item["status"]["conditions"] if c["type"] == "Compliant"), "none")


def _with_status(client: httpx2.Client, status: str) -> list[str]:
    return [i["metadata"]["name"] for i in _pages(client, "/v1/deployments", view="basic") if _status(i) == status]


def _first(client: httpx2.Client) -> str:
    return _status(client.get("/v1/deployments", params={"page_size": 1, "view": "basic"}).json()["items"][0])


def _head(client: httpx2.Client) -> str:
    return str(client.get("/v1/audit-events:head").json()["sequence"])


def _events(client: httpx2.Client, known: str) -> int:
    events = _pages(client, "/v1/audit-events", after=known)
    return sum(item["action"] == "deployment.not-compliant" for item in events)


if __name__ == "__main__":
    main()

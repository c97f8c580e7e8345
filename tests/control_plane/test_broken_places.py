"""Places that can't be used: a damaged or foreign database, a full disk under the log, an unwritable folder."""

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from control_plane.__main__ import main
from control_plane.settings import read_settings
from control_plane.storage import open_store

DEADLINE_SECONDS = 60.0


@pytest.fixture
def settings(tmp_path):
    (tmp_path / "advisories").mkdir()
    path = tmp_path / "settings.json"
    path.write_text(
        json.dumps(
            {
                "database_url": f"sqlite:///{tmp_path}/state.db",
                "port": 0,
                "metrics_port": 0,
                "ready_file": str(tmp_path / "ready.json"),
                "watch_seconds": 0.05,
                "advisory_folders": [str(tmp_path / "advisories")],
            }
        )
    )
    return path


@pytest.fixture
def database(settings):
    open_store(read_settings(settings)).close()
    return settings.with_name("state.db")


def token(settings: Path) -> int:
    return main(["token", "--settings", str(settings), "--name", "ops", "--scope", "operator"])


def run_sql(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def spoil(path: Path, how: str) -> None:
    good = path.read_bytes()
    contents = {
        "garbage": b"\x01no database" * 1_000,
        "cut": good[: len(good) // 2],
        "one page short": good[:-4096],
        "a spoilt page": good[:8192] + b"\xff" * 12_288 + good[8192 + 12_288 :],
    }
    statements = {
        "newer": "UPDATE alembic_version SET version_num = '9999'",
        "no version": "DELETE FROM alembic_version",
        "no table": "DROP TABLE tokens",
    }
    if how in contents:
        path.write_bytes(contents[how])
    elif how in statements:
        run_sql(path, statements[how])
    else:
        path.unlink()
        run_sql(path, "CREATE TABLE recipes (name TEXT)", "INSERT INTO recipes VALUES ('bread')")


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("garbage", "damaged"),
        ("cut", "damaged"),
        ("one page short", "damaged"),
        ("a spoilt page", "damaged"),
        ("newer", "'9999', which this release does not know"),
        ("no version", "schema version"),
        ("no table", "lost its table 'tokens'"),
        ("another program's", "such as 'recipes'"),
    ],
)
def test_a_database_that_is_none_of_ours_is_named_and_left_as_it_is(settings, database, capfd, how, words):
    spoil(database, how)
    before = database.read_bytes()
    assert token(settings) == 1
    said = capfd.readouterr().err
    assert f"control_plane: {database}: " in said
    assert words in said
    assert "backup" in said
    assert "Traceback" not in said
    assert database.read_bytes() == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the kernel has no /dev/full")
def test_a_log_that_can_not_be_written_stops_no_loop_and_no_request(settings, tmp_path, database, capfd):
    assert token(settings) == 0
    headers = {"Authorization": f"Bearer {capfd.readouterr().out.strip()}"}
    argv = [sys.executable, "-m", "control_plane", "serve", "--settings", str(settings)]
    with Path("/dev/full").open("w") as full:
        server = subprocess.Popen(argv, stdout=full, stderr=full)
    try:
        ready = tmp_path / "ready.json"
        until(lambda: ready.exists() or server.poll() is not None)
        assert server.poll() is None
        with httpx2.Client(base_url=json.loads(ready.read_text())["url"], headers=headers, trust_env=False) as client:
            assert client.get("/v1/deployments").status_code == 200
            assert client.get("/v1/nowhere").status_code == 404
            before = client.get("/v1/facts").text
            (tmp_path / "advisories" / "broken.json").write_text("{")
            until(lambda: client.get("/v1/facts").text != before)  # the loop could not say it and goes on
            (tmp_path / "advisories" / "broken.json").unlink()
            until(lambda: client.get("/v1/facts").text == before)
        server.terminate()
        assert server.wait(DEADLINE_SECONDS) == 0
    finally:
        server.kill()
        server.wait()


def test_a_ready_file_that_can_not_be_written_is_one_sentence(settings, tmp_path, capfd):
    words = json.loads(settings.read_text()) | {"ready_file": str(tmp_path / "nowhere" / "ready.json")}
    settings.write_text(json.dumps(words))
    argv = [sys.executable, "-m", "control_plane", "serve", "--settings", str(settings)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False)
    assert done.returncode == 1
    assert f"ready_file {tmp_path / 'nowhere' / 'ready.json'} can't be written" in done.stderr
    assert "Traceback" not in done.stderr


def until(holds):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not holds():
        assert time.monotonic() < deadline, "not reached in time"
        time.sleep(0.05)

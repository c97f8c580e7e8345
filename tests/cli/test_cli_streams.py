"""Standard streams that are full, closed or gone: a sentence and an exit code, never a traceback."""

import os
import subprocess
import sys

import pytest

RUN = [sys.executable, "-c", "from cli.main import run; run()"]
QUICK = [["--version"], ["rules"], ["advisories", "check", "vllm==0.33.0", "-o", "json"]]


def run_shell(command: list[str], streams: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["/bin/sh", "-c", f'exec "$@" {streams}', "sh", *RUN, *command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("command", QUICK, ids=" ".join)
def test_a_full_disk_behind_stdout_is_named(command: list[str]) -> None:
    done = run_shell(command, ">/dev/full")
    assert done.returncode == 1
    assert "No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("command", QUICK, ids=" ".join)
def test_talk_that_can_not_be_written_costs_neither_the_data_nor_the_exit_code(command: list[str]) -> None:
    done = run_shell(command, "2>/dev/full")
    assert done.returncode == 0
    assert done.stdout == run_shell(command, "").stdout


@pytest.mark.parametrize("command", QUICK, ids=" ".join)
@pytest.mark.parametrize("closed", [">&-", "<&- >&- 2>&-"])
def test_closed_streams_end_in_no_traceback(command: list[str], closed: str) -> None:
    done = run_shell(command, closed)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr

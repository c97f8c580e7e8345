"""The simulated engine as a process: start-up, readiness, an orderly end, a port in use, a wrong command line."""

import json
import signal
import socket
import subprocess
import sys
import time

import httpx2
import pytest

from tests.free_ports import free_port

ENGINE = ("vllm", "serve", "model/tiny", "--served-model-name", "tiny", "--max-model-len", "4096", "--host=127.0.0.1")


def command(port, *own):
    head = (sys.executable, "-m", "simulator.engine", "--dialect", "vllm", "--engine-version", "0.32.0")
    return (*head, *own, "--", *ENGINE, f"--port={port}")


@pytest.fixture
def start_process():
    """Start engine processes and end each one by its pid."""
    processes = []

    def start(port, *own):
        process = subprocess.Popen(command(port, *own), stderr=subprocess.PIPE, text=True)
        processes.append(process)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()


def wait_until_ready(port, seconds=10.0):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return httpx2.get(f"http://127.0.0.1:{port}/health", timeout=1).raise_for_status()
        except httpx2.TransportError:
            assert time.monotonic() < deadline, "the engine did not become ready"
            time.sleep(0.02)


def stream(port, tokens):
    body = {"model": "tiny", "prompt": "x", "max_tokens": tokens, "ignore_eos": True, "stream": True}
    return httpx2.stream("POST", f"http://127.0.0.1:{port}/v1/completions", json=body, timeout=10)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_refuses_new_clients_lets_streams_end_and_exits_with_0(start_process, number):
    port = free_port()
    process = start_process(port, "--startup-seconds", "0", "--decode-seconds", "0.01")
    wait_until_ready(port)
    with stream(port, 60) as response:
        lines = response.iter_lines()
        first = next(lines)
        process.send_signal(number)
        while _accepts(port):
            time.sleep(0.01)
        rest = [line for line in lines if line]
    texts = [json.loads(line.removeprefix("data: "))["choices"][0]["text"] for line in [first, *rest[:-1]]]
    assert (len(texts), rest[-1]) == (60, "data: [DONE]")
    assert process.wait(timeout=5) == 0


def _accepts(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def test_a_stream_that_is_too_long_for_the_drain_is_cut_and_the_exit_is_still_0(start_process):
    port = free_port()
    process = start_process(port, "--startup-seconds", "0", "--drain-seconds", "1")
    wait_until_ready(port)
    with stream(port, 4_000) as response:
        lines = response.iter_lines()
        next(lines)
        signalled = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=6) == 0
        assert time.monotonic() - signalled >= 1


def test_a_signal_during_startup_ends_the_engine_at_once(start_process):
    port = free_port()
    process = start_process(port, "--startup-seconds", "60")
    assert "simulated vllm 0.32.0: tiny" in process.stderr.readline()
    assert not _accepts(port)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=5) == 0


def test_a_port_in_use_is_named_and_exits_with_1():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        ended = subprocess.run(command(port), capture_output=True, text=True, timeout=20, check=False)
    assert ended.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_command_line_that_cannot_be_read_exits_with_2():
    argv = (*command(free_port()), "--max-num-seqs", "many")
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert (ended.returncode, "--max-num-seqs is 'many'" in ended.stderr) == (2, True)

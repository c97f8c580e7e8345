"""A real Redis or Valkey server for tests, which can be killed and started again with its memory."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

PROGRAM = shutil.which("valkey-server") or shutil.which("redis-server")
MISSING = "neither valkey-server nor redis-server is installed (Debian: apt-get install redis-server)"
DEADLINE_SECONDS = 10.0


class SharedServer:
    """One server on a free port of loopback, whose memory is a file of its folder."""

    def __init__(self, folder: Path, *, keeps: bool = True) -> None:
        if PROGRAM is None:
            pytest.skip(MISSING)
        self.folder = folder
        self.keeps = keeps
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"valkey://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        memory = ["--appendonly", "yes", "--appendfsync", "always"] if self.keeps else ["--appendonly", "no"]
        command = [str(PROGRAM), "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder)]
        command += ["--save", "", *memory, "--daemonize", "no"]
        with (self.folder / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        end = time.monotonic() + DEADLINE_SECONDS
        while not self._answers():
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.01)

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait(DEADLINE_SECONDS)
            self.process = None

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1) as connection:
                connection.sendall(b"PING\r\n")
                return connection.recv(64).startswith(b"+PONG")
        except OSError:
            return False

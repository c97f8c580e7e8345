"""How a plugin is served: on a free port of loopback, which is told on stdout, until the engine ends it."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

_UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
_PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG


def serve(add_to: Callable[[grpc.Server], None]) -> None:
    """Serves until the process is ended; it never outlives the engine that started it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # the engine's way to say goodbye
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    server = grpc.server(ThreadPoolExecutor(max_workers=16), options=_UNLIMITED)
    add_to(server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    os.write(1, f"{port}\n".encode())
    server.wait_for_termination()

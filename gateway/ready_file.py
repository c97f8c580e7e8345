"""Tells whoever started a gateway that it serves, and where."""

import asyncio
import json
import os
from collections.abc import Sequence

import structlog

from gateway.atomic_file import READABLE, write_atomically
from gateway.endpoints import join_address
from gateway.envoy import ADMIN_HOST
from gateway.local_files import named_errors
from gateway.settings import GatewaySettings

_log = structlog.get_logger("gateway.ready_file")


def announce(settings: GatewaySettings, pages: asyncio.Server, *, workers: Sequence[int] = ()) -> None:
    """Write the ready file; ``workers`` = their pids, where there are several. Raises GatewayError."""
    host, port = pages.sockets[0].getsockname()[:2]
    ready: dict[str, object] = {
        "url": f"http://{join_address(settings.listen_host, settings.listen_port)}",
        "metrics_url": f"http://{join_address(host, port)}/metrics",
        "envoy_config": str(settings.envoy_path),
        "admin_url": f"http://{join_address(ADMIN_HOST, settings.admin_port)}",
        "pid": os.getpid(),
    }
    if workers:
        ready["workers"] = list(workers)
    with named_errors(settings):
        write_atomically(settings.ready_file, json.dumps(ready).encode(), mode=READABLE)
    _log.info("gateway.ready", **ready)

"""The Unix sockets of each worker of a gateway."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gateway.settings import GatewaySettings


@dataclass(frozen=True, slots=True)
class WorkerSockets:
    """Where Envoy finds one worker."""

    decision: Path
    guard: Path
    access_log: Path
    websockets: Path


def worker_settings(settings: GatewaySettings, number: int) -> GatewaySettings:
    """What one worker of several is told: places of its own; the first one keeps what Envoy and the disk share."""
    folder = settings.state_dir / f"worker-{number}"
    own: Mapping[str, object] = {
        "socket_path": settings.socket_path.with_name(f"{settings.socket_path.name}-{number}"),
        "state_dir": settings.state_dir if number == 0 else folder,
        "metrics_host": "127.0.0.1",
        "metrics_port": 0,
        "ready_file": folder / "ready.json",
    }
    return settings.model_copy(update=own)


def sockets_of(settings: GatewaySettings) -> tuple[WorkerSockets, ...]:
    """The sockets of every worker."""
    if settings.workers == 1:
        return (_sockets(settings),)
    return tuple(_sockets(worker_settings(settings, number)) for number in range(settings.workers))


def _sockets(settings: GatewaySettings) -> WorkerSockets:
    return WorkerSockets(settings.socket_path, settings.guard_path, settings.access_log_path, settings.sockets_path)

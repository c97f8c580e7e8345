"""Opens a local fleet in a state folder and ends it again, whatever happens in between."""

import contextlib
import json
import os
import random
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

from fleet.value import Value
from local import down, ports, record, settings, socket_folder, tokens
from local.errors import LocalFleetError
from local.layout import Layout
from local.lock import held
from local.programs import EngineKind, Programs, find
from local.settings import GATEWAY, Ports
from local.stop_request import Interrupted, StopRequest
from local.supervisor import POLL_SECONDS, Supervisor, Tell


class Wishes(Value):
    """What the person asked for."""

    engine: EngineKind = "simulated"
    gateway_port: int | None = None
    """``None`` = the one of the last time if it is free, else any."""
    api_port: int | None = None


@dataclass(frozen=True, slots=True)
class RunningFleet:
    """A fleet whose every room answers."""

    layout: Layout
    programs: Programs
    ports: Ports
    supervisor: Supervisor
    operator_token: str
    environment: Mapping[str, str]

    @property
    def urls(self) -> dict[str, str]:
        """Where people and programs reach it."""
        return settings.urls(self.ports)


@contextlib.contextmanager
def opened(
    layout: Layout,
    wishes: Wishes,
    *,
    python: str,
    environment: Mapping[str, str],
    stop: StopRequest,
    tell: Tell,
) -> Iterator[RunningFleet]:
    """A running fleet inside, nothing of it afterwards.

    Raises:
        LocalFleetError: the folder is in use or unusable, a program is missing, a room did not start or did not end.
        Interrupted: somebody asked to end while it started.
    """
    programs = find(python, wishes.engine, environment=environment)
    layout.create()
    with held(layout.lock), socket_folder.made(layout):
        _end_leftovers(layout, tell)
        tokens.forget_those_of_a_lost_database(layout)
        chosen = choose_ports(layout, wishes, chance=random.Random())  # noqa: S311 - a port is no secret
        settings.write_settings(layout, chosen, programs)
        supervisor = Supervisor(
            settings.rooms(layout, chosen, programs),
            layout,
            urls=settings.urls(chosen),
            environment=environment,
            own_pid=os.getpid(),
            stop=stop,
            tell=tell,
        )
        # Beside the start of the control plane: each token costs the start of a Python of its own.
        with ThreadPoolExecutor(2) as beside, ended_afterwards(supervisor):
            gateway = beside.submit(_token, "gateway", "gateway", layout, programs, environment)
            operator = beside.submit(_token, "operator", "operator", layout, programs, environment)
            if not supervisor.start(lambda room: room.name != GATEWAY or _is_there(gateway, stop)):
                raise Interrupted(stop.signum or 0)
            yield RunningFleet(layout, programs, chosen, supervisor, operator.result(), environment)


def _token(name: str, scope: tokens.Scope, layout: Layout, programs: Programs, environment: Mapping[str, str]) -> str:
    return tokens.issue_once(layout, programs, name, scope, environment=environment)


def _is_there(token: "Future[str]", stop: StopRequest) -> bool:
    """Wait for a token; ``False`` = somebody asked to end meanwhile. Raises what the making raised."""
    while not token.done():
        if stop.wait(POLL_SECONDS):
            return False
    token.result()
    return True


@contextlib.contextmanager
def ended_afterwards(supervisor: Supervisor) -> Iterator[None]:
    """End the supervisor's rooms on every way out."""
    try:
        yield
    finally:
        left = supervisor.end()
        if left:
            raise LocalFleetError("; ".join(left))


def choose_ports(layout: Layout, wishes: Wishes, *, chance: random.Random) -> Ports:
    """Wished ports, else those of the last time where they are free, else any free ones."""
    before = _remembered(layout)
    keys = ("api", "api_metrics", "gateway", "gateway_metrics", "envoy_admin")
    wished = {"api": wishes.api_port, "gateway": wishes.gateway_port}
    named = {port for port in wished.values() if port is not None}
    old = {key: port for key in keys if (port := before.get(key)) and port not in named and ports.is_free(port)}
    picked = ports.pick(len(keys), chance=chance, wished=[wished.get(key) or old.get(key) for key in keys])
    return Ports(**dict(zip(keys, picked, strict=True)))


def _remembered(layout: Layout) -> dict[str, int]:
    try:
        api = json.loads(layout.control_plane_settings.read_bytes())
        gateway = json.loads(layout.gateway_settings.read_bytes())
        return {
            "api": int(api["port"]),
            "api_metrics": int(api["metrics_port"]),
            "gateway": int(gateway["listen_port"]),
            "gateway_metrics": int(gateway["metrics_port"]),
            "envoy_admin": int(gateway["admin_port"]),
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _end_leftovers(layout: Layout, tell: Tell) -> None:
    """What a killed supervisor left in this folder goes before anything new starts."""
    old = down.readable(layout)
    found = down.running(layout, None)
    if old is None and not found:
        record.remove(layout.record)  # there is none, or one that says nothing
        return
    tell(f"ending what an earlier fleet left in {layout.state}")
    left = down.end_recorded(old, layout)
    if left:
        raise LocalFleetError("; ".join(left))

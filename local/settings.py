"""The settings files of the control plane and the gateway, and the rooms that are started with them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from local import record
from local.layout import Layout
from local.ports import HOST
from local.programs import Programs
from local.room import Room

GATEWAY = "gateway"
ENVOY_SMALL = ("--concurrency", "2", "--log-level", "warning")
"""One machine's demo needs two workers, however many cores there are."""

ENVOY_UNSET = ("LD_PRELOAD",)
"""A library loaded before Envoy's own allocator (libfaketime) hangs it for good."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Every port of the fleet that the supervisor chooses; the engines' are the control plane's."""

    api: int
    api_metrics: int
    gateway: int
    gateway_metrics: int
    envoy_admin: int


def urls(ports: Ports) -> dict[str, str]:
    """Where people and programs reach the fleet."""
    return {
        "control_plane": f"http://{HOST}:{ports.api}",
        "gateway": f"http://{HOST}:{ports.gateway}",
        "control_plane_metrics": f"http://{HOST}:{ports.api_metrics}/metrics",
        "gateway_metrics": f"http://{HOST}:{ports.gateway_metrics}/metrics",
        "envoy_admin": f"http://{HOST}:{ports.envoy_admin}",
    }


def write_settings(layout: Layout, ports: Ports, programs: Programs) -> None:
    """Write both files; raises `LocalFleetError`."""
    control_plane = control_plane_settings(layout, ports, programs.launch)
    record.write_text(layout.control_plane_settings, json.dumps(control_plane, indent=2) + "\n")
    record.write_text(layout.gateway_settings, json.dumps(gateway_settings(layout, ports), indent=2) + "\n")


def control_plane_settings(layout: Layout, ports: Ports, launch: Mapping[str, tuple[str, ...]]) -> dict[str, object]:
    """What `python -m control_plane serve --settings` reads."""
    return {
        "database_url": f"sqlite:///{layout.database}",
        "host": HOST,
        "port": ports.api,
        "metrics_port": ports.api_metrics,
        "environment": "local",
        "advisory_folders": [str(layout.advisories)],
        "environment_dir": str(layout.environment),
        "cluster": "processes",
        "launch": {engine: list(argv) for engine, argv in launch.items()},
        "process_dir": str(layout.engines),
        "ready_file": str(layout.ready_file("control-plane")),
    }


def gateway_settings(layout: Layout, ports: Ports) -> dict[str, object]:
    """What `python -m gateway --settings` reads."""
    return {
        "control_plane_url": f"http://{HOST}:{ports.api}",
        "token_file": str(layout.token("gateway")),
        "socket_path": str(layout.socket),
        "state_dir": str(layout.gateway),
        "listen_host": HOST,
        "listen_port": ports.gateway,
        "admin_port": ports.envoy_admin,
        "metrics_port": ports.gateway_metrics,
        "ready_file": str(layout.ready_file("gateway")),
    }


def rooms(layout: Layout, ports: Ports, programs: Programs) -> tuple[Room, ...]:
    """The rooms in the order in which they start: each needs the one before."""
    envoy_config = str(layout.gateway / "envoy.json")
    api = urls(ports)["control_plane"]
    return (
        Room(
            name="control-plane",
            argv=(
                programs.python,
                "-P",
                "-m",
                "control_plane",
                "serve",
                "--settings",
                str(layout.control_plane_settings),
            ),
            log=layout.logs / "control-plane.log",
            ports=(ports.api, ports.api_metrics),
            probes=(f"{api}/livez",),
            ready_file=layout.ready_file("control-plane"),
        ),
        Room(
            name=GATEWAY,
            argv=(programs.python, "-P", "-m", "gateway", "--settings", str(layout.gateway_settings)),
            log=layout.logs / "gateway.log",
            ports=(ports.gateway_metrics,),
            probes=(f"unix:{layout.socket}",),
            ready_file=layout.ready_file("gateway"),
        ),
        Room(
            name="envoy",
            # Hot restart would make two fleets on one machine share memory by base id.
            argv=(programs.envoy, "-c", envoy_config, "--disable-hot-restart", *ENVOY_SMALL),
            log=layout.logs / "envoy.log",
            ports=(ports.gateway, ports.envoy_admin),
            probes=(f"http://{HOST}:{ports.envoy_admin}/ready",),
            unset=ENVOY_UNSET,
            validate=(programs.envoy, "--mode", "validate", "-c", envoy_config, *ENVOY_SMALL),
        ),
    )

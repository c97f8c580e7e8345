"""docs/reference/operations.md: settings of both processes, their metrics, and their health."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from layout import attribute_texts, code, codes, page, table
from prometheus_client import CollectorRegistry

import control_plane.settings
import gateway.settings
from control_plane.adapters.prometheus import PrometheusMeter
from control_plane.settings import Settings
from gateway.settings import GatewaySettings
from gateway.telemetry import Telemetry

MEANINGS = {
    "Settings.host": "The address on which it listens.",
    "Settings.port": "The port of the admin API; 0 = a free one.",
    "Settings.metrics_port": "The port of the metrics; 0 = a free one.",
    "Settings.environment": "Whose section of the policy counts.",
    "Settings.cluster": "`processes` starts engines on this machine; `none` starts nothing.",
    "Settings.ready_file": "Written as a whole when it listens: `url`, `metrics_url`, `pid`.",
    "GatewaySettings.control_plane_url": "Where the snapshot comes from.",
    "GatewaySettings.socket_path": "The Unix socket of the decision service.",
    "GatewaySettings.state_dir": "Holds the last good snapshot, Envoy's configuration and its endpoints.",
    "GatewaySettings.listen_host": "The address on which Envoy listens.",
    "GatewaySettings.listen_port": "The port on which clients ask.",
    "GatewaySettings.admin_port": "Envoy's admin port, on loopback.",
    "GatewaySettings.metrics_host": "The address of the metrics.",
    "GatewaySettings.ready_file": "Written as a whole when it listens.",
}
INTRODUCTION = """
Two processes are started with a settings file in JSON. An unknown key is an error that names the nearest known one.
`enginehouse local up` writes both files; look at them in the state folder.
"""
CONTROL_PLANE = """
`python -m control_plane serve --settings FILE`. A variable `ENGINEHOUSE_<KEY>` of the environment wins over the file.
"""
GATEWAY = """
`python -m gateway --settings FILE` writes Envoy's configuration to `state_dir/envoy.json`, then serves decisions. Envoy
is started beside it: `envoy -c state_dir/envoy.json`. Without the control plane it works from the last good snapshot.
"""
HEALTH = """
| where | what it says |
|---|---|
| control plane `/livez` | the process answers; nothing else is touched |
| control plane `/readyz` | what the loops last found: database, feed, age of its data; 503 names what is wrong |
| gateway, on its metrics port | `/livez`, `/readyz`, `/metrics` |
"""


def render() -> str:
    """The page."""
    return page(
        "Operations",
        "the settings and metrics of `control_plane` and `gateway`",
        INTRODUCTION,
        "## Settings of the control plane",
        CONTROL_PLANE,
        _settings(Settings, control_plane.settings),
        "## Settings of the gateway",
        GATEWAY,
        _settings(GatewaySettings, gateway.settings),
        "## Metrics\nPrometheus, on ports of their own. Counters are shown as they are exposed.",
        _metrics(PrometheusMeter().registry),
        _metrics(Telemetry().registry),
        "## Health",
        HEALTH,
    )


def _settings(model: Any, module: ModuleType) -> str:  # noqa: ANN401 - two kinds of models
    texts = attribute_texts(module)
    rows = [
        (code(name), _default(field), _meaning(f"{model.__name__}.{name}", texts)) for name, field in _fields(model)
    ]
    return table(("key", "default", "meaning"), rows)


def _fields(model: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - two kinds of models
    yield from model.model_fields.items()


def _meaning(key: str, texts: dict[str, str]) -> str:
    found = texts.get(key) or MEANINGS.get(key)
    if found is None:
        raise LookupError(f"nothing says what {key} means; give it a docstring, or a line in {__name__}")
    return found.replace("`None`", "`null`")


def _default(field: Any) -> str:  # noqa: ANN401 - the framework's own type
    if field.is_required():
        return "**required**"
    if field.default_factory not in (None, dict):
        return "the simulated engines"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, bool):
        return {None: "`null`", True: "`true`", False: "`false`"}[value]
    return code(list(value)) if isinstance(value, tuple) else code(value)


def _metrics(registry: CollectorRegistry) -> str:
    rows = []
    for name, collector in sorted(_collectors(registry)):
        labels = codes(collector._labelnames)
        kind = collector._type
        rows.append((code(f"{name}_total" if kind == "counter" else name), kind, labels, collector._documentation))
    return table(("metric", "kind", "labels", "what"), rows)


def _collectors(registry: CollectorRegistry) -> Iterator[tuple[str, Any]]:
    for collector in registry._collector_to_names:
        yield collector._name, collector

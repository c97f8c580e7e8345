"""docs/reference/operations.md: settings of both processes, their metrics, and their health."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from layout import attribute_texts, code, codes, page, table
from prometheus_client import CollectorRegistry
from pydantic import BaseModel

from control_plane.adapters.prometheus import PrometheusMeter
from control_plane.settings import Settings
from gateway.filter_metrics import FilterMetrics
from gateway.main import Gateway
from gateway.moderation_metrics import ModerationMetrics
from gateway.settings import GatewaySettings
from gateway.supervisor import Supervisor
from gateway.tracing_settings import TracingSettings
from gateway.valkey_settings import SharedStateSettings

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
    "PickerSettings.host": "The address on which the endpoint picker listens.",
    "PickerSettings.port": "Its port.",
    "PickerSettings.tls_key_file": "The key of that certificate.",
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
WORKERS = """
With `workers` above 1, one port has the figures of all workers, each with the label `worker`, and these of the process
that watches them:
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
        _settings(Settings),
        "## Settings of the gateway",
        GATEWAY,
        _settings(GatewaySettings),
        "## Metrics\nPrometheus, on ports of their own. Counters are shown as they are exposed.",
        _metrics(PrometheusMeter().registry),
        _metrics(_gateway_registry()),
        WORKERS,
        _metrics(Supervisor(_gateway_settings(), Path(sys.prefix)).registry),
        "## Health",
        HEALTH,
    )


def _settings(model: type[BaseModel]) -> str:
    return table(("key", "default", "meaning"), list(_rows(model)))


def _rows(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """One row for each setting; those of an object below it, with its name before theirs."""
    texts = attribute_texts(sys.modules[model.__module__])
    for name, field in model.model_fields.items():
        yield code(prefix + name), _default(field), _meaning(f"{model.__name__}.{name}", texts)
        for part in (field.annotation, *get_args(field.annotation)):
            if isinstance(part, type) and issubclass(part, BaseModel):
                yield from _rows(part, f"{prefix}{name}.")


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
    if isinstance(value, BaseModel):
        return "as below"
    if value is None or isinstance(value, bool):
        return {None: "`null`", True: "`true`", False: "`false`"}[value]
    return code(list(value)) if isinstance(value, tuple) else code(value)


def _metrics(registry: CollectorRegistry) -> str:
    rows = []
    for name, kind, labels, documentation in sorted(_described(registry)):
        rows.append((code(f"{name}_total" if kind == "counter" else name), kind, codes(labels), documentation))
    return table(("metric", "kind", "labels", "what"), rows)


def _gateway_registry() -> CollectorRegistry:
    """That of a gateway which was made and not started, with spans, filters and shared budgets."""
    registry = Gateway(_gateway_settings()).registry
    FilterMetrics(registry)  # these two come with the filters, at the start
    ModerationMetrics(registry)
    return registry


def _gateway_settings() -> GatewaySettings:
    nowhere = Path(sys.prefix)
    return GatewaySettings(
        control_plane_url="http://127.0.0.1:1",
        token_file=nowhere,
        socket_path=Path("/nowhere"),
        state_dir=nowhere,
        listen_port=1,
        admin_port=1,
        ready_file=nowhere,
        tracing=TracingSettings(endpoint="http://127.0.0.1:1/v1/traces"),
        shared_state=SharedStateSettings(url="valkey://127.0.0.1:1"),
    )


def _described(registry: CollectorRegistry) -> Iterator[tuple[str, str, tuple[str, ...], str]]:
    """Name, kind, labels and meaning of each metric; a collector of one's own makes its metrics when it is asked."""
    for collector in registry._collector_to_names:
        if hasattr(collector, "_labelnames"):
            yield collector._name, collector._type, tuple(collector._labelnames), collector._documentation
            continue
        for family in collector.collect():
            yield family.name, family.type, tuple(getattr(family, "_labelnames", ())), family.documentation

"""Where a manifest could run: its model or an alternative, on instances that the environment has."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from fleet import hardware, model_catalogue
from fleet.facts import Facts
from fleet.hardware import InstanceType, SharingMode, UnknownHardware
from fleet.model import Model
from fleet.model_config import ConfigError
from fleet.model_reading import read_model
from fleet.node_pools import NodePool
from fleet.spec import Spec

NODES_WHEN_OPEN = 4
"""Nodes that a replica may span where no pool says how many there are."""


@dataclass(frozen=True, slots=True)
class ModelOption:
    """A model that could serve the manifest."""

    id: str
    revision: str | None
    model: Model
    quantization: str | None
    """``None`` = as its checkpoint is stored."""
    note: str = ""
    """For an alternative: its kind and quality, as the manifest states them."""


@dataclass(frozen=True, slots=True)
class Place:
    """Instances on which a replica could stand."""

    instance: InstanceType
    purchase: str
    sharing: SharingMode
    nodes: int
    """That one replica may span."""
    mig_profile: str | None = None
    pool: str | None = None


def model_options(spec: Spec, facts: Facts) -> tuple[ModelOption, ...]:
    """The manifest's model and its alternatives, as far as their configurations are known; the own one first."""
    wished = [(spec.model.id, spec.model.revision, spec.model.quantization, "")]
    wished += [(item.id, item.revision, None, _note(item.kind, item.quality)) for item in spec.model.alternatives]
    found = []
    for model_id, revision, quantization, note in wished:
        known = known_model(model_id, facts)
        if known is not None:
            stored = quantization or known.quantization
            found.append(ModelOption(model_id, revision, known.model, stored, note))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Known:
    """A model whose configuration is at hand."""

    model: Model
    quantization: str | None


def known_model(model_id: str, facts: Facts) -> Known | None:
    """The model by the environment's own configurations, else by the catalogue; ``None`` when nobody knows it."""
    own = facts.model_configs.get(model_id)
    if own is not None:
        return facts.remember(("model", model_id), lambda: _read(own, model_id))
    return _bundled(model_id)


def places(spec: Spec, facts: Facts) -> Iterator[Place]:
    """Every place that manifest and environment allow, the pools in their order, else all known instances."""
    wished = spec.hardware
    if facts.pools:
        for pool in facts.pools:
            if pool.max_nodes != 0 and not pool.has_ended(facts.today) and _matches(spec, pool):
                yield _place_of(pool)
        return
    for shape in _instances(spec):
        purchase = wished.purchase if wished else "on-demand"
        sharing = SharingMode(wished.sharing) if wished else SharingMode.EXCLUSIVE
        if purchase in shape.purchase_classes:
            yield Place(shape, purchase, sharing, NODES_WHEN_OPEN if shape.supports_efa else 1)


def _matches(spec: Spec, pool: NodePool) -> bool:
    wished = spec.hardware
    if wished is None:
        return True
    return (wished.instance_type, wished.purchase) == (pool.instance_type, pool.purchase)


def _place_of(pool: NodePool) -> Place:
    most = NODES_WHEN_OPEN if pool.max_nodes is None else pool.max_nodes
    nodes = most if pool.instance.supports_efa else 1
    return Place(pool.instance, pool.purchase, pool.sharing.mode, nodes, pool.mig_profile, pool.name)


def _instances(spec: Spec) -> tuple[InstanceType, ...]:
    if spec.hardware is None:
        return tuple(item for item in hardware.instance_types().values() if item.gpu_fraction == 1)
    try:
        return (hardware.instance(spec.hardware.instance_type),)
    except UnknownHardware:
        return ()  # a rule names it


@lru_cache(maxsize=256)
def _bundled(model_id: str) -> Known | None:
    found = model_catalogue.find(model_id)
    return None if found is None else _read(found.config, model_id, found.quantization)


def _read(config: Mapping[str, Any], model_id: str, quantization: str | None = None) -> Known | None:
    try:
        return Known(read_model(config, id=model_id), quantization)
    except ConfigError:
        return None


def _note(kind: str, quality: object) -> str:
    metric, value, source = (getattr(quality, name, None) for name in ("metric", "value", "source"))
    return f"{kind}, {metric} {value} ({source})" if quality is not None else kind

"""Placement on request: which engine, hardware and plan a manifest would get here, and why nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from control_plane.errors import Invalid
from control_plane.services.facts import FactsBook
from fleet.facts import Facts
from fleet.manifest import Manifest, Problem
from fleet.model_config import ConfigError
from fleet.model_reading import read_model
from fleet.placement import Choice, choose

MAX_ALTERNATIVES = 16
"""Each alternative model is looked at on every place and engine, so one request must not bring any number of them."""


@dataclass(frozen=True, slots=True)
class Placement:
    """What was decided, and by which facts."""

    choice: Choice
    facts: Facts


class PlacementService:
    """Asks the kernel."""

    def __init__(self, facts: FactsBook) -> None:
        self._facts = facts

    def decide(self, manifest: Manifest, config: Mapping[str, Any] | None) -> Placement:
        """Place a manifest by the current facts; raises `Invalid` for a configuration that can't be right.

        ``config`` counts before what the house knows of the model, for this question alone.
        """
        given = len(manifest.spec.model.alternatives)
        if given > MAX_ALTERNATIVES:
            message = f"{given} alternatives are more than one request may ask for; send {MAX_ALTERNATIVES} at most"
            raise _invalid("/manifest/spec/model/alternatives", message)
        facts = self._facts.current()
        if config is not None:
            facts = _with_config(facts, manifest.spec.model.id, dict(config))
        return Placement(choose(manifest, facts, self._facts.catalogue), facts)


def _with_config(facts: Facts, model_id: str, config: dict[str, Any]) -> Facts:
    try:
        read_model(config, id=model_id)
    except ConfigError as error:
        key = error.key.replace(".", "/")
        raise _invalid(f"/model_config/{key}" if key else "/model_config", error.message) from None
    return facts.model_copy(update={"model_configs": {**facts.model_configs, model_id: config}})


def _invalid(pointer: str, message: str) -> Invalid:
    return Invalid(f"{pointer}: {message}", [Problem(pointer, message)])

"""Each file of policies has a fault that the real engine is asked about."""

import importlib
import pkgutil
from collections.abc import Collection, Mapping, Sequence

import policies
from policies.adapter import Check, StackCheck
from tests.pulumi.planted_faults import FAULTS

Checks = Sequence[Check | StackCheck]
GATHERS = "pack"
"""Its checks are those of the others."""


def files() -> dict[str, Checks]:
    """The modules that have checks."""
    names = {item.name for item in pkgutil.iter_modules(policies.__path__)} - {GATHERS, "__main__"}
    found = {name: importlib.import_module(f"policies.{name}") for name in sorted(names)}
    return {name: module.CHECKS for name, module in found.items() if hasattr(module, "CHECKS")}


def unplanted(found: Mapping[str, Checks], faults: Collection[str]) -> list[str]:
    """The modules without a fault of their own; what two of them decide says nothing of either."""
    rules = {name: {rule.id for check in checks for rule in check.rules} for name, checks in found.items()}
    return [
        name
        for name, own in rules.items()
        if not own.difference(*(other for key, other in rules.items() if key != name)) & set(faults)
    ]


def test_each_file_of_policies_has_a_fault_on_the_engine() -> None:
    assert {"buckets", "pod_nodes", "nodes"} <= files().keys()
    assert unplanted(files(), FAULTS) == []


def test_a_file_without_a_fault_of_its_own_is_found() -> None:
    found = files()
    assert unplanted(found, FAULTS.keys() - {"bucket-public"}) == ["buckets"]
    assert unplanted({**found, "newer": found["buckets"]}, FAULTS) == ["buckets", "newer"]

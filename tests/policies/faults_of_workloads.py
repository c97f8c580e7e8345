"""Faults of manifests, of workload objects and of what scales them."""

from tests.policies.fault import Fault

FAULTS: tuple[Fault, ...] = ()

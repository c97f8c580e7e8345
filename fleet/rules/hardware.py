"""Rules about the hardware: an instance type that exists, with the GPUs of the plan, shared and bought as it can be."""

from collections.abc import Iterator

from fleet.hardware import InstanceType, UnknownHardware, gpu, instance, instance_types, nodes_per_replica
from fleet.manifest import PinnedManifest
from fleet.nearest import nearest
from fleet.rules.case import Case
from fleet.spec import Hardware, Parallelism
from fleet.violation import Enforcement, Violation

GPUS_MATCH_PLAN = "gpus-match-plan"
INSTANCE_KNOWN = "instance-known"
GPUS_FIT_INSTANCE = "gpus-fit-instance"
SHARING_POSSIBLE = "sharing-possible"
PURCHASE_POSSIBLE = "purchase-possible"
WITHOUT_ISOLATION = ("mps", "time-slicing")
"""Ways of sharing in which the processes of others can touch memory or end a deployment (fleet/data/sharing.json)."""


def gpus_match_plan(case: Case) -> Iterator[Violation]:
    """GPUs of a replica = tensor x pipeline x data x context; a written manifest may leave the plan open."""
    is_open = not isinstance(case.manifest, PinnedManifest) and "parallelism" not in case.manifest.spec.model_fields_set
    for pointer, hardware, plan in placed(case):
        if hardware.gpus == plan.gpus or (is_open and pointer == "/spec"):
            continue
        product = f"{plan.tensor} x {plan.pipeline} x {plan.data} x {plan.context}"
        yield Violation(
            rule=GPUS_MATCH_PLAN,
            severity=Enforcement.MANDATORY,
            pointer=f"{pointer}/hardware/gpus",
            message=f"{hardware.gpus} GPUs, but tensor x pipeline x data x context is {product} = {plan.gpus}",
            remedy=f"give gpus {plan.gpus}, or a plan for {hardware.gpus}",
            evidence={"gpus": str(hardware.gpus), "plan_gpus": str(plan.gpus)},
        )


def instance_known(case: Case) -> Iterator[Violation]:
    """The instance type is one that the data names."""
    for pointer, hardware, _ in placed(case):
        try:
            instance(hardware.instance_type)
        except UnknownHardware as error:
            close = nearest(hardware.instance_type, instance_types())
            yield Violation(
                rule=INSTANCE_KNOWN,
                severity=Enforcement.MANDATORY,
                pointer=f"{pointer}/hardware/instance_type",
                message=str(error),
                remedy=f"take {close}" if close else "take an instance type that the data names",
                evidence={"instance_type": hardware.instance_type},
            )


def gpus_fit_instance(case: Case) -> Iterator[Violation]:
    """A replica takes whole nodes, or a part of one; a part of a GPU holds one alone."""
    for pointer, hardware, found in _known(case):
        if found.gpu_fraction < 1 and hardware.gpus > 1:
            part = f"{found.name} has {found.gpu_fraction:g} of one {found.gpu}"
            message = f"{hardware.gpus} GPUs per replica, but {part}, and parts can't work together"
            yield _misfit(pointer, hardware, Enforcement.MANDATORY, message, "take an instance type with whole GPUs")
        elif hardware.gpus > found.gpus:
            yield from _several_nodes(pointer, hardware, found)


def _several_nodes(pointer: str, hardware: Hardware, found: InstanceType) -> Iterator[Violation]:
    nodes = nodes_per_replica(hardware.gpus, found)
    span = f"{hardware.gpus} GPUs span {nodes} {found.name}"
    idle = nodes * found.gpus - hardware.gpus
    if idle:
        remedy = f"give a multiple of {found.gpus} GPUs, or another instance type"
        yield _misfit(pointer, hardware, Enforcement.ADVISORY, f"{span} and leave {idle} GPUs idle", remedy)
    if not found.supports_efa:
        message = f"{span}, which have no EFA: the nodes talk over plain TCP"
        remedy = "take an instance type with EFA, or a plan that fits one node"
        yield _misfit(pointer, hardware, Enforcement.ADVISORY, message, remedy)


def _misfit(pointer: str, hardware: Hardware, severity: Enforcement, message: str, remedy: str) -> Violation:
    return Violation(
        rule=GPUS_FIT_INSTANCE,
        severity=severity,
        pointer=f"{pointer}/hardware/gpus",
        message=message,
        remedy=remedy,
        evidence={"gpus": str(hardware.gpus), "instance_type": hardware.instance_type},
    )


def sharing_possible(case: Case) -> Iterator[Violation]:
    """The GPU can be shared in this way, by a replica that needs one share alone.

    There is no peer-to-peer between MIG instances, and MPS and time-slicing count shares, not GPUs.
    """
    for pointer, hardware, found in _known(case):
        modes = tuple(mode.value for mode in gpu(found.gpu).sharing_modes)
        if hardware.sharing not in modes:
            message = f"the {found.gpu} of {found.name} can't be shared by {hardware.sharing}"
            yield _unshareable(pointer, hardware, message, f"take one of {', '.join(modes)}")
        elif case.manifest.spec.access.isolation == "hardware" and hardware.sharing in WITHOUT_ISOLATION:
            message = f"access.isolation is 'hardware', and {hardware.sharing} isolates neither memory nor faults"
            yield _unshareable(pointer, hardware, message, "take sharing 'exclusive' or 'mig'")
        elif hardware.sharing in WITHOUT_ISOLATION and _needs_share(case, hardware):
            message = f"by {hardware.sharing} several engines start on one GPU, and each would take nearly all of it"
            remedy = "give hardware.memory_share, the part of the GPU's memory for this one, or run 'enginehouse pin'"
            yield _unshareable(pointer, hardware, message, remedy)
        elif hardware.sharing != "exclusive" and hardware.gpus > 1:
            message = f"a replica of {hardware.gpus} GPUs can't run on GPUs shared by {hardware.sharing}"
            yield _unshareable(pointer, hardware, message, "take sharing 'exclusive', or one GPU per replica")


def _needs_share(case: Case, hardware: Hardware) -> bool:
    """Whether a pinned manifest leaves open how much of a shared GPU's memory its engine takes."""
    return isinstance(case.manifest, PinnedManifest) and hardware.gpus == 1 and hardware.memory_share is None


def _unshareable(pointer: str, hardware: Hardware, message: str, remedy: str) -> Violation:
    return Violation(
        rule=SHARING_POSSIBLE,
        severity=Enforcement.MANDATORY,
        pointer=f"{pointer}/hardware/sharing",
        message=message,
        remedy=remedy,
        evidence={"sharing": hardware.sharing, "instance_type": hardware.instance_type},
    )


def purchase_possible(case: Case) -> Iterator[Violation]:
    """The instance type is sold in this way."""
    for pointer, hardware, found in _known(case):
        if hardware.purchase not in found.purchase_classes:
            sold = ", ".join(found.purchase_classes)
            yield Violation(
                rule=PURCHASE_POSSIBLE,
                severity=Enforcement.MANDATORY,
                pointer=f"{pointer}/hardware/purchase",
                message=f"{found.name} is not sold as {hardware.purchase}, only as {sold}",
                remedy=f"take one of {sold}",
                evidence={"purchase": hardware.purchase, "instance_type": found.name},
            )


def placed(case: Case) -> Iterator[tuple[str, Hardware, Parallelism]]:
    """Each hardware of the manifest with its plan and the pointer above both."""
    spec = case.manifest.spec
    if spec.hosted is not None:
        return
    if spec.hardware is not None:
        yield "/spec", spec.hardware, spec.parallelism
    if spec.pools is not None:
        yield "/spec/pools/prefill", spec.pools.prefill.hardware, spec.pools.prefill.parallelism
        yield "/spec/pools/decode", spec.pools.decode.hardware, spec.pools.decode.parallelism


def _known(case: Case) -> Iterator[tuple[str, Hardware, InstanceType]]:
    known = instance_types()
    for pointer, hardware, _ in placed(case):
        if hardware.instance_type in known:
            yield pointer, hardware, known[hardware.instance_type]

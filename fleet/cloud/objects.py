"""Workload objects: what runs, with which rights, on which devices, and what a node has to give up for it."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from fleet.cloud.finding import CloudRule, Finding, Grade
from fleet.cloud.labels import EFA_RESOURCE, GPU_RESOURCE, MIG_PREFIX, SHARED_GPU_RESOURCE
from fleet.cloud.plain_secrets import secrets_among, secrets_in_words
from fleet.hardware import GpuModel
from fleet.sharing import SharingWay, isolation_of

_PODS = "Kubernetes documents, pod security standards, restricted"

IMAGE_DIGEST = CloudRule(
    "image-digest",
    Grade.HIGH,
    "Containers run images by digest",
    "give repository@sha256:..., as the environment's images.yaml records it",
    "own judgement: a tag can be moved, what was reviewed can't",
)
EFA_SINGLE_NODE = CloudRule(
    "efa-single-node",
    Grade.MEDIUM,
    "Pods that work alone ask for no EFA",
    f"leave {EFA_RESOURCE} out; EFA carries traffic between nodes alone",
    "terraform-aws-eks README: do not use EFA on a single node workload",
)
MIG_SUPPORT = CloudRule(
    "mig-on-gpu-without",
    Grade.HIGH,
    "Pods ask for MIG instances that the GPU of their nodes can have",
    "take a profile of that GPU, or whole GPUs",
    "NVIDIA MIG user guide, supported profiles",
)
ISOLATION = CloudRule(
    "gpu-isolation",
    Grade.HIGH,
    "Tenants that need isolation share no GPU in time or by MPS",
    "take whole GPUs or MIG instances (hardware.sharing: exclusive or mig)",
    "fleet/data/sharing.json: MPS and time-slicing isolate neither memory nor faults",
)
PROBES = CloudRule(
    "pod-probes",
    Grade.MEDIUM,
    "Engines say when they have started and when they are ready",
    "give a startup probe that waits for the weights, and a readiness probe",
    "own judgement: without them requests reach engines that still load",
)
LIMITS = CloudRule(
    "pod-limits",
    Grade.MEDIUM,
    "Containers ask for memory and have a limit for it",
    "give resources.requests.memory and resources.limits.memory",
    "own judgement: one engine must not take the node's other engines down",
)
PRIVILEGED = CloudRule(
    "pod-privileged",
    Grade.CRITICAL,
    "Containers are not privileged, gain no rights and drop every capability",
    "set privileged and allowPrivilegeEscalation to false, and capabilities.drop to ALL",
    _PODS,
)
ROOT_USER = CloudRule(
    "pod-root",
    Grade.HIGH,
    "Containers don't run as root",
    "set runAsNonRoot: true, and a runAsUser that is not 0",
    _PODS,
)
SECCOMP = CloudRule(
    "pod-seccomp",
    Grade.MEDIUM,
    "Containers run below the runtime's seccomp profile",
    "set seccompProfile.type: RuntimeDefault",
    _PODS,
)
HOST = CloudRule(
    "pod-host-access",
    Grade.HIGH,
    "Pods see neither the node's files nor its network or processes",
    "mount a claim or an emptyDir; leave hostPath, hostNetwork, hostPID and hostIPC out",
    _PODS,
)
WRITABLE_ROOT = CloudRule(
    "pod-writable-root",
    Grade.MEDIUM,
    "The root file system of a container is read-only",
    "set readOnlyRootFilesystem: true and mount an emptyDir where it writes",
    "own judgement: what a request breaks into can't be changed",
)
PLAIN_SECRET = CloudRule(
    "pod-plain-secret",
    Grade.CRITICAL,
    "Secrets come by reference",
    "take valueFrom.secretKeyRef",
    "own judgement: values of an object stand in its history and in the program's state",
)
_BY_DIGEST = re.compile(r"[A-Za-z0-9][\w.:/-]*@sha256:[0-9a-f]{64}")
_MAY_BE_ADDED = frozenset({"NET_BIND_SERVICE"})
"""Capabilities that the restricted standard lets a container have."""
_NOTHING = frozenset({"0", "0.0", ""})


@dataclass(frozen=True, slots=True)
class PodContainer:
    """One container of a pod, with what the pod says for it."""

    name: str
    image: str | None
    """``None`` = the object leaves it to another, as a patch may."""
    requests: Mapping[str, str] = field(default_factory=dict)
    """Resource -> amount; devices are asked for by their limit, which stands for the request."""
    limits: Mapping[str, str] = field(default_factory=dict)
    has_startup_probe: bool = False
    has_readiness_probe: bool = False
    is_privileged: bool = False
    may_gain_rights: bool = True
    """What Kubernetes does when nothing is said."""
    drops_all_capabilities: bool = False
    is_not_root: bool = False
    has_seccomp: bool = False
    has_read_only_root: bool = False
    added_capabilities: tuple[str, ...] = ()
    has_unmasked_proc: bool = False
    host_ports: tuple[str, ...] = ()
    """Ports of the node that it takes."""
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Variables whose value stands in the object."""
    words: tuple[str, ...] = field(default=(), repr=False)
    """Its command and arguments."""
    is_initial: bool = False
    """Runs before the others and ends."""

    @property
    def devices(self) -> frozenset[str]:
        """Resources of which it asks for some."""
        asked = (*self.requests.items(), *self.limits.items())
        return frozenset(name for name, amount in asked if str(amount).strip() not in _NOTHING)

    @property
    def has_gpu(self) -> bool:
        """Whether it asks for a GPU or a part of one."""
        return any(item in (GPU_RESOURCE, SHARED_GPU_RESOURCE) or item.startswith(MIG_PREFIX) for item in self.devices)


@dataclass(frozen=True, slots=True)
class PodOwner:
    """Something that makes pods, and the pods that it makes."""

    id: str
    """``namespace/Kind/name``."""
    containers: tuple[PodContainer, ...]
    host_paths: tuple[str, ...] = ()
    host_namespaces: tuple[str, ...] = ()
    """Of ``hostNetwork``, ``hostPID``, ``hostIPC`` those that are on."""
    image_volumes: tuple[str, ...] = ()
    """Images that are mounted."""
    nodes: int | None = 1
    """That one replica spans; ``None`` = not known."""
    pools: tuple[str, ...] = ()
    """Of nodes, that it names."""
    gpus: tuple[GpuModel, ...] = ()
    """Of the nodes that it names; empty = not known."""
    any_gpus: tuple[GpuModel, ...] = ()
    """Of all nodes, where it names none that is known."""
    sharing: SharingWay | None = None
    """``None`` = not said."""
    needs_isolation: bool = False

    @property
    def images(self) -> tuple[str, ...]:
        """Every image that its pods run or mount."""
        run = (item.image for item in self.containers if item.image is not None)
        return tuple(dict.fromkeys((*run, *self.image_volumes)))


def object_findings(owner: PodOwner) -> Iterator[Finding]:
    """What is wrong with the pods of a workload."""
    for item in owner.containers:
        where = f"container {item.name} of {owner.id}"
        if item.image is not None:
            yield from _image(f"{where} runs", item.image)
        yield from _rights(where, item)
        yield from _resources(where, item)
        yield from _devices(where, owner, item)
        for name in dict.fromkeys((*secrets_among(item.environment), *secrets_in_words(item.words))):
            yield Finding(PLAIN_SECRET, f"{where} has the value of {name} in the object")
    for image in owner.image_volumes:
        yield from _image(f"{owner.id} mounts", image)
    yield from _host(owner)
    yield from _isolation(owner)


def volume_findings(id_: str, host_path: str | None) -> Iterator[Finding]:
    """What is wrong with a volume of the cluster."""
    if host_path is not None:
        yield Finding(HOST, f"{id_} is {host_path or 'a path'} of a node, for every pod that claims it")


def config_findings(id_: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """What is wrong with a ConfigMap."""
    for name in secrets_among(values):
        yield Finding(PLAIN_SECRET, f"{id_} has the value of {name} in the object")


def _image(where: str, image: str) -> Iterator[Finding]:
    if _BY_DIGEST.fullmatch(image) is None:
        yield Finding(IMAGE_DIGEST, f"{where} {image.strip() or 'no image'}, which is no image by digest")


def _rights(where: str, item: PodContainer) -> Iterator[Finding]:
    added = sorted(set(item.added_capabilities) - _MAY_BE_ADDED)
    said = {
        "is privileged": item.is_privileged,
        "may gain rights": item.may_gain_rights,
        "keeps capabilities": not item.drops_all_capabilities,
        f"adds {', '.join(added)}": bool(added),
        "sees /proc unmasked": item.has_unmasked_proc,
    }
    if any(said.values()):
        yield Finding(PRIVILEGED, f"{where} {' and '.join(word for word, is_so in said.items() if is_so)}")
    if item.host_ports:
        yield Finding(HOST, f"{where} takes port {', '.join(item.host_ports)} of its node")
    if not item.is_not_root:
        yield Finding(ROOT_USER, f"{where} may run as root")
    if not item.has_seccomp:
        yield Finding(SECCOMP, f"{where} has no seccomp profile")
    if not item.has_read_only_root:
        yield Finding(WRITABLE_ROOT, f"{where} can write to its root file system")


def _resources(where: str, item: PodContainer) -> Iterator[Finding]:
    has_limit = "memory" in item.limits
    missing = ["request"] if not has_limit and "memory" not in item.requests else []
    missing += [] if has_limit else ["limit"]
    if missing:
        yield Finding(LIMITS, f"{where} has no memory {' and no memory '.join(missing)}")
    if item.has_gpu and not item.is_initial:
        probes = (("startup", item.has_startup_probe), ("readiness", item.has_readiness_probe))
        absent = [word for word, has in probes if not has]
        if absent:
            yield Finding(PROBES, f"{where} has no {' and no '.join(absent)} probe")


def _devices(where: str, owner: PodOwner, item: PodContainer) -> Iterator[Finding]:
    if EFA_RESOURCE in item.devices and owner.nodes == 1:
        yield Finding(EFA_SINGLE_NODE, f"{where} asks for {EFA_RESOURCE}, and its replicas stand on one node each")
    for resource in sorted(item.devices):
        if resource.startswith(MIG_PREFIX):
            yield from _mig(f"{where} asks for {resource}", owner, resource)


def _mig(where: str, owner: PodOwner, resource: str) -> Iterator[Finding]:
    profile = resource.removeprefix(MIG_PREFIX).replace(".me", "+me")
    for model in owner.gpus:
        known = [found.name for found in model.mig_profiles]
        if profile not in known:
            has = f"its MIG profiles are {', '.join(known)}" if known else "it has no MIG"
            yield Finding(MIG_SUPPORT, f"{where} on {model.name}; {has}")
    every = [found.name for model in owner.any_gpus for found in model.mig_profiles]
    if owner.any_gpus and profile not in every:
        have = ", ".join(sorted({model.name for model in owner.any_gpus}))
        yield Finding(MIG_SUPPORT, f"{where}, and no pool can cut that: they have {have}")


def _host(owner: PodOwner) -> Iterator[Finding]:
    if owner.host_paths:
        yield Finding(HOST, f"{owner.id} mounts {', '.join(owner.host_paths)} of its node")
    if owner.host_namespaces:
        yield Finding(HOST, f"{owner.id} has {', '.join(owner.host_namespaces)}")


def _isolation(owner: PodOwner) -> Iterator[Finding]:
    if not owner.needs_isolation:
        return
    is_shared = any(SHARED_GPU_RESOURCE in item.devices for item in owner.containers)
    way = owner.sharing
    if is_shared or (way is not None and not isolation_of(way).is_hardware):
        how = way.value if way is not None else SHARED_GPU_RESOURCE
        yield Finding(ISOLATION, f"{owner.id} needs isolation by hardware, and shares its GPU by {how}")


RULES: tuple[CloudRule, ...] = (
    IMAGE_DIGEST,
    EFA_SINGLE_NODE,
    MIG_SUPPORT,
    ISOLATION,
    PROBES,
    LIMITS,
    PRIVILEGED,
    ROOT_USER,
    SECCOMP,
    HOST,
    WRITABLE_ROOT,
    PLAIN_SECRET,
)

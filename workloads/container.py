"""The engine's container: its command, probes, resources, rights and places to write."""

from dataclasses import dataclass
from math import ceil

from engines.kv_publishing import kv_events, kv_ports, kv_ranks
from fleet.cloud.labels import SHARING_LABEL
from fleet.engine import CommandLine, EngineCatalogue, MetricsDialect, Probes, Shutdown
from fleet.manifest import PinnedManifest
from fleet.spec import EngineChoice, EngineName
from workloads.claims import CLAIM
from workloads.ground import MODELS_PATH, NodeLocalWeights, RenderGround
from workloads.names import KubernetesObject
from workloads.placement import Place
from workloads.refusal import Reason, RenderRefused
from workloads.start import StartTime
from workloads.weights import Delivery, bucket_environment, copies, delivery_of

PORT = 8000
"""On which every engine serves."""
USER_ID = 10001
"""Neither root nor a user of any image; MPS serves the processes of one user alone, so it is the same everywhere."""
HOME_PATH = "/home/engine"
FILES_PATH = "/etc/enginehouse/engine"
"""Where the files that a command line names lie."""
DEREGISTER_SECONDS = 15
"""Between the end of new requests at a pod and the signal to its engine: gateways hear of it by then."""
KILL_SECONDS = 15
"""Between the end of the drain and the end by force."""
_STARTUP_PERIOD_SECONDS = 10
_RIGHTS: KubernetesObject = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "privileged": False,
    "readOnlyRootFilesystem": True,
}


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """What the catalogue says about the pinned engine."""

    choice: EngineChoice
    command: CommandLine
    probes: Probes
    shutdown: Shutdown
    metrics: MetricsDialect
    way: Delivery
    """Of its weights."""
    kv_ports: tuple[int, ...] = ()
    """Where it tells which prompts it holds, and repeats what was missed; empty = it tells nobody."""

    @classmethod
    def of(cls, pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround) -> "EngineFacts":
        """The facts of an engine that runs from an image.

        Raises:
            RenderRefused: no image, no way of its weights, an engine that is not offered or has to be built first.
        """
        choice, name = pinned.spec.engine, pinned.engine_name
        version = choice.version if choice is not None else None
        if choice is None or name is None or version is None:
            raise RenderRefused(
                pinned.name, Reason.HOSTED, "somebody else runs its engine", "nothing is to be rendered"
            )
        if choice.image is None:
            remedy = "record the image's digest in the environment's images.yaml and pin again"
            message = "its pin lets a process stand for the image, and pods need an image by digest"
            raise RenderRefused(pinned.name, Reason.WITHOUT_IMAGE, message, remedy)
        _refuse_unready(pinned, name, version, catalogue)
        way = delivery_of(pinned, catalogue, ground)
        host = "0.0.0.0"  # noqa: S104 - of the pod, behind its policy
        return cls(
            choice,
            catalogue.command_line(pinned, host=host, port=PORT, weights_uri=way.uri),
            catalogue.probes(name, version, choice.front),
            catalogue.shutdown(name, version),
            catalogue.metrics(name, version, choice.front),
            way,
            _kv_ports(pinned, choice, name),
        )

    @property
    def metrics_port(self) -> int:
        """Where metrics are."""
        return self.metrics.port or PORT

    @property
    def wait_seconds(self) -> int:
        """Before the signal: the engine that does not drain answers its running requests in this time."""
        return DEREGISTER_SECONDS + (0 if self.shutdown.drains else self.shutdown.drain_seconds)

    @property
    def grace_seconds(self) -> int:
        """From the first word to the end by force."""
        drain = self.shutdown.drain_seconds if self.shutdown.drains else 0
        return self.wait_seconds + drain + KILL_SECONDS


def _refuse_unready(pinned: PinnedManifest, name: EngineName, version: str, catalogue: EngineCatalogue) -> None:
    refusal = catalogue.refusal(name)
    if refusal is not None:
        raise RenderRefused(
            pinned.name, Reason.ENGINE_REFUSED, f"{name} is not offered: {refusal}", "pin another engine"
        )
    build = catalogue.engine_build(pinned, name, version)
    if build is not None:
        message = f"{name} {version} has to be built for the model first: {build.reason}"
        remedy = build.refusal or "take a server that needs no built engine; a build before the start is not rendered"
        raise RenderRefused(pinned.name, Reason.ENGINE_BUILD, message, remedy)


def container(
    engine: EngineFacts, place: Place, start: StartTime, ground: RenderGround, disk: str | None
) -> KubernetesObject:
    """The one container of a pod that stays; ``disk`` = kept for its weights on the node."""
    command = engine.command.argv
    found: KubernetesObject = {
        "name": "engine",
        "image": engine.choice.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [command[0]],
        "args": list(command[1:]),
        "env": _environment(engine, ground),
        "ports": _ports(engine),
        "resources": _resources(place, disk),
        "startupProbe": _probe(engine.probes.startup, _STARTUP_PERIOD_SECONDS, _startup_failures(start)),
        "readinessProbe": _probe(engine.probes.readiness, 5, 2),
        "livenessProbe": _probe(engine.probes.liveness, 15, 8),
        "lifecycle": {"preStop": {"sleep": {"seconds": engine.wait_seconds}}},
        "securityContext": _RIGHTS,
        "volumeMounts": _mounts(engine, ground),
    }
    return found | ({"workingDir": FILES_PATH} if engine.command.files else {})


def initial_containers(engine: EngineFacts, ground: RenderGround) -> list[KubernetesObject]:
    """What runs before it: copies of weights, where its engine finds only files."""
    weights = ground.weights
    if not isinstance(weights, NodeLocalWeights):
        return []
    home: list[KubernetesObject] = [{"name": "HOME", "value": HOME_PATH}]
    common = {
        "env": [*bucket_environment(weights), *home],
        "securityContext": _RIGHTS,
        "volumeMounts": [*_own_mounts(), {"name": "weights", "mountPath": MODELS_PATH}],
    }
    return copies(engine.way, weights, common)


def volumes(engine: EngineFacts, place: Place, ground: RenderGround, files_name: str) -> list[KubernetesObject]:
    """What the container mounts."""
    found: list[KubernetesObject] = [
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": f"{place.shm_mib}Mi"}},
        {"name": "home", "emptyDir": {}},
        {"name": "tmp", "emptyDir": {}},
    ]
    if isinstance(ground.weights, NodeLocalWeights):
        found.append({"name": "weights", "emptyDir": {}})
    else:
        claim = {"claimName": ground.weights.claim, "readOnly": True}
        found.append({"name": "weights", "persistentVolumeClaim": claim})
    if engine.command.files:
        found.append({"name": "files", "configMap": {"name": files_name}})
    return found


def pod_annotations(engine: EngineFacts, place: Place) -> dict[str, str]:
    """What a scraper of annotated pods reads, and how the pod shares its GPUs."""
    shared: dict[str, str] = {SHARING_LABEL: place.hardware.sharing}
    if engine.metrics.path is None:
        return shared
    return shared | {
        "prometheus.io/scrape": "true",
        "prometheus.io/path": engine.metrics.path,
        "prometheus.io/port": str(engine.metrics_port),
    }


def _kv_ports(pinned: PinnedManifest, choice: EngineChoice, name: EngineName) -> tuple[int, ...]:
    found = kv_events(name.value, choice.flags, pinned.spec.features.model_dump())
    return kv_ports(found, kv_ranks(choice.flags, pinned.spec.parallelism.data))


def _environment(engine: EngineFacts, ground: RenderGround) -> list[KubernetesObject]:
    plain = {
        **engine.command.environment,
        "HF_HUB_CACHE": ground.weights.hub_path,
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "HOME": HOME_PATH,
        "USER": "engine",  # compilers ask for the user's name, and the image knows no such id
    }
    streams = isinstance(ground.weights, NodeLocalWeights) and engine.way.uri is not None
    if not streams:  # vLLM takes the URI for a model of the hub when it is offline (vllm/engine/arg_utils.py)
        plain |= {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    found: list[KubernetesObject] = [{"name": key, "value": value} for key, value in sorted(plain.items())]
    return found + (
        bucket_environment(ground.weights) if isinstance(ground.weights, NodeLocalWeights) and streams else []
    )


def _ports(engine: EngineFacts) -> list[KubernetesObject]:
    ports: list[KubernetesObject] = [{"name": "http", "containerPort": PORT, "protocol": "TCP"}]
    if engine.metrics_port != PORT:
        ports.append({"name": "metrics", "containerPort": engine.metrics_port, "protocol": "TCP"})
    return ports + [
        {"name": f"kv-{number}", "containerPort": port, "protocol": "TCP"}
        for number, port in enumerate(engine.kv_ports)
    ]


def _resources(place: Place, disk: str | None) -> KubernetesObject:
    """Processors have no limit: an engine that is throttled stalls its GPUs."""
    gpus = {} if place.by_claim else {place.resource: str(place.hardware.gpus)}
    claims = {"claims": [{"name": CLAIM}]} if place.by_claim else {}
    memory = f"{place.memory_mib}Mi"
    kept = {"ephemeral-storage": disk} if disk is not None else {}
    requests = {"cpu": str(place.cpu), "memory": memory} | kept | gpus
    return {"requests": requests, "limits": {"memory": memory} | gpus} | claims


def _own_mounts() -> list[KubernetesObject]:
    """Where a container may write."""
    return [
        {"name": "home", "mountPath": HOME_PATH},
        {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of its own
    ]


def _startup_failures(start: StartTime) -> int:
    return ceil(start.container_seconds / _STARTUP_PERIOD_SECONDS)


def _probe(path: str, period_seconds: int, failures: int) -> KubernetesObject:
    return {
        "httpGet": {"path": path, "port": "http", "scheme": "HTTP"},
        "periodSeconds": period_seconds,
        "timeoutSeconds": 5,
        "failureThreshold": failures,
        "successThreshold": 1,
    }


def _mounts(engine: EngineFacts, ground: RenderGround) -> list[KubernetesObject]:
    is_written = isinstance(ground.weights, NodeLocalWeights) and not engine.way.folders
    mounts: list[KubernetesObject] = [
        {"name": "shm", "mountPath": "/dev/shm"},  # noqa: S108 - a volume of its own
        *_own_mounts(),
        {"name": "weights", "mountPath": MODELS_PATH} | ({} if is_written else {"readOnly": True}),
    ]
    if engine.command.files:
        mounts.append({"name": "files", "mountPath": FILES_PATH, "readOnly": True})
    return mounts

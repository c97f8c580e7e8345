"""The Deployment of a pinned manifest, and what stands directly beside it."""

from fleet.cloud.labels import ISOLATION_LABEL, PREFIX
from fleet.manifest import PinnedManifest
from workloads.claims import pod_claims
from workloads.container import USER_ID, EngineFacts, container, initial_containers, pod_annotations, volumes
from workloads.ground import RenderGround
from workloads.names import KubernetesObject, fitted, metadata, pod_labels, selector
from workloads.placement import Place
from workloads.scaling import floor_of, is_scaled
from workloads.start import StartTime
from workloads.weights import disk_request

ESTIMATE_ANNOTATION = f"{PREFIX}/start-estimate-seconds"
_OLD_REVISIONS = 5


def files_name(pinned: PinnedManifest) -> str:
    """The name of the ConfigMap with the files that the command line names."""
    return fitted(f"{pinned.name}-files")


def deployment(
    pinned: PinnedManifest, engine: EngineFacts, place: Place, start: StartTime, ground: RenderGround
) -> KubernetesObject:
    """The Deployment; its replicas are left out where a scaler owns them."""
    estimate = f"{start.estimate.total.mid:.0f}" if start.estimate else "unknown"
    head = metadata(pinned, ground.namespace, annotations={ESTIMATE_ANNOTATION: estimate})
    head["labels"][ISOLATION_LABEL] = pinned.spec.access.isolation
    spec: KubernetesObject = {
        "revisionHistoryLimit": _OLD_REVISIONS,
        "progressDeadlineSeconds": start.progress_seconds,
        "selector": {"matchLabels": selector(pinned.name)},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": _steps(place)},
        "template": _template(pinned, engine, place, start, ground),
    }
    if not is_scaled(pinned.spec.scaling):
        spec["replicas"] = floor_of(pinned.spec.scaling)
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": head, "spec": spec}


def service_account(pinned: PinnedManifest, ground: RenderGround) -> KubernetesObject:
    """An identity without any rights."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": metadata(pinned, ground.namespace),
        "automountServiceAccountToken": False,
    }


def files(pinned: PinnedManifest, engine: EngineFacts, ground: RenderGround) -> KubernetesObject:
    """The files that the command line names."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": metadata(pinned, ground.namespace, name=files_name(pinned)),
        "data": dict(sorted(engine.command.files.items())),
    }


def disruption_budget(pinned: PinnedManifest, ground: RenderGround) -> KubernetesObject:
    """Nodes are emptied one replica at a time, and never wait for one that is broken anyway."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(pinned, ground.namespace),
        "spec": {
            "maxUnavailable": 1,
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": selector(pinned.name)},
        },
    }


def _steps(place: Place) -> KubernetesObject:
    """A capacity block has no node to spare for a replica more."""
    if place.hardware.purchase == "capacity-block":
        return {"maxSurge": 0, "maxUnavailable": 1}
    return {"maxSurge": 1, "maxUnavailable": 0}


def _template(
    pinned: PinnedManifest, engine: EngineFacts, place: Place, start: StartTime, ground: RenderGround
) -> KubernetesObject:
    spread = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": selector(pinned.name)},
    }
    disk = disk_request(pinned, engine.way, start.disk_bytes)
    before = initial_containers(engine, ground)
    return {
        "metadata": {"labels": pod_labels(pinned), "annotations": pod_annotations(engine, place)},
        "spec": {
            "serviceAccountName": pinned.name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": engine.grace_seconds,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER_ID,
                "runAsGroup": USER_ID,
                "fsGroup": USER_ID,
                "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "affinity": place.node_affinity(),
            "tolerations": place.tolerations(),
            "topologySpreadConstraints": [spread],
            **({"resourceClaims": pod_claims(pinned, place)} if place.by_claim else {}),
            **({"initContainers": before} if before else {}),
            "containers": [container(engine, place, start, ground, disk)],
            "volumes": volumes(engine, place, ground, files_name(pinned)),
        },
    }

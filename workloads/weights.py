"""How the weights of a pinned manifest come to its engine: mounted, streamed out of the bucket, or copied before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from fleet.engine import EngineCatalogue
from fleet.manifest import PinnedManifest
from workloads.ground import HUB, MODELS_PATH, NodeLocalWeights, RenderGround
from workloads.names import KubernetesObject
from workloads.refusal import Reason, RenderRefused

BUCKET_KEY, REGION_KEY = "bucket", "region"
"""Of the ConfigMap that says where weights are."""
BUCKET_VARIABLE = "WEIGHTS_BUCKET"
"""Kubernetes puts its value into commands, so objects are the same whatever the bucket is called."""
DISK_MARGIN = 1.1
"""Times the weights: a tokenizer and other small files come along."""
COPY_CPU, COPY_MEMORY = "1", "2Gi"
_MIB = 2**20
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
_DRAFTS = ("draft", "eagle")


@dataclass(frozen=True, slots=True)
class Delivery:
    """The way of one deployment's weights on one cluster."""

    uri: str | None = None
    """Where the engine streams from; ``None`` = it finds files."""
    folders: tuple[str, ...] = ()
    """Below the bucket, copied to the node's disks before the engine starts; empty = none are."""

    @property
    def reads_bucket(self) -> bool:
        """Whether the pod itself reaches for the bucket."""
        return self.uri is not None or bool(self.folders)


def delivery_of(pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround) -> Delivery:
    """The way of its weights.

    Raises:
        RenderRefused: its engine can't stream them, and they can't be copied.
    """
    weights, engine, version = ground.weights, pinned.engine_name, _version(pinned)
    if not isinstance(weights, NodeLocalWeights) or engine is None or version is None:
        return Delivery()
    snapshot = f"{_folder(pinned, pinned.spec.model.id)}/snapshots/{pinned.spec.model.revision}"
    reason = catalogue.no_streaming(pinned, engine, version)
    if reason is None:
        return Delivery(uri=f"s3://$({BUCKET_VARIABLE})/{snapshot}")
    if weights.copy_image is None:
        message = f"{reason}; so its weights are copied before it starts, and no image is known that copies"
        remedy = "give copy_image of the weights, an image by digest that has the command aws; or pin what streams"
        raise RenderRefused(pinned.name, Reason.WEIGHTS, message, remedy)
    return Delivery(folders=(snapshot, *_adapters(pinned)))


def copies(delivery: Delivery, weights: NodeLocalWeights, common: KubernetesObject) -> list[KubernetesObject]:
    """The containers that copy, one after the other; ``common`` = rights, places to write and plain settings."""
    return [
        {
            "name": f"weights-{index}",
            "image": weights.copy_image,
            "imagePullPolicy": "IfNotPresent",
            "command": ["aws"],
            "args": [
                "s3",
                "sync",
                "--only-show-errors",
                f"s3://$({BUCKET_VARIABLE})/{folder}/",
                f"{MODELS_PATH}/{folder}/",
            ],
            "resources": {"requests": {"cpu": COPY_CPU, "memory": COPY_MEMORY}, "limits": {"memory": COPY_MEMORY}},
            **common,
        }
        for index, folder in enumerate(delivery.folders)
    ]


def bucket_environment(weights: NodeLocalWeights) -> list[KubernetesObject]:
    """What a container needs to find the bucket; who it is comes from its service account (EKS Pod Identity)."""

    def of_map(key: str) -> KubernetesObject:
        return {"configMapKeyRef": {"name": weights.config_map, "key": key}}

    return [
        {"name": "AWS_DEFAULT_REGION", "valueFrom": of_map(REGION_KEY)},
        {"name": "AWS_EC2_METADATA_DISABLED", "value": "true"},  # that address is closed to pods
        {"name": BUCKET_VARIABLE, "valueFrom": of_map(BUCKET_KEY)},
    ]


def disk_request(pinned: PinnedManifest, delivery: Delivery, disk_bytes: int | None) -> str | None:
    """The part of the node's disks that is kept for copied weights; ``None`` = none is needed.

    Raises:
        RenderRefused: nobody knows how large they are; a disk that overflows ends the pods of its node.
    """
    if not delivery.folders:
        return None
    if disk_bytes is None:
        message = f"nobody knows how large the weights of {pinned.spec.model.id} are, which are copied to the node"
        remedy = "put its config.json into the environment's models/, or pin an engine that streams"
        raise RenderRefused(pinned.name, Reason.WEIGHTS, message, remedy)
    return f"{ceil(disk_bytes * DISK_MARGIN / _MIB)}Mi"


def _adapters(pinned: PinnedManifest) -> Iterator[str]:
    features = pinned.spec.features
    if features.speculative in _DRAFTS:
        message = f"speculative '{features.speculative}' loads a draft model, which only flags name: it is not copied"
        raise RenderRefused(pinned.name, Reason.WEIGHTS, message, "take ngram or mtp, or weights on a file system")
    for item in features.lora:
        yield _folder(pinned, item.partition("=")[2] or item)


def _folder(pinned: PinnedManifest, model_id: str) -> str:
    """Where the hub's layout has a model."""
    if not _HUB_ID.fullmatch(model_id):
        message = f"'{model_id}' is no id of the hub, so the bucket has no folder for it"
        raise RenderRefused(pinned.name, Reason.WEIGHTS, message, "name it as ORG/NAME, or take a file system")
    return f"{HUB.strip('/')}/models--{model_id.replace('/', '--')}"


def _version(pinned: PinnedManifest) -> str | None:
    return pinned.spec.engine.version if pinned.spec.engine is not None else None

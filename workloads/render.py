"""A pinned manifest becomes the Kubernetes objects that run it: the same bytes each time."""

from fleet.engine import EngineCatalogue
from fleet.manifest import PinnedManifest
from workloads.claims import claim_template
from workloads.container import EngineFacts
from workloads.deployment import deployment, disruption_budget, files, service_account
from workloads.ground import RenderGround
from workloads.names import KubernetesObject
from workloads.network import network_policy, service
from workloads.placement import place_of
from workloads.refusal import Reason, RenderRefused
from workloads.scaling import is_scaled, scaled_object
from workloads.start import start_time

PROGRAM = "pulumi"
"""In ``scaling.managed_by``: the platform's program makes the scaler."""


def render(
    pinned: PinnedManifest, catalogue: EngineCatalogue, ground: RenderGround | None = None
) -> tuple[KubernetesObject, ...]:
    """The objects of a deployment whose replicas stand on one node each, in the order in which they are applied.

    A scaler that the platform's program makes is not among them.

    Raises:
        RenderRefused: hosted, disaggregated or over several nodes; without image, pool or weights; see
            `workloads.refusal`.
    """
    ground = ground or RenderGround()
    _refuse_kind(pinned)
    engine = EngineFacts.of(pinned, catalogue, ground)
    place = place_of(pinned, ground)
    start = start_time(pinned, place, ground, engine.way)
    found = [service_account(pinned, ground)]
    if place.by_claim:
        found.append(claim_template(pinned, place, ground))
    if engine.command.files:
        found.append(files(pinned, engine, ground))
    found += [
        network_policy(pinned, engine, ground),
        service(pinned, ground),
        deployment(pinned, engine, place, start, ground),
        disruption_budget(pinned, ground),
    ]
    scaling = pinned.spec.scaling
    if is_scaled(scaling):
        scaler = scaled_object(pinned, catalogue, ground)
        found += [scaler] if scaling.managed_by != PROGRAM else []
    return tuple(found)


def _refuse_kind(pinned: PinnedManifest) -> None:
    spec = pinned.spec
    if spec.hosted is not None:
        message = f"{spec.hosted.name} runs the engine behind {spec.hosted.endpoint}; there are no pods"
        raise RenderRefused(pinned.name, Reason.HOSTED, message, "nothing is to be applied: the gateway calls it")
    if spec.features.disaggregation != "none" or spec.pools is not None:
        message = f"disaggregation '{spec.features.disaggregation}' needs several kinds of pods; one kind is rendered"
        raise RenderRefused(pinned.name, Reason.DISAGGREGATED, message, "take features.disaggregation: none")

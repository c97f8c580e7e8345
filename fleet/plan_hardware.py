"""Which GPU a wish is planned on: the one asked for, the instance's, or the cheapest on which the model fits."""

from dataclasses import dataclass, replace

from fleet import hardware
from fleet.gpu_parts import gpu_of
from fleet.hardware import GpuModel
from fleet.model import Model
from fleet.plan_figures import figures_of
from fleet.plan_search import Field, field_of, smallest
from fleet.plan_wish import PlanWish, WishError
from fleet.prices import PriceTable
from fleet.sharing import LayoutError, profile_of

FALLBACK_GPU = "H100"


@dataclass(frozen=True, slots=True)
class Ground:
    """Where plans are looked for, and how that was chosen."""

    gpu: GpuModel
    field: Field
    wish: PlanWish
    """With GPU and number of GPUs filled in."""
    note: str | None = None


def ground_of(model: Model, wish: PlanWish, prices: PriceTable) -> Ground:
    """The hardware of a wish; raises `UnknownHardware`, or `WishError` where its parts contradict."""
    found = _cheapest(model, wish, prices) if wish.instance is None and wish.gpu is None else known_ground(wish)
    if wish.mig_profile is not None:
        _check_profile(found.gpu, wish.mig_profile)
    return found


def _check_profile(gpu: GpuModel, name: str) -> None:
    """A slice of another GPU is a plan that can't be, and an answer; a name that no GPU has can't be read."""
    if any(item.name == name for other in hardware.gpu_models().values() for item in other.mig_profiles):
        return
    try:
        profile_of(gpu, name)
    except LayoutError as error:
        raise WishError(f"mig_profile is '{name}'; {error}") from None


def known_ground(wish: PlanWish) -> Ground:
    """The hardware that the wish names."""
    node, part = None, None
    if wish.instance is not None:
        shape = hardware.instance(wish.instance)
        if wish.gpu is not None and wish.gpu != shape.gpu:
            raise WishError(f"{wish.instance} carries {shape.gpu}, not {wish.gpu}")
        node, part = shape.gpus, gpu_of(shape)
        wish = replace(wish, gpu=shape.gpu, gpus=wish.gpus or (None if wish.is_explicit else node))
    gpu = part or hardware.gpu(wish.gpu or FALLBACK_GPU)
    return Ground(gpu, field_of(gpu, wish, node), wish)


def _cheapest(model: Model, wish: PlanWish, prices: PriceTable) -> Ground:
    """The GPU whose smallest fitting plan costs least an hour in rented instances; unknown prices come last."""
    figures = figures_of(model, wish.quantization, wish.kv_dtype)
    ranked: list[tuple[float, int, str]] = []
    for name in sorted({item.gpu for item in hardware.instance_types().values() if item.gpu_fraction == 1}):
        asked = replace(wish, gpu=name)
        ground = known_ground(asked)
        found = smallest(figures, ground.gpu, asked, ground.field)
        if found is not None:
            gpus = found.plan.gpus
            ranked.append((_usd_per_hour(name, gpus, ground.field.node, prices), gpus, name))
    if not ranked:
        ground = known_ground(replace(wish, gpu=FALLBACK_GPU))
        return replace(ground, note=f"no GPU was given and none of those known fits: judged on {FALLBACK_GPU}")
    shown = ", ".join(f"{gpus}x {name}" for _, gpus, name in sorted(ranked))
    ground = known_ground(replace(wish, gpu=min(ranked)[2]))
    return replace(ground, note=f"no GPU was given: the cheapest by the hour of {shown} (unknown prices last)")


def _usd_per_hour(gpu_name: str, gpus: int, node: int, prices: PriceTable) -> float:
    """The cheapest way to rent them: one instance that holds all, or several of the largest."""
    known = (
        prices.usd_per_hour(item.name, nodes=hardware.nodes_per_replica(gpus, item))
        for item in hardware.instances_with(gpu_name)
        if item.gpus >= min(gpus, node)
    )
    return min((price for price in known if price is not None), default=float("inf"))

"""A part of a GPU as a GPU of its own: a MIG slice, or what a partitioned instance has of one."""

from fleet.hardware import BYTES_PER_MIB, GpuModel, InstanceType, gpu
from fleet.sharing import compute_slices, memory_slices, profile_of, slice_memory

_COMPUTE = ("bf16_tflops", "fp8_tflops", "fp4_tflops")


def slice_of(model: GpuModel, profile: str) -> GpuModel:
    """A MIG slice: bandwidth by its memory slices, peaks by its compute slices, and its own memory.

    Nobody has measured one, so speed worked out with it is extrapolated.

    Raises:
        LayoutError: the GPU has no such profile.
    """
    found, memory = profile_of(model, profile), slice_memory(model, profile)
    return _part(
        model,
        f"{model.name} {profile}",
        bandwidth=memory_slices(model, found) / memory_slices(model),
        compute=found.compute_slices / compute_slices(model),
        memory_mib=None if memory is None else memory.memory_bytes // BYTES_PER_MIB,
    )


def gpu_of(shape: InstanceType) -> GpuModel:
    """The GPU of an instance; of a partitioned instance, its part as a GPU without slices of its own."""
    whole, fraction = gpu(shape.gpu), shape.gpu_fraction
    if fraction == 1:
        return whole
    name = f"1/{round(1 / fraction)} {whole.name}"
    return _part(whole, name, bandwidth=fraction, compute=fraction, memory_mib=shape.gpu_memory_mib)


def _part(model: GpuModel, name: str, *, bandwidth: float, compute: float, memory_mib: int | None) -> GpuModel:
    shares = {"memory_bandwidth_gb_per_second": bandwidth, **dict.fromkeys(_COMPUTE, compute)}
    rates = {rate: value * share for rate, share in shares.items() if (value := getattr(model, rate)) is not None}
    own = {"name": name, "memory_mib": memory_mib, "visible_memory_gib": None, "mig_profiles": ()}
    return model.model_copy(update=rates | own)

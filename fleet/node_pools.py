"""Node pools: the nodes of one kind that an environment may use, how many, how they are bought and shared."""

from datetime import date
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from fleet.gpu_share import GpuShare
from fleet.hardware import GpuModel, InstanceType, UnknownHardware, gpu, instance, instance_types
from fleet.sharing import LayoutError, SharingWay, profile_of, ways_of
from fleet.spec import Line, Name, Purchase
from fleet.value import Value


class NodePool(Value):
    """Nodes of one instance type that a fleet may use."""

    name: Name
    instance_type: Line
    max_nodes: Annotated[int, Field(ge=0)] | None = None
    """``None`` = no limit; a capacity block has one."""
    purchase: Purchase = "on-demand"
    sharing: SharingWay = SharingWay.EXCLUSIVE
    """How its GPUs are shared, on every node alike."""
    mig_profile: Line | None = None
    """The instances into which every GPU is cut; only and always with ``sharing: mig``."""
    allocation: Literal["device-plugin", "dra"] = "device-plugin"
    """How pods get its GPUs: as a resource that a plugin names, or by claims (dynamic resource allocation)."""
    zone: Line | None = None
    """The availability zone; ``None`` = any."""
    ends_on: date | None = None
    """The last day that a capacity block covers wholly; only and always with ``purchase: capacity-block``."""

    @field_validator("instance_type")
    @classmethod
    def _known(cls, value: str) -> str:
        try:
            return instance(value).name
        except UnknownHardware as error:
            raise ValueError(str(error)) from None

    @field_validator("purchase")
    @classmethod
    def _offered(cls, value: Purchase, info: ValidationInfo) -> Purchase:
        shape = instance_types().get(info.data.get("instance_type", ""))
        if shape is not None and value not in shape.purchase_classes:
            offered = ", ".join(shape.purchase_classes)
            raise ValueError(f"{shape.name} is not sold as '{value}'; it is sold as {offered}")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        problem = self._sharing_problem() or self._block_problem()
        if problem is not None:
            raise ValueError(problem)
        return self

    @cached_property
    def instance(self) -> InstanceType:
        """Its instance type."""
        return instance(self.instance_type)

    @cached_property
    def gpu(self) -> GpuModel:
        """The GPU of its nodes; of an instance with a part of a GPU, that part (without slices of its own)."""
        shape = self.instance
        whole = gpu(shape.gpu)
        if shape.gpu_fraction == 1:
            return whole
        return whole.model_copy(
            update={"memory_mib": shape.gpu_memory_mib, "visible_memory_gib": None, "mig_profiles": ()}
        )

    def share(self, *, context_bytes: int) -> GpuShare:
        """What one of its GPUs can hold, shared as the pool says and not otherwise."""
        return GpuShare(self.gpu, (self.sharing,), profile=self.mig_profile, context_bytes=context_bytes)

    def has_ended(self, day: date) -> bool:
        """Whether its capacity block no longer covers the day."""
        return self.ends_on is not None and day > self.ends_on

    def _sharing_problem(self) -> str | None:
        if self.sharing not in ways_of(self.gpu):
            fit = ", ".join(way.value for way in ways_of(self.gpu))
            return f"sharing '{self.sharing.value}' needs MIG, which {self.gpu.name} does not have; it can be {fit}"
        if self.sharing is not SharingWay.MIG:
            if self.mig_profile is None:
                return None
            where = f"belongs to sharing 'mig', which is '{self.sharing.value}'"
            return f"mig_profile '{self.mig_profile}' {where}; leave it out"
        profiles = ", ".join(item.name for item in self.gpu.mig_profiles)
        if self.mig_profile is None:
            return f"sharing 'mig' needs a mig_profile; {self.gpu.name} has {profiles}"
        try:
            profile_of(self.gpu, self.mig_profile)
        except LayoutError as error:
            return str(error)
        return None

    def _block_problem(self) -> str | None:
        if self.purchase != "capacity-block":
            if self.ends_on is None:
                return None
            return (
                f"ends_on {self.ends_on} belongs to purchase 'capacity-block', which is '{self.purchase}'; leave it out"
            )
        if self.ends_on is None:
            return "a capacity block needs ends_on, the last day that it covers wholly"
        if self.max_nodes is None:
            return "a capacity block needs max_nodes, the number of reserved instances"
        return None

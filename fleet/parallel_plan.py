"""A parallel plan: how one replica is split over its GPUs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class ParallelPlan:
    """Sizes of each kind of parallelism; the GPUs are ``tensor x pipeline x data x context``.

    ``expert`` is over how many ranks whole experts are spread (0 = each expert is split by tensor parallelism over all
    ranks of its stage). With ``data`` above 1 a mixture of experts shares its experts among the data-parallel ranks
    while each rank has its own attention ("DP attention"); a dense model is copied.
    """

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert: int = 0
    context: int = 1

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tensor * self.pipeline * self.data * self.context

    @property
    def stage_ranks(self) -> int:
        """GPUs of one pipeline stage."""
        return self.tensor * self.data * self.context

    def __str__(self) -> str:
        sizes = (
            ("TP", self.tensor),
            ("PP", self.pipeline),
            ("DP", self.data),
            ("EP", self.expert),
            ("CP", self.context),
        )
        return "x".join(f"{name}{size}" for name, size in sizes if size > 1) or "TP1"

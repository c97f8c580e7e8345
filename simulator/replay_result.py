"""What a replay measured, as ``enginehouse simulate`` says it."""

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """The figures of one replay."""

    prompt_tokens: int
    cached_tokens: int
    ttft_seconds: "array[float]"
    per_replica_requests: tuple[int, ...]
    per_replica_tokens: tuple[int, ...]
    """Prompt tokens that each replica had to compute."""

    @property
    def hit_ratio(self) -> float:
        """Cached prompt tokens of all prompt tokens."""
        return self.cached_tokens / self.prompt_tokens

    @property
    def mean_ttft_seconds(self) -> float:
        """The mean time to first token."""
        return math.fsum(self.ttft_seconds) / len(self.ttft_seconds)

    @property
    def busiest_over_mean_tokens(self) -> float | None:
        """How much more than the mean the busiest replica computed; ``None`` when nobody computed anything."""
        return busiest_over_mean(self.per_replica_tokens)

    def to_document(self) -> dict[str, object]:
        """The documented keys."""
        ordered = sorted(self.ttft_seconds)
        return {
            "hit_ratio": self.hit_ratio,
            "ttft_seconds": {
                "mean": self.mean_ttft_seconds,
                "p50": percentile(ordered, 50),
                "p90": percentile(ordered, 90),
                "p99": percentile(ordered, 99),
            },
            "busiest_over_mean_requests": busiest_over_mean(self.per_replica_requests),
            "busiest_over_mean_tokens": self.busiest_over_mean_tokens,
            "requests": len(self.ttft_seconds),
            "per_replica_requests": list(self.per_replica_requests),
        }


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The value below which so many percent lie, between neighbours in proportion."""
    place = (len(ordered) - 1) * percent / 100
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def busiest_over_mean(counts: Sequence[int]) -> float | None:
    """The largest of some counts over their mean."""
    total = sum(counts)
    return max(counts) * len(counts) / total if total else None

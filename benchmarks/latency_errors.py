"""Errors of predictions: medians, spreads, and how often an interval holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from statistics import median

COVERED = 0.8


@dataclass(frozen=True)
class Errors:
    """Log of predicted over measured of every point, by what was left out of the fit."""

    own: list[float]
    """Nothing."""
    shape: list[float]
    gpu: list[float]
    engine: list[float]
    """Empty where there is one engine."""


def absolute(errors: Sequence[float]) -> list[float]:
    """Absolute relative errors."""
    return [abs(exp(error) - 1) for error in errors]


def quantile(values: Sequence[float], part: float) -> float:
    """Between the two nearest values."""
    ordered = sorted(values)
    at = part * (len(ordered) - 1)
    below = int(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def bounds(errors: Sequence[float], covered: float = COVERED) -> tuple[float, float]:
    """Measured over predicted: half of the uncovered points lie below, half above."""
    side = (1 - covered) / 2
    return exp(-quantile(errors, 1 - side)), exp(-quantile(errors, side))


def spread_of(errors: Sequence[float], at_least: Sequence[float] = (), covered: float = COVERED) -> dict[str, float]:
    """As it stands in the data file; never narrower than that of ``at_least``."""
    low, high = bounds(errors, covered)
    if at_least:
        least_low, least_high = bounds(at_least, covered)
        low, high = min(low, least_low), max(high, least_high)
    return {"low": float(f"{low:.4g}"), "high": float(f"{high:.4g}"), "points": len(errors)}


def coverage(errors: Sequence[float], low: float, high: float) -> float:
    """Part of the points whose measured over predicted lies between the bounds."""
    return sum(low <= exp(-error) <= high for error in errors) / len(errors)


def nested_coverage(errors: Sequence[float], groups: Sequence[str], covered: float = COVERED) -> tuple[float, float]:
    """Coverage, and median width, of intervals that were made from the residuals of other groups."""
    held, widths = 0.0, []
    for name in set(groups):
        own = [error for error, group in zip(errors, groups, strict=True) if group == name]
        low, high = bounds([error for error, group in zip(errors, groups, strict=True) if group != name], covered)
        held += coverage(own, low, high) * len(own)
        widths += [high / low] * len(own)
    return held / len(errors), median(widths)

"""Metric families and their text in the Prometheus exposition format."""

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

Labels = Mapping[str, str]


@dataclass(slots=True)
class Series:
    """One labelled value, or one labelled histogram (bucket counts, sum, count)."""

    labels: dict[str, str]
    buckets: list[int]
    created: float
    value: float = 0.0
    count: int = 0


@dataclass(slots=True)
class Family:
    """One metric name with its series."""

    name: str
    kind: str
    bounds: tuple[float, ...] = ()
    series: dict[tuple[str, ...], Series] = field(default_factory=dict)

    def at(self, labels: Labels) -> Series:
        """Return the series with these labels, new at zero."""
        key = tuple(labels[name] for name in sorted(labels))
        found = self.series.get(key)
        if found is None:
            found = Series(dict(sorted(labels.items())), [0] * (len(self.bounds) + 1), time.time())
            self.series[key] = found
        return found

    def set(self, labels: Labels, value: float) -> None:
        """Set a gauge."""
        self.at(labels).value = value

    def add(self, labels: Labels, amount: float) -> None:
        """Add to a counter."""
        self.at(labels).value += amount

    def observe(self, labels: Labels, value: float) -> None:
        """Add one observation to a histogram or a summary."""
        series = self.at(labels)
        series.buckets[bisect_left(self.bounds, value)] += 1
        series.value += value
        series.count += 1


def render(families: Iterable[Family], *, with_created: bool) -> str:
    """Return the exposition text; families without a series are left out."""
    lines: list[str] = []
    for family in families:
        if family.series:
            lines.extend(_family_lines(family, with_created))
    return "\n".join(lines) + "\n"


def _family_lines(family: Family, with_created: bool) -> Iterator[str]:
    yield f"# TYPE {family.name} {family.kind}"
    for series in family.series.values():
        if family.kind == "histogram":
            yield from _histogram_lines(family, series)
        elif family.kind == "summary":
            yield f"{family.name}_count{_braces(series.labels)} {number(series.count)}"
            yield f"{family.name}_sum{_braces(series.labels)} {number(series.value)}"
        else:
            yield f"{family.name}{_braces(series.labels)} {number(series.value)}"
    if with_created and family.kind != "gauge" and not family.name.startswith(("python_", "process_")):
        created = f"{family.name.removesuffix('_total') if family.kind == 'counter' else family.name}_created"
        yield f"# TYPE {created} gauge"
        for series in family.series.values():
            yield f"{created}{_braces(series.labels)} {number(series.created)}"


def _histogram_lines(family: Family, series: Series) -> Iterator[str]:
    seen = 0
    for bound, count in zip((*family.bounds, math.inf), series.buckets, strict=True):
        seen += count
        labels = dict(sorted({**series.labels, "le": number(bound)}.items()))
        yield f"{family.name}_bucket{_braces(labels)} {number(seen)}"
    yield f"{family.name}_count{_braces(series.labels)} {number(series.count)}"
    yield f"{family.name}_sum{_braces(series.labels)} {number(series.value)}"


def _braces(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def number(value: float) -> str:
    """Write a number as Prometheus clients do: 0.0, 1.7959e+09, +Inf."""
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    text = repr(float(value))
    whole, _, rest = text.partition(".")
    if value >= 1e6 and "e" not in text:
        digits = (whole[1:] + rest).rstrip("0")
        return f"{whole[0]}.{digits or '0'}e+{len(whole) - 1:02d}"
    return text


def one_two_five(most: int) -> tuple[float, ...]:
    """Return the bucket bounds 1, 2, 5, 10, ... up to `most`."""
    steps: Sequence[int] = [digit * 10**power for power in range(len(str(most)) + 1) for digit in (1, 2, 5)]
    return tuple(float(step) for step in steps if step <= most)

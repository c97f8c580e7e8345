"""The tables that the fit prints."""

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from math import exp, log
from statistics import median

from latency_errors import COVERED, Errors, absolute, bounds, coverage, nested_coverage
from latency_figures import Parameters, Point
from latency_rows import latency_rows

PLAIN_BANDWIDTH_EFFICIENCY = 0.8
PLAIN_STEP_SECONDS = 0.002
PLAIN_HOP_SECONDS = 12e-6
PLAIN_PROMPT_EFFICIENCY = 0.45
"""The roofline of the collected notes: what the fit must beat."""


def print_rows(points: Sequence[Point]) -> None:
    """How many points there are, and which are doubtful or left out."""
    rows = list(latency_rows())
    used = [point.latency_row for point in points]
    left = Counter(row.gpu for row in rows) - Counter(row.gpu for row in used)
    unclear = Counter(row.gpu for row in rows if row.is_unclear)
    print(f"{len(used)} of {len(rows)} points of latency, {len({row.shape for row in used})} shapes")
    print(f"  left out, no bandwidth known: {dict(left)}")
    print(f"  unclear (requests in flight differ from batch x data-parallel ranks): {dict(unclear)}")


def print_figure(
    title: str, points: Sequence[Point], errors: Errors, parameters: Parameters, covered: float = COVERED
) -> None:
    """Fit and cross-validation of one figure."""
    print(f"\n{title}: {len(points)} points")
    print("  " + ", ".join(f"{name} {value:.3g}" for name, value in parameters.items()))
    _line("fitted on all", errors.own)
    _line("shape left out", errors.shape)
    _line("GPU left out", errors.gpu)
    if errors.engine:
        _line("engine left out", errors.engine)
    held, width = nested_coverage(errors.shape, [point.row.shape for point in points], covered)
    own_low, own_high = bounds(errors.shape, covered)
    own = coverage(errors.own, own_low, own_high)
    kept = "" if covered == COVERED else f" (taken at {covered:.0%} of few shapes)"
    print(f"  80 % interval{kept} from other left-out shapes: covers {held:.0%}, median high/low {width:.2f}")
    print(f"  the interval of the data file covers {own:.0%} of the points it was fitted on")
    _table("GPU, engine", points, errors, lambda point: f"{point.row.gpu} {point.engine}")
    _table("shape", points, errors, lambda point: point.row.shape)
    _table("kind", points, errors, lambda point: point.row.kind)


def print_roofline(points: Sequence[Point]) -> None:
    """The plain roofline on the same points: nothing is fitted on them here, but its constants once were on some."""
    errors = [log(_plain_tpot(point) / point.measured) for point in points]
    print("\nplain roofline (facts/planner.md section 5), the same points")
    _line("time per output token", errors)


def _plain_tpot(point: Point) -> float:
    work = point.step
    memory = (work.dense + work.experts + work.kv) / PLAIN_BANDWIDTH_EFFICIENCY
    waits = work.hops * PLAIN_HOP_SECONDS + work.link
    prompts = (
        work.batch * (work.prompt_operations + work.prompt_attention) / PLAIN_PROMPT_EFFICIENCY / work.output_tokens
    )
    return memory + PLAIN_STEP_SECONDS + waits + prompts


def _line(name: str, errors: Sequence[float]) -> None:
    low, high = bounds(errors)
    print(
        f"  {name:<22} median error {median(absolute(errors)):4.0%}, within 25 % {_within(errors, 0.25):4.0%}, "
        f"bias {exp(median(errors)) - 1:+4.0%}, measured/predicted of 80 %: {low:.2f} to {high:.2f}"
    )


def _within(errors: Sequence[float], bound: float) -> float:
    return sum(error <= bound for error in absolute(errors)) / len(errors)


def _table(title: str, points: Sequence[Point], errors: Errors, key: Callable[[Point], str]) -> None:
    groups: dict[str, list[int]] = defaultdict(list)
    for number, point in enumerate(points):
        groups[key(point)].append(number)
    print(f"  {title:<32} points  left out: median error, bias   fitted: median error")
    for name, numbers in sorted(groups.items()):
        left, own = [errors.shape[n] for n in numbers], [errors.own[n] for n in numbers]
        bias = exp(median(left)) - 1
        print(
            f"    {name:<32}{len(numbers):>4}  {median(absolute(left)):>20.0%} {bias:>+8.0%}"
            f" {median(absolute(own)):>18.0%}"
        )

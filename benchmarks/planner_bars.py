"""Every bar of the planner on what others measured: errors, counts and the worst rows, one table each.

Run it with ``python benchmarks/planner_bars.py [--markdown] [--copied] [--no-latency]``. Reads the collected facts
beside the checkout (``../shared/models``), else the copies in ``tests/data``, which hold the same kinds of rows.
``--copied`` takes the copies in any case; ``--markdown`` prints tables for docs/explanation/planner.md.
"""

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median

from planner_facts import (
    ARITHMETIC,
    VERSION_BOUND,
    Facts,
    class_of,
    facts_at_hand,
    precision_of,
    rule_of,
    start_up_wish,
    wish_of,
)

from fleet.constraints import arithmetic
from fleet.hardware import BYTES_PER_GIB, SharingMode, gpu
from fleet.kv_cache import kv_bytes_per_token, kv_sliding
from fleet.model import Missing
from fleet.parallel_plan import ParallelPlan
from fleet.plan_figures import figures_of
from fleet.planner import plan
from fleet.weights import weights_bytes_total

SIZES = (1, 2, 4, 8, 16, 32)
HEADS = {"heads-divisible", "kv-heads-divisible"}
WORST = 3
Cells = tuple[str, ...]


@dataclass(frozen=True)
class Table:
    """Figures of one bar."""

    title: str
    head: Cells
    rows: Sequence[Cells]
    misses: list[str]
    is_met: bool


def main() -> int:
    """Judge every row, print; 1 when a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    for option in ("--markdown", "--copied", "--no-latency"):
        parser.add_argument(option, action="store_true")
    options = parser.parse_args()
    facts = facts_at_hand(is_copied=options.copied)
    bars: list[Callable[[Facts], Table]] = [weights, cache, start_ups, placements, tensor_sizes]
    tables = [bar(facts) for bar in bars] + ([] if options.no_latency else [latency()])
    print(f"facts: {facts.name}; rows whose model has a configuration\n")
    for table in tables:
        (print_markdown if options.markdown else print_plain)(table)
    missed = [table.title for table in tables if not table.is_met]
    print("all bars met" if not missed else f"bars missed: {'; '.join(missed)}")
    return 1 if missed else 0


# --- Bars ----------------------------------------------------------------------------------------------------------
def weights(facts: Facts) -> Table:
    """Counted bytes of a checkpoint against its published size."""
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    misses, unknown = [], 0
    for row in facts.sizes:
        model, precision = facts.model(row), precision_of(row["quant"])
        counted = weights_bytes_total(model, precision)
        if isinstance(counted, Missing):
            unknown += 1
            misses.append(f"{row['model']} {precision}: unknown, {counted.message}")
            continue
        error = 100 * (counted / BYTES_PER_GIB / float(row["checkpoint_gib"]) - 1)
        name = f"{class_of(model)}, {precision}"
        found[name].append((error, row["model"]))
        if abs(error) > tolerance(precision):
            misses.append(f"{row['model']} {precision}: {error:+.2f} %")
    rows = [
        (name, str(len(errors)), _percent(median(abs(error) for error, _ in errors)), *_worst(errors))
        for name, errors in sorted(found.items())
    ]
    counted_rows = sum(len(errors) for errors in found.values())
    title = f"weights against published checkpoints: {counted_rows} rows, {unknown} unknown; bar 2 %, mxfp4 6 %"
    return Table(title, ("class, precision", "rows", "median error", "largest", "row"), rows, misses, not misses)


def tolerance(precision: str | None) -> float:
    """Percent."""
    return 6.0 if precision == "mxfp4" else 2.0


def cache(facts: Facts) -> Table:
    """Bytes per token in bf16, of full and of sliding layers; unknown exactly where no figure is expected."""
    counts: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    misses = []
    for row in facts.caches:
        model = facts.model(row)
        full, sliding = kv_bytes_per_token(model, "bf16"), kv_sliding(model, "bf16")
        ours = ("" if isinstance(full, Missing) else str(full), str(sliding.bytes_per_token) if sliding else "")
        expected = (row["kv_bytes_per_token_bf16"], row["sliding_bytes_per_token_bf16"])
        count = counts[class_of(model)]
        count[0] += 1
        count[1] += ours == expected
        count[2] += not ours[0]
        if ours != expected:
            misses.append(f"{row['model']}: {ours}, expected {expected}")
    rows = [(name, *(str(number) for number in count)) for name, count in sorted(counts.items())]
    rows.append(("all", *(str(sum(count[n] for count in counts.values())) for n in range(3))))
    title = f"KV bytes per token: {len(facts.caches)} rows; bar: equal, or unknown where no figure is expected"
    return Table(title, ("class", "rows", "equal", "unknown"), rows, misses, not misses)


def start_ups(facts: Facts) -> Table:
    """What an engine logged when it started."""
    rows, misses = [], []
    for row in facts.start_ups:
        answer = plan(facts.model(row), start_up_wish(row))
        memory = answer.memory
        if memory is None or not row["kv_gib_per_gpu"]:
            continue
        measured = max(0.0, float(row["kv_gib_per_gpu"]))
        ours = memory.kv_cache / BYTES_PER_GIB
        loaded = float(row["weights_gib_per_gpu"]) if row["weights_gib_per_gpu"] else None
        rows.append(
            (
                f"{row['model']} {row['precision']}, TP{row['tp']} {row['gpu']}, {row['gpu_memory_utilization']}",
                f"{memory.weights / BYTES_PER_GIB:.2f}",
                "" if loaded is None else f"{loaded:.2f}",
                f"{ours:.2f}",
                f"{measured:.2f}",
                f"{ours - measured:+.2f}",
            )
        )
        if abs(ours - measured) > 1:
            misses.append(f"{row['model']}: {ours - measured:+.2f} GiB")
    head = ("start-up", "weights, GiB", "logged", "KV cache, GiB", "logged", "difference")
    title = f"memory at start-up: {len(rows)} rows with a logged cache; bar 1 GiB"
    return Table(title, head, rows, misses, not misses)


@dataclass
class Score:
    """Placements of one kind."""

    rows: int = 0
    right: int = 0
    unknown: int = 0


def placements(facts: Facts) -> Table:
    """Plans that were served, or failed, and why."""
    scores: dict[str, Score] = defaultdict(Score)
    misses, accepted, apart = [], [], []
    for row in facts.placements:
        answer = plan(facts.model(row), wish_of(row))
        rules = {reason.rule for reason in answer.reasons}
        rule = rule_of(row["reason"])
        works = row["works"] == "yes"
        right = answer.fits == "yes" if works else answer.fits == "no" and rule in rules
        said = f"{row['model']} {row['precision']} {row['gpu_count']}x {row['gpu']} TP{row['tp']}: says {answer.fits}"
        said += f" {sorted(rules)}, is {row['works']} ({row['reason'] or row['evidence']})"
        if row["model"] in VERSION_BOUND or row["works"] not in ("yes", "no"):
            apart.append(f"{'version-bound' if row['works'] in ('yes', 'no') else 'neither'}, apart: {said}")
            continue
        score = scores["yes" if works else f"no: {rule}"]
        score.rows += 1
        score.right += right
        score.unknown += answer.fits == "unknown"
        accepted += [said] if not works and rule in ARITHMETIC and answer.fits == "yes" else []
        misses += [] if right else [said]
    rows = [
        (name, str(score.rows), str(score.right), f"{score.right / score.rows:.0%}", str(score.unknown))
        for name, score in sorted(scores.items())
    ]
    no = [score for name, score in scores.items() if name != "yes"]
    parts = (sum(one.right for one in no), sum(one.rows for one in no))
    rows.append(("all no", str(parts[1]), str(parts[0]), f"{parts[0] / max(1, parts[1]):.0%}", ""))
    rows.append(("arithmetic impossibilities accepted", "", str(len(accepted)), "", ""))
    met = not accepted and scores["yes"].right >= 0.9 * scores["yes"].rows and parts[0] >= 0.9 * parts[1]
    count = sum(score.rows for score in scores.values())
    title = f"placements: {count} rows, {len(apart)} apart; bar 90 % of yes and of no, 0 accepted"
    head = ("row says", "rows", "right, with the reason's rule", "share", "unknown")
    return Table(title, head, rows, misses + apart, met)


def tensor_sizes(facts: Facts) -> Table:
    """Sizes that vLLM accepts, and those that break an FP8 block unless experts stay whole."""
    heads = blocks = experts = 0
    misses = []
    for row in facts.divisions:
        figures = figures_of(facts.model(row), None, "auto")
        refused = {
            size: {
                item.rule
                for item in arithmetic(
                    figures, ParallelPlan(tensor=size), gpu("B300"), "vllm", None, SharingMode.EXCLUSIVE
                )
            }
            for size in SIZES
        }
        valid = [size for size in SIZES if not refused[size] & HEADS]
        expected = [int(size) for size in row["valid_tp_vllm"].split()]
        heads += valid == expected
        misses += [] if valid == expected else [f"{row['model']}: valid {valid}, expected {expected}"]
        if not row["experts"]:
            continue
        experts += 1
        broken = [size for size in expected if "fp8-block" in refused[size]]
        known = [int(size) for size in row["fp8_block_tp_invalid_without_ep"].split()]
        blocks += broken == known
        misses += [] if broken == known else [f"{row['model']}: FP8 block breaks at {broken}, expected {known}"]
    rows = [("valid sizes", str(len(facts.divisions)), str(heads)), ("FP8 blocks", str(experts), str(blocks))]
    title = "tensor-parallel sizes up to 32, and those that break an FP8 block; bar: as expected"
    return Table(title, ("column", "models", "as expected"), rows, misses, not misses)


def latency() -> Table:
    """Cross-validation grouped by model: see ``fit_latency.py`` for all of it."""
    from fit_latency import FEW_SHAPES, cross_validated, fitted
    from latency_errors import COVERED, Errors, absolute, nested_coverage
    from latency_figures import TPOT, TTFT, Point

    fits = fitted()
    figures: list[tuple[str, Sequence[Point], Errors, float]] = [
        ("time per output token", fits.points, cross_validated(TPOT, fits.points, fits.tpot), COVERED),
        ("time to first token", fits.first_points, cross_validated(TTFT, fits.first_points, fits.ttft), COVERED),
        (
            "throughput at saturation",
            fits.saturated_points,
            cross_validated(fits.saturation_figure, fits.saturated_points, fits.saturation),
            FEW_SHAPES,
        ),
    ]
    rows, misses = [], []
    for name, points, errors, covered in figures:
        shapes = [point.row.shape for point in points]
        held, width = nested_coverage(errors.shape, shapes, covered)
        error = median(absolute(errors.shape))
        own = f"{median(absolute(errors.own)):.0%}"
        rows.append((name, str(len(points)), str(len(set(shapes))), own, f"{error:.0%}", f"{held:.0%}", f"{width:.2f}"))
        if name == "time per output token" and (error > 0.2 or not 0.7 <= held <= 0.9 or width > 3):
            misses.append(f"{name}: {rows[-1]}")
    head = ("figure", "points", "models", "error, fitted", "error, model left out", "interval covers", "high/low")
    title = "latency, median absolute errors; bar of TPOT: 20 % on models left out, 80 % interval covers 70-90 %, <= 3"
    return Table(title, head, rows, misses, not misses)


# --- Printing ------------------------------------------------------------------------------------------------------
def print_plain(table: Table) -> None:
    """Columns of equal width."""
    lines = [table.head, *table.rows]
    widths = [max(len(line[n]) for line in lines) for n in range(len(table.head))]
    print(f"{table.title}: {'met' if table.is_met else 'MISSED'}")
    for line in lines:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    for miss in table.misses:
        print(f"  ! {miss}")
    print()


def print_markdown(table: Table) -> None:
    """A table for the documentation."""
    print(f"**{table.title}: {'met' if table.is_met else 'missed'}**\n")
    for line in (table.head, ("---",) * len(table.head), *table.rows):
        print(f"| {' | '.join(line)} |")
    print()
    for miss in table.misses:
        print(f"- {miss}")
    print("" if not table.misses else "\n", end="")


def _percent(value: float) -> str:
    return f"{value:.2f} %"


def _worst(errors: Sequence[tuple[float, str]]) -> tuple[str, str]:
    error, name = max(errors, key=lambda item: abs(item[0]))
    return f"{error:+.2f} %", name


if __name__ == "__main__":
    sys.exit(main())

"""Fits latency and throughput on the measured points, and says how far off models are that were not fitted.

Run: ``python benchmarks/fit_latency.py [--write] [--rows FOLDER]``. Every fold leaves out all points of one model
shape (the same model under two names is one); intervals are judged with residuals of the other left-out shapes.
``--write`` writes ``fleet/data/latency_fit.json``; ``--rows`` first copies the collected tables to ``tests/data``.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from latency_errors import Errors, spread_of
from latency_figures import TPOT, TTFT, Figure, Parameters, Point, saturation, split
from latency_rows import Row, copy_tables, latency_rows, saturated_rows, work_on
from latency_tables import print_figure, print_roofline, print_rows
from packaging.version import Version
from robust_fit import fit

from fleet.latency_work import Load

TARGET = Path(__file__).resolve().parent.parent / "fleet" / "data" / "latency_fit.json"
ENGINE_OF_THROUGHPUT = "tensorrt-llm"
RETRIEVED = "2026-11-29"
SOURCE = (
    "latency: ai-dynamo/aiconfigurator@095f58a silicon_sample.csv (runs of InferenceX and NVIDIA); throughput: "
    "NVIDIA/TensorRT-LLM@03e27c7 docs/source/developer-guide/perf-overview.md; copies in tests/data/latency"
)
FEW_SHAPES = 0.9
"""Six shapes have throughputs: their own residuals reach less far than those of the next one, so more is kept."""
POINTS_OF_A_SHAPE = 8
"""A shape counts as at most so many points: its rows err together."""


@dataclass(frozen=True)
class Fits:
    """The parameters of every figure."""

    points: list[Point]
    first_points: list[Point]
    saturated_points: list[Point]
    tpot: Parameters
    ttft: Parameters
    saturation: Parameters

    @property
    def saturation_figure(self) -> Figure:
        """Throughput stands on the fitted step."""
        return saturation(*split(self.tpot))


def main() -> None:
    """Fit, cross-validate, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--rows", type=Path)
    options = parser.parse_args()
    started = time.perf_counter()
    if options.rows:
        copy_tables(options.rows)
    fits = fitted()
    errors = {
        "tpot": cross_validated(TPOT, fits.points, fits.tpot),
        "ttft": cross_validated(TTFT, fits.first_points, fits.ttft),
        "saturation": cross_validated(fits.saturation_figure, fits.saturated_points, fits.saturation),
    }
    print_rows(fits.points)
    print_figure("time per output token", fits.points, errors["tpot"], fits.tpot)
    print_roofline(fits.points)
    print_figure("time to first token", fits.first_points, errors["ttft"], fits.ttft)
    print_figure("throughput at saturation", fits.saturated_points, errors["saturation"], fits.saturation, FEW_SHAPES)
    if options.write:
        TARGET.write_text(json.dumps(file_of(fits, errors), indent=1) + "\n", encoding="utf-8")
        print(f"written: {TARGET}")
    print(f"{time.perf_counter() - started:.1f} s")


def fitted() -> Fits:
    """Every figure fitted on all points."""
    points = [
        Point(row, row.tpot_seconds, row.engine, work) for row in latency_rows() if (work := row.work()) is not None
    ]
    tpot = fitted_on(TPOT, points)
    predict = TPOT.bind(*split(tpot))
    first = [replace(point, measured=point.latency_row.ttft_seconds, tpot=predict(point)) for point in points]
    most = [
        Point(row, row.tokens_per_second_per_gpu, ENGINE_OF_THROUGHPUT)
        for row in saturated_rows()
        if work_on(row.shape, row.quantization, row.plan, row.gpu, Load(1, row.input_tokens, row.output_tokens))
    ]
    figure = saturation(*split(tpot))
    return Fits(points, first, most, tpot, fitted_on(TTFT, first), fitted_on(figure, most))


def fitted_on(figure: Figure, points: Sequence[Point]) -> Parameters:
    """The parameters that describe some points."""
    counts = Counter(point.row.shape for point in points)
    weights = [min(1.0, POINTS_OF_A_SHAPE / counts[point.row.shape]) for point in points]
    engines = sorted({point.engine for point in points})
    return fit(lambda parameters: figure.errors(points, parameters), figure.priors_of(engines), weights)


def cross_validated(figure: Figure, points: Sequence[Point], parameters: Parameters) -> Errors:
    """The errors of points that were left out, by shape, by GPU, by engine."""
    by_engine = [] if not figure.engine_priors else left_out(figure, points, lambda point: point.engine)
    return Errors(
        own=figure.errors(points, parameters),
        shape=left_out(figure, points, lambda point: point.row.shape),
        gpu=left_out(figure, points, lambda point: point.row.gpu),
        engine=by_engine,
    )


def left_out(figure: Figure, points: Sequence[Point], group: Callable[[Point], str]) -> list[float]:
    """The error of each point under parameters that were fitted without its group."""
    errors = [0.0] * len(points)
    for name in sorted({group(point) for point in points}):
        parameters = fitted_on(figure, [point for point in points if group(point) != name])
        own = [number for number, point in enumerate(points) if group(point) == name]
        for number, error in zip(own, figure.errors([points[n] for n in own], parameters), strict=True):
            errors[number] = error
    return errors


def file_of(fits: Fits, errors: dict[str, Errors]) -> dict[str, object]:
    """What stands in ``latency_fit.json``."""
    rows = [point.latency_row for point in fits.points]
    return {
        "source": SOURCE,
        "retrieved": RETRIEVED,
        "made_by": "python benchmarks/fit_latency.py --write",
        "rows": len(rows),
        "shapes": len({row.shape for row in rows}),
        "gpus": sorted({row.gpu for row in rows}),
        "encodings": sorted({row.quantization for row in rows}),
        "engine_versions": {engine: _versions(rows, engine) for engine in sorted({row.engine for row in rows})},
        "largest_batch": max(round(row.load.concurrency / row.plan.data) for row in rows),
        "longest_input_tokens": max(row.load.input_tokens for row in rows),
        "tpot": _figure(fits.tpot, errors["tpot"]),
        "ttft": _figure(fits.ttft, errors["ttft"]),
        "saturation": {
            "engine": ENGINE_OF_THROUGHPUT,
            "coefficients": _rounded(fits.saturation),
            "gpus": sorted({point.row.gpu for point in fits.saturated_points}),
            "fitted": spread_of(errors["saturation"].shape, covered=FEW_SHAPES),
            "other_gpu": spread_of(errors["saturation"].gpu, errors["saturation"].shape, FEW_SHAPES),
        },
    }


def _versions(rows: Sequence[Row], engine: str) -> list[str]:
    """Oldest and newest numbered version among the points of an engine."""
    numbered = {row.engine_version for row in rows if row.engine == engine and row.engine_version[:1].isdigit()}
    ordered = sorted(numbered, key=Version)
    return [ordered[0], ordered[-1]]


def _figure(parameters: Parameters, errors: Errors) -> dict[str, object]:
    general, engines = split(parameters)
    return {
        "coefficients": _rounded(general),
        "engines": {name: _rounded(values) for name, values in engines.items()},
        "fitted": spread_of(errors.shape),
        "other_gpu": spread_of(errors.gpu, at_least=errors.shape),
        "other_engine": spread_of(errors.engine, at_least=errors.shape),
    }


def _rounded(values: Parameters) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in values.items()}


if __name__ == "__main__":
    main()

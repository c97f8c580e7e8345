"""The committed coefficients are what the fit gives on the measured points, and they meet their bars."""

import importlib
import json
from math import exp
from pathlib import Path
from statistics import median

import pytest

from fleet.latency_fit import bundled_fit

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def benchmark():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("fit_latency")


@pytest.fixture(scope="module")
def fits(benchmark):
    return benchmark.fitted()


def flat(figure):
    own = {f"{engine}/{name}": value for engine, items in figure.engines.items() for name, value in items.items()}
    return {**figure.coefficients, **own}


@pytest.mark.parametrize("name", ["tpot", "ttft"])
def test_the_committed_coefficients_are_those_of_the_fit(fits, name):
    committed = flat(getattr(bundled_fit(), name))
    assert committed == pytest.approx(dict(getattr(fits, name)), rel=0.02)


def test_the_committed_throughput_is_that_of_the_fit(fits):
    assert bundled_fit().saturation.coefficients == pytest.approx(dict(fits.saturation), rel=0.02)


def test_the_file_is_what_the_program_writes(benchmark):
    text = (ROOT / "fleet" / "data" / "latency_fit.json").read_text(encoding="utf-8")
    assert text == json.dumps(json.loads(text), indent=1) + "\n"
    assert json.loads(text)["source"] == benchmark.SOURCE


def test_no_coefficient_belongs_to_a_model(fits):
    shapes = {point.row.shape for point in fits.points}
    names = {*fits.tpot, *fits.ttft, *fits.saturation}
    assert not any(shape.split("/")[-1].lower() in name.lower() for shape in shapes for name in names)
    assert {name.split("/")[0] for name in names if "/" in name} == {"sglang", "tensorrt-llm", "vllm"}


def test_models_that_were_not_fitted_are_within_the_bars(benchmark, fits):
    errors = benchmark.left_out(benchmark.TPOT, fits.points, lambda point: point.row.shape)
    assert len(errors) == 267
    assert median(abs(exp(error) - 1) for error in errors) <= 0.20
    errors_module = importlib.import_module("latency_errors")
    held, width = errors_module.nested_coverage(errors, [point.row.shape for point in fits.points])
    assert 0.70 <= held <= 0.90
    assert width <= 3
    assert bundled_fit().tpot.fitted.points == 267
    assert errors_module.spread_of(errors)["low"] == pytest.approx(bundled_fit().tpot.fitted.low, rel=0.02)
    assert errors_module.spread_of(errors)["high"] == pytest.approx(bundled_fit().tpot.fitted.high, rel=0.02)


def test_the_fit_beats_the_plain_roofline(fits, benchmark):
    tables = importlib.import_module("latency_tables")
    plain = median(abs(tables._plain_tpot(point) / point.measured - 1) for point in fits.points)
    fitted = median(abs(exp(error) - 1) for error in benchmark.TPOT.errors(fits.points, fits.tpot))
    assert fitted < plain

"""A small robust least-squares fit in log space: Levenberg-Marquardt, Huber's loss, log-normal priors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

Residuals = Callable[[Mapping[str, float]], list[float]]
"""Log of predicted over measured for each point, given the parameters."""
STEP = 1e-4
LARGEST_MOVE = 0.5
HUBER = 0.2
"""Errors of more than this (in log) count linearly: measured rows have outliers that no roofline explains."""


@dataclass(frozen=True)
class Prior:
    """Where a positive parameter is expected, and how freely it may leave (standard deviation of its log)."""

    value: float
    spread: float


def fit(
    residuals: Residuals, priors: Mapping[str, Prior], weights: Sequence[float], rounds: int = 30
) -> dict[str, float]:
    """The parameters with the smallest loss."""
    names = list(priors)
    start = [log(priors[name].value) for name in names]
    freedom = [priors[name].spread for name in names]

    def errors_at(point: Sequence[float]) -> list[float]:
        return residuals({name: exp(value) for name, value in zip(names, point, strict=True)})

    def loss(point: Sequence[float], errors: Sequence[float]) -> float:
        data = sum(weight * _huber(error) for weight, error in zip(weights, errors, strict=True))
        return data + sum(((p - s) / f) ** 2 / 2 for p, s, f in zip(point, start, freedom, strict=True))

    point, damping = list(start), 1e-2
    errors = errors_at(point)
    best = loss(point, errors)
    for _ in range(rounds):
        matrix, slope = _normal_equations(errors_at, point, errors, weights)
        for i, (value, origin, spread) in enumerate(zip(point, start, freedom, strict=True)):
            matrix[i][i] += 1 / spread**2
            slope[i] += (value - origin) / spread**2
        moved = _step(matrix, slope, point, damping)
        new_errors = errors_at(moved)
        new = loss(moved, new_errors)
        if new >= best:
            damping *= 4
            continue
        done = best - new < 1e-7 * best
        point, errors, best, damping = moved, new_errors, new, max(damping / 5, 1e-6)
        if done:
            break
    return {name: exp(value) for name, value in zip(names, point, strict=True)}


def _huber(error: float) -> float:
    size = abs(error)
    return (size * size / 2 if size < HUBER else HUBER * (size - HUBER / 2)) / HUBER**2


def _normal_equations(
    errors_at: Callable[[Sequence[float]], list[float]],
    point: Sequence[float],
    errors: Sequence[float],
    weights: Sequence[float],
) -> tuple[list[list[float]], list[float]]:
    slopes = []
    for i in range(len(point)):
        beside = [value + (STEP if i == j else 0) for j, value in enumerate(point)]
        slopes.append([(b - a) / STEP for a, b in zip(errors, errors_at(beside), strict=True)])
    pull = [
        weight * (1 if abs(error) < HUBER else HUBER / abs(error)) / HUBER**2
        for weight, error in zip(weights, errors, strict=True)
    ]
    matrix = [
        [sum(p * a * b for p, a, b in zip(pull, left, right, strict=True)) for right in slopes] for left in slopes
    ]
    return matrix, [sum(p * a * e for p, a, e in zip(pull, left, errors, strict=True)) for left in slopes]


def _step(matrix: list[list[float]], slope: list[float], point: Sequence[float], damping: float) -> list[float]:
    damped = [
        [value * (1 + damping) if i == j else value for j, value in enumerate(row)] for i, row in enumerate(matrix)
    ]
    moves = solve(damped, slope)
    return [value - max(-LARGEST_MOVE, min(LARGEST_MOVE, move)) for value, move in zip(point, moves, strict=True)]


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination with pivots."""
    size = len(right)
    rows = [[*line, value] for line, value in zip(matrix, right, strict=True)]
    for i in range(size):
        pivot = max(range(i, size), key=lambda k: abs(rows[k][i]))
        rows[i], rows[pivot] = rows[pivot], rows[i]
        for k in range(i + 1, size):
            factor = rows[k][i] / rows[i][i]
            rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i], strict=True)]
    answer = [0.0] * size
    for i in reversed(range(size)):
        rest = sum(rows[i][j] * answer[j] for j in range(i + 1, size))
        answer[i] = (rows[i][size] - rest) / rows[i][i]
    return answer

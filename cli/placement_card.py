"""A placement for people: what was chosen and by which scores, then why every other candidate was not."""

import shlex
from collections.abc import Iterable
from itertools import groupby

from cli.output import tell
from cli.table import paragraph, table
from cli.violations import show_violations
from fleet.placement import Candidate, Choice, Rejection
from fleet.placement.estimate import Estimate
from fleet.placement.pair import PairEstimate

MILLISECONDS = 1000.0


def show_choice(name: str, choice: Choice) -> None:
    """Print a choice and the reasons of everything that was not taken."""
    _show_chosen(name, choice)
    if choice.rejections:
        table(rejection_rows(choice.rejections), title=_rejected(choice))
    for change in choice.would_fit:
        paragraph(change, indent="nearest: ")
    if choice.violations:
        show_violations(choice.violations, title="what the rules say")
    for note in choice.notes:
        paragraph(note, indent="note: ")
    build = None if choice.chosen is None else choice.chosen.build
    if build is not None and build.argv:
        paragraph(shlex.join(build.argv), indent=f"job {build.job}: ")
    if choice.canary is not None:
        show_choice(f"{name} (canary)", choice.canary)


def _show_chosen(name: str, choice: Choice) -> None:
    if choice.chosen:
        table([_row(name, choice.chosen)])
        if choice.chosen.split is not None:
            table(_score_rows(choice.chosen), title=f"scores: {choice.chosen.total:.2f} of 1")
    elif choice.pinned:
        table([{"manifest": name, "engine": "hosted", "version": None, "why": "the manifest names it"}])
    else:
        tell(f"{name}: no candidate is acceptable")


def _rejected(choice: Choice) -> str:
    return f"rejected ({choice.considered} candidates looked at)" if choice.considered > 1 else "rejected"


def _row(name: str, chosen: Candidate) -> dict[str, object]:
    row: dict[str, object] = {"manifest": name, "engine": chosen.engine, "version": chosen.version}
    if chosen.split is not None:
        nodes = f"{chosen.nodes} x " if chosen.nodes and chosen.nodes > 1 else ""
        gpus = "" if chosen.plan is None else f" on {chosen.plan.gpus} {_gpus(chosen.plan.gpus)}"
        row |= {"on": f"{nodes}{chosen.instance_type}", "plan": f"{chosen.split}{gpus}"}
        row |= {"weights": chosen.quantization} if chosen.quantization else {}
        row |= {"pool": chosen.pool} if chosen.pool else {}
        row |= _expected(chosen)
    return row | {"why": chosen.preference.reason}


def _expected(chosen: Candidate) -> dict[str, object]:
    estimate = chosen.estimate
    if estimate is None:
        return {}
    tpot = estimate.latency.tpot
    return {
        "token": "unknown" if tpot is None else f"{tpot.mid * MILLISECONDS:.3g} ms",
        "cost": _cost(estimate),
    }


def _cost(estimate: Estimate | PairEstimate) -> str:
    """Of all replicas; what it is a part of, and that its price is an estimate, stand with it."""
    if estimate.price is None or estimate.usd_per_hour is None:
        return "unknown"
    replicas = "1 replica" if estimate.replicas == 1 else f"{estimate.replicas} replicas"
    part = "" if isinstance(estimate, PairEstimate) else _part(estimate)
    guess = ", estimated price" if estimate.price.is_estimate else ""
    return f"${estimate.usd_per_hour:,.2f}/h ({replicas}{part}{guess})"


def _part(estimate: Estimate) -> str:
    nodes = estimate.gpu_share
    return "" if nodes >= 1 else f", {'' if estimate.replicas == 1 else 'each '}{nodes:.3g} of a node"


def _score_rows(chosen: Candidate) -> list[dict[str, object]]:
    return [
        {"score": item.name, "weight": f"{item.weight:.2f}", "value": f"{item.value:.2f}", "why": item.reason}
        for item in chosen.scores
    ]


def rejection_rows(rejections: Iterable[Rejection]) -> list[dict[str, object]]:
    """One row for neighbouring versions that one rule refuses, and one for all instances that fail by one rule.

    The reason shown is the newest version's, or that of the first instance; the JSON output has every one.
    """
    rows: list[dict[str, object]] = []
    on_any = [item for item in rejections if item.instance_type is None]
    for (engine, rule), group in groupby(on_any, key=lambda item: (item.engine, item.rule)):
        items = list(group)
        newest, oldest = items[0], items[-1]
        span = newest.version if len(items) == 1 else f"{newest.version} to {oldest.version} ({len(items)})"
        rows.append({"engine": engine, "version": span, "on": None, "rule": rule, "reason": newest.reason})
    on_some = [item for item in rejections if item.instance_type is not None]
    on_some.sort(key=_group)
    for (engine, version, rule, quantization), group in groupby(on_some, key=_group):
        items = list(group)
        where = items[0].instance_type if len(items) == 1 else f"{items[0].instance_type} and {len(items) - 1} more"
        where = f"{where}, {quantization}" if quantization else where
        rows.append({"engine": engine, "version": version, "on": where, "rule": rule, "reason": items[0].reason})
    return rows if any(row["on"] for row in rows) else [_without(row, "on") for row in rows]


def _group(item: Rejection) -> tuple[str, str, str, str]:
    """What one row stands for."""
    return item.engine, item.version or "", item.rule, item.quantization or ""


def _without(row: dict[str, object], key: str) -> dict[str, object]:
    return {name: value for name, value in row.items() if name != key}


def _gpus(count: int) -> str:
    return "GPU" if count == 1 else "GPUs"

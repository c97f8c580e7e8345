"""A fleet plan for people: what stands where, how full each pool is, what is left over."""

import re
from collections.abc import Sequence

from cli.output import say
from cli.table import paragraph, table
from fleet.fleet_plan import FleetPlan, Placed, PoolUse, Unplaced
from fleet.plan_wish import gpus_in_words

BAR_WIDTH = 24


def show_fleet(plan: FleetPlan) -> None:
    """Print the plan."""
    document = plan.to_document()
    table(_pools(plan), title=f"pools, as of {document['as_of']}")
    table([_placed(item) for item in plan.placed], title="placed")
    if plan.unplaced:
        table(unplaced_rows(plan.unplaced), title="does not fit")
    saved = sum(use.filling.packing.saved_gpus for use in plan.pools if use.filling.packing)
    if saved:
        say(f"sharing saves {gpus_in_words(saved)}")
    cost = plan.usd_per_hour
    say("cost not known: the price of a pool is missing" if cost is None else f"${cost:,.2f} an hour")
    if not plan.is_exhaustive:
        paragraph("not every combination was looked at; a cheaper one may exist", indent="note: ")


def _placed(item: Placed) -> dict[str, object]:
    served = item.option.served
    return {
        "deployment": item.deployment,
        "engine": f"{served.engine} {served.version}" if served else None,
        "pool": item.pool.name,
        "replicas": item.option.replicas,
        "gpus": item.option.gpus,
        "split": str(served.plan) if served else None,
        "sharing": item.option.sharing.value,
        "memory": "unknown" if item.memory_share is None else f"{item.memory_share:.0%} of a GPU",
    }


def unplaced_rows(unplaced: Sequence[Unplaced]) -> list[dict[str, object]]:
    """One row for each cause: deployments that one pool refuses by one rule in the same words stand together."""
    groups: dict[tuple[str | None, str, str], list[tuple[str, str]]] = {}
    for item in unplaced:
        for found in item.reasons:
            message = found.reason.message
            words = re.sub(rf"(?<![\w.-]){re.escape(item.deployment)}(?![\w-])", "each", message)
            groups.setdefault((found.pool, found.reason.rule, words), []).append((item.deployment, message))
    has_pools, rows = any(pool for pool, _, _ in groups), []
    for (pool, rule, words), members in groups.items():
        row: dict[str, object] = {"deployment": ", ".join(dict.fromkeys(name for name, _ in members))}
        row |= {"pool": pool or "any"} if has_pools else {}
        rows.append(row | {"rule": rule, "why": members[0][1] if len(members) == 1 else words})
    return rows


def _pools(plan: FleetPlan) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for use in plan.pools:
        gpus = sum(node.gpus for node in use.filling.nodes)
        used = sum(node.gpus_used for node in use.filling.nodes)
        most = use.pool.max_nodes
        rows.append(
            {
                "pool": use.pool.name,
                "instance": use.pool.instance_type,
                "nodes": use.nodes if most is None else f"{use.nodes} of {most}",
                "gpus": f"{used:g} of {gpus}" if gpus else _unused(use),
                "filled": _bar(used, gpus),
                "cost": "unknown" if use.usd_per_hour is None else f"${use.usd_per_hour:,.2f}/h",
            }
        )
    return rows


def _unused(use: PoolUse) -> str:
    """The GPUs that an unused pool could have."""
    most = use.pool.max_nodes
    return "0" if most is None else f"0 of {most * use.pool.instance.gpus} possible"


def _bar(used: float, gpus: int) -> str:
    return ("#" * round(BAR_WIDTH * used / gpus)).ljust(BAR_WIDTH, ".") if gpus else "-"

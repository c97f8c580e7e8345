"""A fleet plan for people: what stands where, how full each pool is, what is left over."""

from cli.output import say
from cli.table import paragraph, table
from fleet.fleet_plan import FleetPlan

BAR_WIDTH = 24


def show_fleet(plan: FleetPlan) -> None:
    """Print the plan."""
    document = plan.to_document()
    table(_pools(plan), title=f"pools, as of {document['as_of']}")
    table(
        [
            {
                "deployment": item.deployment,
                "pool": item.pool.name,
                "replicas": item.option.replicas,
                "gpus": item.option.gpus,
                "sharing": item.option.sharing.value,
            }
            for item in plan.placed
        ],
        title="placed",
    )
    if plan.unplaced:
        table(
            [
                {
                    "deployment": item.deployment,
                    "pool": reason.pool,
                    "rule": reason.reason.rule,
                    "why": reason.reason.message,
                }
                for item in plan.unplaced
                for reason in item.reasons
            ],
            title="does not fit",
        )
    cost = plan.usd_per_hour
    say("cost not known: the price of a pool is missing" if cost is None else f"${cost:,.2f} an hour")
    if not plan.is_exhaustive:
        paragraph("not every combination was looked at; a cheaper one may exist", indent="note: ")


def _pools(plan: FleetPlan) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for use in plan.pools:
        gpus = sum(node.gpus for node in use.filling.nodes)
        used = sum(node.gpus_used for node in use.filling.nodes)
        rows.append(
            {
                "pool": use.pool.name,
                "instance": use.pool.instance_type,
                "nodes": f"{use.nodes} of {use.pool.max_nodes}" if use.pool.max_nodes is not None else use.nodes,
                "gpus": f"{used:g} of {gpus}",
                "filled": _bar(used, gpus),
                "cost": "unknown" if use.usd_per_hour is None else f"${use.usd_per_hour:,.2f}/h",
            }
        )
    return rows


def _bar(used: float, gpus: int) -> str:
    return ("#" * round(BAR_WIDTH * used / gpus)).ljust(BAR_WIDTH, ".") if gpus else "-"

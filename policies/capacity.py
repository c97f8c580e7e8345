"""Policies on how nodes are bought and where they stand."""

from collections.abc import Iterator

from fleet.cloud import purchase
from fleet.cloud.finding import Finding
from policies.adapter import Check, Seen
from policies.groups import NODE_GROUP, PLACEMENT_GROUP, RESERVATION, Group
from policies.reading import at, text


def _target(seen: Seen) -> Iterator[Finding]:
    yield from purchase.target_findings(Group(seen).buying)


def _market(seen: Seen) -> Iterator[Finding]:
    yield from purchase.market_findings(Group(seen).buying)


def _block_type(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    yield from purchase.block_type_findings(
        group.buying, template_type=group.template_type, group_types=group.group_types
    )


def _sold(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    for shape in group.shapes:
        yield from purchase.sold_findings(shape, group.buying)


def _reservation_zone(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if group.template is None or group.reservation_id is None:
        return
    zones = group.zones
    known = _zone_of(group.template, group.reservation_id)
    if known is not None:
        yield from purchase.reservation_zone_findings(known, zones)
    elif len(zones) > 1:
        yield Finding(purchase.RESERVATION_ZONE, f"a reservation has one zone and its nodes are in {', '.join(zones)}")


def _reservation_type(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    own = group.template.links("capacityReservationSpecification", RESERVATION) if group.template else ()
    for reservation in own:
        held = text(reservation.props, "instanceType")
        if held is not None:
            yield from purchase.reservation_type_findings(held, group.types)


def _zone_of(template: Seen, reservation_id: str) -> str | None:
    """The zone of a reservation: of the stack's own, else as the stack's configuration says it."""
    own = template.links("capacityReservationSpecification", RESERVATION)
    if own:
        return text(own[0].props, "availabilityZone")
    return template.ground.stack.reservation_zones.get(reservation_id)


def _placement(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    strategy = _strategy(group)
    if strategy is not None:
        yield from purchase.placement_findings(strategy, zones=group.zones, reservation_id=group.buying.reservation)


def _placement_strategy(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    strategy = _strategy(group)
    for shape in group.shapes if strategy is not None else ():
        yield from purchase.strategy_findings(shape, strategy or "")


def _strategy(group: Group) -> str | None:
    """The strategy of the placement group; one that stands elsewhere counts as a cluster one, the strictest."""
    placement = at(group.template_props, "placement")
    if group.template is None or not placement or not {"groupName", "groupId"} & set(placement):
        return None
    own = group.template.links("placement", PLACEMENT_GROUP)
    return (text(own[0].props, "strategy") if own else None) or "cluster"


def _efa_zones(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    if group.has_efa:
        yield from purchase.efa_zone_findings(group.zones, has_efa=True)


_GROUPS = (NODE_GROUP,)
CHECKS = (
    Check((purchase.BLOCK_TARGET, purchase.RESERVATION_SPOT), _GROUPS, _target, relates=True),
    Check((purchase.BLOCK_MARKET,), _GROUPS, _market, relates=True),
    Check((purchase.BLOCK_TYPE,), _GROUPS, _block_type, relates=True),
    Check((purchase.NOT_SOLD,), _GROUPS, _sold, relates=True),
    Check((purchase.RESERVATION_ZONE,), _GROUPS, _reservation_zone, relates=True),
    Check((purchase.RESERVATION_TYPE,), _GROUPS, _reservation_type, relates=True),
    Check((purchase.PLACEMENT_ZONES, purchase.PLACEMENT_RESERVATION), _GROUPS, _placement, relates=True),
    Check((purchase.PLACEMENT_STRATEGY,), _GROUPS, _placement_strategy, relates=True),
    Check((purchase.EFA_ZONES,), _GROUPS, _efa_zones, relates=True),
)
WITHOUT_POLICY = {
    purchase.BLOCK_DESIRED.id: "an upgrade is a difference between two states, and a pack sees one; preflight asks",
}

"""Policies on how nodes are bought and where they stand."""

from collections.abc import Iterator

from fleet.cloud import purchase
from fleet.cloud.finding import Finding
from policies.adapter import Check, Seen
from policies.groups import NODE_GROUP, PLACEMENT_GROUP, Group, groups_in
from policies.reading import at, text
from policies.words import names_of


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
    known = _zone_of(group, group.reservation_id)
    if known is not None:
        yield from purchase.reservation_zone_findings(known, zones)
    elif len(zones) > 1:
        yield Finding(purchase.RESERVATION_ZONE, f"a reservation has one zone and its nodes are in {', '.join(zones)}")


def _reservation_type(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    for reservation in group.reservations:
        held = text(reservation.props, "instanceType")
        if held is not None:
            yield from purchase.reservation_type_findings(held, group.types)


def _zone_of(group: Group, reservation_id: str) -> str | None:
    """The zone of a reservation: of the stack's own, else as the stack's configuration says it."""
    own = group.reservations
    if own:
        return text(own[0].props, "availabilityZone")
    return group.seen.ground.stack.reservation_zones.get(reservation_id)


def _placement(seen: Seen) -> Iterator[Finding]:
    group = Group(seen)
    strategy = _strategy(group)
    if strategy is None:
        return
    names = _placement_names(group)
    yield from purchase.placement_findings(
        strategy,
        zones=group.zones,
        reservation_id=group.buying.reservation,
        is_reserved_into=any(_reserves_into(reservation, names) for reservation in group.reservations),
    )
    if strategy == "cluster":
        others = [item for item in groups_in(seen.stack) if item.seen is not seen and names & _placement_names(item)]
        yield from purchase.shared_placement_findings(group.zones, {item.seen.name: item.zones for item in others})


def _placement_names(group: Group) -> frozenset[str]:
    """What its placement group is called: by the resource of the stack, else by name or id; nothing = there is none."""
    if group.template is None or not at(group.template_props, "placement"):
        return frozenset()
    own = group.template.links("placement", PLACEMENT_GROUP)
    if own:
        return names_of(own[0].props) | {own[0].urn}
    written = (text(group.template_props, "placement", key) for key in ("groupName", "groupId"))
    return frozenset(name for name in written if name)


def _reserves_into(reservation: Seen, names: frozenset[str]) -> bool:
    """Whether a reservation holds instances of a placement group: by the resource, else by the name in its ARN."""
    if any(group.urn in names for group in reservation.links("placementGroupArn", PLACEMENT_GROUP)):
        return True
    if reservation.comes_from("placementGroupArn", PLACEMENT_GROUP):
        return False
    return (text(reservation.props, "placementGroupArn") or "").rpartition(":placement-group/")[2] in names


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

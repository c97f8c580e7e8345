"""What gateways work from, as the pages show it: routes with their arms, prices, output filters."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from control_plane.services.closings import ProposedClosing
from control_plane.services.house import House
from fleet.budget import ModelPrice
from fleet.output_policy import NO_FILTER, PII_FILTER, FilterPolicy
from fleet.snapshot import GatewayArm, GatewayEndpoint, GatewayRoute
from fleet.spec import NAME_PATTERN

PAGE = 25
_ENDPOINTS = 12
"""Addresses of one arm; the deployment's page has them all."""


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One side of a route."""

    arm: GatewayArm
    share: str
    endpoints: tuple[GatewayEndpoint, ...]
    more: int
    """How many are not among them."""

    @property
    def ready(self) -> int:
        """How many take new requests."""
        return sum(not item.is_draining for item in self.arm.endpoints)


@dataclass(frozen=True, slots=True)
class RouteCard:
    """One public model."""

    route: GatewayRoute
    arms: tuple[ArmRow, ...]
    proposed: tuple[ProposedClosing, ...]

    @property
    def tone(self) -> str:
        """A class of the card: red when the rules refuse what would be closed."""
        if not self.proposed:
            return ""
        return " bad" if any(item.is_refused for item in self.proposed) else " note"

    @property
    def needs_name(self) -> bool:
        """Whether a route of it needs a name of its own: it has none yet, and the model's can't be one."""
        return all(item.route is None for item in self.proposed) and not re.fullmatch(NAME_PATTERN, self.route.model)


def routes(house: House, *, after: str) -> tuple[list[RouteCard], str | None]:
    """A page of public models above one, and where the next page begins."""
    snapshot, _ = house.snapshots.current()
    found = [item for item in sorted(snapshot.routes, key=lambda item: item.model) if item.model > after]
    proposed: dict[str, list[ProposedClosing]] = {}
    for item in house.closings.every() if found else ():
        proposed.setdefault(item.model, []).append(item)
    cards = [RouteCard(item, _arms(item.arms), tuple(proposed.get(item.model, ()))) for item in found[:PAGE]]
    return cards, found[PAGE - 1].model if len(found) > PAGE else None


def _arms(arms: Sequence[GatewayArm]) -> tuple[ArmRow, ...]:
    total = sum(arm.weight for arm in arms)
    return tuple(_arm(arm, total) for arm in arms)


def _arm(arm: GatewayArm, total: float) -> ArmRow:
    share = f"{100 * arm.weight / total:.3g} %" if total else "none"
    return ArmRow(arm, share, arm.endpoints[:_ENDPOINTS], max(0, len(arm.endpoints) - _ENDPOINTS))


@dataclass(frozen=True, slots=True)
class PriceRow:
    """What a million tokens of one public model cost, in dollars."""

    model: str
    input: str
    cached: str
    output: str


def prices(house: House) -> tuple[list[PriceRow], list[str]]:
    """Every price by its model, and the served models that have none."""
    snapshot, _ = house.snapshots.current()
    known = {item.model for item in snapshot.prices}
    rows = [_price(item) for item in sorted(snapshot.prices, key=lambda item: item.model)]
    return rows, sorted(item.model for item in snapshot.routes if item.model not in known)


def _price(item: ModelPrice) -> PriceRow:
    cached = item.usd_per_million_cached_input_tokens
    return PriceRow(
        item.model,
        _usd(item.usd_per_million_input_tokens),
        _usd(item.usd_per_million_input_tokens if cached is None else cached),
        _usd(item.usd_per_million_output_tokens),
    )


def _usd(amount: float) -> str:
    """With two places at least, and with all that were stated."""
    exact = Decimal(repr(amount)).normalize()
    return f"{exact:,.2f}" if exact == exact.quantize(Decimal("0.01")) else f"{exact:f}"


@dataclass(frozen=True, slots=True)
class FilterRow:
    """One output filter; its own patterns and denied words are not shown, since they may be secrets themselves."""

    name: str
    modes: tuple[tuple[str, tuple[str, ...]], ...]
    """(mode, the classes that it is taken for)."""
    patterns: tuple[str, ...]
    """Names of its own classes, with their mode."""
    policy: FilterPolicy
    models: tuple[str, ...]
    """Whose answers pass it."""


def filters(house: House) -> list[FilterRow]:
    """The one that is always there, and those that people made."""
    snapshot, _ = house.snapshots.current()
    users: dict[str, list[str]] = {}
    for route in snapshot.routes:
        if route.output_filter != NO_FILTER:
            users.setdefault(route.output_filter, []).append(route.model)
    named = [(PII_FILTER, FilterPolicy()), *((item.name, item.policy) for item in snapshot.output_filters)]
    return [_filter(name, policy, users) for name, policy in named]


def _filter(name: str, policy: FilterPolicy, users: Mapping[str, Sequence[str]]) -> FilterRow:
    by_mode: dict[str, list[str]] = {}
    for kind, mode in sorted(policy.classes.items()):
        by_mode.setdefault(mode.value, []).append(kind)
    return FilterRow(
        name,
        tuple((mode, tuple(kinds)) for mode, kinds in sorted(by_mode.items())),
        tuple(f"{item.name} ({item.mode.value})" for item in policy.patterns),
        policy,
        tuple(sorted(users.get(name, ()))),
    )

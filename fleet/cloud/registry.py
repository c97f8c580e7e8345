"""Every rule of the cloud, by id."""

from collections.abc import Iterable, Mapping

from fleet.cloud import (
    data,
    definitions,
    identity,
    interfaces,
    isolation,
    limits,
    lustre,
    lustre_links,
    lustre_nodes,
    lustre_ports,
    manifests,
    network,
    node_access,
    node_groups,
    node_images,
    node_sharing,
    node_types,
    objects,
    purchase,
    scaling,
)
from fleet.cloud.finding import CloudRule
from fleet.nearest import did_you_mean

THEMES: Mapping[str, tuple[CloudRule, ...]] = {
    "nodes": (*interfaces.RULES, *node_access.RULES, *node_groups.RULES, *node_types.RULES),
    "images": node_images.RULES,
    "sharing": node_sharing.RULES,
    "capacity": purchase.RULES,
    "network": network.RULES,
    "data": (*lustre.RULES, *lustre_links.RULES, *lustre_ports.RULES, *lustre_nodes.RULES, *data.RULES),
    "identity": identity.RULES,
    "workloads": (*manifests.RULES, *objects.RULES, *isolation.RULES),
    "scaling": (*scaling.RULES, *definitions.RULES),
    "limits": limits.RULES,
}
"""Theme -> its rules, in the order of the reference."""
RULES: tuple[CloudRule, ...] = tuple(rule for rules in THEMES.values() for rule in rules)
BY_ID: Mapping[str, CloudRule] = {rule.id: rule for rule in RULES}


class UnknownRule(Exception):
    """A rule id that no theme has."""


def check_ids(ids: Iterable[str]) -> None:
    """Raise `UnknownRule` for the first id that no theme has, with the nearest one that there is."""
    for found in ids:
        if found not in BY_ID:
            raise UnknownRule(f"no rule of the platform is called '{found}'{did_you_mean(found, BY_ID)}")

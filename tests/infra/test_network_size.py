"""A network that is too small is told with a size that is large enough."""

import re
from datetime import date
from ipaddress import IPv4Network

import pytest

from infra.stack_checks import problems
from infra.stack_config import StackConfig
from tests.infra.stacks import DEV, VARIANTS


def told(config: StackConfig, length: int) -> str:
    """What is wrong with a stack in a network of some length; empty = nothing."""
    network = config.network.model_copy(update={"cidr": IPv4Network(f"10.0.0.0/{length}")})
    return "".join(
        item.sentence for item in problems(config.model_copy(update={"network": network}), today=date(2030, 1, 1))
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_size_that_is_named_passes_and_the_next_smaller_one_does_not(variant):
    for length in range(17, 31):
        found = told(VARIANTS[variant], length)
        if found:
            (named,) = re.findall(r"take /(\d+)", found)
            assert told(VARIANTS[variant], int(named)) == ""
            assert told(VARIANTS[variant], int(named) + 1) != ""


@pytest.mark.parametrize(("most", "remedy"), [
    (6, "take /18 or larger"),
    (40, "take /16"),
    (4000, "no network is large enough: take /16, and a smaller max_nodes"),
])  # fmt: skip
@pytest.mark.parametrize("length", [20, 24])
def test_it_follows_from_the_nodes_that_may_stand_in_it(most, remedy, length):
    system = DEV.system_nodes.model_copy(update={"max_nodes": most})
    assert told(DEV.model_copy(update={"system_nodes": system}), length).endswith(f"; {remedy}")

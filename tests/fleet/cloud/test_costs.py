"""What a pool costs: figures of a dated price, or nothing and the reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.cloud.costs import pool_cost
from fleet.node_pools import NodePool
from fleet.prices import Price, PriceTable

USD = st.floats(0.01, 500)


def table(**changes) -> PriceTable:
    price = {
        "instance_type": "g6.xlarge",
        "usd_per_hour": 2.0,
        "as_of": "2026-05",
        "region": "us-east-1",
        "source": "invented for this test",
    }
    return PriceTable(retrieved="2026-05-01", prices=(Price(**price | changes),))


def pool(**changes) -> NodePool:
    return NodePool(**{"name": "l4", "instance_type": "g6.xlarge", "max_nodes": 4} | changes)


@given(each=USD, nodes=st.integers(0, 50), limit=st.integers(0, 50))
def test_costs_are_the_price_times_the_nodes(each, nodes, limit):
    cost = pool_cost(pool(max_nodes=limit), nodes=nodes, region="us-east-1", prices=table(usd_per_hour=each))
    assert cost.usd_per_node_hour == each
    assert cost.usd_per_hour == pytest.approx(each * nodes)
    assert cost.most_usd_per_hour == pytest.approx(each * limit)
    assert cost.reason == ""


def test_a_price_keeps_its_day_and_source():
    cost = pool_cost(pool(), nodes=1, region="us-east-1", prices=table(is_estimate=True))
    assert (cost.as_of, cost.source, cost.is_estimate) == ("2026-05", "invented for this test", True)


def test_an_unknown_price_stays_unknown_and_says_what_is_known():
    cost = pool_cost(pool(purchase="spot"), nodes=2, region="us-east-1", prices=table())
    assert (cost.usd_per_node_hour, cost.usd_per_hour, cost.most_usd_per_hour) == (None, None, None)
    assert cost.reason == "no spot price of g6.xlarge is known (table of 2026-05-01); known for it: on-demand"


def test_the_price_of_another_region_is_named():
    cost = pool_cost(pool(), nodes=1, region="eu-central-1", prices=table())
    assert cost.usd_per_hour == 2.0
    assert cost.reason == "the price is of us-east-1, the pool stands in eu-central-1"


def test_a_pool_without_a_limit_has_no_most():
    cost = pool_cost(pool(max_nodes=None), nodes=1, region="us-east-1", prices=table(region=None))
    assert cost.most_usd_per_hour is None
    assert cost.reason == "the pool has no limit of nodes; the price is of no stated region"

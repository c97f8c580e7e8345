"""Prices: dated, sourced, and unknown where nobody has seen one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import prices
from fleet.hardware import instance_types
from fleet.prices import Price, PriceTable


@given(name=st.sampled_from(sorted(instance_types())), nodes=st.integers(min_value=1, max_value=64))
def test_a_cost_is_the_price_times_the_nodes_or_unknown(name, nodes):
    table = prices.bundled()
    price = table.price(name)
    cost = table.usd_per_hour(name, nodes=nodes)
    assert cost == (None if price is None else price.usd_per_hour * nodes)


def test_every_price_names_a_known_instance_its_period_and_its_source():
    for price in prices.bundled().prices:
        assert price.purchase in instance_types()[price.instance_type].purchase_classes
        assert price.as_of[:4].isdigit()
        assert price.source


def test_a_price_that_nobody_has_seen_stays_unknown():
    table = prices.bundled()
    assert table.price("p5en.48xlarge") is None
    assert table.usd_per_hour("p5en.48xlarge", nodes=4) is None
    assert table.usd_per_hour("g6.xlarge", purchase="spot") is None
    assert table.usd_per_hour("no-such-type") is None


def test_ways_of_buying_have_their_own_prices():
    table = prices.bundled()
    assert table.usd_per_hour("p5.48xlarge") == 98.32
    assert table.usd_per_hour("p5.48xlarge", purchase="capacity-block") == 39.33


def test_an_estimate_is_marked():
    assert [price.instance_type for price in prices.bundled().prices if price.is_estimate] == ["p5e.48xlarge"]


def test_the_first_of_several_prices_counts():
    rows = [Price(instance_type="a", usd_per_hour=usd, as_of="2030-01", source="own") for usd in (2.0, 3.0)]
    assert PriceTable(retrieved="2030-01-01", prices=tuple(rows)).usd_per_hour("a") == 2.0


def test_a_price_is_above_nothing():
    with pytest.raises(ValueError, match="greater than 0"):
        Price(instance_type="a", usd_per_hour=0, as_of="2030-01", source="own")

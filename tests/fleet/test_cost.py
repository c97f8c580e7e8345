"""Cost: linear in nodes, dated, unknown where the price is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet import prices
from fleet.cost import cost_of, usd_per_million
from fleet.hardware import instance, instance_types
from fleet.latency_interval import Interval
from fleet.prices import Price, PriceTable

rates = st.tuples(*(st.floats(min_value=1, max_value=1e5) for _ in range(3))).map(
    lambda three: Interval(*sorted(three))
)
priced = st.sampled_from(sorted({price.instance_type for price in prices.bundled().prices})).map(instance)


@given(instance_type=priced, nodes=st.integers(min_value=1, max_value=32))
def test_cost_is_linear_in_nodes(instance_type, nodes):
    one = cost_of(instance_type, instance_type.gpus, table=prices.bundled())
    many = cost_of(instance_type, instance_type.gpus * nodes, table=prices.bundled())
    assert many.nodes == nodes
    assert many.usd_per_hour == pytest.approx(one.usd_per_hour * nodes)


@given(
    name=st.sampled_from(sorted(instance_types())), purchase=st.sampled_from(["on-demand", "spot", "capacity-block"])
)
def test_a_cost_has_the_day_of_its_price_or_a_reason(name, purchase):
    cost = cost_of(instance(name), 1, table=prices.bundled(), purchase=purchase)
    assert (cost.usd_per_hour_of_share is None) == (cost.priced_on is None)
    assert (cost.usd_per_hour is None) == (cost.priced_on is None or cost.priced_as_part_of is not None)
    assert cost.priced_on or cost.reason


@given(usd=st.floats(min_value=0.1, max_value=1000), rate=rates)
def test_more_tokens_a_second_never_cost_more_each(usd, rate):
    cost = usd_per_million(usd, rate)
    assert cost.low <= cost.mid <= cost.high
    faster = usd_per_million(usd, rate * 2)
    assert faster.mid <= cost.mid


@given(gpus=st.integers(min_value=1, max_value=8))
def test_a_part_of_an_instance_costs_its_part(gpus):
    cost = cost_of(instance("p5.48xlarge"), gpus, table=prices.bundled())
    assert cost.gpu_share == gpus / 8
    assert cost.usd_per_hour_of_share == pytest.approx(98.32 * gpus / 8)
    assert cost.usd_per_hour == 98.32


def test_where_only_a_larger_instance_has_a_price_its_part_is_shown_and_marked():
    rate = Interval(1000, 2000, 4000)
    cost = cost_of(instance("p5.4xlarge"), 1, table=prices.bundled(), output_tokens_per_second=rate)
    assert cost.usd_per_hour is None
    assert cost.usd_per_hour_of_share == pytest.approx(98.32 / 8)
    assert (cost.priced_as_part_of, cost.priced_on, cost.is_estimate) == ("p5.48xlarge", "2026-Q1", True)
    assert cost.usd_per_million_output_tokens.mid == pytest.approx(98.32 / 8 / (2000 * 3600) * 1e6)
    assert "no on-demand price of p5.4xlarge is known" in cost.reason
    spot = cost_of(instance("p5.4xlarge"), 1, table=prices.bundled(), purchase="spot")
    assert (spot.usd_per_hour_of_share, spot.priced_on) == (None, None)


def test_the_part_of_an_instance_with_fewer_processors_says_nothing_about_one_with_more():
    cost = cost_of(instance("g5.16xlarge"), 1, table=prices.bundled())
    assert (cost.usd_per_hour_of_share, cost.priced_as_part_of) == (None, None)


def test_slices_share_the_price_of_their_gpu():
    one = cost_of(instance("p5.48xlarge"), 1, table=prices.bundled(), slices_per_gpu=7)
    assert (one.nodes, one.usd_per_hour) == (1, 98.32)
    assert one.usd_per_hour_of_share == pytest.approx(98.32 / 56)


def test_tokens_are_priced_over_the_used_gpus():
    rate = Interval(1000, 2000, 4000)
    cost = cost_of(instance("p5.48xlarge"), 2, table=prices.bundled(), output_tokens_per_second=rate)
    assert cost.usd_per_million_output_tokens.mid == pytest.approx(98.32 / 4 / (2000 * 3600) * 1e6)
    assert cost.priced_on == "2026-Q1"
    assert cost.reason is None


def test_ways_of_buying_are_told_apart():
    table = prices.bundled()
    block = cost_of(instance("p5.48xlarge"), 8, table=table, purchase="capacity-block")
    assert (block.usd_per_hour, block.priced_on) == (39.33, "2024-Q4")
    spot = cost_of(instance("p5.48xlarge"), 8, table=table, purchase="spot")
    assert spot.usd_per_hour is None
    assert "no spot price of p5.48xlarge is known" in spot.reason
    assert "capacity-block, on-demand" in spot.reason
    never = cost_of(instance("g6.xlarge"), 1, table=table, purchase="capacity-block")
    assert "not sold as capacity-block" in never.reason


def test_a_user_brings_prices_of_their_own():
    own = PriceTable(
        retrieved="2030-01-01",
        prices=(
            Price(instance_type="p5en.48xlarge", purchase="spot", usd_per_hour=50, as_of="2030-01-01", source="own"),
        ),
    )
    table = prices.bundled().with_prices(own)
    cost = cost_of(instance("p5en.48xlarge"), 16, table=table, purchase="spot")
    assert (cost.usd_per_hour, cost.priced_on) == (100, "2030-01-01")
    assert table.usd_per_hour("g6.xlarge") == prices.bundled().usd_per_hour("g6.xlarge")


def test_without_a_throughput_the_cost_of_a_token_is_not_known():
    cost = cost_of(instance("g6.xlarge"), 1, table=prices.bundled())
    assert cost.usd_per_million_output_tokens is None
    assert "throughput" in cost.reason
    assert usd_per_million(10, Interval(0, 1, 2)) is None

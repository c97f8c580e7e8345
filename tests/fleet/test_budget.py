"""What tokens count for: exact in whole numbers, never below nothing, and a bound that holds."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fleet.budget import PICODOLLARS_PER_USD, ModelPrice, TokenWeights
from fleet.snapshot import GatewaySnapshot

TOKENS = st.integers(0, 10**7)
THOUSANDTHS = st.integers(0, 10_000)


@given(used=TOKENS, cached=TOKENS, output=TOKENS, weights=st.tuples(THOUSANDTHS, THOUSANDTHS, st.integers(1, 10_000)))
def test_a_charge_is_the_weighted_sum_rounded_up_and_never_above_the_bound(used, cached, output, weights):
    cached = min(cached, used)
    named = dict(
        zip(("input_token", "cached_input_token", "output_token"), (weight / 1000 for weight in weights), strict=True)
    )
    tariff = TokenWeights(**named).tariff()
    exact = Fraction((used - cached) * weights[0] + cached * weights[1] + output * weights[2], 1000)
    charge = tariff.charge(used, cached, output)
    assert exact <= charge < exact + 1
    assert charge <= tariff.at_most(used, output)
    assert output == 0 or charge > 0


@given(amount=TOKENS, used=TOKENS, cached=THOUSANDTHS, weight=st.integers(1, 10_000))
def test_the_longest_output_within_an_amount_fits_and_one_token_more_does_not(amount, used, cached, weight):
    tariff = TokenWeights(cached_input_token=cached / 1000, output_token=weight / 1000).tariff()
    output = tariff.output_within(amount, used)
    if output >= 0:
        assert tariff.at_most(used, output) <= amount
    assert tariff.at_most(used, output + 1) > amount


def test_prices_are_exact_where_floats_are_not():
    price = ModelPrice(model="chat", usd_per_million_input_tokens=0.15, usd_per_million_output_tokens=0.6)
    assert price.tariff().charge(1_000_000, 0, 1_000_000) == 0.75 * PICODOLLARS_PER_USD
    assert price.tariff().charge(1_000_000, 1_000_000, 0) == 0.15 * PICODOLLARS_PER_USD
    assert price.tariff().charge(1, 0, 0) == 150_000


def test_where_output_costs_nothing_any_output_is_within():
    price = ModelPrice(model="embed", usd_per_million_input_tokens=0.1, usd_per_million_output_tokens=0)
    assert price.tariff().output_within(0, 10) is None


@pytest.mark.parametrize(
    "weights", [{"output_token": 0}, {"output_token": 0.0001}, {"input_token": -1}, {"output_token": float("inf")}]
)
def test_output_always_weighs_something_and_nothing_weighs_less_than_nothing(weights):
    with pytest.raises(ValidationError):
        TokenWeights(**weights)


def test_a_snapshot_from_before_there_were_budgets_is_valid():
    snapshot = GatewaySnapshot.model_validate_json(
        '{"tenants":[{"name":"acme","tokens_per_minute":5}],"keys":[{"id":"k","sha256":"00","tenant":"acme"}]}'
    )
    assert snapshot.tenants[0].tokens_per_day is None
    assert snapshot.tenants[0].models == snapshot.keys[0].models == ()
    assert GatewaySnapshot.model_validate_json(snapshot.model_dump_json()) == snapshot

"""The alarm on money."""

from hypothesis import given, settings
from hypothesis import strategies as st

from infra.budget import Budget, BudgetArgs
from infra.stack_config import BudgetConfig
from tests.infra.recording import record

EMAILS = ("fleet@example.com", "money@example.com")


def inputs(usd: float) -> dict:
    config = BudgetConfig(usd_per_month=usd, emails=EMAILS)
    return record(lambda: Budget("prod", BudgetArgs(config))).one("aws:budgets/budget:Budget").inputs


@settings(max_examples=10, deadline=None)
@given(usd=st.floats(1, 10_000_000))
def test_the_limit_is_the_configured_amount_to_the_cent(usd):
    found = inputs(usd)
    assert abs(float(found["limitAmount"]) - usd) <= 0.005 + usd * 1e-9
    assert (found["limitUnit"], found["timeUnit"], found["budgetType"]) == ("USD", "MONTHLY", "COST")


def test_everybody_is_told_before_at_and_ahead_of_the_limit():
    alarms = inputs(1000)["notifications"]
    assert [(alarm["notificationType"], alarm["threshold"]) for alarm in alarms] == [
        ("ACTUAL", 80),
        ("ACTUAL", 100),
        ("FORECASTED", 100),
    ]
    assert all(alarm["subscriberEmailAddresses"] == list(EMAILS) for alarm in alarms)


def test_no_filter_can_make_the_budget_count_nothing():
    assert not {"costFilters", "filterExpression"} & inputs(1000).keys()

"""The alarm on money: mails when the month's costs come near the budget, and when they are foreseen to pass it."""

from dataclasses import dataclass
from typing import Literal

import pulumi
from pulumi_aws import budgets

from infra.stack_config import BudgetConfig

ALARMS: tuple[tuple[Literal["ACTUAL", "FORECASTED"], float], ...] = (
    ("ACTUAL", 80.0),
    ("ACTUAL", 100.0),
    ("FORECASTED", 100.0),
)
"""What is compared, and at which percentage of the budget a mail goes out."""


@dataclass(frozen=True, slots=True)
class BudgetArgs:
    """How much, and who is told."""

    budget: BudgetConfig


class Budget(pulumi.ComponentResource):
    """A monthly budget over the whole account.

    It has no filter by tag: a tag that nobody has activated for cost allocation would make it count nothing. An
    account with several environments gets an alarm that rings too early, which is better than one that never rings.
    """

    def __init__(self, name: str, args: BudgetArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("enginehouse:infra:Budget", name, None, opts)
        self.budget = budgets.Budget(
            f"{name}-monthly",
            name=f"{name}-monthly",
            budget_type="COST",
            time_unit="MONTHLY",
            limit_amount=f"{args.budget.usd_per_month:.2f}",
            limit_unit="USD",
            notifications=[
                budgets.BudgetNotificationArgs(
                    notification_type=kind,
                    comparison_operator="GREATER_THAN",
                    threshold=percent,
                    threshold_type="PERCENTAGE",
                    subscriber_email_addresses=list(args.budget.emails),
                )
                for kind, percent in ALARMS
            ],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({"budget": self.budget.name})

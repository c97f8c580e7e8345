"""The policy as values: how strict an environment is. The numbers stand in ``policies/policy.yaml``."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from fleet.severity import Severity
from fleet.value import Value


class Denial(Value):
    """An engine that a workload must not use, as a decision of people."""

    workload: str
    engine: str
    reason: str


class Policy(Value):
    """How strict one environment is."""

    refuse_affected_from: Severity = Severity.MEDIUM
    """An ``affected`` match of this severity or higher on an exposed path refuses."""
    residuals_need_triage_from: Severity | None = None
    """A residual that any source rates this high needs a triage entry; ``None`` = none does."""
    unrated_affected_needs_triage: bool = False
    """An ``affected`` match without severity on an exposed path needs a triage entry."""
    allow_runtime_process: bool = False
    """Whether ``runtime: process`` may stand for an image."""
    max_advisory_age_days: Annotated[int, Field(ge=0)] | None = None
    """New deployments are refused past this age of the advisory data; ``None`` = no limit."""
    existing_identities: Literal["warn", "refuse"] = "warn"
    """What a newer advisory does to an identity that an environment has adopted."""
    max_waiver_days: Annotated[int, Field(ge=1)] = 90
    denials: tuple[Denial, ...] = ()


class PolicyBook(Value):
    """A default policy and what each environment changes."""

    default: Policy = Policy()
    environments: dict[str, dict[str, Any]] = Field(default_factory=dict)

    def policy_for(self, environment: str) -> Policy:
        """The default with the environment's own settings over it; an unknown environment gets the default."""
        changes: Mapping[str, Any] = self.environments.get(environment, {})
        return Policy.model_validate(self.default.model_dump() | dict(changes))

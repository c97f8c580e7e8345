"""The policy as values: how strict an environment is. The numbers stand in ``policies/policy.yaml``."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from fleet.cloud.finding import Grade
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


Level = Literal["mandatory", "advisory", "remediate"]
"""What a broken rule of the platform does: refuse, be shown, or be put right where a rule knows how (else refuse)."""


class PlatformPolicy(Value):
    """What the cluster of one environment may be. No rule can be switched off; it can be made advisory."""

    grades: dict[Grade, Level] = Field(default_factory=dict)
    """What the rules of a grade do; a grade without an entry is mandatory."""
    rules: dict[str, Level] = Field(default_factory=dict)
    """What single rules do, by id; they count before their grade."""
    regions: tuple[str, ...] = ()
    """Regions that may be used; empty = all."""
    instance_types: tuple[str, ...] = ()
    """Instance types of nodes; `p5.*` is a family, empty = all."""
    image_registries: tuple[str, ...] = ()
    """Registries that images may come from; `*.example.org` is all below it, empty = all."""
    max_usd_per_hour: Annotated[float, Field(gt=0)] | None = None
    """What all node groups may cost an hour at their largest; `None` = no limit."""
    required_tags: tuple[str, ...] = ()
    """Tags that everything that costs money carries."""

    def level_of(self, rule: str, grade: Grade) -> Level:
        """What a broken rule does."""
        return self.rules.get(rule) or self.grades.get(grade, "mandatory")


class PlatformBook(Value):
    """A default for the platform and what each environment changes."""

    default: PlatformPolicy = PlatformPolicy()
    environments: dict[str, dict[str, Any]] = Field(default_factory=dict)


class PolicyBook(Value):
    """A default policy and what each environment changes; the same for the platform."""

    default: Policy = Policy()
    environments: dict[str, dict[str, Any]] = Field(default_factory=dict)
    platform: PlatformBook = PlatformBook()

    def policy_for(self, environment: str) -> Policy:
        """The default with the environment's own settings over it; an unknown environment gets the default."""
        changes: Mapping[str, Any] = self.environments.get(environment, {})
        return Policy.model_validate(self.default.model_dump() | dict(changes))

    def platform_for(self, environment: str) -> PlatformPolicy:
        """The platform's default with the environment's own settings over it; grades and rules one by one."""
        base = self.platform.default.model_dump()
        changes: Mapping[str, Any] = self.platform.environments.get(environment, {})
        merged = {key: _over(base.get(key), value) for key, value in changes.items()}
        return PlatformPolicy.model_validate(base | merged)


def _over(base: object, change: object) -> object:
    return {**base, **change} if isinstance(base, dict) and isinstance(change, dict) else change

"""The pack: one policy for each rule of the cloud, with its level, severity, remedy and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pulumi_policy import (
    EnforcementLevel,
    Policy,
    PolicyConfigSchema,
    ReportViolation,
    ResourceValidationArgs,
    Severity,
    StackValidationArgs,
    StackValidationPolicy,
)

from fleet.cloud import limits as cloud_limits
from fleet.cloud import registry
from fleet.cloud.finding import CloudRule
from fleet.policy import PlatformPolicy
from policies import (
    buckets,
    capacity,
    data,
    doors,
    identity,
    images,
    instances,
    limits,
    lustre,
    manifests,
    network,
    nodes,
    pod_nodes,
    scaling,
    sharing,
)
from policies.adapter import Check, PolicyOfTypes, StackCheck
from policies.judging import judge_resource, judge_stack
from policies.knowledge import Ground

NAME = "enginehouse"
DOCS = "docs/reference/policies.md"
CHECKS: tuple[Check | StackCheck, ...] = (
    *nodes.CHECKS,
    *images.CHECKS,
    *sharing.CHECKS,
    *capacity.CHECKS,
    *network.CHECKS,
    *lustre.CHECKS,
    *data.CHECKS,
    *buckets.CHECKS,
    *instances.CHECKS,
    *identity.CHECKS,
    *doors.CHECKS,
    *manifests.CHECKS,
    *pod_nodes.CHECKS,
    *scaling.CHECKS,
    *limits.CHECKS,
)
WITHOUT_POLICY: Mapping[str, str] = {**capacity.WITHOUT_POLICY, **sharing.WITHOUT_POLICY}
"""Rules that no pack can judge -> why, and who does."""
REMEDIED = frozenset({cloud_limits.TAGS.id})
"""Rules whose policy can put things right."""


def policies(ground: Ground) -> list[Policy]:
    """One policy for each rule that some check decides, in the order of the registry.

    Raises:
        UnknownRule: the platform's policy names a rule that there is not.
    """
    registry.check_ids(ground.platform.rules)
    decided = checks_by_rule()
    return [_policy(rule, decided[rule.id], ground) for rule in registry.RULES if rule.id in decided]


def checks_by_rule() -> dict[str, tuple[Check | StackCheck, ...]]:
    """Rule id -> the checks that decide it."""
    return {
        rule.id: checks
        for rule in registry.RULES
        if (checks := tuple(check for check in CHECKS if rule in check.rules))
    }


def initial_config(ground: Ground) -> dict[str, EnforcementLevel | dict[str, Any]]:
    """The settings of the policies that have some, as the platform's policy of the environment says them."""
    stated = ground.platform.model_dump(mode="json")
    return {rule: {key: stated[key]} for rule, (key, _) in limits.SETTINGS.items() if stated[key] is not None}


def _policy(rule: CloudRule, checks: Sequence[Check | StackCheck], ground: Ground) -> Policy:
    about: dict[str, Any] = {
        "name": rule.id,
        "description": f"{rule.what}.",
        "enforcement_level": EnforcementLevel(ground.platform.level_of(rule.id, rule.grade)),
        "config_schema": _schema(rule),
        "severity": Severity(rule.grade.value),
        "remediation_steps": rule.remedy,
        "url": f"{DOCS}#{rule.id}",
    }
    alone = [check for check in checks if isinstance(check, Check) and not check.relates]
    if len(alone) < len(checks):
        return StackValidationPolicy(validate=partial(_judge_stack, rule, checks, ground), **about)
    remediate = partial(limits.with_tags, ground=ground) if rule.id in REMEDIED else None
    validate = partial(_judge_resource, rule, alone, ground)
    return PolicyOfTypes(alone, validate=validate, remediate=remediate, **about)


def _schema(rule: CloudRule) -> PolicyConfigSchema | None:
    if rule.id not in limits.SETTINGS:
        return None
    key, schema = limits.SETTINGS[rule.id]
    return PolicyConfigSchema(properties={key: schema})


def _judge_resource(
    rule: CloudRule, checks: Sequence[Check], ground: Ground, args: ResourceValidationArgs, report: ReportViolation
) -> None:
    judge_resource(rule, checks, _configured(ground, args.get_config()), args, report)


def _judge_stack(
    rule: CloudRule,
    checks: Sequence[Check | StackCheck],
    ground: Ground,
    args: StackValidationArgs,
    report: ReportViolation,
) -> None:
    judge_stack(rule, checks, _configured(ground, args.get_config()), args, report)


def _configured(ground: Ground, config: Mapping[str, Any]) -> Ground:
    """The ground with what the pack's configuration says over the policy file."""
    if not config:
        return ground
    platform = PlatformPolicy.model_validate(ground.platform.model_dump() | dict(config))
    return replace(ground, platform=platform)

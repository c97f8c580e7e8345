"""What a policy says of a resource or of a stack: what its rule finds there, and where it could not judge.

An unknown value is the framework's `UnknownValueError`. It goes on as `NotJudgedYet`, so that the person at the preview
reads that the rule has not spoken; everything that could be judged is reported before.
"""

from collections.abc import Iterable, Sequence

from pulumi_policy import PolicyResource, ReportViolation, ResourceValidationArgs, StackValidationArgs
from pulumi_policy.proxy import UnknownValueError

from fleet.cloud.finding import CloudRule, Finding
from policies.adapter import Check, Seen, Stack, StackCheck
from policies.knowledge import Ground


class NotJudgedYet(UnknownValueError):
    """A rule met values that are known only after the update; the engine shows the message, and nothing passes."""

    def __init__(self, where: Sequence[tuple[str, UnknownValueError]]) -> None:
        _, first = where[0]
        super().__init__(first.unknown_type_sentinel, first.props)
        places = dict.fromkeys(f".{'.'.join(unknown.props)} of {name}" for name, unknown in where)
        shown = ", ".join(list(places)[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        self.message = f"not judged yet: {shown} can't be known before the update, which judges it"


def judge_resource(
    rule: CloudRule, checks: Sequence[Check], ground: Ground, args: ResourceValidationArgs, report: ReportViolation
) -> None:
    """Report what one rule finds on one resource."""
    own = [check for check in checks if args.resource_type in check.types]
    if not own:
        return
    provider = args.provider.props if args.provider is not None else {}
    seen = Seen(args.resource_type, args.name, args.urn, args.props, ground, Stack(), provider)
    unknown: list[tuple[str, UnknownValueError]] = []
    for check in own:
        _report(rule, seen, check, report, unknown)
    if unknown:
        raise NotJudgedYet(unknown)


def judge_stack(
    rule: CloudRule,
    checks: Sequence[Check | StackCheck],
    ground: Ground,
    args: StackValidationArgs,
    report: ReportViolation,
) -> None:
    """Report what one rule finds in a whole stack."""
    stack = _LAST.of(args.resources, ground)
    unknown: list[tuple[str, UnknownValueError]] = []
    for check in checks:
        if isinstance(check, Check):
            for seen in stack.among(check.types):
                _report(rule, seen, check, report, unknown)
            continue
        try:
            for place, finding in check.judge(stack, ground):
                if finding.rule is rule:
                    report(_message(place, finding), place.urn if place else None)
        except UnknownValueError as error:
            unknown.append(("the stack", error))
    if unknown:
        raise NotJudgedYet(unknown)


class _LastStack:
    """The stack of the last request: all its policies are asked about the same resources."""

    def __init__(self) -> None:
        self._last: tuple[Sequence[PolicyResource], Ground, Stack] | None = None

    def of(self, resources: Sequence[PolicyResource], ground: Ground) -> Stack:
        """The stack, made anew only for other resources."""
        last = self._last
        if last is not None and last[0] is resources and last[1] is ground:
            return last[2]
        stack = stack_of(resources, ground)
        self._last = (resources, ground, stack)
        return stack


_LAST = _LastStack()


def stack_of(resources: Iterable[PolicyResource], ground: Ground) -> Stack:
    """The stack as the rules see it."""
    stack = Stack()
    for item in resources:
        provider = item.provider.props if item.provider is not None else {}
        seen = Seen(
            type=item.resource_type,
            name=item.name,
            urn=item.urn,
            props=item.props,
            ground=ground,
            stack=stack,
            provider=provider,
            parent=item.parent.urn if item.parent is not None else "",
            ignored=tuple(item.opts.ignore_changes),
        )
        stack.by_type.setdefault(seen.type, []).append(seen)
        stack.by_urn[seen.urn] = seen
        stack.dependencies[item.urn] = {
            prop: tuple(other.urn for other in others) for prop, others in item.property_dependencies.items()
        }
    return stack


def _report(
    rule: CloudRule, seen: Seen, check: Check, report: ReportViolation, unknown: list[tuple[str, UnknownValueError]]
) -> None:
    try:
        for finding in check.judge(seen):
            if finding.rule is rule:
                report(_message(seen, finding), seen.urn)
    except UnknownValueError as error:
        unknown.append((seen.name, error))


def _message(seen: Seen | None, finding: Finding) -> str:
    return f"{seen.name}: {finding.sentence}" if seen else finding.sentence

"""What a policy says of a resource or of a stack: what its rule finds there, and where it could not judge.

An unknown value is the framework's `UnknownValueError`. It goes on as `NotJudgedYet`, so that the person at the preview
reads that the rule has not spoken. A value that can't be read goes on in `NotRead`. Neither keeps the rule from other
places: everything that can be judged is reported before.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from traceback import walk_tb

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


@dataclass(frozen=True, slots=True)
class Unread:
    """A place that a rule could not read."""

    seen: Seen | None
    """``None`` = the stack as a whole."""
    error: Exception


class NotRead(Exception):
    """A rule met values that are none of their kind."""

    def __init__(self, places: Sequence[Unread], pending: NotJudgedYet | None = None) -> None:
        self.places = tuple(places)
        self.pending = pending
        """What is not known yet beside it."""
        super().__init__(f"{len(self.places)} places can't be read")


class _Judging:
    """One rule on its way over resources."""

    def __init__(self, rule: CloudRule, report: ReportViolation) -> None:
        self._rule, self._report = rule, report
        self._unknown: list[tuple[str, UnknownValueError]] = []
        self._unread: list[Unread] = []

    def run(self, seen: Seen | None, judge: Callable[[], Iterable[tuple[Seen | None, Finding | Exception]]]) -> None:
        """Report what a check finds; where it stops is remembered, and the next one goes on."""
        try:
            for place, found in judge():
                if isinstance(found, Exception):
                    self._stopped(place, found)
                elif found.rule is self._rule:
                    self._report(_message(place, found), place.urn if place else None)
        except Exception as error:  # whatever a value that nobody thought of does to a rule
            self._stopped(seen, error)

    def close(self) -> None:
        """Say where it could not judge, if anywhere."""
        pending = NotJudgedYet(self._unknown) if self._unknown else None
        if self._unread:
            raise NotRead(self._unread, pending)
        if pending is not None:
            raise pending

    def _stopped(self, seen: Seen | None, error: Exception) -> None:
        place = _innermost(error) or seen
        if isinstance(error, UnknownValueError):
            self._unknown.append((place.name if place else "the stack", error))
        else:
            self._unread.append(Unread(place, error))


def judge_resource(
    rule: CloudRule, checks: Sequence[Check], ground: Ground, args: ResourceValidationArgs, report: ReportViolation
) -> None:
    """Report what one rule finds on one resource; raises `NotRead` and `NotJudgedYet`."""
    provider = args.provider.props if args.provider is not None else {}
    seen = Seen(args.resource_type, args.name, args.urn, args.props, ground, Stack(), provider)
    judging = _Judging(rule, report)
    for check in (check for check in checks if args.resource_type in check.types):
        judging.run(seen, partial(_found_at, check, seen))
    judging.close()


def judge_stack(
    rule: CloudRule,
    checks: Sequence[Check | StackCheck],
    ground: Ground,
    args: StackValidationArgs,
    report: ReportViolation,
) -> None:
    """Report what one rule finds in a whole stack; raises `NotRead` and `NotJudgedYet`."""
    stack = _LAST.of(args.resources, ground)
    judging = _Judging(rule, report)
    for check in checks:
        if isinstance(check, StackCheck):
            judging.run(None, partial(check.judge, stack, ground))
            continue
        for seen in stack.among(check.types):
            judging.run(seen, partial(_found_at, check, seen))
    judging.close()


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
        stack.needs[item.urn] = tuple(other.urn for other in item.dependencies)
        stack.dependencies[item.urn] = {
            prop: tuple(other.urn for other in others) for prop, others in item.property_dependencies.items()
        }
    return stack


def _found_at(check: Check, seen: Seen) -> Iterable[tuple[Seen, Finding]]:
    for finding in check.judge(seen):
        yield seen, finding


def _innermost(error: Exception) -> Seen | None:
    """The resource at which a rule looked when it failed: whose properties were read, else the innermost on its way."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__)]
    values = [value for frame in reversed(frames) for value in frame.f_locals.values()]
    passed = [value for value in values if isinstance(value, Seen)]
    read = (item for value in values if isinstance(value, Mapping) for item in passed if item.props is value)
    return next(read, next(iter(passed), None))


def _message(seen: Seen | None, finding: Finding) -> str:
    return f"{seen.name}: {finding.sentence}" if seen else finding.sentence

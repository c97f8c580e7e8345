"""How a rule of the cloud becomes a policy: what a resource looks like to a rule, and what a finding becomes.

An unknown value is the framework's `UnknownValueError`. It goes on as `NotJudgedYet`, so that the person at the preview
reads that the rule has not spoken; everything that could be judged is reported before.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from pulumi_policy import (
    PolicyResource,
    ReportViolation,
    ResourceValidationArgs,
    ResourceValidationPolicy,
    StackValidationArgs,
)
from pulumi_policy.proxy import UnknownValueError

from fleet.cloud.finding import CloudRule, Finding
from policies.knowledge import Ground
from policies.words import is_list, names_of, words_in

Props: TypeAlias = Mapping[str, Any]


class NotJudgedYet(UnknownValueError):
    """A rule met values that are known only after the update; the engine shows the message, and nothing passes."""

    def __init__(self, where: Sequence[tuple[str, UnknownValueError]]) -> None:
        _, first = where[0]
        super().__init__(first.unknown_type_sentinel, first.props)
        places = dict.fromkeys(f".{'.'.join(unknown.props)} of {name}" for name, unknown in where)
        shown = ", ".join(list(places)[:3]) + (f" and {len(places) - 3} more" if len(places) > 3 else "")
        self.message = f"not judged yet: {shown} can't be known before the update, which judges it"


@dataclass(frozen=True, slots=True)
class Seen:
    """One resource as a rule sees it. Reading an unknown value raises `UnknownValueError`."""

    type: str
    name: str
    urn: str
    props: Props
    ground: Ground
    stack: "Stack"
    """Empty where a resource is judged by itself."""
    provider: Props = field(default_factory=dict)
    """The properties of its provider, where the engine tells them."""
    parent: str = ""
    """The URN of its component; empty = it stands at the top, or is judged by itself."""
    ignored: tuple[str, ...] = ()
    """Properties whose changes the program leaves alone."""

    def comes_from(self, prop: str, *types: str) -> bool:
        """Whether a property is set from a resource of some types, known or not.

        A dependency alone is no value: it stays behind where a transform took the property out.
        """
        is_set = any(key == prop for key in self.props)
        return is_set and any(item.type in types for item in self.stack.sources(self, prop))

    def links(self, prop: str, *types: str) -> tuple["Seen", ...]:
        """The resources of some types from which a property comes: by dependency, and by ids and names written down.

        An unknown value that none of them can be is unknown: each of a list has to come from a resource of its own.
        """
        sources = tuple(item for item in self.stack.sources(self, prop) if item.type in types)
        words, unknown = words_in(self.props, prop)
        named = self.stack.with_ids(words, types)
        unnamed = sum(not names_of(item.props) & words for item in sources)
        if unknown and (len(unknown) > unnamed if is_list(self.props, prop) else not sources and not named):
            raise unknown[0]
        return tuple({item.urn: item for item in (*sources, *named)}.values())

    def mentions(self, prop: str, *types: str) -> tuple["Seen", ...]:
        """The resources of some types that stand somewhere in a property, as far as that is known."""
        sources = (item for item in self.stack.sources(self, prop) if item.type in types)
        named = self.stack.with_ids(words_in(self.props, prop)[0], types)
        return tuple({item.urn: item for item in (*sources, *named)}.values())

    def outside(self, prop: str, *types: str) -> int:
        """How many members of a list no resource of the stack gives."""
        if not is_list(self.props, prop):
            return 0
        words, unknown = words_in(self.props, prop)
        return max(0, len(words) + len(unknown) - len(self.links(prop, *types)))


@dataclass(slots=True)
class Stack:
    """All resources of a stack, with their relations."""

    by_type: dict[str, list[Seen]] = field(default_factory=dict)
    by_urn: dict[str, Seen] = field(default_factory=dict)
    dependencies: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    """URN -> property -> URNs."""
    users: dict[tuple[str, str], dict[str, list[Seen]]] = field(default_factory=dict)
    """Type and property -> URN, id or name of a source -> resources: worked out once for each."""
    named: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    """Type -> id or name -> resources: worked out once for each."""
    answers: dict[tuple[Callable[[Seen], bool], str], bool] = field(default_factory=dict)
    """Question and URN -> what was answered."""

    def of(self, *types: str) -> tuple[Seen, ...]:
        """The resources of some types."""
        return tuple(item for type_ in types for item in self.by_type.get(type_, ()))

    def sources(self, seen: Seen, prop: str) -> tuple[Seen, ...]:
        """The resources on which a property depends."""
        urns = self.dependencies.get(seen.urn, {}).get(prop, ())
        return tuple(self.by_urn[urn] for urn in urns if urn in self.by_urn)

    def pointing_at(self, target: Seen, type_: str, prop: str) -> tuple[Seen, ...]:
        """The resources of a type whose property comes from another resource.

        Whoever depends on other resources alone and writes no id of this one does not point here.
        """
        if (type_, prop) not in self.users:
            self.users[type_, prop] = self._users_by_source(type_, prop)
        users = self.users[type_, prop]
        by_name = [user for name in sorted(names_of(target.props)) for user in users.get(name, ())]
        loose = [item for item in users.get("", ()) if target in item.links(prop, target.type)]
        return tuple({item.urn: item for item in (*users.get(target.urn, ()), *by_name, *loose)}.values())

    def _users_by_source(self, type_: str, prop: str) -> dict[str, list["Seen"]]:
        """URN, id or name of a source -> who uses it; under the empty one whose values may be anything."""
        found: dict[str, list[Seen]] = {}
        for item in self.of(type_):
            sources = [source.urn for source in self.sources(item, prop)]
            words, unknown = words_in(item.props, prop)
            is_loose = len(unknown) > len(sources) if is_list(item.props, prop) else bool(unknown) and not sources
            for key in {*sources, *words} | ({""} if is_loose else set()):
                found.setdefault(key, []).append(item)
        return found

    def with_ids(self, words: Collection[str], types: Sequence[str]) -> tuple[Seen, ...]:
        """The resources with some ids or names, for those that somebody wrote down."""
        found = (item for type_ in types for word in sorted(words) for item in self._by_name(type_).get(word, ()))
        return tuple({item.urn: item for item in found}.values())

    def once(self, question: Callable[[Seen], bool], seen: Seen) -> bool:
        """The answer to a question about a resource that is asked again and again; an unknown one is asked anew."""
        asked = (question, seen.urn)
        if asked not in self.answers:
            self.answers[asked] = question(seen)
        return self.answers[asked]

    def _by_name(self, type_: str) -> dict[str, list[Seen]]:
        if type_ not in self.named:
            index = self.named[type_] = {}
            for item in self.of(type_):
                for name in names_of(item.props):
                    index.setdefault(name, []).append(item)
        return self.named[type_]


Judge: TypeAlias = Callable[[Seen], Iterable[Finding]]
StackJudge: TypeAlias = Callable[[Stack, Ground], Iterable[tuple[Seen | None, Finding]]]


@dataclass(frozen=True, slots=True)
class Check:
    """One look at each resource of some types, which decides some rules."""

    rules: tuple[CloudRule, ...]
    types: tuple[str, ...]
    judge: Judge
    relates: bool = False
    """It asks for related resources, so it can only run on the whole stack."""


@dataclass(frozen=True, slots=True)
class StackCheck:
    """One look at the whole stack, which decides some rules."""

    rules: tuple[CloudRule, ...]
    judge: StackJudge


class PolicyOfTypes(ResourceValidationPolicy):
    """A policy that looks at resources of some types alone, so that nobody needs to ask it about others."""

    def __init__(self, checks: Sequence[Check], **about: Any) -> None:  # noqa: ANN401 what the framework takes
        super().__init__(**about)
        self._checks = tuple(checks)

    def looks_at(self, type_: str) -> bool:
        """Whether one of its checks has something to say about resources of a type."""
        return any(type_ in check.types for check in self._checks)


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
            for seen in stack.of(*check.types):
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

"""How a rule of the cloud becomes a policy: what a resource looks like to a rule, and which resources it looks at."""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from pulumi_policy import ResourceValidationPolicy

from fleet.cloud.finding import CloudRule, Finding
from policies.knowledge import Ground
from policies.words import is_list, names_of, words_in

Props: TypeAlias = Mapping[str, Any]


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
    needs: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """URN -> URNs that come first, for whatever reason."""
    users: dict[tuple[str, str], dict[str, list[Seen]]] = field(default_factory=dict)
    """Type and property -> URN, id or name of a source -> resources: worked out once for each."""
    named: dict[str, dict[str, list[Seen]]] = field(default_factory=dict)
    """Type -> id or name -> resources: worked out once for each."""
    answers: dict[tuple[Callable[[Seen], bool], str], bool] = field(default_factory=dict)
    """Question and URN -> what was answered."""

    def of(self, *types: str) -> tuple[Seen, ...]:
        """The resources of some types."""
        return tuple(item for type_ in types for item in self.by_type.get(type_, ()))

    def among(self, types: Container[str]) -> tuple[Seen, ...]:
        """The resources of some types that may be said otherwise than one by one."""
        return tuple(item for type_, items in self.by_type.items() if type_ in types for item in items)

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
StackJudge: TypeAlias = Callable[[Stack, Ground], Iterable[tuple[Seen | None, Finding | Exception]]]
"""What is found where, and where something could not be read that the answer needs."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TypesUnder:
    """Every type that begins with a prefix, those that nobody has heard of too, in place of a tuple of types."""

    prefix: str

    def __contains__(self, type_: object) -> bool:
        return isinstance(type_, str) and type_.startswith(self.prefix)


@dataclass(frozen=True, slots=True)
class Check:
    """One look at each resource of some types, which decides some rules."""

    rules: tuple[CloudRule, ...]
    types: Container[str]
    judge: Judge
    relates: bool = False
    """It asks for related resources, so it can only run on the whole stack."""


@dataclass(frozen=True, slots=True)
class StackCheck:
    """One look at the whole stack, which decides some rules."""

    rules: tuple[CloudRule, ...]
    judge: StackJudge


def gathered(
    items: Iterable[Seen], look: Callable[[Seen], Iterable[T]], into: list[T]
) -> Iterator[tuple[Seen, Exception]]:
    """Put what is seen at each resource into a list; gives those where it can't be seen, and why."""
    for item in items:
        try:
            into.extend(look(item))
        except Exception as error:  # of one resource alone: the others count
            yield item, error


class PolicyOfTypes(ResourceValidationPolicy):
    """A policy that looks at resources of some types alone, so that nobody needs to ask it about others."""

    def __init__(self, checks: Sequence[Check], **about: Any) -> None:  # noqa: ANN401 what the framework takes
        super().__init__(**about)
        self._checks = tuple(checks)

    def looks_at(self, type_: str) -> bool:
        """Whether one of its checks has something to say about resources of a type."""
        return any(type_ in check.types for check in self._checks)

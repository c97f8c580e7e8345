"""An IAM document read into values: what can be read is judged, and what can't is named.

Names of elements count in any case: IAM's own reading decides nothing that this one passes over.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_PRINCIPALS = ("principal", "notprincipal")
_LISTS = {"action": "Action", "notaction": "NotAction", "resource": "Resource", "notresource": "NotResource"}
_INVERTS = {"notaction": "NotAction", "notresource": "NotResource", "notprincipal": "NotPrincipal"}
_OF_DOCUMENT = frozenset({"version", "id", "statement"})
_OF_STATEMENT = frozenset({"sid", "effect", "condition", *_PRINCIPALS, *_LISTS})
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Condition:
    """One line of a condition: a key, and the values of which one has to match."""

    operator: str
    """In lower case, without what stands before and after it."""
    key: str
    """In lower case."""
    values: tuple[str, ...]
    is_optional: bool = False
    """``...IfExists`` and ``ForAllValues:`` hold where the key is missing."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of an IAM document."""

    is_allow: bool = True
    actions: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    inverts: tuple[str, ...] = ()
    """``NotAction``, ``NotResource`` and ``NotPrincipal``, as far as they are there."""
    principals: tuple[tuple[str, str], ...] = ()
    """Kind (``AWS``, ``Service``, ``Federated``; ``*`` for all) and who."""
    conditions: tuple[Condition, ...] = ()
    elements: frozenset[str] = frozenset()
    """What it says anything about, in lower case: ``effect``, ``action``, ``resource``, …"""

    @property
    def name(self) -> str:
        """The start of its actions, to find it."""
        shown = ", ".join(action[:_SHOWN] for action in self.actions[:3])
        return shown + (", ..." if len(self.actions) > 3 else "") or ", ".join(self.inverts)


@dataclass(frozen=True, slots=True)
class IamDocument:
    """What could be read of a document, and what could not."""

    statements: tuple[Statement, ...]
    problems: tuple[str, ...]


@dataclass(slots=True)
class _Reader:
    problems: list[str] = field(default_factory=list)

    def document(self, value: object) -> Iterator[Statement]:
        if not isinstance(value, Mapping):
            self._wrong("the document", value, "a JSON object with Statement")
            return
        found = _folded(value)
        self._only(found, _OF_DOCUMENT, "the document")
        stated = found.get("statement")
        items = [stated] if isinstance(stated, Mapping) else stated
        if not isinstance(items, Sequence) or isinstance(items, str) or not items:
            self._wrong("Statement", stated, "an object or a list of objects")
            return
        for item in items:
            if isinstance(item, Mapping):
                yield self._statement(_folded(item))
            else:
                self._wrong("a statement", item, "an object")

    def _statement(self, item: Mapping[str, Any]) -> Statement:
        self._only(item, _OF_STATEMENT, "a statement")
        effect = item.get("effect")
        if str(effect).casefold() not in ("allow", "deny"):
            self._wrong("Effect", effect, "Allow or Deny")
        if "action" not in item and "notaction" not in item:
            self.problems.append("a statement says no Action")
        lists = {key: tuple(self._texts(name, item[key])) for key, name in _LISTS.items() if key in item}
        return Statement(
            is_allow=str(effect).casefold() != "deny",
            actions=lists.get("action", ()),
            resources=lists.get("resource", ()),
            inverts=tuple(name for key, name in _INVERTS.items() if key in item),
            principals=tuple(self._principals(item["principal"])) if "principal" in item else (),
            conditions=tuple(self._conditions(item["condition"])) if "condition" in item else (),
            elements=frozenset(item),
        )

    def _texts(self, key: str, value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
        elif isinstance(value, Sequence):
            for item in value:
                if isinstance(item, str):
                    yield item
                else:
                    self._wrong(f"a value of {key}", item, "a text")
        else:
            self._wrong(key, value, "a text or a list of texts")

    def _principals(self, value: object) -> Iterator[tuple[str, str]]:
        if isinstance(value, str):
            yield "*", value
        elif isinstance(value, Mapping):
            for kind, who in value.items():
                yield from ((str(kind), item) for item in self._texts(f"Principal {kind}", who))
        else:
            self._wrong("Principal", value, "'*' or an object")

    def _conditions(self, value: object) -> Iterator[Condition]:
        if not isinstance(value, Mapping):
            self._wrong("Condition", value, "an object")
            return
        for operator, conditions in value.items():
            if not isinstance(conditions, Mapping):
                self._wrong(f"Condition {operator}", conditions, "an object")
                continue
            for key, stated in conditions.items():
                values = stated if isinstance(stated, Sequence) and not isinstance(stated, str) else [stated]
                plain = [item for item in values if isinstance(item, str | bool | int | float)]
                if len(plain) < len(values):
                    self._wrong(f"Condition {operator} {key}", stated, "a text or a list of texts")
                yield _test(str(operator), str(key), plain)

    def _only(self, found: Mapping[str, Any], known: frozenset[str], what: str) -> None:
        for key in found:
            if key not in known:
                self.problems.append(f"{what} has the element '{key[:_SHOWN]}', which IAM does not know")

    def _wrong(self, what: str, value: object, wanted: str) -> None:
        shown = repr(value) if not isinstance(value, Mapping | list) or _is_flat(value) else type(value).__name__
        self.problems.append(f"{what[:_SHOWN]} is {shown[:_SHOWN]}, and {wanted} belongs there")


def read_document(value: object) -> IamDocument:
    """A document as it stands in JSON, whatever that is."""
    reader = _Reader()
    statements = tuple(reader.document(value))
    return IamDocument(statements, tuple(dict.fromkeys(reader.problems)))


def _folded(value: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key).casefold(): item for key, item in value.items()}


def _test(operator: str, key: str, values: Sequence[str | bool | float]) -> Condition:
    prefix, _, name = operator.casefold().rpartition(":")
    texts = tuple(str(item).lower() if isinstance(item, bool) else str(item) for item in values)
    is_optional = name.endswith("ifexists") or prefix == "forallvalues"
    return Condition(name.removesuffix("ifexists"), key.casefold(), texts, is_optional)


def _is_flat(value: object) -> bool:
    """Whether it can be shown: an object or a list that holds no other one."""
    items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    return not any(isinstance(item, Mapping | list) for item in items)

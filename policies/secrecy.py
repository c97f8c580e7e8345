"""What no message of the pack shows.

What stands in a Secret of Kubernetes reaches no rule. What the engine marks as secret is judged as everything is, and a
message that would show it is told without values.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from google.protobuf import struct_pb2
from pulumi_policy.deserialize import SPECIAL_SECRET_SIG, SPECIAL_SIG_KEY

from fleet.manifest import ManifestError, load_yaml

_IN_A_SECRET = ("data", "stringData")
_SECRETS = ("Secret", "SecretPatch")
_LIST_OF_SECRETS = "SecretList"
_KUBERNETES = "kubernetes:"
_LONG = 8
"""Characters by which a text is nobody else's."""


class Unsaid:
    """The secret values of one operation.

    A short one, and a part of one that is made of parts, may be a common word: it is kept back unless it stands openly
    somewhere as well.
    """

    def __init__(self) -> None:
        self._long: set[str] = set()
        self._short: set[str] = set()
        self._open: set[str] = set()

    def learn(self, type_: str, properties: struct_pb2.Struct) -> None:
        """Remember what the engine marks as secret, and take out what stands in Secrets."""
        self._struct(properties, type_.rpartition(":")[2] if type_.startswith(_KUBERNETES) else "", is_marked=False)

    def is_in(self, text: str) -> bool:
        """Whether a text shows one of them."""
        said = text.casefold()
        return any(word in said for word in self._long) or any(
            re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", said) for word in self._short - self._open
        )

    def forget(self) -> None:
        """Another operation begins."""
        self._long, self._short, self._open = set(), set(), set()

    def _struct(self, struct: struct_pb2.Struct, kind: str, *, is_marked: bool) -> None:
        fields = struct.fields
        if SPECIAL_SIG_KEY in fields:
            if fields[SPECIAL_SIG_KEY].string_value == SPECIAL_SECRET_SIG:
                self._value(fields["value"], kind, is_marked=True)
            return
        kind = kind or _text_of(fields, "kind")
        if kind in _SECRETS:
            for key in _IN_A_SECRET:
                fields.pop(key, None)
        for key in fields:
            is_secret = kind == _LIST_OF_SECRETS and key == "items"
            self._value(fields[key], _SECRETS[0] if is_secret else "", is_marked=is_marked)

    def _value(self, value: struct_pb2.Value, kind: str, *, is_marked: bool) -> None:
        what = value.WhichOneof("kind")
        if what == "struct_value":
            self._struct(value.struct_value, kind, is_marked=is_marked)
        elif what == "list_value":
            for item in value.list_value.values:
                self._value(item, kind, is_marked=is_marked)
        elif what not in (None, "null_value"):
            self._leaf(_plain(getattr(value, what)), is_marked=is_marked)

    def _leaf(self, value: object, *, is_marked: bool) -> None:
        if not is_marked:
            self._open.add(str(value).strip().casefold())
            return
        whole = str(value)
        bare = whole.strip()
        words = {word.casefold() for form in (whole, bare) for word in (form, repr(form)[1:-1], json.dumps(form)[1:-1])}
        (self._long if len(bare) >= _LONG else self._short).update(words if bare else ())
        self._short.update(word for part in _parts(whole) if (word := str(part).strip().casefold()))


def _text_of(fields: Any, key: str) -> str:  # noqa: ANN401 protobuf's map has no type of its own
    """The text of a field, marked or not."""
    value = fields[key] if key in fields else struct_pb2.Value()
    inner = value.struct_value.fields
    return str(inner["value"].string_value if SPECIAL_SIG_KEY in inner else value.string_value)


def _plain(value: object) -> object:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _parts(text: str) -> Iterator[object]:
    """The values in a text that is a document."""
    if not any(mark in text for mark in "{[:"):
        return
    try:
        found: object = load_yaml(text, source="a secret")
    except (ManifestError, RecursionError):
        return
    yield from _leaves(found)


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            if isinstance(item, dict | list):
                yield from _leaves(item)
            elif item is not None:
                yield item

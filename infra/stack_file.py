"""The stack's file (``Pulumi.<stack>.yaml``): read, and filled in without losing a comment."""

import json
from collections.abc import Iterable, MutableMapping, Sequence
from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap
from ruamel.yaml.error import YAMLError
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import RoundTripRepresenter

from infra import config_reading
from infra.open_values import Fill
from infra.problem import Problem, StackRefused
from infra.stack_config import StackConfig

_WIDE = 4096


class _Nulls(RoundTripRepresenter):
    """Writes nothing as ``null``, as the examples do."""

    def nothing(self, _value: None) -> ScalarNode:
        """The scalar ``null``."""
        node: ScalarNode = self.represent_scalar("tag:yaml.org,2002:null", "null")
        return node


_Nulls.add_representer(type(None), _Nulls.nothing)


def config_of(text: str) -> StackConfig:
    """The configuration of a stack's file; raises `StackRefused` with all that is wrong with it."""
    stack = _stack(_loaded(text))
    return config_reading.parse(json.dumps(stack, default=str))


def filled(text: str, values: Iterable[Fill]) -> str:
    """The same file with the values that AWS gave; everything else stays as it was written."""
    content = _loaded(text)
    stack = _stack(content)
    for fill in values:
        if fill.value is not None:
            _put(stack, fill.path, fill.value)
    out = StringIO()
    _yaml(text).dump(content, out)
    return out.getvalue()


def _yaml(text: str) -> YAML:
    """Lists are written as far in as the file has them."""
    yaml = YAML(typ="rt")
    yaml.Representer = _Nulls
    yaml.preserve_quotes = True
    yaml.width = _WIDE
    yaml.indent(mapping=2, sequence=4, offset=2)
    if not any(line.lstrip().startswith("- ") and line.startswith("      ") for line in text.splitlines()):
        yaml.indent(mapping=2, sequence=2, offset=0)
    return yaml


def _loaded(text: str) -> object:
    try:
        loaded: object = _yaml(text).load(text)
    except YAMLError as error:
        where = " ".join(str(error).split())
        remedy = "correct it, or begin with a copy of Pulumi.dev.yaml"
        raise StackRefused([Problem("the file", "", f"it is no YAML: {where}", remedy)]) from None
    return loaded


def _stack(content: object) -> MutableMapping[str, Any]:
    config = content.get("config") if isinstance(content, MutableMapping) else None
    stack = config.get(config_reading.KEY) if isinstance(config, MutableMapping) else None
    if not isinstance(stack, MutableMapping):
        message = f"it has no mapping config.{config_reading.KEY}"
        raise StackRefused([Problem("the file", "", message, "begin with a copy of Pulumi.dev.yaml")])
    return stack


def _put(stack: MutableMapping[str, Any], path: Sequence[str], value: str) -> None:
    """Walks down to the value's place, and makes what is missing on the way."""
    place: Any = stack
    for part in path[:-1]:
        if isinstance(place, list):
            place = next(item for item in place if item["name"] == part)
            continue
        if place.get(part) is None:
            place[part] = CommentedMap()
        place = place[part]
    place[path[-1]] = value

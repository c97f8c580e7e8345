"""``enginehouse:stack`` of the Pulumi configuration as a `StackConfig`, or what is wrong with it."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from fleet.manifest import problems_of
from infra.problem import Problem, StackRefused
from infra.stack_config import CONFIG_VERSION, StackConfig

KEY = "enginehouse:stack"
_FOUND = " (found "
_OF_A_MAPPING = "/[key]"
"""How pydantic says that a mapping's key is wrong, not its value."""
_CORRECT = "correct it in Pulumi.<stack>.yaml; docs/reference has every key"


def parse(text: str | None) -> StackConfig:
    """The configuration in Pulumi's JSON text.

    Raises:
        StackRefused: it is missing, of another version, or has wrong keys or values, all of them at once.
    """
    if text is None:
        remedy = "begin with a copy of Pulumi.dev.yaml, and select the stack by its name"
        raise StackRefused([Problem(KEY, "", "the stack has no configuration", remedy)])
    try:
        content = json.loads(text)
    except ValueError as error:
        raise StackRefused([Problem(KEY, text[:60], f"it is no mapping ({error})", _CORRECT)]) from None
    if not isinstance(content, dict):
        raise StackRefused([Problem(KEY, text[:60], "it is no mapping", _CORRECT)])
    if content.get("version") != CONFIG_VERSION:
        raise StackRefused([_other_version(content)])
    try:
        return StackConfig.model_validate_json(text)
    except ValidationError as error:
        raise StackRefused(
            _problem(item.pointer, item.message, content) for item in problems_of(error, StackConfig)
        ) from None


def _other_version(content: Mapping[str, Any]) -> Problem:
    found = content.get("version")
    message = (
        "the version of the configuration is missing" if found is None else f"the configuration is of version {found}"
    )
    remedy = f"this program reads version {CONFIG_VERSION}: the changelog says what changed"
    return Problem("version", str(found or ""), message, remedy)


def _problem(pointer: str, sentence: str, content: object) -> Problem:
    """Pydantic's sentence ends in the remedy where it knows one."""
    message, _, remedy = sentence.partition("; ")
    remedy = remedy.partition(_FOUND)[0]  # the problem has the value beside
    if "valid IPv4 network" in message:
        remedy = "write its first address and length, such as 10.0.0.0/16"
    key = pointer.strip("/").removesuffix(_OF_A_MAPPING).replace("/", ".") or KEY
    return Problem(key, _value_at(pointer, content), message, remedy or _CORRECT)


def _value_at(pointer: str, content: object) -> str:
    """What stands at a pointer, where that is a single value."""
    for part in pointer.strip("/").split("/"):
        if isinstance(content, Mapping):
            content = content.get(part)
        elif isinstance(content, list) and part.isdecimal() and int(part) < len(content):
            content = content[int(part)]
    return str(content) if isinstance(content, str | int | float) else ""

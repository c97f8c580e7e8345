"""``enginehouse:stack`` of the Pulumi configuration as a `StackConfig`, or what is wrong with it."""

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from infra.config_mistakes import mistakes_of
from infra.config_places import KEY, shown
from infra.problem import Problem, StackRefused
from infra.stack_config import CONFIG_VERSION, StackConfig

__all__ = ["KEY", "parse"]
_BEGIN = "begin with a copy of Pulumi.dev.yaml, and select the stack by its name"
_KEYS = "write its keys below it, as Pulumi.dev.yaml does"


def parse(text: str | None) -> StackConfig:
    """The configuration in Pulumi's JSON text.

    Raises:
        StackRefused: it is missing, of another version, or has wrong keys or values, all of them at once.
    """
    if text is None:
        raise StackRefused([Problem(KEY, "", "the stack has no configuration", _BEGIN)])
    content = _loaded(text)
    if type(content.get("version")) is not int or content["version"] != CONFIG_VERSION:
        raise StackRefused([_other_version(content)])
    try:
        return StackConfig.model_validate_json(text)
    except ValidationError as error:
        raise StackRefused(mistakes_of(error, content)) from None


def _loaded(text: str) -> Mapping[str, Any]:
    """What Pulumi keeps as no JSON is plain text."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = text
    if isinstance(content, dict):
        return content
    what = {str: "it is text", list: "it is a list", type(None): "nothing stands below it"}
    message = f"{what.get(type(content), 'it is a single value')}, not a mapping"
    value = "" if content is None or content == "" else shown(content)
    raise StackRefused([Problem(KEY, value, message, _KEYS)])


def _other_version(content: Mapping[str, Any]) -> Problem:
    """The version is a number; the same digits as text are a mistake of their own."""
    stated = content.get("version")
    remedy = f"write version: {CONFIG_VERSION}"
    if "version" not in content:
        return Problem("version", "", "the version of the configuration is missing", remedy)
    if type(stated) is int:
        message = f"the configuration is of version {shown(stated)}"
        remedy = f"this program reads version {CONFIG_VERSION}: the changelog says what changed"
        return Problem("version", shown(stated), message, remedy)
    kind = f"the text '{shown(stated)}'" if isinstance(stated, str) else shown(stated)
    message = f"the version is {kind}, and it has to be a number"
    return Problem("version", shown(stated), message, f"{remedy}, without quotes")

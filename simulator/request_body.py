"""Reads the JSON body of a request field by field, refusing wrong types the way the engines do."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from simulator.api_errors import ApiError, wrong_field

_Kind = TypeVar("_Kind")


@dataclass(frozen=True, slots=True)
class Body:
    """A JSON object with typed access; absent and null fields read as the default."""

    fields: Mapping[str, Any]
    at: str = "body"

    def text(self, name: str) -> str | None:
        """Return a string; `None` when absent."""
        return self._typed(name, str, "string_type", "Input should be a valid string")

    def flag(self, name: str) -> bool:
        """Return a boolean; false when absent."""
        return bool(self._typed(name, bool, "bool_type", "Input should be a valid boolean"))

    def number(self, name: str) -> float | None:
        """Return a number; `None` when absent."""
        if isinstance(self.fields.get(name), int):
            whole = self.whole(name)
            return None if whole is None else float(whole)
        return self._typed(name, float, "float_type", "Input should be a valid number")

    def whole(self, name: str) -> int | None:
        """Return a whole number; `None` when absent."""
        return self._typed(name, int, "int_type", "Input should be a valid integer")

    def items(self, name: str) -> list[Any]:
        """Return a list; empty when absent."""
        return self._typed(name, list, "list_type", "Input should be a valid list") or []

    def part(self, name: str) -> "Body":
        """Return an object as a body of its own; empty when absent."""
        found = self._typed(name, dict, "dict_type", "Input should be a valid dictionary")
        return Body(found or {}, f"{self.at}.{name}")

    def need(self, name: str) -> None:
        """Refuse the request when the field is absent."""
        if self.fields.get(name) is None:
            raise wrong_field(f"{self.at}.{name}", "missing", "Field required", "...")

    def _typed(self, name: str, kind: type[_Kind], code: str, message: str) -> _Kind | None:
        value = self.fields.get(name)
        if value is None:
            return None
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise wrong_field(f"{self.at}.{name}", code, message, value)
        return value


def read_body(raw: bytes) -> Body:
    """Parse the bytes of a request, or raise a 400."""
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError) as error:
        at = getattr(error, "pos", 0)
        raise wrong_field(f"body.{at}", "json_invalid", "JSON decode error", "...") from error
    if not isinstance(parsed, dict):
        raise wrong_field("body", "model_attributes_type", "Input should be a valid dictionary", parsed)
    return Body(parsed)


def unsupported(what: str) -> ApiError:
    """Return a 400 for a feature that the simulated engine lacks."""
    return ApiError(400, "BadRequestError", f"the simulated engine does not support {what}")

"""Property values as they travel between the engine and a plugin, and as plain Python."""

from collections.abc import Mapping
from typing import Any

from google.protobuf.struct_pb2 import ListValue, Struct, Value

UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE_KEY = "4dabf18193072939515e22adb298388d"
OUTPUT_VALUE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
SECRET = "1b47061264138c4ac30d75fd1eb44270"


class Unknown:
    """A value that only the update will know."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()


def is_unknown(value: Any) -> bool:
    """Whether a value, or any part of it, is not known yet."""
    if isinstance(value, dict):
        return any(is_unknown(item) for item in value.values())
    if isinstance(value, list):
        return any(is_unknown(item) for item in value)
    return value is UNKNOWN


def read(struct: Struct) -> dict[str, Any]:
    """The properties of a message; those that are null are left out, as the engine takes them for absent."""
    found = {name: _read(value) for name, value in struct.fields.items()}
    return {name: value for name, value in found.items() if value is not None}


def _read(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind == "struct_value":
        return _plain(read(value.struct_value))
    if kind == "list_value":
        return [_read(item) for item in value.list_value.values]
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if kind == "string_value":
        return UNKNOWN if value.string_value == UNKNOWN_TEXT else value.string_value
    return value.bool_value if kind == "bool_value" else None


def _plain(found: dict[str, Any]) -> Any:
    signature = found.get(SIGNATURE_KEY)
    if signature == SECRET:
        return found["value"]
    if signature == OUTPUT_VALUE:
        return found.get("value", UNKNOWN)
    return found


def write(properties: Mapping[str, Any]) -> Struct:
    """The message of some properties."""
    return Struct(fields={name: _write(value) for name, value in properties.items()})


def _write(value: Any) -> Value:
    if value is None:
        return Value(null_value=0)
    if value is UNKNOWN:
        return Value(string_value=UNKNOWN_TEXT)
    if isinstance(value, bool):
        return Value(bool_value=value)
    if isinstance(value, int | float):
        return Value(number_value=value)
    if isinstance(value, str):
        return Value(string_value=value)
    if isinstance(value, Mapping):
        return Value(struct_value=write(value))
    return Value(list_value=ListValue(values=[_write(item) for item in value]))

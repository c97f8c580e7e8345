"""The shapes that Envoy's configuration is made of."""

from collections.abc import Mapping

Json = Mapping[str, object]

_TYPE_PREFIX = "type.googleapis.com/"


def message(type_name: str, **fields: object) -> Json:
    """A protobuf message that names its type."""
    return {"@type": f"{_TYPE_PREFIX}{type_name}", **fields}


def typed(name: str, type_name: str, **fields: object) -> Json:
    """An extension: its name and its configuration."""
    return {"name": name, "typed_config": message(type_name, **fields)}


def socket_address(host: str, port: int) -> Json:
    """A TCP address; the host must be an IP address."""
    return {"socket_address": {"address": host, "port_value": port}}


def seconds(number: float) -> str:
    """A protobuf duration."""
    return f"{number:g}s"

"""Where an engine publishes which prompts it holds, as its own flag says."""

import json
from collections.abc import Mapping

_FLAG = "--kv-events-config"
"""Of vLLM and SGLang: a JSON object with ``publisher``, ``endpoint`` and ``replay_endpoint``."""
_ANY_HOSTS = ("tcp://*:", "tcp://[::]:", "tcp://0.0.0.0:")
"""What an engine binds to; another host is one that it connects to, where nobody can listen to it."""


def kv_events(flags: Mapping[str, object]) -> str | None:
    """Its addresses as the gateway takes them, with ``{host}`` for its own; ``None`` = it publishes nothing."""
    try:
        config = json.loads(str(flags.get(_FLAG)))
    except ValueError:
        return None
    if not isinstance(config, dict) or config.get("publisher") != "zmq":
        return None
    stated = [config[name] for name in ("endpoint", "replay_endpoint") if config.get(name)]
    found = [_template(address) for address in stated]
    return ",".join(filter(None, found)) if found and all(found) else None


def _template(address: object) -> str | None:
    if not isinstance(address, str):
        return None
    prefix = next((begin for begin in _ANY_HOSTS if address.startswith(begin)), None)
    port = address.removeprefix(prefix) if prefix else ""
    return f"tcp://{{host}}:{port}" if port.isascii() and port.isdigit() and len(port) <= 5 else None

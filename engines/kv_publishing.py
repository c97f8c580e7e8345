"""Where an engine publishes which prompts it holds: what it is told, and what its own flag says."""

import json
import re
from collections.abc import Mapping

EVENTS_PORT = 5557
REPLAY_PORT = 5657
"""Where it repeats what was missed. Each data-parallel rank takes the next port, so there is room between them."""
MOST_RANKS = REPLAY_PORT - EVENTS_PORT
KV_EVENTS_FLAG = "--kv-events-config"
"""Of vLLM and SGLang: a JSON object with ``publisher``, ``endpoint`` and ``replay_endpoint``."""
_SWITCHES: Mapping[str, Mapping[str, object]] = {"vllm": {"enable_kv_cache_events": True}, "sglang": {}}
"""Engine -> what switches its events on, beside the publisher: tried with vLLM 0.32; SGLang's by its public source."""
_RANK_FLAGS = ("--data-parallel-size", "--dp-size")
_ANY_HOSTS = ("tcp://*:", "tcp://[::]:", "tcp://0.0.0.0:")
"""What an engine binds to; another host is one that it connects to, where nobody can listen to it."""
_LAST_PORT = 65535


def kv_events_setting(engine: str) -> Mapping[str, object] | None:
    """What its flag says when a manifest asks for events; ``None`` = the engine has none."""
    switch = _SWITCHES.get(engine)
    if switch is None:
        return None
    places = {"endpoint": f"tcp://*:{EVENTS_PORT}", "replay_endpoint": f"tcp://*:{REPLAY_PORT}"}
    return {**switch, "publisher": "zmq", **places}


def kv_events(engine: str, flags: Mapping[str, object], features: Mapping[str, object]) -> str | None:
    """Its addresses as the gateway takes them, with ``{host}`` for its own; ``None`` = it publishes nothing.

    A flag of the manifest's own stands before what its features ask for.
    """
    if KV_EVENTS_FLAG in flags:
        return _addresses(flags[KV_EVENTS_FLAG])
    setting = kv_events_setting(engine) if features.get("kv_events") is not None else None
    return None if setting is None else _addresses(json.dumps(setting))


def kv_ranks(flags: Mapping[str, object], data_parallel: int) -> int:
    """How many data-parallel ranks publish, each at ports of its own."""
    stated = next((flags[name] for name in _RANK_FLAGS if name in flags), data_parallel)
    return stated if type(stated) is int and 1 <= stated <= MOST_RANKS else 1


def kv_ports(addresses: str | None, ranks: int) -> tuple[int, ...]:
    """The ports of all ranks, ascending."""
    first = [int(port) for port in re.findall(r":([0-9]+)(?=,|$)", addresses or "")]
    found = {port + rank for port in first for rank in range(ranks)}
    return tuple(sorted(port for port in found if 1 <= port <= _LAST_PORT))


def _addresses(value: object) -> str | None:
    try:
        config = json.loads(str(value))
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

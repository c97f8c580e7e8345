"""The trials of the gateway's benchmark: requests as fast as they go, requests at a rate, streams."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from gateway_processes import HERE, KEY, Contender

PATH = "/v1/chat/completions"
SHORT_CHARACTERS, LONG_CHARACTERS = 540, 64 * 1024
PROMPTS = 64
SHORT_CONNECTIONS, LONG_CONNECTIONS = 32, 16
STREAMS = 32
SPREAD_SECONDS = 1.0
RATE = 100.0
_WRK = """
local requests, at = {}, 0
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.headers["authorization"] = "Bearer @KEY@"
function init(args)
  for number = 1, @PROMPTS@ do
    local text = number .. " " .. string.rep("lorem ipsum ", math.ceil(@CHARACTERS@ / 12)):sub(1, @CHARACTERS@ - 4)
    local body = '{"model":"@MODEL@","messages":[{"role":"user","content":"' .. text .. '"}]}'
    requests[number] = wrk.format(nil, "@PATH@", nil, body)
  end
end
function request()
  at = at % @PROMPTS@ + 1
  return requests[at]
end
"""


@dataclass(frozen=True)
class Way:
    """One way to the engines."""

    name: str
    contender: Contender
    """What it costs is read here."""
    model: str


class Rate(NamedTuple):
    """What came of requests as fast as they go."""

    per_second: float
    cpu_microseconds: float
    """Of the contender, for one request."""


class Chunks(NamedTuple):
    """What came of streams."""

    per_second: float
    cpu_microseconds: float
    """Of the contender, for one chunk."""


def requests(
    way: Way, core: str, seconds: float, folder: Path, *, is_long: bool, connections: int | None = None
) -> Rate:
    """As many requests as it takes from one generator."""
    characters, usual = (LONG_CHARACTERS, LONG_CONNECTIONS) if is_long else (SHORT_CHARACTERS, SHORT_CONNECTIONS)
    connections = connections or usual
    script = folder / "wrk.lua"
    words = {"KEY": KEY, "PROMPTS": PROMPTS, "CHARACTERS": characters, "MODEL": way.model, "PATH": PATH}
    text = _WRK
    for name, word in words.items():
        text = text.replace(f"@{name}@", str(word))
    script.write_text(text)
    url = f"http://127.0.0.1:{way.contender.port}"
    command = ("taskset", "-c", core, "wrk", "-t1", f"-c{connections}", f"-d{seconds:g}")
    command = (*command, "--timeout", "30s", "-s", str(script), url)
    before = way.contender.cpu_seconds()
    said = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    spent = way.contender.cpu_seconds() - before
    if "Non-2xx" in said or "Socket errors" in said:
        raise SystemExit(f"{way.name}: requests failed: {said}")
    (count,) = (int(line.split()[0]) for line in said.splitlines() if " requests in " in line)
    (rate,) = (float(line.split()[1]) for line in said.splitlines() if line.startswith("Requests/sec:"))
    return Rate(rate, spent * 1e6 / count)


def latencies(ways: Iterable[Way], core: str, seconds: float, rounds: int) -> Mapping[str, list[float]]:
    """The seconds of each request at a hundred a second, sorted."""
    targets = {way.name: (way.contender.port, request_text(way.model)) for way in ways}
    told = {"targets": targets, "rate": RATE, "seconds": seconds, "rounds": rounds}
    found = _load(core, "latency", told)
    for name, one in found.items():
        if one["failed"]:
            raise SystemExit(f"{name}: {one['failed']} requests failed")
    return {name: one["seconds"] for name, one in found.items()}


def streams(way: Way, core: str, seconds: float, *, is_usage_asked: bool, connections: int = STREAMS) -> Chunks:
    """Streams side by side."""
    options = {"stream_options": {"include_usage": True}} if is_usage_asked else {}
    request = request_text(way.model, stream=True, **options)
    told = {
        "port": way.contender.port,
        "request": request,
        "seconds": seconds,
        "connections": connections,
        "spread_seconds": SPREAD_SECONDS,
    }
    before = way.contender.cpu_seconds()
    found = _load(core, "streams", told)
    spent = way.contender.cpu_seconds() - before
    if found["failed"] or not found["chunks"]:
        raise SystemExit(f"{way.name}: {found['failed']} of {found['streams']} streams failed")
    return Chunks(found["chunks"] / found["seconds"], spent * 1e6 / found["chunks"])


def request_text(model: str, **members: object) -> str:
    """One request of about 600 bytes, with its head."""
    content = ("lorem ipsum " * SHORT_CHARACTERS)[:SHORT_CHARACTERS]
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": content}], **members})
    lines = (f"POST {PATH} HTTP/1.1", "host: x", f"authorization: Bearer {KEY}", "content-type: application/json")
    return "\r\n".join((*lines, f"content-length: {len(body)}", "", body))


def _load(core: str, kind: str, told: Mapping[str, object]) -> Mapping[str, object]:
    command = ("taskset", "-c", core, sys.executable, str(HERE / "gateway_load.py"), kind, json.dumps(told))
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    found: Mapping[str, object] = json.loads(done.stdout)
    return found

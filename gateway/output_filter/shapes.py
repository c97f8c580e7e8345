"""Which strings of an answer are text, and of which running text each is a piece.

Known are OpenAI's chat and text completions and Responses, and Anthropic's messages. What is not known is text.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from gateway.output_filter.json_spans import Path
from gateway.output_filter.normal_form import Writing

Key = tuple[str | int, ...]
"""Names a running text; its first two parts name what ends together, such as a choice."""

_IDENTIFIER = re.compile(r"[\w.:/-]{0,256}\Z", re.ASCII)
_WORD = re.compile(r"(?:[A-Za-z_.:/-]|[0-9](?![0-9]{6})){0,64}\Z")
_BASE64 = re.compile(r"[A-Za-z0-9+/=_-]*\Z")
_IDS = frozenset(
    {
        *("id", "model", "system_fingerprint", "item_id", "call_id", "tool_call_id", "tool_use_id", "event_id"),
        *("previous_response_id", "response_id"),
    }
)
_WORDS = frozenset(
    {
        *("object", "type", "role", "finish_reason", "stop_reason", "status", "service_tier", "phase", "truncation"),
        *("tool_choice", "code"),
    }
)
_FREE = frozenset({"input", "arguments", "parsed", "output_parsed", "parameters", "metadata"})
"""What stands below these is written by the model, whatever it is called."""
_SEALED = frozenset({"signature", "encrypted_content", "obfuscation"})
_ARGUMENTS = frozenset({"arguments", "partial_json"})
_ANTHROPIC = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
_LAST = ("response.completed", "response.incomplete", "response.failed", "message_delta", "message_stop", "error")


class Api(StrEnum):
    """Whose form an answer has."""

    COMPLETIONS = "completions"
    RESPONSES = "responses"
    MESSAGES = "messages"
    TRANSCRIPT = "transcript"
    """What was spoken, and the same again in timed parts."""
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Running:
    """A piece of a running text."""

    key: Key
    writing: Writing | None


@dataclass(frozen=True, slots=True)
class Whole:
    """A text of its own."""

    writing: Writing | None


Role = Running | Whole | None
"""None = a name or a sealed value: no text."""


def api_of(document: object) -> Api:
    """Whose form an event or a whole answer has."""
    if not isinstance(document, dict):
        return Api.UNKNOWN
    kind = document.get("type")
    if isinstance(document.get("choices"), list):
        return Api.COMPLETIONS
    if document.get("object") == "response" or (isinstance(kind, str) and kind.startswith("response.")):
        return Api.RESPONSES
    if isinstance(kind, str) and (kind in _ANTHROPIC or kind == "message"):
        return Api.MESSAGES
    if "error" in document or kind == "error":
        return Api.ERROR
    is_timed = isinstance(document.get("segments"), list) or isinstance(document.get("words"), list)
    return Api.TRANSCRIPT if is_timed and isinstance(document.get("text"), str) else Api.UNKNOWN


def role_of(api: Api, document: object, path: Path, text: str) -> Role:
    """What a string of an event is."""
    name = path[-1] if path else ""
    if (_is_name(str(name), text) or _is_vector(path, text)) and not is_free(path):
        return None
    key = _running_key(api, document, path)
    writing = Writing.JSON if name in _ARGUMENTS else None
    if key is None:
        return Whole(writing)
    return Running(key, Writing.JSON if "arguments" in str(key[1]) else writing)


def is_free(path: Path) -> bool:
    """Whether a value is part of what a model wrote as JSON, as the input of a tool."""
    return not _FREE.isdisjoint(path[:-1])


def _is_name(name: str, text: str) -> bool:
    if name in _IDS:
        return _IDENTIFIER.match(text) is not None
    if name in _WORDS:
        return _WORD.match(text) is not None
    return name in _SEALED and _BASE64.match(text) is not None


def _is_vector(path: Path, text: str) -> bool:
    """An embedding in base64."""
    return path[:1] == ("data",) and path[-1] == "embedding" and _BASE64.match(text) is not None


def _running_key(api: Api, document: object, path: Path) -> Key | None:
    if not isinstance(document, dict) or api is Api.ERROR:
        return None
    if api is Api.COMPLETIONS:
        return _choice_key(document, path)
    if api is Api.RESPONSES:
        return _response_key(document) if path == ("delta",) else None
    if api is Api.MESSAGES:
        return _message_key(document, path)
    return ("unknown", str(document.get("type", "")), *_stable(document, path))


def _choice_key(document: Mapping[str, object], path: Path) -> Key | None:
    if len(path) < 3 or path[0] != "choices" or path[2] not in ("delta", "text"):
        return None
    return ("choice", choice_index(document, path), *_stable(document, path)[2:])


def choice_index(document: object, path: Path) -> int:
    """The index of the choice that a path goes through, which need not be its place."""
    choice = _at(document, path[:2])
    index = choice.get("index") if isinstance(choice, dict) else None
    place = path[1] if isinstance(path[1], int) else 0
    return index if isinstance(index, int) else place


def _response_key(document: Mapping[str, object]) -> Key | None:
    kind = str(document.get("type", ""))
    if not kind.endswith(".delta"):
        return None
    item = str(document.get("item_id") or document.get("output_index") or "")
    return (item, kind, _number(document, "output_index"), _number(document, "content_index", "summary_index"))


def _message_key(document: Mapping[str, object], path: Path) -> Key | None:
    if document.get("type") not in ("content_block_delta", "content_block_start"):
        return None
    if len(path) != 2 or path[0] not in ("delta", "content_block") or path[1] in ("name", "title"):
        return None
    return ("block", _number(document, "index"), path[1])


def _number(document: Mapping[str, object], *names: str) -> int:
    return next((number for name in names if isinstance(number := document.get(name), int)), -1)


def _stable(document: object, path: Path) -> Key:
    """The path with the index that an element of a list names instead of its place."""
    stable: list[str | int] = []
    for part in path:
        document = _at(document, (part,))
        index = document.get("index") if isinstance(part, int) and isinstance(document, dict) else None
        stable.append(index if isinstance(index, int) else part)
    return tuple(stable)


def _at(document: object, path: Path) -> object:
    for part in path:
        if isinstance(document, dict) and isinstance(part, str):
            document = document.get(part)
        elif isinstance(document, list) and isinstance(part, int) and part < len(document):
            document = document[part]
        else:
            return None
    return document


def ends_of(api: Api, document: object) -> list[Key] | None:
    """What an event ends: beginnings of keys; None = everything."""
    if not isinstance(document, dict):
        return []
    kind = str(document.get("type", ""))
    if api is Api.ERROR or kind in _LAST:
        return None
    if api is Api.RESPONSES and kind.endswith(".done"):
        return [(str(document.get("item_id")),)] if "item_id" in document else []
    if kind == "content_block_stop":
        return [("block", _number(document, "index"))]
    if api is not Api.COMPLETIONS:
        return []
    ended = [place for place, choice in enumerate(document["choices"]) if _is_finished(choice)]
    return [("choice", choice_index(document, ("choices", place))) for place in ended]


def _is_finished(choice: object) -> bool:
    return isinstance(choice, dict) and choice.get("finish_reason") is not None


def is_usage_alone(api: Api, document: object) -> bool:
    """An event without text that need not wait for any: the usage, a ping."""
    if not isinstance(document, dict):
        return False
    return document.get("type") == "ping" or (api is Api.COMPLETIONS and document["choices"] == [])


def repeats(api: Api, document: object) -> bool:
    """Whether an event tells once more what was streamed, so that values in it are not counted again."""
    return api is Api.RESPONSES and isinstance(document, dict) and not str(document.get("type", "")).endswith(".delta")

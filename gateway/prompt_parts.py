"""What a prompt is made of: texts, token ids, and pictures, sounds and documents, wherever a request has them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from gateway.form_document import FILE_BYTES
from gateway.text_tokens import text_tokens

_PROMPT_FIELDS = ("messages", "prompt", "input", "system", "instructions", "documents", "query", "suffix")
_SCHEMA_FIELDS = ("tools", "functions")
_MESSAGE_TOKENS = 6
"""What a template puts around one message: its marks, its role, line ends."""
_CHAT_TOKENS = 32
"""The start of an answer, and an instruction that templates give where there is none."""
_SCHEMA_TOKENS = 160
"""How a template tells a model to use tools."""
_BASE64_CHARACTERS = 4
_BASE64_BYTES = 3


@dataclass(frozen=True, slots=True)
class PartTokens:
    """What a part counts for at least, where nobody has looked at it: what engines make of a large one."""

    image: int = 4096
    audio: int = 3000
    video: int = 16_384
    document: int = 8192


class _Kind(NamedTuple):
    least: Callable[[PartTokens], int]
    bytes_per_token: int
    """Of what is sent along with the request; 0 = its size says nothing."""


_IMAGE, _VIDEO = _Kind(lambda parts: parts.image, 0), _Kind(lambda parts: parts.video, 0)
_AUDIO = _Kind(lambda parts: parts.audio, 80)
"""25 tokens a second (as engines' audio encoders give) of a voice at 16 kbit/s."""
_DOCUMENT = _Kind(lambda parts: parts.document, 3)
_MEDIA_TYPES = {
    "image_url": _IMAGE,
    "image": _IMAGE,
    "input_image": _IMAGE,
    "image_embeds": _IMAGE,
    "image_pil": _IMAGE,
    "input_audio": _AUDIO,
    "audio_url": _AUDIO,
    "audio": _AUDIO,
    "video_url": _VIDEO,
    "video": _VIDEO,
    "file": _DOCUMENT,
    "input_file": _DOCUMENT,
    "document": _DOCUMENT,
}
_MEDIA_MEMBERS = frozenset({*_MEDIA_TYPES, "source", "file_data", "file_url", "file_id", "type"})


@dataclass(slots=True)
class _Prompt:
    parts: PartTokens
    texts: list[str] = field(default_factory=list)
    tokens: int = 0

    def add(self, value: object) -> None:
        """Everything under a value; nothing recurses, however deep it is."""
        left = [value]
        while left:
            item = left.pop()
            if isinstance(item, str):
                self.texts.append(item)
            elif isinstance(item, list):
                if _are_token_ids(item):
                    self.tokens += len(item)
                else:
                    left += item
            elif isinstance(item, dict):
                left += self._members(item)
            elif item is not None:
                self.tokens += 1

    def add_schema(self, value: object) -> None:
        """Tools are written out with the names of their members."""
        left = [value]
        while left:
            item = left.pop()
            if isinstance(item, str):
                self.texts.append(item)
            elif isinstance(item, list):
                left += item
            elif isinstance(item, dict):
                self.texts += item.keys()
                self.tokens += 2 * len(item)
                left += item.values()
            elif item is not None:
                self.tokens += 1

    def _members(self, item: dict[str, object]) -> Iterator[object]:
        kind = _media_kind(item)
        if kind is None:
            return iter(item.values())
        self.tokens += max(kind.least(self.parts), _sent_tokens(item, kind))
        return (member for name, member in item.items() if name not in _MEDIA_MEMBERS)


def prompt_tokens(document: Mapping[str, object], parts: PartTokens) -> tuple[int, int]:
    """An estimate of the input, and how many prompts it is: each of several gets an answer of its own."""
    prompt = _Prompt(parts)
    for name in _PROMPT_FIELDS:
        if name in document:
            prompt.add(document[name])
    messages = document.get("messages")
    if isinstance(messages, list):
        prompt.tokens += _CHAT_TOKENS + _MESSAGE_TOKENS * len(messages)
    for name in _SCHEMA_FIELDS:
        if document.get(name):
            prompt.tokens += _SCHEMA_TOKENS
            prompt.add_schema(document[name])
    tokens = prompt.tokens + text_tokens("".join(prompt.texts))
    return tokens + _repeated_query_tokens(document), _prompts(document.get("prompt"))


def plain_tokens(texts: Sequence[str]) -> int:
    """The same for a chat that is nothing but the role and the text of each message."""
    return _CHAT_TOKENS + _MESSAGE_TOKENS * (len(texts) // 2) + text_tokens("".join(reversed(texts)))


def upload_tokens(document: Mapping[str, object], parts: PartTokens) -> int:
    """An estimate of an uploaded sound with the text that goes with it."""
    size, prompt = document.get(FILE_BYTES), document.get("prompt")
    sound = max(parts.audio, size // _AUDIO.bytes_per_token) if isinstance(size, int) else parts.audio
    return sound + (text_tokens(prompt) if isinstance(prompt, str) else 0)


def _prompts(prompt: object) -> int:
    if not isinstance(prompt, list) or _are_token_ids(prompt):
        return 1
    return max(1, len(prompt))


def _repeated_query_tokens(document: Mapping[str, object]) -> int:
    """A rerank puts its query before every document."""
    query, documents = document.get("query"), document.get("documents")
    if not isinstance(query, str) or not isinstance(documents, list) or len(documents) < 2:
        return 0
    return text_tokens(query) * (len(documents) - 1)


def _are_token_ids(items: list[object]) -> bool:
    """The ends tell: engines refuse a list of ids with anything else among them."""
    return bool(items) and type(items[0]) is int and type(items[-1]) is int


def _media_kind(item: dict[str, object]) -> _Kind | None:
    """Parts may leave their type out; then a member says what they are."""
    stated = item.get("type")
    if isinstance(stated, str):
        return _MEDIA_TYPES.get(stated)
    return next((kind for name, kind in _MEDIA_TYPES.items() if name in item), None) if len(item) < 4 else None


def _sent_tokens(item: dict[str, object], kind: _Kind) -> int:
    if not kind.bytes_per_token:
        return 0
    characters, left = 0, [member for name, member in item.items() if name in _MEDIA_MEMBERS]
    while left:
        member = left.pop()
        if isinstance(member, str):
            characters += len(member)
        elif isinstance(member, dict):
            left += member.values()
    return characters * _BASE64_BYTES // (_BASE64_CHARACTERS * kind.bytes_per_token)

"""Transcriptions of uploads: the length of the sound decides what is said. As vLLM 0.32.0's models say."""

import email.parser
import email.policy
import json
import time
from collections.abc import Mapping, Sequence
from email.message import Message

from simulator.answer import Json
from simulator.api_errors import bad_request, wrong_field
from simulator.identifiers import fresh_id
from simulator.sse import DONE, event
from simulator.words import seed_of, text_pieces

_BYTES_PER_SECOND = 32_000
"""16 bits at 16 kHz."""
_PIECES_PER_SECOND = 4
_MOST_PIECES = 200


def read_upload(content_type: str, raw: bytes) -> tuple[Mapping[str, str], bytes]:
    """Return the fields of a form and the sound in it."""
    parsed = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(
        f"Content-Type: {content_type}\r\n\r\n".encode("latin-1") + raw
    )
    fields: dict[str, str] = {}
    sound: bytes | None = None
    for part in parsed.iter_parts() if parsed.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        content = _content(part)
        if name == "file":
            sound = content
        else:
            fields[str(name)] = content.decode("utf-8", "replace")
    if sound is None:
        raise wrong_field("body.file", "missing", "Field required", "...")
    return fields, sound


def words_of(sound: bytes, seed: int) -> tuple[Sequence[str], int]:
    """Return what is said in a sound, and how many seconds it lasts."""
    seconds = max(1, -(-len(sound) // _BYTES_PER_SECOND))
    source = text_pieces(seed_of(seed, sound.hex()[:64]), "")
    count = min(seconds * _PIECES_PER_SECOND, _MOST_PIECES)
    return [next(source) for _ in range(count)], seconds


def transcription(fields: Mapping[str, str], pieces: Sequence[str], seconds: int) -> tuple[bytes, str]:
    """Return a whole transcription and its content type."""
    text, form = "".join(pieces), fields.get("response_format", "json")
    if form == "text":
        return json.dumps({"text": text}).encode(), "text/plain; charset=utf-8"
    if form not in {"json", "verbose_json"}:
        raise bad_request("Currently only support response_format: `text`, `json` or `verbose_json`", "response_format")
    answer: Json = {"text": text, "usage": {"type": "duration", "seconds": seconds}}
    if form == "verbose_json":
        language = fields.get("language", "en")
        answer = {"duration": float(seconds), "language": language, "text": text, "segments": [], "words": None}
    return json.dumps(answer).encode(), "application/json"


def transcription_events(model: str, pieces: Sequence[str]) -> Sequence[bytes]:
    """Return the events of a streamed transcription."""
    head = {"id": fresh_id("trsc-"), "object": "transcription.chunk", "created": int(time.time()), "model": model}
    chunks = [event({**head, "choices": [{"delta": {"content": piece}}]}) for piece in pieces]
    end = event({**head, "choices": [{"delta": {"content": ""}, "finish_reason": "stop", "stop_reason": None}]})
    return [*chunks, end, DONE]


def _content(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""

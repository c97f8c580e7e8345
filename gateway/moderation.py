"""The service that judges sentences: asked over HTTP in the form of OpenAI's moderations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from gateway.errors import GatewayError
from gateway.settings import ModerationService

MOST_AT_ONCE = 64
"""Sentences in one question; the longest of them has 4,000 characters."""
MAX_ANSWER_BYTES = 1024 * 1024
_ABOUT_THE_QUESTION = frozenset({400, 413, 422})


class NoVerdict(GatewayError):
    """The service did not say whether sentences may pass; the message quotes none of them."""


class NotJudgeable(NoVerdict):
    """The service refuses these sentences: that says nothing about the service."""


class Judge(Protocol):
    """Whoever judges sentences."""

    async def may_pass(self, texts: Sequence[str]) -> list[bool]:
        """The verdict on each, in their order; raises NoVerdict."""


class _Result(BaseModel):
    model_config = ConfigDict(strict=True)

    flagged: bool


class _Answer(BaseModel):
    results: list[_Result]


class ModerationClient:
    """One service. Whoever asks bounds the time; an answer that does not speak of every sentence is none."""

    def __init__(self, client: httpx2.AsyncClient, service: ModerationService) -> None:
        self._client = client
        self._service = service

    async def may_pass(self, texts: Sequence[str]) -> list[bool]:
        """The verdict on each sentence, in their order; raises NoVerdict."""
        verdicts: list[bool] = []
        for start in range(0, len(texts), MOST_AT_ONCE):
            verdicts += await self._judged(list(texts[start : start + MOST_AT_ONCE]))
        return verdicts

    async def _judged(self, texts: list[str]) -> list[bool]:
        question: dict[str, object] = {"input": [text.encode("utf-8", "replace").decode() for text in texts]}
        if self._service.model is not None:
            question["model"] = self._service.model
        try:
            answer = await self._client.post(self._service.url, json=question, headers=self._headers(), timeout=None)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise NoVerdict(f"the moderation service cannot be reached: {type(error).__name__}") from None
        if answer.status_code in _ABOUT_THE_QUESTION:
            raise NotJudgeable(f"the moderation service refused the question with {answer.status_code}")
        if answer.status_code != 200:
            raise NoVerdict(f"the moderation service answered {answer.status_code}; 200 would be right")
        return _verdicts(answer.content, len(texts))

    def _headers(self) -> dict[str, str]:
        token_file = self._service.token_file
        return {} if token_file is None else {"authorization": f"Bearer {_token(token_file)}"}


def _verdicts(content: bytes, count: int) -> list[bool]:
    try:
        results = _Answer.model_validate_json(content).results if len(content) <= MAX_ANSWER_BYTES else []
    except ValidationError:
        raise NoVerdict("the moderation service's answer has no results with 'flagged' as true or false") from None
    if len(results) != count:
        raise NoVerdict(f"the moderation service judged {len(results)} of {count} sentences")
    return [not result.flagged for result in results]


def _token(file: Path) -> str:
    """Read for every question, so that a new token counts at once."""
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise NoVerdict(f"the token file {file} cannot be read: {type(error).__name__}") from None
    if not (token and token.isascii() and token.isprintable()):
        raise NoVerdict(f"the token file {file} holds no token; it must hold one line of ASCII")
    return token

"""An answer that is one document, on its way through its filter and before the judge of its sentences."""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

import structlog

from fleet.output_policy import FailureMode
from gateway.answer_filter import AnswerFilter
from gateway.judge_breaker import LeftAlone
from gateway.moderation import Judge, NoVerdict
from gateway.output_filter.json_spans import UnreadableAnswer
from gateway.output_filter.policy import MODERATION
from gateway.output_filter.stream_filter import NO_VERDICT
from gateway.output_filter.whole_answer import filter_answer, texts_to_judge

_log = structlog.get_logger("gateway.filter")


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """What is left of an answer."""

    body: bytes | None = field(repr=False)
    """``None`` = nothing of it may pass."""
    counts: Counter[str]
    """Values by class."""
    blocked: str | None = None
    """The class for which it is withheld."""
    failure: str | None = None
    """What went wrong, as the name of an error."""


def filtered_whole(chosen: AnswerFilter, body: bytes) -> WholeAnswer:
    """The answer with every value replaced, or nothing of it where one is blocked."""
    answer = chosen.answer()
    try:
        changed = filter_answer(body, answer) if body else b""
    except Exception as error:  # whatever goes wrong in here, nothing may pass by accident
        may_pass = chosen.policy.failure_mode is FailureMode.OPEN
        return WholeAnswer(body if may_pass else None, answer.counts, failure=type(error).__name__)
    if answer.blocked is not None:
        return WholeAnswer(None, answer.counts, blocked=answer.blocked)
    return WholeAnswer(changed, answer.counts)


async def judged(chosen: AnswerFilter, judge: Judge, whole: WholeAnswer) -> WholeAnswer:
    """The answer after the verdicts on its sentences, which see it as the client would."""
    moderation = chosen.policy.moderation
    if moderation is None or not whole.body:
        return whole
    try:
        async with asyncio.timeout(moderation.wait_seconds):
            verdicts = await judge.may_pass(texts_to_judge(whole.body, moderation.window))
    except (NoVerdict, TimeoutError, UnreadableAnswer) as error:
        if not isinstance(error, LeftAlone):  # that was said once
            _log.warning("filter.no_verdict", model=chosen.model, error=type(error).__name__)
        may_pass = moderation.failure_mode is FailureMode.OPEN
        return WholeAnswer(whole.body if may_pass else None, whole.counts, failure=NO_VERDICT)
    if all(verdicts):
        return whole
    counts = whole.counts + Counter({MODERATION: verdicts.count(False)})
    return WholeAnswer(None, counts, blocked=MODERATION)

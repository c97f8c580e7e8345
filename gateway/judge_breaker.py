"""Leaves a moderation service alone that does not judge: each of its sentences would wait in vain."""

import asyncio
import time
from collections.abc import Callable, Sequence

import structlog

from gateway.moderation import Judge, NotJudgeable, NoVerdict
from gateway.moderation_metrics import ModerationMetrics

MOST_FAILURES = 5
"""In a row; then it is left alone."""
PAUSE_SECONDS = 5.0
"""Until it is asked once; the answer to that decides how it goes on."""
_LATE = 0.9
"""Of the time that a verdict may take: who stops waiting then does so because of the service."""
_log = structlog.get_logger("gateway.moderation")


class LeftAlone(NoVerdict):
    """The service was not even asked."""


class JudgeBreaker:
    """A judge for one filter: how long verdicts may take is its policy's, so no policy breaks another one's judge."""

    def __init__(
        self,
        judge: Judge,
        service: str,
        wait_seconds: float,
        metrics: ModerationMetrics,
        now_seconds: Callable[[], float] = time.monotonic,
    ) -> None:
        """``wait_seconds``: after which whoever asks stops waiting."""
        self._judge = judge
        self._service = service
        self._late_seconds = _LATE * wait_seconds
        self._metrics = metrics
        self._now = now_seconds
        self._failures = 0
        self._asked_again = 0.0
        """When it may be asked again, once it is left alone."""
        self._is_tried = False

    async def may_pass(self, texts: Sequence[str]) -> list[bool]:
        """The verdict on each, in their order; raises NoVerdict, and at once while the service is left alone."""
        is_left_alone = self._failures >= MOST_FAILURES
        if is_left_alone and (self._is_tried or self._now() < self._asked_again):
            self._metrics.not_asked(self._service)
            raise LeftAlone("the moderation service is left alone: it did not judge several times in a row")
        self._is_tried = is_left_alone
        try:
            return await self._ask(texts)
        finally:
            if is_left_alone:
                self._is_tried = False

    async def _ask(self, texts: Sequence[str]) -> list[bool]:
        began = self._now()
        try:
            verdicts = await self._judge.may_pass(texts)
        except NotJudgeable:
            raise
        except NoVerdict as error:
            self._failed(str(error))
            raise
        except asyncio.CancelledError:
            if self._now() - began >= self._late_seconds:
                self._failed("it is too slow")
            raise
        if self._failures >= MOST_FAILURES:
            _log.info("moderation.judges_again", service=self._service)
        self._failures = 0
        self._metrics.judged(self._service)
        return verdicts

    def _failed(self, why: str) -> None:
        self._metrics.failed(self._service)
        self._failures += 1
        if self._failures < MOST_FAILURES:
            return
        if self._failures == MOST_FAILURES:
            _log.error("moderation.left_alone", service=self._service, error=why, pause_seconds=PAUSE_SECONDS)
        self._asked_again = self._now() + PAUSE_SECONDS

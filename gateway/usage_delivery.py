"""Brings usage records to the control plane, the oldest first, and removes them once it has them."""

import asyncio
import time
from pathlib import Path

import httpx2
import structlog
from pydantic import ValidationError

from fleet.usage import UsageReceipt, UsageRecord
from gateway.errors import GatewayError
from gateway.token_file import read_token
from gateway.usage_metrics import Outcome, UsageMetrics
from gateway.usage_spool import UsageSpool, lines_of

PATH = "/v1/gateway/usage"
LOOK_SECONDS = 0.1
FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 10.0
ANSWER_SECONDS = 15.0
_UNREADABLE = frozenset({400, 413, 422})
"""The control plane will never take this batch."""
_log = structlog.get_logger("gateway.usage")


class DeliveryError(GatewayError):
    """A batch could not be brought; it stays on disk."""


class UsageDelivery:
    """The loop: read a file, send it, remove it."""

    def __init__(self, client: httpx2.AsyncClient, token_file: Path, spool: UsageSpool, metrics: UsageMetrics) -> None:
        self._client = client
        self._token_file = token_file
        self._spool = spool
        self._metrics = metrics
        self._pause_seconds = 0.0
        self._last_failure: str | None = None

    async def run(self) -> None:
        """Bring what comes until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(self._pause_seconds)

    async def finish(self, seconds: float) -> None:
        """Bring what is left, as long as that is possible at once."""
        ends = time.monotonic() + seconds
        self._pause_seconds = 0.0
        try:
            async with asyncio.timeout(seconds):
                while self._spool.oldest() is not None and time.monotonic() < ends and not self._pause_seconds:
                    await self.step()
        except TimeoutError:
            pass
        if self._spool.oldest() is not None:
            _log.warning("usage.left_for_the_next_start", waiting_bytes=self._spool.size_bytes)

    async def step(self) -> None:
        """Bring one file, if there is one."""
        path = self._spool.oldest()
        if path is None:
            self._pause_seconds = LOOK_SECONDS
            return
        try:
            await self._bring(path)
        except Exception as error:
            self._pause_seconds = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds), LONGEST_PAUSE_SECONDS)
            self._report(error)
            return
        self._pause_seconds = 0.0
        if self._last_failure is not None:
            _log.info("usage.delivered_again")
        self._last_failure = None

    async def _bring(self, path: Path) -> None:
        lines, cut = await asyncio.to_thread(_readable, path)
        if cut:
            self._metrics.count(Outcome.MALFORMED, cut)
            _log.error("usage.unreadable_lines", file=path.name, lines=cut)
        receipt = await self._send(lines) if lines else UsageReceipt(stored=0, duplicates=0, too_old=0, too_new=0)
        if receipt is None:
            self._metrics.count(Outcome.REFUSED, len(lines))
            await asyncio.to_thread(self._spool.set_aside, path)
            _log.error("usage.refused", file=path.name, records=len(lines), right="the same release on both sides")
            return
        self._count(receipt)
        await asyncio.to_thread(self._spool.remove, path)

    async def _send(self, lines: list[bytes]) -> UsageReceipt | None:
        """What became of records; ``None`` = they can't be read there."""
        headers = {"authorization": f"Bearer {read_token(self._token_file)}", "content-type": "application/json"}
        body = b'{"records":[' + b",".join(lines) + b"]}"
        try:
            answer = await self._client.post(PATH, content=body, headers=headers, timeout=ANSWER_SECONDS)
        except httpx2.HTTPError as error:
            raise DeliveryError(f"the control plane cannot be reached: {type(error).__name__}") from error
        if answer.status_code in _UNREADABLE:
            return None
        if answer.status_code != 200:
            raise DeliveryError(f"the control plane answered {answer.status_code}; {_advice(answer.status_code)}")
        try:
            return UsageReceipt.model_validate_json(answer.content)
        except ValidationError:
            raise DeliveryError("the control plane gave no receipt; is control_plane_url right?") from None

    def _count(self, receipt: UsageReceipt) -> None:
        self._metrics.count(Outcome.STORED, receipt.stored)
        self._metrics.count(Outcome.DUPLICATE, receipt.duplicates)
        self._metrics.count(Outcome.TOO_OLD, receipt.too_old)
        self._metrics.count(Outcome.TOO_NEW, receipt.too_new)
        if receipt.too_old or receipt.too_new:
            _log.error("usage.not_counted", too_old=receipt.too_old, too_new=receipt.too_new)

    def _report(self, error: Exception) -> None:
        """Say a failure once, not at every try. Only our own messages are known to hold no content."""
        self._metrics.delivery_failed()
        failure = str(error) if isinstance(error, GatewayError) else type(error).__name__
        if failure != self._last_failure:
            _log.warning("usage.not_delivered", error=failure, waiting_bytes=self._spool.size_bytes)
        self._last_failure = failure


def _readable(path: Path) -> tuple[list[bytes], int]:
    """The records of a file, and how many lines are none."""
    lines = lines_of(path)
    whole = [line for line in lines if _is_record(line)]
    return whole, len(lines) - len(whole)


def _is_record(line: bytes) -> bool:
    try:
        UsageRecord.model_validate_json(line)
    except ValidationError:
        return False
    return True


def _advice(status: int) -> str:
    if status in {401, 403}:
        return "the token must be valid and of scope gateway"
    return "200 would be right"

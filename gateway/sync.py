"""Keeps the decision core on the control plane's newest snapshot, and serves on without the control plane."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

import httpx2
import structlog

from fleet.snapshot import GatewaySnapshot
from gateway.decision import DecisionCore
from gateway.endpoints import EndpointFile
from gateway.errors import GatewayError
from gateway.filter_table import NO_FILTERS, FilterTable
from gateway.index import SnapshotIndex, index_of
from gateway.snapshot_reader import NewerSnapshot, SnapshotRefused, read_snapshot
from gateway.store import SnapshotStore
from gateway.telemetry import Telemetry
from gateway.token_file import read_token

WAIT_SECONDS = 10
"""How long the control plane may hold a request until something changes."""
ENVOY_SECONDS = 0.5
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 2.0
_SPARE_SECONDS = 5.0

_log = structlog.get_logger("gateway.sync")


class SyncError(GatewayError):
    """A snapshot could not be had; the one before goes on."""


class _Fetched(NamedTuple):
    snapshot: GatewaySnapshot
    etag: str


class KnownEndpoints(Protocol):
    """Whoever can say which endpoints Envoy has."""

    async def wait_until_known(self, addresses: frozenset[str], deadline_seconds: float) -> bool:
        """Whether Envoy has the endpoints by then."""


class SnapshotSwitch:
    """Takes a snapshot into use without losing a request: Envoy first learns the new endpoints."""

    def __init__(
        self,
        core: DecisionCore,
        endpoints: EndpointFile,
        envoy: KnownEndpoints,
        telemetry: Telemetry,
        filters: FilterTable | None = None,
    ) -> None:
        """``filters``: makes output filters; without it, routes that name one refuse."""
        self._core = core
        self._filters = filters
        self._endpoints = endpoints
        self._envoy = envoy
        self._telemetry = telemetry

    async def use(self, snapshot: GatewaySnapshot) -> None:
        """Decide by this snapshot. Endpoints that left it stay known to Envoy for a while, so streams go on."""
        filters = await self._filters.filters_of(snapshot) if self._filters else NO_FILTERS
        index = index_of(snapshot, filters, self._core.index)
        for key in index.tokens.unusable:
            _log.error("snapshot.key_of_issuer_left_out", issuer=key.issuer, kid=key.kid, problem=key.problem)
        if index.unusable_addresses:
            _log.error("snapshot.endpoints_left_out", addresses=index.unusable_addresses, right="ip:port")
        if index.unusable_arms:
            right = "an identity of printable ASCII"
            _log.error("snapshot.arms_left_out", deployments=index.unusable_arms, right=right)
        new = index.addresses - (self._core.index.addresses if self._core.index else frozenset())
        self.show_endpoints(index)
        if new and not await self._envoy.wait_until_known(new, ENVOY_SECONDS):
            _log.warning("snapshot.envoy_is_late", addresses=sorted(new), waited_seconds=ENVOY_SECONDS)
        self._core.replace(index, time.time())
        self._telemetry.show_models(index)

    def show_endpoints(self, index: SnapshotIndex | None = None) -> None:
        """Bring the file of endpoints up to date; what cannot be written now is tried again at the next call."""
        index = index or self._core.index
        if index is None:
            return
        try:
            self._endpoints.show(index.addresses, time.monotonic())
        except OSError as error:
            self._telemetry.sync_failed()
            _log.error("snapshot.endpoints_not_written", error=error.strerror)


class SnapshotSync:
    """The loop: ask, take into use, keep on disk."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        token_file: Path,
        switch: SnapshotSwitch,
        store: SnapshotStore,
        telemetry: Telemetry,
        now_unix_seconds: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._token_file = token_file
        self._switch = switch
        self._store = store
        self._telemetry = telemetry
        self._now = now_unix_seconds
        self._etag: str | None = None
        self._confirmed_unix_seconds: float | None = None
        self._pause_seconds = 0.0
        self._last_failure: str | None = None
        self._not_kept: GatewaySnapshot | None = None
        telemetry.watch_snapshot_age(self.age_seconds)

    def age_seconds(self) -> float:
        """Since the control plane last confirmed the snapshot in use; NaN before the first."""
        confirmed = self._confirmed_unix_seconds
        return float("nan") if confirmed is None else max(0.0, self._now() - confirmed)

    async def start_from_disk(self) -> None:
        """Use the last good snapshot, if there is one."""
        try:
            stored = self._store.load()
        except GatewayError as error:
            self._telemetry.sync_failed()
            _log.error("snapshot.not_loaded", error=str(error))
            return
        if stored is not None:
            await self._switch.use(stored.snapshot)
            self._etag = stored.snapshot.etag
            self._confirmed_unix_seconds = stored.saved_unix_seconds
            _log.info("snapshot.loaded", etag=self._etag, age_seconds=round(self.age_seconds(), 1))

    async def run(self) -> None:
        """Follow the control plane until cancelled."""
        while True:
            await self.step()
            await asyncio.sleep(self._pause_seconds)

    async def step(self) -> None:
        """One request to the control plane, and what follows from its answer."""
        try:
            await self._follow()
        except Exception as error:
            self._pause_seconds = min(max(FIRST_PAUSE_SECONDS, 2 * self._pause_seconds), LONGEST_PAUSE_SECONDS)
            self._report(error)
        else:
            self._telemetry.show_version(is_older=False)
            if self._last_failure is not None:
                _log.info("snapshot.control_plane_is_back", etag=self._etag)
            self._last_failure = None
        self._switch.show_endpoints()
        if self._not_kept is not None:
            self._keep(self._not_kept)

    async def _follow(self) -> None:
        started = time.monotonic()
        fetched = await self._fetch()
        if fetched is not None:
            await self._switch.use(fetched.snapshot)
            self._keep(fetched.snapshot)
            self._etag = fetched.etag
            _log.info("snapshot.in_use", etag=self._etag, routes=len(fetched.snapshot.routes))
        self._confirmed_unix_seconds = self._now()
        answered_at_once = fetched is None and time.monotonic() - started < FIRST_PAUSE_SECONDS
        self._pause_seconds = FIRST_PAUSE_SECONDS if answered_at_once else 0.0

    async def _fetch(self) -> _Fetched | None:
        """The newest snapshot; ``None`` = it is the one in use."""
        headers = {"authorization": f"Bearer {read_token(self._token_file)}"}
        if self._etag is not None:
            headers["if-none-match"] = self._etag
        timeout = httpx2.Timeout(_SPARE_SECONDS, read=WAIT_SECONDS + _SPARE_SECONDS)
        try:
            answer = await self._client.get(
                "/v1/gateway/snapshot", params={"wait_seconds": WAIT_SECONDS}, headers=headers, timeout=timeout
            )
        except httpx2.HTTPError as error:
            raise SyncError(f"the control plane cannot be reached: {type(error).__name__}") from error
        if answer.status_code == 304:
            return None
        if answer.status_code != 200:
            raise SyncError(f"the control plane answered {answer.status_code}; {_advice(answer.status_code)}")
        try:
            snapshot = read_snapshot(answer.content)
        except NewerSnapshot as error:
            raise NewerSnapshot(
                f"this gateway is older than the control plane, whose snapshot is not used: {error}"
            ) from None
        except SnapshotRefused as error:
            raise SyncError(f"the control plane's snapshot is not used: {error}") from None
        return _Fetched(snapshot, answer.headers.get("etag") or snapshot.etag)

    def _keep(self, snapshot: GatewaySnapshot) -> None:
        """What can't be kept now is tried again at every step: the one on disk may know a key that was revoked."""
        try:
            self._store.save(snapshot)
        except OSError as error:
            self._telemetry.sync_failed()
            if self._not_kept is None:
                _log.error("snapshot.not_kept", error=error.strerror)
            self._not_kept = snapshot
        else:
            self._not_kept = None

    def _report(self, error: Exception) -> None:
        """Say a failure once, not at every try. Only our own messages are known to hold no content."""
        self._telemetry.sync_failed()
        if isinstance(error, NewerSnapshot):
            self._telemetry.show_version(is_older=True)
        failure = str(error) if isinstance(error, GatewayError) else type(error).__name__
        if failure != self._last_failure:
            _log.warning("snapshot.not_updated", error=failure, age_seconds=round(self.age_seconds(), 1))
        self._last_failure = failure


def _advice(status: int) -> str:
    if status in {401, 403}:
        return "the token must be valid and of scope gateway"
    return "200 or 304 would be right"

"""The filters that the routes of a snapshot name, made ready when the snapshot comes and kept while they stay."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

import structlog

from fleet.output_policy import NO_FILTER, PII_FILTER, FilterPolicy
from fleet.pattern_parser import PatternRefused
from fleet.snapshot import GatewaySnapshot
from gateway.answer_filter import RouteFilter
from gateway.errors import GatewayError
from gateway.filter_metrics import FilterMetrics
from gateway.judge_breaker import JudgeBreaker
from gateway.moderation import Judge
from gateway.moderation_metrics import ModerationMetrics
from gateway.output_filter.channel import CompiledPolicy

Filters = Mapping[str, RouteFilter]
NO_FILTERS: Filters = MappingProxyType({})
_log = structlog.get_logger("gateway.filter")


class UnusableFilter(GatewayError):
    """A filter can't be made; the message says why."""


class FilterTable:
    """Makes each filter once. One that can't be made is left out, and its routes refuse."""

    def __init__(
        self, secret: bytes, judges: Mapping[str, Judge], metrics: FilterMetrics, moderation: ModerationMetrics
    ) -> None:
        self._secret = secret
        self._judges = judges
        self._metrics = metrics
        self._moderation = moderation
        self._made: dict[str, tuple[FilterPolicy, RouteFilter | str]] = {}
        """By name; a text = why it can't be made."""
        self._said: dict[str, str] = {}

    async def filters_of(self, snapshot: GatewaySnapshot) -> Filters:
        """The filters that its routes name; requests are decided about meanwhile."""
        policies = {PII_FILTER: FilterPolicy()} | {one.name: one.policy for one in reversed(snapshot.output_filters)}
        named = {route.output_filter for route in snapshot.routes} - {NO_FILTER}
        made: dict[str, tuple[FilterPolicy, RouteFilter | str]] = {}
        for name in sorted(named & policies.keys()):
            kept = self._made.get(name)
            if kept is None or kept[0] != policies[name]:
                kept = (policies[name], await asyncio.to_thread(self._make, policies[name]))
            made[name] = kept
        self._made = made
        self._metrics.keep_only({route.model for route in snapshot.routes})
        unusable = {name: route for name, (_, route) in made.items() if isinstance(route, str)}
        unusable |= dict.fromkeys(named - policies.keys(), "there is no filter of this name")
        self._say(unusable)
        return {name: route for name, (_, route) in made.items() if isinstance(route, RouteFilter)}

    def _make(self, policy: FilterPolicy) -> RouteFilter | str:
        try:
            return RouteFilter(CompiledPolicy(policy), self._metrics, self._secret, self._judge(policy))
        except (PatternRefused, UnusableFilter) as refusal:
            return str(refusal)
        except Exception as error:  # nothing that a tenant writes may stop a snapshot
            return f"it can't be made: {type(error).__name__}"

    def _judge(self, policy: FilterPolicy) -> Judge | None:
        moderation = policy.moderation
        if moderation is None:
            return None
        judge = self._judges.get(moderation.service)
        if judge is None:
            known = ", ".join(self._judges) or "none"
            raise UnusableFilter(f"there is no moderation service {moderation.service!r}; known are: {known}")
        return JudgeBreaker(judge, moderation.service, moderation.wait_seconds, self._moderation)

    def _say(self, unusable: Mapping[str, str]) -> None:
        """Say each once."""
        self._metrics.show_unusable(unusable)
        for name, why in sorted(unusable.items()):
            if self._said.get(name) != why:
                _log.error("snapshot.filter_unusable", filter=name, error=why, follows="its routes refuse")
        self._said = dict(unusable)

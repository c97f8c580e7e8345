"""Requests per minute of each tenant, by token bucket; time is an argument."""

import math
from collections.abc import Collection
from dataclasses import dataclass

from fleet.snapshot import GatewayTenant


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether one more request fits, and what the client is told about it."""

    is_admitted: bool
    limit: int
    remaining: int
    wait_seconds: float
    """Until the next request fits; 0 when this one did, infinite when none ever will."""


@dataclass(slots=True)
class _Bucket:
    level: float
    filled_at: float


class RequestLimits:
    """One bucket per tenant: it holds a minute's worth and refills evenly.

    In any span of ``t`` seconds a tenant gets at most ``limit * (1 + t / 60)`` requests through.
    """

    def __init__(self) -> None:
        self._buckets: dict[str, _Bucket] = {}

    def take(self, tenant: GatewayTenant, now: float) -> Admission | None:
        """Take one request from the tenant's bucket; ``None`` = the tenant has no limit."""
        limit = tenant.requests_per_minute
        if limit is None:
            self._buckets.pop(tenant.name, None)
            return None
        bucket = self._buckets.setdefault(tenant.name, _Bucket(float(limit), now))
        gained = max(0.0, now - bucket.filled_at) * limit / 60
        bucket.level = min(float(limit), bucket.level + gained)
        bucket.filled_at = max(now, bucket.filled_at)
        if bucket.level < 1:
            wait = (1 - bucket.level) * 60 / limit if limit else math.inf
            return Admission(False, limit, 0, wait)
        bucket.level -= 1
        return Admission(True, limit, math.floor(bucket.level), 0.0)

    def keep_only(self, tenants: Collection[str]) -> None:
        """Forget the buckets of tenants that are gone."""
        for name in self._buckets.keys() - set(tenants):
            del self._buckets[name]

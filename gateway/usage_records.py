"""From an ended request to its usage record."""

from fleet.usage import UsageRecord
from gateway.admitted import Ended
from gateway.reservations import Settled


def record_of(ended: Ended, settled: Settled, record_id: str) -> UsageRecord:
    """The record of a request; raises `ValidationError` where a name of the snapshot can't stand in one."""
    usage = settled.usage
    return UsageRecord(
        id=record_id,
        tenant=ended.tenant,
        model=ended.model,
        deployment=ended.deployment,
        identity=ended.identity,
        key=ended.billed.key,
        admitted_unix_seconds=round(ended.billed.admitted_unix_seconds, 3),
        seconds=round(ended.times.seconds, 6),
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
        cost_picodollars=ended.billed.cost_picodollars(usage),
        basis=settled.basis.value,
        end=ended.ending.end.value,
        status=ended.ending.status,
    )


def line_of(record: UsageRecord, ended: Ended) -> dict[str, object]:
    """The same for the log: what somebody on call looks for beside the access log's line of the request."""
    first = ended.times.first_byte_seconds
    return {
        **record.model_dump(exclude={"id", "admitted_unix_seconds", "cost_picodollars"}),
        "request_id": ended.request_id,
        "endpoint": ended.address,
        "asked_model": ended.asked_model,
        "is_stream": ended.is_stream,
        "first_byte_seconds": None if first is None else round(first, 6),
    }

"""What one request used: the record that gateways send to the control plane. It holds no content and no secret."""

from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from fleet.spec import Name
from fleet.value import Value

MOST_RECORDS = 1000
"""In one batch."""
_ONE_LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]+$"
_LAST_SECOND = 253_402_300_799
"""Of the year 9999."""

RecordId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]{16,64}$")]
PublicModel = Annotated[str, StringConstraints(pattern=_ONE_LINE, max_length=256)]
KeyId = Annotated[str, StringConstraints(pattern=_ONE_LINE, max_length=128)]
Tokens = Annotated[int, Field(ge=0, le=10**9)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]


class UsageRecord(Value):
    """One request that was admitted and is over."""

    id: RecordId
    """Made by the gateway, once for each request; it can't be guessed, and a record is counted once."""
    tenant: Name
    model: PublicModel
    """The public model that served it."""
    deployment: Name
    identity: Annotated[str, StringConstraints(pattern=r"^[!-~]{1,256}$")]
    key: KeyId
    """The id of the key that asked, never the key."""
    admitted_unix_seconds: Annotated[float, Field(ge=0, le=_LAST_SECOND)]
    """The day of this moment is the day that the request counts in, as it does for budgets."""
    seconds: Seconds
    """From then to its end."""
    input_tokens: Tokens
    cached_tokens: Tokens
    """Among the input, found in the engine's cache."""
    output_tokens: Tokens
    cost_picodollars: Annotated[int, Field(ge=0, le=10**24)] | None = None
    """``None`` = the model has no price."""
    basis: Literal["usage", "counted", "reserved", "failed", "cancelled"]
    """Where the tokens are from: the engine, what was counted, or all that was held; the last two words mean none."""
    end: Annotated[str, StringConstraints(pattern=r"^[a-z_]{1,32}$")]
    status: Annotated[int, Field(ge=0, le=999)]
    """Of the engine's answer; 0 = there was none."""

    @property
    def day(self) -> date:
        """The calendar day in UTC on which it was admitted."""
        return datetime.fromtimestamp(self.admitted_unix_seconds, UTC).date()


class UsageBatch(Value):
    """Records on their way to the control plane, the oldest first."""

    records: Annotated[tuple[UsageRecord, ...], Field(max_length=MOST_RECORDS)]


class UsageReceipt(Value):
    """What became of a batch; none of its records needs to be sent again."""

    stored: int
    duplicates: int
    """Counted before."""
    too_old: int
    """Older than the ids that are kept: they might have been counted before, so they are not."""
    too_new: int
    """Of a day that has not begun: the gateway's clock is wrong."""

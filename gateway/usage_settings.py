"""What people may set about usage records."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST_RECORDS = 500
"""In one batch, so that it stays far below what the control plane takes at once."""


class UsageSettings(BaseModel):
    """How usage records are kept and brought to the control plane."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    is_recorded: bool = True
    """`false` = requests leave no record: for gateways whose usage somebody else counts."""
    is_logged: bool = False
    """`true` = a line of the log for each request too, with its tokens and the request id of the access log."""
    sync_seconds: Annotated[float, Field(ge=0.01, le=60, allow_inf_nan=False)] = 0.2
    """How often new records are written and synced to disk: a killed gateway loses those since the last time."""
    batch_seconds: Annotated[float, Field(ge=0.05, le=600, allow_inf_nan=False)] = 2.0
    """How long records are gathered before they are sent."""
    max_waiting_records: Annotated[int, Field(ge=1, le=10**6)] = 20_000
    """In memory, on their way to the disk; what comes above it is counted as dropped."""
    max_spool_bytes: Annotated[int, Field(ge=10**5, le=10**12)] = 256 * 1024 * 1024
    """On disk, on their way to the control plane; above it, new records are counted as dropped."""
    stop_seconds: Annotated[float, Field(ge=0, le=60, allow_inf_nan=False)] = 2.0
    """How long a gateway that ends still tries to bring its records; the others stay on disk for the next start."""

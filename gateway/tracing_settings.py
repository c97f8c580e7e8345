"""What people may set about spans."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints


class TracingSettings(BaseModel):
    """Where spans of requests go, and of how many. What the collector wants as headers stands in OTEL_* variables."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    endpoint: Annotated[str, StringConstraints(pattern=r"^https?://[^/\s]+(/\S*)?$")]
    """OTLP over HTTP, with its path: `http://collector:4318/v1/traces`."""
    ratio: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.1
    """Of traces that are recorded; it hangs on the trace's id alone, so a client can't ask for more."""
    max_waiting_spans: Annotated[int, Field(ge=16, le=10**6)] = 2048
    """In memory, on their way to the collector; what comes above it is dropped."""
    timeout_seconds: Annotated[float, Field(gt=0, le=60, allow_inf_nan=False)] = 5.0
    """For one export."""

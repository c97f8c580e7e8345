"""What people may set about WebSocket connections."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from gateway.ext_authz import MAX_BODY_BYTES

Seconds = Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)]


class SocketSettings(BaseModel):
    """The limits of a connection."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    idle_seconds: Seconds = 300.0
    """Without a turn, after which a connection is closed."""
    life_seconds: Seconds = 3600.0
    """After which a connection takes no new turn: its client connects anew, and finds what is there then."""
    ping_seconds: Seconds = 20.0
    """Between two pings: idle limits on the way are often 60 s."""
    pong_seconds: Seconds = 120.0
    """How long the answer to a ping may take; it stands behind what a slow reader has not read yet."""
    max_message_bytes: Annotated[int, Field(ge=1024, le=MAX_BODY_BYTES)] = 1024 * 1024
    """Of one message. The gateway holds it in its own memory, for each connection one."""
    max_waiting_turns: Annotated[int, Field(ge=0, le=1000)] = 8
    """Turns of a connection that were sent while another one runs."""
    max_per_tenant: Annotated[int, Field(ge=1)] = 1000
    """Connections of one tenant to this gateway."""

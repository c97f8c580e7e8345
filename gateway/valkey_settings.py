"""Where gateways keep what they share: a Valkey or Redis server."""

from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

_SCHEMES = {"valkey": "redis", "valkeys": "rediss", "redis": "redis", "rediss": "rediss"}
_DEFAULT_PORT = 6379


def _server_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in _SCHEMES or not parts.hostname:
        raise ValueError(
            "this is no address of a server; valkey://host:6379/0, or with TLS valkeys://host:6379/0, would be one"
        )
    if parts.password is not None or parts.username is not None:
        raise ValueError("an address holds no user and no password; they belong into username and password_file")
    if parts.path.strip("/") and not parts.path.strip("/").isdecimal():
        raise ValueError(f"'{parts.path}' is no number of a database; /0 would be one")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    database = parts.path.strip("/") or "0"
    return f"{_SCHEMES[parts.scheme]}://{host}:{parts.port or _DEFAULT_PORT}/{database}"


class SharedStateSettings(BaseModel):
    """The server, and how many gateways share it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: Annotated[str, AfterValidator(_server_url)]
    """Such as ``valkey://host:6379/0``; ``valkeys`` = with TLS. One server, which may have replicas, and no cluster."""
    username: str | None = None
    """``None`` = the server's default user."""
    password_file: Annotated[Path, AfterValidator(Path.absolute)] | None = None
    """Holds the password; it is read again for every connection."""
    ca_file: Annotated[Path, AfterValidator(Path.absolute)] | None = None
    """Who signs the server's certificate; ``None`` = whom the system trusts."""
    prefix: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")] = "enginehouse"
    """Of every key: gateways with another one share nothing with these."""
    gateways: Annotated[int, Field(ge=1, le=1000)] = 1
    """How many gateways there are at least; while the server is lost, none spends more than its part of each budget."""
    timeout_seconds: Annotated[float, Field(ge=0.01, le=5, allow_inf_nan=False)] = 0.25
    """Without an answer for so long, the server counts as lost."""

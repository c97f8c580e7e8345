"""What a gateway needs to serve without the control plane: tenants, keys, routes and endpoints."""

from typing import Annotated

from pydantic import Field

from fleet.canonical import digest
from fleet.spec import Name
from fleet.value import Value


class GatewayKey(Value):
    """One API key of a tenant; only its hash is known here."""

    id: str
    sha256: str
    """Hex sha256 of the key."""
    tenant: Name
    expires_unix_seconds: int | None = None


class GatewayTenant(Value):
    """A tenant and its limits; ``None`` = no limit."""

    name: Name
    tokens_per_minute: Annotated[int, Field(ge=0)] | None = None
    requests_per_minute: Annotated[int, Field(ge=0)] | None = None


class GatewayEndpoint(Value):
    """One running engine."""

    address: str
    """``host:port``."""
    is_draining: bool = False


class GatewayArm(Value):
    """One side of a route: the pods of one identity, with their share."""

    deployment: Name
    identity: str
    engine: str
    weight: Annotated[float, Field(ge=0)] = 1.0
    endpoints: tuple[GatewayEndpoint, ...] = ()


class GatewayRoute(Value):
    """A public model name, who may ask for it, and where it goes."""

    model: str
    tenants: tuple[Name, ...] = ()
    """Empty = nobody: the default is no."""
    output_filter: str = "none"
    arms: tuple[GatewayArm, ...]


class GatewaySnapshot(Value):
    """Everything at one moment; the ETag is its digest."""

    tenants: tuple[GatewayTenant, ...] = ()
    keys: tuple[GatewayKey, ...] = ()
    routes: tuple[GatewayRoute, ...] = ()

    @property
    def etag(self) -> str:
        """A strong ETag over the content."""
        return f'"{digest(self)}"'

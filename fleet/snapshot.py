"""What a gateway needs to serve without the control plane: tenants, keys, routes and endpoints."""

from typing import Annotated

from pydantic import Field

from fleet.budget import Limits, ModelLimits, ModelPrice, TokenWeights
from fleet.canonical import digest
from fleet.spec import Name
from fleet.token_issuer import TokenIssuer
from fleet.value import Value


class GatewayKey(Value):
    """One API key of a tenant; only its hash is known here."""

    id: str
    sha256: str
    """Hex sha256 of the key."""
    tenant: Name
    expires_unix_seconds: int | None = None
    models: tuple[str, ...] = ()
    """Public models that it may ask for; empty = all of the tenant's."""
    generation: Annotated[int, Field(ge=1)] = 1
    """Rises when the key is rotated; while two of them overlap, both have this `id`."""

    def admits(self, model: str) -> bool:
        """Whether the key may ask for a model of its tenant."""
        return not self.models or model in self.models


class GatewayTenant(Limits):
    """A tenant and its limits."""

    name: Name
    weights: TokenWeights = TokenWeights()
    default_output_tokens: Annotated[int, Field(ge=1)] | None = None
    """The longest output of a request that states none; ``None`` = what the model can write."""
    models: tuple[ModelLimits, ...] = ()
    """Narrower limits of single models; of two for one model the first counts."""


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
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    """The longest answer that its models can write; ``None`` = not known."""
    arms: tuple[GatewayArm, ...]


class GatewaySnapshot(Value):
    """Everything at one moment; the ETag is its digest."""

    tenants: tuple[GatewayTenant, ...] = ()
    keys: tuple[GatewayKey, ...] = ()
    routes: tuple[GatewayRoute, ...] = ()
    prices: tuple[ModelPrice, ...] = ()
    issuers: tuple[TokenIssuer, ...] = ()

    @property
    def etag(self) -> str:
        """A strong ETag over the content."""
        return f'"{digest(self)}"'

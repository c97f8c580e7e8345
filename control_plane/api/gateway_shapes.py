"""The shapes of what people set for the gateway: prices, token issuers, routes and output filters."""

from datetime import datetime
from typing import Literal

from control_plane.api.shapes import ApiVersion, BodyMeta, ObjectMeta
from control_plane.services.gateway_settings import ClosedPathSpec, Line, PriceSpec, RouteSpec, Text, TokenIssuerSpec
from fleet.output_policy import FilterPolicy
from fleet.value import Value


class AnyBody(Value):
    """What a client sends: the name and a spec."""

    apiVersion: ApiVersion = "enginehouse.dev/v1"
    metadata: BodyMeta
    spec: Value


class AnyObject(Value):
    """What is stored of it."""

    apiVersion: ApiVersion
    metadata: ObjectMeta


class AnyList(Value):
    """A page."""

    apiVersion: ApiVersion
    next_page_token: str | None
    """``null`` on the last page."""


class PriceBody(AnyBody):
    """The price of a model as a client sends it."""

    kind: Literal["Price"] = "Price"
    spec: PriceSpec


class TokenIssuerBody(AnyBody):
    """A token issuer as a client sends it."""

    kind: Literal["TokenIssuer"] = "TokenIssuer"
    spec: TokenIssuerSpec


class RouteBody(AnyBody):
    """The settings of a public model as a client sends them."""

    kind: Literal["Route"] = "Route"
    spec: RouteSpec = RouteSpec()


class OutputFilterBody(AnyBody):
    """An output filter as a client sends it."""

    kind: Literal["OutputFilter"] = "OutputFilter"
    spec: FilterPolicy = FilterPolicy()


class Price(AnyObject):
    """A stored price."""

    kind: Literal["Price"]
    spec: PriceSpec


class FetchedKeysStatus(Value):
    """What was read from ``jwks_url``."""

    keys: int
    """Public keys in use from there; the last good ones stay."""
    fetched: datetime | None
    problem: str | None
    """Why the last attempt brought none."""


class TokenIssuerStatus(Value):
    """Where the keys of an issuer stand."""

    fetched: FetchedKeysStatus | None
    """``null`` = all its keys stand in its spec, or none was read yet."""


class StoredTokenIssuer(AnyObject):
    """A stored token issuer."""

    kind: Literal["TokenIssuer"]
    spec: TokenIssuerSpec
    status: TokenIssuerStatus


class ClosedPathShape(ClosedPathSpec):
    """A closed code path; who reads alone sees path and reference."""

    owner: Line | None = None  # type: ignore[assignment]
    reason: Text | None = None  # type: ignore[assignment]


class RouteShape(RouteSpec):
    """The settings of a public model as they are shown."""

    closed_paths: tuple[ClosedPathShape, ...] = ()


class Route(AnyObject):
    """The stored settings of a public model."""

    kind: Literal["Route"]
    spec: RouteShape


class OutputFilter(AnyObject):
    """A stored output filter."""

    kind: Literal["OutputFilter"]
    spec: FilterPolicy


class PriceList(AnyList):
    """A page of prices."""

    kind: Literal["PriceList"]
    items: tuple[Price, ...]


class TokenIssuerList(AnyList):
    """A page of token issuers."""

    kind: Literal["TokenIssuerList"]
    items: tuple[StoredTokenIssuer, ...]


class RouteList(AnyList):
    """A page of routes."""

    kind: Literal["RouteList"]
    items: tuple[Route, ...]


class OutputFilterList(AnyList):
    """A page of output filters."""

    kind: Literal["OutputFilterList"]
    items: tuple[OutputFilter, ...]

"""``/v1/prices``, ``/v1/token-issuers``, ``/v1/routes`` and ``/v1/output-filters``: what people set for the gateway."""

from control_plane.api import gateway_shapes as shapes
from control_plane.api.named_objects import Noun
from control_plane.api.objects import document_of
from control_plane.records import Actor, Document, Kind, Scope, StoredObject
from control_plane.services.house import House
from control_plane.services.settings_checks import closing_reason

_FOR_CLIENTS = ("path", "reference")


def _issuer(house: House, _actor: Actor, kind: Kind, stored: StoredObject) -> Document:
    """With what was read from its address."""
    found = house.issuer_keys.of(stored)
    fetched = found and {"keys": len(found.keys), "fetched": found.fetched, "problem": found.problem}
    return document_of(kind, stored) | {"status": {"fetched": fetched}}


def _route(_house: House, actor: Actor, kind: Kind, stored: StoredObject) -> Document:
    """Gateways read with the scope of a reader: why a path is closed is for operators."""
    document = document_of(kind, stored)
    if not actor.scope.holds(Scope.OPERATOR) and "closed_paths" in stored.spec:
        closed = [{name: item[name] for name in _FOR_CLIENTS} for item in stored.spec["closed_paths"]]
        document["spec"] = {**stored.spec, "closed_paths": closed}
    return document


PRICES = Noun(
    plural="prices", word="price", kind=Kind.PRICE, service=lambda house: house.prices,
    body=shapes.PriceBody, shape=shapes.Price, list_shape=shapes.PriceList,
)  # fmt: skip
TOKEN_ISSUERS = Noun(
    plural="token-issuers", word="token issuer", kind=Kind.TOKEN_ISSUER, service=lambda house: house.token_issuers,
    body=shapes.TokenIssuerBody, shape=shapes.StoredTokenIssuer, list_shape=shapes.TokenIssuerList,
    scope=Scope.SECURITY_ADMIN, shown=_issuer,
)  # fmt: skip
ROUTES = Noun(
    plural="routes", word="route", kind=Kind.ROUTE, service=lambda house: house.routes,
    body=shapes.RouteBody, shape=shapes.Route, list_shape=shapes.RouteList, shown=_route, reason_of=closing_reason,
)  # fmt: skip
OUTPUT_FILTERS = Noun(
    plural="output-filters", word="output filter", kind=Kind.OUTPUT_FILTER, service=lambda house: house.output_filters,
    body=shapes.OutputFilterBody, shape=shapes.OutputFilter, list_shape=shapes.OutputFilterList,
)  # fmt: skip
NOUNS = (PRICES, TOKEN_ISSUERS, ROUTES, OUTPUT_FILTERS)

"""The words that Envoy's configuration and the decision service must spell alike."""

from functools import lru_cache
from urllib.parse import quote

AUTHORIZE_PREFIX = "/authorize"
"""Envoy asks for a decision at this prefix followed by the path of the client's request."""

DESTINATION_HEADER = "x-gateway-destination-endpoint"
"""Ordered ``ip:port`` list, the first for the first try; Envoy keeps it as metadata, no engine sees it."""
TENANT_HEADER = "x-gateway-tenant"
MODEL_HEADER = "x-gateway-model"
DEPLOYMENT_HEADER = "x-gateway-deployment"
IDENTITY_HEADER = "x-gateway-identity"
TICKET_HEADER = "x-gateway-ticket"
"""Names an admitted request to the relay of the worker that admitted it; it counts once."""
WORKER_HEADER = "x-gateway-worker"
"""Where several workers are: the socket of the one that decided, to which the request goes on."""
UNGUARDED_HEADER = "x-gateway-unguarded"
"""On decisions about requests that no guard passes on, with what is to happen to usage in the answer's stream."""
USAGE_INJECTED = "injected"
"""It was asked for in the client's place, which must not see it."""
USAGE_KEPT = "kept"
USAGE_WHOLE = "whole"
"""The answer comes in one piece, with its usage in it, and the request goes on as it came."""
EDITS_HEADER = "x-gateway-edits"
"""``start:end:size:text`` for each edit of the body, one after the other; Envoy's script makes them."""

PIN_HEADER = "x-arm"
"""By which those who test send a request to one arm: ``<deployment>`` or ``<deployment>/<identity>``."""
SERVED_MODEL_HEADER = "x-served-model"
"""On every answer of an engine: the public model that gave it, which after a fallback is another one than was asked."""
NAME_SAFE = "/:@+ "
"""What stands in a header as it is; the rest of a model's name is quoted as in URLs."""


@lru_cache(maxsize=1024)
def header_name(model: str) -> str:
    """A model of the snapshot as it stands in headers."""
    return quote(model, safe=NAME_SAFE)


ENDPOINT_HEADER = "x-gateway-endpoint"
"""On the guard's answers: the engine that gave them. Envoy keeps it as metadata for its log, no client sees it."""

REMOVE_HEADER = "x-envoy-auth-headers-to-remove"
"""Envoy takes the headers named here off the request before it goes on."""
PARTIAL_BODY_HEADER = "x-envoy-auth-partial-body"

UNAVAILABLE_ON_THE_WIRE = 425
"""How the decision service says 503 to Envoy, which takes every 5xx for a failed service and drops its body.

Envoy's local reply turns it back into 503 with the body kept. No refusal uses 425 for itself.
"""

MAX_BODY_BYTES = 8 * 1024 * 1024
"""The largest request body: Envoy holds it in memory until the decision."""

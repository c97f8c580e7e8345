"""What people set for the gateway beside deployments: prices, token issuers, routes. Each is about one name."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from fleet.budget import InputWeight, OutputWeight, Usd
from fleet.snapshot import KV_EVENTS_PATTERN, SESSION_HEADER_PATTERN, QueueLimits, Seconds
from fleet.spec import Name
from fleet.token_issuer import TokenIssuer
from fleet.value import Value

Line = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$", min_length=1, max_length=200)]
Text = Annotated[str, Field(min_length=1, max_length=2000)]
LARGEST_INTEGER = 2**53 - 1
"""The largest whole number that every JSON reader keeps."""
Limit = Annotated[int, Field(ge=0, le=LARGEST_INTEGER)]
OperationWord = Literal[
    "chat", "completion", "responses", "messages", "embedding", "rerank", "transcription", "tokenize", "count-tokens"
]
"""What clients can ask an engine for, in the gateway's words."""
MOST_NAMED = 100
"""Names in one list: enough for people, and a bound for every gateway."""


class WeightsSpec(Value):
    """What a token counts for in a budget of tokens."""

    input_token: InputWeight = 1.0
    cached_input_token: InputWeight = 0.1
    output_token: OutputWeight = 1.0


class LimitsSpec(Value):
    """What may be used; ``null`` = no limit."""

    tokens_per_minute: Limit | None = None
    tokens_per_day: Limit | None = None
    """Of a calendar day in UTC."""
    requests_per_minute: Limit | None = None
    concurrent_requests: Limit | None = None
    usd_per_month: Usd | None = None
    """Of a calendar month in UTC; a model without a price can't be used within it."""


class ModelLimitsSpec(LimitsSpec):
    """What a tenant may use of one model, within what it may use at all."""

    model: Line
    weights: WeightsSpec | None = None
    """``null`` = those of the tenant."""


class TenantSpec(LimitsSpec):
    """The limits of a tenant, and how its requests are counted."""

    weights: WeightsSpec = WeightsSpec()
    default_output_tokens: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    """The longest output of a request that states none; ``null`` = what the model can write."""
    models: Annotated[tuple[ModelLimitsSpec, ...], Field(max_length=MOST_NAMED)] = ()
    queue_weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Its share of busy engines, relative to the tenants that wait beside it."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """While a tenant with a higher one waits, this one does."""


class PriceSpec(Value):
    """What a public model costs a tenant."""

    model: Line | None = None
    """``null`` = the name of the price."""
    usd_per_million_input_tokens: Usd
    usd_per_million_cached_input_tokens: Usd | None = None
    """``null`` = as any input."""
    usd_per_million_output_tokens: Usd


class TokenIssuerSpec(TokenIssuer):
    """Who may vouch for tenants by JWT; its public keys stand here, at an address, or both."""

    issuer: Annotated[str, Field(min_length=1, max_length=500)]
    jwks_url: Annotated[str, Field(pattern=r"^https://[!-~]{1,500}$")] | None = None
    """Where its public keys are read again and again; https alone."""


class ClosedPathSpec(Value):
    """A code path that requests can't reach through this route."""

    path: Line
    reference: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]
    """What clients are told beside the field, to ask with; never the id of an advisory."""
    owner: Line
    reason: Text
    advisory: Line | None = None
    """What it keeps out: seen by operators and in the audit log alone."""


class QueueSpec(QueueLimits):
    """How many requests may wait for busy engines, and for how long."""

    max_waiting: Annotated[int, Field(ge=0, le=1_000_000)] = 1000


class ArmSpec(Value):
    """The share of one deployment of a route, and who may be sent to it."""

    weight: Annotated[float, Field(ge=0, le=1_000_000)] = 1.0
    tenants: Annotated[tuple[Name, ...], Field(max_length=MOST_NAMED)] = ()
    """Empty = all tenants of the route."""
    requests_per_minute: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    """What the host of a hosted engine lets through; ``null`` = it says so itself."""
    tokens_per_minute: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    kv_events: Annotated[str, StringConstraints(pattern=KV_EVENTS_PATTERN)] | None = None
    """Where its engines publish which prompts they hold, such as ``tcp://{host}:5557``; ``null`` = as manifests say."""
    serves: tuple[OperationWord, ...] = ()
    """What its engine may be asked for; empty = as its workload or its engine says, else chat and completion."""


class ShadowSpec(Value):
    """A deployment of the model that gets copies of requests, whose answers nobody sees and nobody pays for."""

    deployment: Name
    share: Annotated[float, Field(ge=0, le=1)]
    """Of the requests of its tenants."""


class RouteSpec(Value):
    """How a public model is served, beside what its deployments say."""

    model: Line | None = None
    """The public model; ``null`` = the name of the route."""
    output_filter: Name | None = None
    """Stronger than what manifests say, but ``none`` takes away no filter that one of them asks for."""
    max_output_tokens: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    """``null`` = what the deployments' batch settings allow."""
    closed_paths: Annotated[tuple[ClosedPathSpec, ...], Field(max_length=MOST_NAMED)] = ()
    arms: Annotated[dict[Name, ArmSpec], Field(max_length=MOST_NAMED)] = Field(default_factory=dict)
    """By deployment; one that is not named has the weight 1."""
    aliases: Annotated[tuple[Line, ...], Field(max_length=MOST_NAMED)] = ()
    """Other public names that lead here."""
    fallbacks: Annotated[tuple[Line, ...], Field(max_length=MOST_NAMED)] = ()
    """Public models, in this order, that serve when none of its engines can; only within the scopes of who asks."""
    shadow: ShadowSpec | None = None
    """It is no arm of the route as long as it stands here."""
    first_byte_seconds: Seconds | None = None
    """How long an engine may take to the first byte of its answer; of one that is not streamed that is the whole."""
    idle_seconds: Seconds | None = None
    """How long an engine may be silent once it has begun."""
    concurrent_requests: Annotated[int, Field(ge=1, le=LARGEST_INTEGER)] | None = None
    """How many of its requests engines have at once, at most; the others wait."""
    queue: QueueSpec = QueueSpec()
    is_guarded: bool = True
    """Whether the guard passes its answers on; without it a broken stream ends without an error event."""
    session_header: Annotated[str, StringConstraints(pattern=SESSION_HEADER_PATTERN)] | None = None
    """The request header by which clients name their sessions, such as ``x-session-id``."""
    salts_cache: bool = False
    """Whether each tenant has the cached prompts for itself."""
    realtime: bool = False
    """Whether its engines' own WebSocket is open: not with a filter, closed paths or ``salts_cache``."""

"""What a gateway needs to serve without the control plane: tenants, keys, routes and endpoints."""

from typing import Annotated

from pydantic import Field, StringConstraints

from fleet.budget import Limits, ModelLimits, ModelPrice, TokenWeights
from fleet.canonical import digest
from fleet.output_policy import NO_FILTER, NamedFilter
from fleet.spec import Name
from fleet.token_issuer import TokenIssuer
from fleet.value import Value

_KV_ADDRESS = r"(tcp://\{host\}:[0-9]{1,5}|ipc:///[A-Za-z0-9._/{}-]{1,90})"
KV_EVENTS_PATTERN = rf"^{_KV_ADDRESS}(,{_KV_ADDRESS})?$"
HOSTED_URL_PATTERN = r"^https://([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?$"
"""Without credentials, query or fragment: it stands in logs."""
WORD_PATTERN = r"^[a-z][a-z0-9-]{0,62}$"
SESSION_HEADER_PATTERN = r"^x-session(-[a-z0-9]+){1,8}$"
SNAPSHOT_VERSION = 4
"""Rises with every field: by it a gateway that can't read a snapshot knows that it is older than the control plane."""
MAX_SECONDS = 600.0
"""What Envoy waits without a byte either way."""
Seconds = Annotated[float, Field(gt=0, le=MAX_SECONDS)]


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
    pins_arms: bool = False
    """Whether it may choose an arm itself, for tests of one that has no weight yet."""

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
    queue_weight: Annotated[float, Field(gt=0, le=1000)] = 1.0
    """Its share of busy engines, relative to the tenants that wait beside it."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """While a tenant with a higher one waits, this one does."""


class GatewayEndpoint(Value):
    """One running engine."""

    address: str
    """``host:port``."""
    is_draining: bool = False


class HostedEndpoint(Value):
    """An engine that somebody else runs, behind a URL that takes OpenAI's requests."""

    url: Annotated[str, StringConstraints(pattern=HOSTED_URL_PATTERN)]
    """As OpenAI's clients take it for ``base_url``, such as ``https://api.example.com/v1``."""
    model: Annotated[str, Field(min_length=1)]
    """What the host calls the model."""
    api_key_ref: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$")]
    """The name of a file in the gateway's folder of keys."""
    requests_per_minute: Annotated[int, Field(ge=1)] | None = None
    """What the host lets through; ``None`` = it says so itself when it is too much."""
    tokens_per_minute: Annotated[int, Field(ge=1)] | None = None


class GatewayArm(Value):
    """One side of a route: the pods of one identity, with their share."""

    deployment: Name
    identity: str
    engine: str
    weight: Annotated[float, Field(ge=0)] = 1.0
    endpoints: tuple[GatewayEndpoint, ...] = ()
    takes_priority: bool = False
    """Whether its engine was started to serve requests by the priority that they carry."""
    tenants: tuple[Name, ...] = ()
    """Who may be sent to it; empty = all tenants of the route. Weights are shares among the arms of one tenant."""
    kv_events: Annotated[str, StringConstraints(pattern=KV_EVENTS_PATTERN)] | None = None
    """Where its engines publish over ZeroMQ which prompts they hold, and after a comma where they repeat what was
    missed: ``tcp://{host}:5557,tcp://{host}:5657``, where ``{host}`` and ``{port}`` are those of the endpoint."""
    kv_ranks: Annotated[int, Field(ge=1, le=1024)] = 1
    """How many data-parallel ranks of each of its engines publish, every one at the next ports."""
    hosted: HostedEndpoint | None = None
    """Somebody else's engine in the place of endpoints."""
    serves: tuple[Annotated[str, StringConstraints(pattern=WORD_PATTERN)], ...] = ()
    """What its engine may be asked for, in the gateway's words; empty = ``chat``, ``completion`` and ``embedding``."""


class ClosedPath(Value):
    """A code path of the engines that no request of a route may reach, and what a refused client is told."""

    path: Annotated[str, StringConstraints(pattern=WORD_PATTERN)]
    reference: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
    """By which people find out why. Clients see it: never the id of an advisory."""


class QueueLimits(Value):
    """How many requests of a model may wait for busy engines, and for how long."""

    max_waiting: Annotated[int, Field(ge=0)] = 1000
    """0 = nobody waits: what finds no room is refused."""
    max_wait_seconds: Annotated[float, Field(ge=0, le=MAX_SECONDS)] = 30.0
    """A request that can't have its turn within this time is refused."""
    waits_without_engine: bool = False
    """Whether requests wait while no engine is there, as for a model that sleeps until somebody waits for it."""


class GatewayShadow(Value):
    """An arm that gets copies of requests, whose answers nobody sees and nobody pays for."""

    arm: GatewayArm
    """Its weight counts for nothing."""
    share: Annotated[float, Field(ge=0, le=1)]
    """Of the requests of its tenants."""


class GatewayRoute(Value):
    """A public model name, who may ask for it, and where it goes."""

    model: str
    tenants: tuple[Name, ...] = ()
    """Empty = nobody: the default is no."""
    output_filter: str = NO_FILTER
    """The name of the filter that its answers pass; one that is not there or can't be used refuses every request."""
    is_guarded: bool = True
    """Whether the guard passes its answers on. Without it a stream that breaks off ends without an error event and has
    no keep-alive comments; what needs the guard, such as an output filter, passes it all the same."""
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    """The longest answer that its models can write; ``None`` = not known."""
    arms: tuple[GatewayArm, ...]
    aliases: tuple[str, ...] = ()
    """Other public names that lead here; a route of that very name comes first."""
    fallbacks: tuple[str, ...] = ()
    """Public models, in this order, that serve when none of its engines can; only within the scopes of who asks."""
    shadow: GatewayShadow | None = None
    first_byte_seconds: Seconds | None = None
    """How long an engine may take to the first byte of its answer; of one that is not streamed that is the whole."""
    idle_seconds: Seconds | None = None
    """How long an engine may be silent once it has begun."""
    concurrent_requests: Annotated[int, Field(ge=1)] | None = None
    """How many of its requests engines have at once, at most; the others wait. ``None`` = what there is room for."""
    queue: QueueLimits = QueueLimits()
    session_header: Annotated[str, StringConstraints(pattern=SESSION_HEADER_PATTERN)] | None = None
    """The request header by which clients name their sessions, such as ``x-session-id``: a session stays with its arm,
    and with its engine unless that is much busier than others."""
    salts_cache: bool = False
    """Whether each tenant has its cached prompts for itself. Engines that can't keep them apart get no request."""
    closed_paths: tuple[ClosedPath, ...] = ()
    """Code paths that are closed at the door; of two for one path the first counts."""
    realtime: bool = False
    """Whether its engines' own WebSocket is open to its tenants. A session's words can't be filtered, salted or
    searched for closed paths: a route that asks for one of these opens none."""


class GatewaySnapshot(Value):
    """Everything at one moment; the ETag is its digest."""

    version: Annotated[int, Field(ge=1)] = 1
    """The `SNAPSHOT_VERSION` of the control plane that wrote it; 1 = it said none yet."""

    tenants: tuple[GatewayTenant, ...] = ()
    keys: tuple[GatewayKey, ...] = ()
    routes: tuple[GatewayRoute, ...] = ()
    prices: tuple[ModelPrice, ...] = ()
    issuers: tuple[TokenIssuer, ...] = ()
    output_filters: tuple[NamedFilter, ...] = ()
    """What routes can name beside ``pii``, which is there without being defined; of two with one name the first."""

    @property
    def etag(self) -> str:
        """A strong ETag over the content."""
        return f'"{digest(self)}"'

"""What the gateway is told when it starts."""

import ipaddress
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import ErrorDetails

from fleet.nearest import did_you_mean
from gateway.ejection import DEFAULT_MOST_REQUESTS
from gateway.errors import GatewayError
from gateway.socket_settings import SocketSettings
from gateway.tracing_settings import TracingSettings
from gateway.usage_settings import UsageSettings
from gateway.valkey_settings import SharedStateSettings

MOST_WORKERS = 64
_WORKER_SUFFIX = f"-{MOST_WORKERS - 1}"
_GUARD_SUFFIX = "-guard"
MAX_SOCKET_PATH_BYTES = 107 - len(_GUARD_SUFFIX)
"""The kernel's limit for the path of a Unix socket is 107; the guard's is named after this one."""


def _ip_address(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"'{host}' is no IP address; 127.0.0.1 or 0.0.0.0 would be one") from None
    return host


def _http_url(url: str) -> str:
    if not url.startswith(("http://", "https://")):
        raise ValueError(f"'{url}' is no URL; it must start with http:// or https://")
    return url.rstrip("/")


def _socket_path(path: Path) -> Path:
    absolute = path.absolute()
    if (size := len(str(absolute).encode())) > MAX_SOCKET_PATH_BYTES:
        raise ValueError(f"'{absolute}' has {size} bytes; this path may have {MAX_SOCKET_PATH_BYTES}")
    return absolute


IpAddress = Annotated[str, AfterValidator(_ip_address)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
FilePath = Annotated[Path, AfterValidator(Path.absolute)]
SocketPath = Annotated[Path, AfterValidator(_socket_path)]
Port = Annotated[int, Field(ge=1, le=65535)]
PortOrAny = Annotated[int, Field(ge=0, le=65535)]


class ModerationService(BaseModel):
    """A service that judges sentences, in the form of OpenAI's moderations."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    url: HttpUrl
    """The whole address, such as ``https://moderation.example/v1/moderations``."""
    token_file: FilePath | None = None
    """Holds its token; ``None`` = it asks for none."""
    model: str | None = None
    """What it is asked with; ``None`` = its own."""


class PickerSettings(BaseModel):
    """Where somebody else's gateway asks for endpoints (Gateway API Inference Extension)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    host: IpAddress = "127.0.0.1"
    port: Port = 9002
    tls_cert_file: FilePath | None = None
    """With its chain, as PEM; a renewed one is used without a restart. ``None`` = nothing is encrypted."""
    tls_key_file: FilePath | None = None

    @model_validator(mode="after")
    def _has_both(self) -> Self:
        if (self.tls_cert_file is None) is not (self.tls_key_file is None):
            raise ValueError("tls_cert_file and tls_key_file belong together: name both, or none for no encryption")
        return self


class GatewaySettings(BaseModel):
    """The settings file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    control_plane_url: HttpUrl
    token_file: FilePath
    """Holds a token of scope gateway; it is read again for every request."""
    socket_path: SocketPath
    state_dir: FilePath
    listen_host: IpAddress = "127.0.0.1"
    listen_port: Port
    admin_port: Port
    metrics_host: IpAddress = "127.0.0.1"
    metrics_port: PortOrAny = 0
    """0 = any free port; the ready file names it."""
    ready_file: FilePath
    keep_alive_seconds: Annotated[float, Field(gt=0, le=3600, allow_inf_nan=False)] = 15.0
    """Silence on a stream after which its client is sent a comment; idle limits on the way are often 60 s."""
    hash_secret_file: FilePath | None = None
    """At least 32 random bytes that all gateways share, for filters of mode `hash`; ``None`` = a secret of its own."""
    moderation_services: Mapping[str, ModerationService] = Field(default_factory=dict)
    """By the name that a filter's policy asks for."""
    scrape_seconds: Annotated[float, Field(ge=0.1, le=0.8, allow_inf_nan=False)] = 0.5
    """Between two looks at an engine's metrics; figures that are older than a second are no proof of room."""
    max_requests_per_endpoint: Annotated[int, Field(ge=1)] = DEFAULT_MOST_REQUESTS
    """At once, before an engine that hangs gets no more: a circuit breaker, far above what engines run."""
    hosted_keys_dir: FilePath | None = None
    """The folder with the keys of hosted engines, a file each; it is read again when a file changes."""
    drain_seconds: Annotated[float, Field(ge=0, le=3600, allow_inf_nan=False)] = 2.0
    """How long streams may go on once the gateway is told to stop."""
    usage: UsageSettings = UsageSettings()
    """Usage records: how they are kept on disk and brought to the control plane."""
    websockets: SocketSettings = SocketSettings()
    """The limits of WebSocket connections."""
    workers: Annotated[int, Field(ge=1, le=MOST_WORKERS)] = 1
    """Processes that share the work behind one Envoy; more than one costs a small process that watches them."""
    shared_state: SharedStateSettings | None = None
    """The server by which several gateways share budgets; ``None`` = this one keeps its own."""
    endpoint_picker: PickerSettings | None = None
    """The same decisions for gateways that are not ours; ``None`` = nobody else asks."""
    tracing: TracingSettings | None = None
    """Spans of requests, for a collector; ``None`` = none are recorded."""

    @model_validator(mode="after")
    def _has_room_for_workers(self) -> Self:
        """Each worker has sockets of its own, which are told to Envoy in headers."""
        if self.workers == 1:
            return self
        path, most = str(self.socket_path), MAX_SOCKET_PATH_BYTES - len(_WORKER_SUFFIX)
        if len(path) > most or not path.isascii() or not path.isprintable():
            raise ValueError(f"with several workers socket_path must be printable ASCII of at most {most} bytes")
        return self

    @property
    def guard_path(self) -> Path:
        """The guard's Unix socket."""
        return self.socket_path.with_name(f"{self.socket_path.name}{_GUARD_SUFFIX}")

    @property
    def access_log_path(self) -> Path:
        """The Unix socket on which Envoy tells how requests ended."""
        return self.socket_path.with_name(f"{self.socket_path.name}-log")

    @property
    def sockets_path(self) -> Path:
        """The Unix socket of the service that ends WebSocket connections."""
        return self.socket_path.with_name(f"{self.socket_path.name}-ws")

    @property
    def hub_path(self) -> Path:
        """The Unix socket by which workers share budgets."""
        return self.socket_path.with_name(f"{self.socket_path.name}-hub")

    @property
    def hub_budgets_path(self) -> Path:
        """What the workers together took of a day's or month's budget."""
        return self.state_dir / "shared-budgets.json"

    @property
    def envoy_path(self) -> Path:
        """Envoy's bootstrap configuration."""
        return self.state_dir / "envoy.json"

    @property
    def endpoints_path(self) -> Path:
        """Envoy's endpoints, in a folder of their own because Envoy watches the folder."""
        return self.state_dir / "endpoints" / "endpoints.json"

    @property
    def snapshot_path(self) -> Path:
        """The last good snapshot."""
        return self.state_dir / "snapshot.json"

    @property
    def usage_path(self) -> Path:
        """The folder of usage records that the control plane does not have yet."""
        return self.state_dir / "usage"

    @property
    def budgets_path(self) -> Path:
        """What was charged to budgets."""
        return self.state_dir / "budgets.json"


def read_settings(path: Path) -> GatewaySettings:
    """The settings of a JSON file; raises GatewayError with every mistake in it."""
    try:
        return GatewaySettings.model_validate_json(path.read_bytes())
    except OSError as error:
        raise GatewayError(f"the settings file {path} cannot be read: {error.strerror}") from error
    except ValidationError as error:
        mistakes = "; ".join(map(_mistake, error.errors(include_url=False)))
        raise GatewayError(f"the settings file {path} is wrong: {mistakes}") from None


def _mistake(details: ErrorDetails) -> str:
    name = ".".join(map(str, details["loc"])) or "the file"
    if details["type"] == "extra_forbidden":
        return f"'{name}' is not known{did_you_mean(name, GatewaySettings.model_fields)}"
    return f"{name}: {details['msg'].removeprefix('Value error, ')}"

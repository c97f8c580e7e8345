"""Where a request goes and how it gets there: an engine of the fleet by its address, a hosted one by its URL. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from fleet.snapshot import GatewayArm, HostedEndpoint

_HTTPS_PORT = 443
_VERSION = "/v1"
_BUSY = frozenset({502, 503, 504})
"""An engine that answers so has taken nothing on."""
TOO_MANY = 429
_SAYS_WHEN = frozenset({TOO_MANY, 503})
DEFAULT_PAUSE_SECONDS = 5.0
"""After a 429 that doesn't say how long (a date is not read: its clock need not be ours)."""
MAX_PAUSE_SECONDS = 3600.0
_ABOUT_OUR_ACCOUNT = frozenset({401, 402, 403, 404, 407, 429, *range(500, 600)})
"""A host's answers that are about our account with it or about itself, and nothing that a client can mend."""


@dataclass(frozen=True, slots=True)
class Target:
    """One engine as the guard connects to it."""

    name: str
    """As the decision calls it."""
    host: str
    port: int
    authority: str
    """For the header ``Host``."""
    is_hosted: bool = False
    """Over TLS, with a key of ours, and without anything that only our own engines may see."""
    prefix: str = ""
    api_key_ref: str = field(default="", repr=False)

    @property
    def passed_over(self) -> frozenset[int]:
        """The statuses after which another engine is asked."""
        return _ABOUT_OUR_ACCOUNT if self.is_hosted else _BUSY

    def path(self, target: str) -> str:
        """The path and query of a request there; a version that the URL has is not said twice."""
        return self.prefix + (target.removeprefix(_VERSION) if self.prefix.endswith(_VERSION) else target)


def target_of(arm: GatewayArm, address: str) -> Target:
    """How an endpoint of an arm is reached."""
    return engine_at(address) if arm.hosted is None else hosted_at(address, arm.hosted)


def pause_of(status: int, headers: Iterable[tuple[str, str]]) -> float:
    """How long a host that answered so wants to be left alone."""
    stated = next((value for name, value in headers if name == "retry-after"), "")
    if status not in _SAYS_WHEN:
        return 0.0
    if stated.isascii() and stated.isdigit():
        return min(float(stated[:9]), MAX_PAUSE_SECONDS)
    return DEFAULT_PAUSE_SECONDS if status == TOO_MANY else 0.0


@lru_cache(maxsize=4096)
def engine_at(address: str) -> Target:
    """An engine of the fleet at ``host:port``."""
    host, _, port = address.rpartition(":")
    return Target(address, host.strip("[]"), int(port), address)


@lru_cache(maxsize=256)
def hosted_at(name: str, hosted: HostedEndpoint) -> Target:
    """A hosted engine."""
    url = urlsplit(hosted.url)
    host = url.hostname or ""
    return Target(
        name,
        host,
        url.port or _HTTPS_PORT,
        url.netloc.removesuffix(f":{_HTTPS_PORT}"),
        is_hosted=True,
        prefix=url.path.rstrip("/"),
        api_key_ref=hosted.api_key_ref,
    )

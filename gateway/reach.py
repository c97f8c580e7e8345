"""Which engines a request can get to, where the proxy that carries it does not reach them all. Pure."""

from typing import NamedTuple


class Reach(NamedTuple):
    """The endpoints of the fleet, or some of them; hosted engines are never among them."""

    subset: tuple[str, ...] | None = None
    """``ip:port``, or ``ip`` for all of its ports; ``None`` = every endpoint of the fleet."""

    def holds(self, address: str) -> bool:
        """Whether an endpoint is one of them; a hosted engine is called ``deployment/identity``."""
        if self.subset is None:
            return "/" not in address
        return address in self.subset or address.rpartition(":")[0].strip("[]") in self.subset

"""The doors to the world: Protocols that adapters implement and tests fake."""

from control_plane.ports.outside import (
    AdvisoryFeed,
    Clock,
    Cluster,
    ClusterError,
    FeedError,
    KeySetError,
    KeySets,
    Meter,
)
from control_plane.ports.rows import Audit, Deployments, FetchedKeySets, Keys, Objects, Reviews, Tokens
from control_plane.ports.store import Revision, Store, UnitOfWork
from control_plane.ports.usage import Usage

__all__ = [
    "AdvisoryFeed",
    "Audit",
    "Clock",
    "Cluster",
    "ClusterError",
    "Deployments",
    "FeedError",
    "FetchedKeySets",
    "KeySetError",
    "KeySets",
    "Keys",
    "Meter",
    "Objects",
    "Reviews",
    "Revision",
    "Store",
    "Tokens",
    "UnitOfWork",
    "Usage",
]

"""The tables as SQLAlchemy sees them; ``migrations/`` creates them. Portable between SQLite and PostgreSQL.

Moments are ISO 8601 text in UTC, documents are JSON text: both compare and read the same on every database.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    String,
    Table,
    Text,
)

from control_plane.usage_sums import AMOUNTS

metadata = MetaData()
_BIG = BigInteger()

deployments = Table(
    "deployments",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("generation", Integer, nullable=False),
    Column("document", Text, nullable=False),
    Column("identity", String(32), nullable=False),
    Column("engine", String(63), nullable=False),
    Column("review_key", String(64), nullable=False),
    Column("route", Text, nullable=False),
    Column("managed_by", String(63)),
    Column("created", String(32), nullable=False),
    Column("updated", String(32), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("endpoints", Text, nullable=False),
    Index("deployments_by_review_key", "review_key"),
)

conditions = Table(
    "conditions",
    metadata,
    Column("deployment", String(63), ForeignKey("deployments.name", ondelete="CASCADE"), nullable=False),
    Column("type", String(32), nullable=False),
    Column("status", String(8), nullable=False),
    Column("reason", String(64), nullable=False),
    Column("message", Text, nullable=False),
    Column("last_transition", String(32), nullable=False),
    Column("observed_generation", Integer, nullable=False),
    PrimaryKeyConstraint("deployment", "type"),
)

reviews = Table(
    "reviews",
    metadata,
    Column("review_key", String(64), primary_key=True),
    Column("facts_digest", String(71), nullable=False),
    Column("violations", Text, nullable=False),
    Column("proposal", Text),
    Column("proposal_reason", Text, nullable=False),
)


def _objects(name: str) -> Table:
    return Table(
        name,
        metadata,
        Column("name", String(63), primary_key=True),
        Column("generation", Integer, nullable=False),
        Column("spec", Text, nullable=False),
        Column("created", String(32), nullable=False),
        Column("updated", String(32), nullable=False),
    )


waivers = _objects("waivers")
triage = _objects("triage")
tenants = _objects("tenants")
prices = _objects("prices")
token_issuers = _objects("token_issuers")
routes = _objects("routes")
output_filters = _objects("output_filters")

keys = Table(
    "keys",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("tenant", String(63), ForeignKey("tenants.name"), nullable=False, index=True),
    Column("prefix", String(16), nullable=False),
    Column("sha256", String(64), nullable=False, unique=True),
    Column("created", String(32), nullable=False),
    Column("expires_unix_seconds", _BIG),
    Column("updated", String(32), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("models", Text, nullable=False),
    Column("pins_arms", Boolean, nullable=False),
    Column("ending", Text, nullable=False),
)

fetched_keys = Table(
    "fetched_keys",
    metadata,
    Column("issuer", String(63), ForeignKey("token_issuers.name", ondelete="CASCADE"), primary_key=True),
    Column("url", Text, nullable=False),
    Column("keys", Text, nullable=False),
    Column("fetched", String(32)),
    Column("problem", Text),
)

tokens = Table(
    "tokens",
    metadata,
    Column("name", String(63), primary_key=True),
    Column("prefix", String(16), nullable=False, unique=True),
    Column("sha256", String(64), nullable=False),
    Column("scope", String(16), nullable=False),
    Column("created", String(32), nullable=False),
)

tombstones = Table(
    "tombstones",
    metadata,
    Column("kind", String(32), nullable=False),
    Column("name", String(63), nullable=False),
    Column("generation", Integer, nullable=False),
    PrimaryKeyConstraint("kind", "name"),
)

audit_events = Table(
    "audit_events",
    metadata,
    Column("sequence", _BIG, primary_key=True, autoincrement=False),
    Column("time", String(32), nullable=False),
    Column("actor", String(80), nullable=False),
    Column("action", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("name", String(200), nullable=False),
    Column("reason", Text),
    Column("request_id", String(64)),
    Column("before", String(71)),
    Column("after", String(71)),
    Column("previous", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
)

usage_ids = Table(
    "usage_ids",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("day", String(10), nullable=False),
    Index("usage_ids_by_day", "day"),
)

usage_days = Table(
    "usage_days",
    metadata,
    Column("tenant", String(63), nullable=False),
    Column("model", String(256), nullable=False),
    Column("day", String(10), nullable=False),
    Column("deployment", String(63), nullable=False),
    Column("key", String(128), nullable=False),
    *(Column(name, _BIG, nullable=False) for name in AMOUNTS),
    PrimaryKeyConstraint("tenant", "model", "day", "deployment", "key"),
    Index("usage_days_by_day", "day"),
)

audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", _BIG, nullable=False),
    Column("hash", String(64), nullable=False),
)
"""One row: where the chain ends. Whoever writes locks it first, so that there is one writer on every database."""

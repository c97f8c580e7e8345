"""Usage: the ids of records that were counted, and the sums of each day."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

AMOUNTS = (
    "requests",
    "unanswered_requests",
    "estimated_requests",
    "unpriced_requests",
    "input_tokens",
    "cached_tokens",
    "output_tokens",
    "cost_usd",
    "cost_picodollars",
)


def upgrade() -> None:
    op.create_table(
        "usage_ids",
        sa.Column("id", sa.String(64), primary_key=True),
        sa.Column("day", sa.String(10), nullable=False),
    )
    op.create_index("usage_ids_by_day", "usage_ids", ["day"])
    op.create_table(
        "usage_days",
        sa.Column("tenant", sa.String(63), nullable=False),
        sa.Column("model", sa.String(256), nullable=False),
        sa.Column("day", sa.String(10), nullable=False),
        sa.Column("deployment", sa.String(63), nullable=False),
        sa.Column("key", sa.String(128), nullable=False),
        *(sa.Column(name, sa.BigInteger, nullable=False) for name in AMOUNTS),
        sa.PrimaryKeyConstraint("tenant", "model", "day", "deployment", "key"),
    )
    op.create_index("usage_days_by_day", "usage_days", ["day"])


def downgrade() -> None:
    op.drop_table("usage_days")
    op.drop_table("usage_ids")

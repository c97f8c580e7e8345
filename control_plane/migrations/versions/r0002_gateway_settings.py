"""What the gateway is told: rotated and narrowed keys, prices, token issuers with fetched keys, routes, filters."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

OBJECTS = ("prices", "token_issuers", "routes", "output_filters")
KEY_COLUMNS = ("updated", "generation", "models", "pins_arms", "ending")


def upgrade() -> None:
    for table in OBJECTS:
        op.create_table(
            table,
            sa.Column("name", sa.String(63), primary_key=True),
            sa.Column("generation", sa.Integer, nullable=False),
            sa.Column("spec", sa.Text, nullable=False),
            sa.Column("created", sa.String(32), nullable=False),
            sa.Column("updated", sa.String(32), nullable=False),
        )
    op.create_table(
        "fetched_keys",
        sa.Column("issuer", sa.String(63), sa.ForeignKey("token_issuers.name", ondelete="CASCADE"), primary_key=True),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("keys", sa.Text, nullable=False),
        sa.Column("fetched", sa.String(32)),
        sa.Column("problem", sa.Text),
    )
    op.add_column("keys", sa.Column("updated", sa.String(32), nullable=False, server_default=""))
    op.add_column("keys", sa.Column("generation", sa.Integer, nullable=False, server_default="1"))
    op.add_column("keys", sa.Column("models", sa.Text, nullable=False, server_default="[]"))
    op.add_column("keys", sa.Column("pins_arms", sa.Boolean, nullable=False, server_default=sa.false()))
    op.add_column("keys", sa.Column("ending", sa.Text, nullable=False, server_default="[]"))
    op.execute("UPDATE keys SET updated = created")


def downgrade() -> None:
    for column in reversed(KEY_COLUMNS):
        op.drop_column("keys", column)
    for table in ("fetched_keys", *reversed(OBJECTS)):
        op.drop_table(table)

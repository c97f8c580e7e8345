"""The first tables: deployments, reviews, exceptions, tenants, tokens and the audit log."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

GENESIS = "0" * 64


def upgrade() -> None:
    _create_deployments()
    _create_objects()
    _create_audit()
    _forbid_changes_of_the_log(op.get_context().dialect.name)


def downgrade() -> None:
    if op.get_context().dialect.name == "postgresql":
        op.execute("DROP TRIGGER audit_events_unchanged ON audit_events")
        op.execute("DROP FUNCTION refuse_audit_change()")
    for table in (
        "audit_head",
        "audit_events",
        "tombstones",
        "tokens",
        "keys",
        "tenants",
        "triage",
        "waivers",
        "reviews",
        "conditions",
        "deployments",
    ):
        op.drop_table(table)


def _create_deployments() -> None:
    op.create_table(
        "deployments",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("identity", sa.String(32), nullable=False),
        sa.Column("engine", sa.String(63), nullable=False),
        sa.Column("review_key", sa.String(64), nullable=False),
        sa.Column("route", sa.Text, nullable=False),
        sa.Column("managed_by", sa.String(63)),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("updated", sa.String(32), nullable=False),
        sa.Column("phase", sa.String(16), nullable=False),
        sa.Column("endpoints", sa.Text, nullable=False),
    )
    op.create_index("deployments_by_review_key", "deployments", ["review_key"])
    op.create_table(
        "conditions",
        sa.Column("deployment", sa.String(63), sa.ForeignKey("deployments.name", ondelete="CASCADE"), nullable=False),
        sa.Column("type", sa.String(32), nullable=False),
        sa.Column("status", sa.String(8), nullable=False),
        sa.Column("reason", sa.String(64), nullable=False),
        sa.Column("message", sa.Text, nullable=False),
        sa.Column("last_transition", sa.String(32), nullable=False),
        sa.Column("observed_generation", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("deployment", "type"),
    )
    op.create_table(
        "reviews",
        sa.Column("review_key", sa.String(64), primary_key=True),
        sa.Column("facts_digest", sa.String(71), nullable=False),
        sa.Column("violations", sa.Text, nullable=False),
        sa.Column("proposal", sa.Text),
        sa.Column("proposal_reason", sa.Text, nullable=False),
    )


def _create_objects() -> None:
    for table in ("waivers", "triage", "tenants"):
        op.create_table(
            table,
            sa.Column("name", sa.String(63), primary_key=True),
            sa.Column("generation", sa.Integer, nullable=False),
            sa.Column("spec", sa.Text, nullable=False),
            sa.Column("created", sa.String(32), nullable=False),
            sa.Column("updated", sa.String(32), nullable=False),
        )
    op.create_table(
        "keys",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("tenant", sa.String(63), sa.ForeignKey("tenants.name"), nullable=False),
        sa.Column("prefix", sa.String(16), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False, unique=True),
        sa.Column("created", sa.String(32), nullable=False),
        sa.Column("expires_unix_seconds", sa.BigInteger),
    )
    op.create_index("ix_keys_tenant", "keys", ["tenant"])
    op.create_table(
        "tokens",
        sa.Column("name", sa.String(63), primary_key=True),
        sa.Column("prefix", sa.String(16), nullable=False, unique=True),
        sa.Column("sha256", sa.String(64), nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("created", sa.String(32), nullable=False),
    )
    op.create_table(
        "tombstones",
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("name", sa.String(63), nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("kind", "name"),
    )


def _create_audit() -> None:
    op.create_table(
        "audit_events",
        sa.Column("sequence", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("actor", sa.String(80), nullable=False),
        sa.Column("action", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("reason", sa.Text),
        sa.Column("request_id", sa.String(64)),
        sa.Column("before", sa.String(71)),
        sa.Column("after", sa.String(71)),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    head = op.create_table(
        "audit_head",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sequence", sa.BigInteger, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.bulk_insert(head, [{"id": 1, "sequence": 0, "hash": GENESIS}])


def _forbid_changes_of_the_log(dialect: str) -> None:
    message = "the audit log is append-only"
    if dialect == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER audit_events_no_{verb.lower()} BEFORE {verb} ON audit_events "
                f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
            )
    elif dialect == "postgresql":
        op.execute(
            "CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION '{message}'; END $$"
        )
        op.execute(
            "CREATE TRIGGER audit_events_unchanged BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events "
            "FOR EACH STATEMENT EXECUTE FUNCTION refuse_audit_change()"
        )

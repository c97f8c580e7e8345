"""Brings the database to the newest schema at the start."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from control_plane.adapters.sql import storage_error, writing

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_LOCK_NUMBER = 7_362_001
"""PostgreSQL's advisory lock that one migrating process holds."""


def migrate(engine: Engine) -> None:
    """Run every migration that is missing, in one transaction that a second process waits for.

    Raises:
        StorageError: the database can't be written.
    """
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    try:
        with writing(engine) as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK_NUMBER})
            config.attributes["connection"] = connection
            command.upgrade(config, "head")
    except DBAPIError as error:
        raise storage_error(error) from error

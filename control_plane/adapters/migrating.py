"""Brings the database to the newest schema at the start, or says why it is left as it is."""

from pathlib import Path

from sqlalchemy import Connection, Engine, column, inspect, select, table, text
from sqlalchemy.exc import DBAPIError

from control_plane.adapters import sql_tables
from control_plane.adapters.sql import RESTORE, storage_error, writing
from control_plane.errors import StorageError, StorageUnreadable

MIGRATIONS = Path(__file__).resolve().parent.parent / "migrations"
_LOCK_NUMBER = 7_362_001
"""PostgreSQL's advisory lock that one migrating process holds."""
_VERSION_TABLE = "alembic_version"


def migrate(engine: Engine) -> None:
    """Run every migration that is missing, in one transaction that a second process waits for.

    Raises:
        StorageError: the database can't be written, or is none of ours; it is left as it is.
    """
    try:
        with writing(engine) as connection, connection.begin():
            if engine.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK_NUMBER})
            known = revisions()
            if _checked(connection, known) != known[-1]:
                _upgrade(connection)
    except DBAPIError as error:
        raise _named(storage_error(error), engine) from error
    except StorageError as error:
        raise _named(error, engine) from None


def revisions() -> list[str]:
    """The schema versions that this release knows, oldest first: the file of a migration is named by its own."""
    files = (MIGRATIONS / "versions").glob("r[0-9]*.py")
    return sorted(path.name.removeprefix("r").partition("_")[0] for path in files)


def _upgrade(connection: Connection) -> None:
    from alembic import command  # at most starts there is nothing to migrate, and it takes half a second to load
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _checked(connection: Connection, known: list[str]) -> str | None:
    """The schema version; refuses what a migration makes worse: a damaged file, another's, a newer release's."""
    if connection.dialect.name == "sqlite":
        damage = connection.exec_driver_sql("PRAGMA quick_check(1)").scalar()
        if damage != "ok":
            raise StorageUnreadable(f"the database is damaged ({_first_line(damage)}). {RESTORE}")
    tables = set(inspect(connection).get_table_names())
    revision = _revision(connection) if _VERSION_TABLE in tables else None
    if revision is None:
        # Other schemas of a server may hold anything; a file is one program's.
        own = sql_tables.metadata.tables.keys()
        others = tables - {_VERSION_TABLE} if connection.dialect.name == "sqlite" else tables & own
        if others:
            example = min(others)
            raise StorageUnreadable(
                f"the database has tables (such as '{example}') but no schema version of Enginehouse: it belongs to "
                "another program, or its version was lost. Name another one in database_url, or put a backup in place"
            )
        return None
    if revision not in known:
        raise StorageUnreadable(
            f"the database has the schema version '{revision}', which this release does not know (it knows up to "
            f"'{known[-1]}'): a newer release wrote it. Start that release, or put a backup in place"
        )
    if revision == known[-1] and (lost := sql_tables.metadata.tables.keys() - tables):
        raise StorageUnreadable(f"the database has lost its table '{min(lost)}'. {RESTORE}")
    return revision


def _revision(connection: Connection) -> str | None:
    stated: str | None = connection.scalar(select(column("version_num")).select_from(table(_VERSION_TABLE)))
    return stated


def _first_line(damage: object) -> str:
    lines = [line for line in str(damage).splitlines() if not line.startswith("***")]
    return lines[0] if lines else str(damage)


def _named(error: StorageError, engine: Engine) -> StorageError:
    """The same error with the place of the database, without a password."""
    url = engine.url
    place = url.database if url.get_backend_name() == "sqlite" else url.render_as_string(hide_password=True)
    return type(error)(f"{place}: {error}")

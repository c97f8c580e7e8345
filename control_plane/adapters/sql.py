"""The store on SQLAlchemy: SQLite by default, PostgreSQL by URL, one schema.

SQLite runs in WAL mode, so that readers never wait for the writer. A write unit starts with BEGIN IMMEDIATE and locks
the head of the audit chain: one writer at a time, in this process and beyond it.
"""

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from sqlalchemy import Connection, Engine, create_engine, delete, event, insert, make_url, select
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, SQLAlchemyError

from control_plane.adapters import sql_tables as tables
from control_plane.adapters.sql_deployments import DeploymentRows, ReviewRows
from control_plane.adapters.sql_keys import FetchedKeyRows, KeyRows, TokenRows
from control_plane.adapters.sql_rows import AuditRows, ObjectRows
from control_plane.adapters.sql_usage import UsageRows
from control_plane.errors import SettingsError, StorageError, StorageFull, StorageReadOnly, StorageUnreadable
from control_plane.ports import (
    Audit,
    Deployments,
    FetchedKeySets,
    Keys,
    Objects,
    Reviews,
    Revision,
    Tokens,
    UnitOfWork,
    Usage,
)
from control_plane.records import Kind

BUSY_MILLISECONDS = 10_000
WRITER_WAIT_SECONDS = 30.0
_WRITES = "enginehouse_writes"
RESTORE = "Put a backup in its place, or move it away to start with an empty one"


def connect(url: str) -> Engine:
    """An engine for a database URL, set up as the store needs it.

    Raises:
        SettingsError: the URL can't be used.
    """
    try:
        parsed = make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise SettingsError(
                "database_url names no file: a database in memory is lost; use sqlite:////path/state.db"
            )
        engine = create_engine(parsed, pool_size=10, max_overflow=50, pool_pre_ping=not url.startswith("sqlite"))
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError) as error:
        raise SettingsError(f"database_url can't be used: {error}") from None
    if engine.dialect.name == "sqlite":
        event.listen(engine, "connect", _set_up_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def writing(engine: Engine) -> Connection:
    """A connection whose transaction takes the writer's lock at its start."""
    return engine.connect().execution_options(**{_WRITES: True})


def _set_up_sqlite(connection: DBAPIConnection, _record: object) -> None:
    connection.isolation_level = None  # SQLAlchemy's events start the transactions
    cursor = connection.cursor()
    for pragma in (f"busy_timeout={BUSY_MILLISECONDS}", "foreign_keys=ON", "synchronous=FULL"):
        cursor.execute(f"PRAGMA {pragma}")
    _use_write_ahead_log(cursor)
    cursor.close()


def _use_write_ahead_log(cursor: DBAPICursor) -> None:
    """Switch to WAL; processes that open a new file at once refuse each other here without waiting, so try again.

    The mode stands in the file: another program's is left as it is.
    """
    deadline = time.monotonic() + BUSY_MILLISECONDS / 1000
    while True:
        try:
            cursor.execute("SELECT count(*), total(name = 'alembic_version') FROM sqlite_master WHERE type = 'table'")
            tables, ours = cursor.fetchone() or (0, 0)
            if not tables or ours:
                cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if not error.sqlite_errorname.startswith("SQLITE_BUSY") or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
        else:
            return


def _begin_sqlite(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE" if connection.get_execution_options().get(_WRITES) else "BEGIN")


class Unit:
    """One transaction with the rows of every table."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.deployments: Deployments = DeploymentRows(connection, self._touch_routes)
        self.reviews: Reviews = ReviewRows(connection)
        self.waivers: Objects = ObjectRows(connection, tables.waivers, self._touch_exceptions)
        self.triage: Objects = ObjectRows(connection, tables.triage, self._touch_exceptions)
        self.tenants: Objects = ObjectRows(connection, tables.tenants, self._touch_routes)
        self.prices: Objects = ObjectRows(connection, tables.prices, self._touch_routes)
        self.token_issuers: Objects = ObjectRows(connection, tables.token_issuers, self._touch_routes)
        self.routes: Objects = ObjectRows(connection, tables.routes, self._touch_routes)
        self.output_filters: Objects = ObjectRows(connection, tables.output_filters, self._touch_routes)
        self.keys: Keys = KeyRows(connection, self._touch_routes)
        self.fetched_keys: FetchedKeySets = FetchedKeyRows(connection, self._touch_routes)
        self.tokens: Tokens = TokenRows(connection)
        self.audit: Audit = AuditRows(connection)
        self.usage: Usage = UsageRows(connection)
        self.is_discarded = False
        self.touched = Revision()

    def _touch_routes(self) -> None:
        self.touched = replace(self.touched, routes=1)

    def _touch_exceptions(self) -> None:
        self.touched = replace(self.touched, exceptions=1)

    def next_generation(self, kind: Kind, name: str) -> int:
        """The first generation of a new object: above that of any deleted one of the name."""
        graves = tables.tombstones
        query = select(graves.c.generation).where(graves.c.kind == kind.value, graves.c.name == name)
        return int(self._connection.execute(query).scalar() or 0) + 1

    def bury(self, kind: Kind, name: str, generation: int) -> None:
        """Remember the last generation of a deleted object."""
        graves = tables.tombstones
        self._connection.execute(delete(graves).where(graves.c.kind == kind.value, graves.c.name == name))
        self._connection.execute(insert(graves).values(kind=kind.value, name=name, generation=generation))

    def discard(self) -> None:
        """Store nothing of this unit: what a dry run does."""
        self.is_discarded = True


class SqlStore:
    """The database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._writer = threading.Lock()
        self._revision = Revision()

    @property
    def revision(self) -> Revision:
        """What was committed so far by this process."""
        return self._revision

    @contextmanager
    def read(self) -> Iterator[UnitOfWork]:
        """A unit that only reads."""
        with _translated(), self._engine.connect() as connection, connection.begin():
            yield Unit(connection)

    @contextmanager
    def write(self) -> Iterator[UnitOfWork]:
        """A unit that may write; it waits for the writer before it."""
        if not self._writer.acquire(timeout=WRITER_WAIT_SECONDS):
            raise StorageError("the database is busy with another change; try again")
        try:
            with _translated(), writing(self._engine) as connection:
                transaction = connection.begin()
                connection.execute(select(tables.audit_head).with_for_update())
                unit = Unit(connection)
                try:
                    yield unit
                except BaseException:
                    transaction.rollback()
                    raise
                if unit.is_discarded:
                    transaction.rollback()
                else:
                    transaction.commit()
                    self._revision = self._revision.plus(unit.touched)
        finally:
            self._writer.release()

    def problem(self) -> str | None:
        """Why the database can't be used now, or ``None``."""
        try:
            with self.read() as unit:
                unit.audit.head()
        except StorageError as error:
            return str(error)
        return None

    def close(self) -> None:
        """Give the connections back."""
        self._engine.dispose()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        raise storage_error(error) from error
    except SQLAlchemyError as error:
        raise StorageError(f"the database can't be used: {error}") from error


def storage_error(error: DBAPIError) -> StorageError:
    """What a driver's error means for the caller."""
    code = getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None) or ""
    if code in ("SQLITE_FULL", "53100"):
        return StorageFull("no room is left where the database lies; nothing was stored. Free some space and try again")
    if code.startswith("SQLITE_READONLY") or code in ("SQLITE_CANTOPEN", "25006"):
        hint = "Let this user write the file and its folder"
        return StorageReadOnly(f"the database can't be written; nothing was stored. {hint}")
    if code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
        return StorageUnreadable(f"the database is damaged or is none ({code}); nothing was stored. {RESTORE}")
    if code.startswith(("SQLITE_BUSY", "SQLITE_LOCKED", "40", "55")):
        return StorageError("the database is busy with another change; nothing was stored. Try again")
    return StorageError(f"the database can't be used now ({code or type(error.orig).__name__}); nothing was stored")

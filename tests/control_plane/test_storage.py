"""Storage: the schema on both databases, and what happens when a disk is full or read-only."""

import io
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import event, text

from control_plane.adapters import sql_tables
from control_plane.adapters.migrating import MIGRATIONS, migrate, revisions
from control_plane.adapters.sql import SqlStore, connect
from control_plane.errors import SettingsError, StorageError
from control_plane.records import Scope
from control_plane.services.tokens import TokenService


def config(**attributes) -> Config:
    made = Config()
    made.set_main_option("script_location", str(MIGRATIONS))
    made.attributes.update(attributes)
    return made


def test_the_migrations_give_the_tables_that_the_store_uses(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/state.db")
    migrate(engine)
    migrate(engine)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), sql_tables.metadata) == []
    engine.dispose()


def test_the_migrations_go_back_to_nothing_and_forward_again(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/state.db")
    migrate(engine)
    with engine.connect() as connection, connection.begin():
        command.downgrade(config(connection=connection), "base")
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type IN ('table', 'trigger')")).scalars()
        assert set(names) == {"alembic_version"}
    migrate(engine)
    assert SqlStore(engine).problem() is None
    engine.dispose()


def test_the_file_of_a_migration_is_named_by_its_revision():
    scripts = ScriptDirectory.from_config(config())
    assert [script.revision for script in scripts.walk_revisions()] == revisions()[::-1]


def test_a_database_at_the_newest_schema_is_opened_without_the_program_that_migrates(tmp_path, monkeypatch):
    engine = connect(f"sqlite:///{tmp_path}/state.db")
    migrate(engine)
    monkeypatch.setitem(sys.modules, "alembic", None)
    migrate(engine)
    engine.dispose()


def test_the_same_migrations_are_sql_for_postgresql():
    said = io.StringIO()
    offline = Config(output_buffer=said)
    offline.set_main_option("script_location", str(MIGRATIONS))
    offline.set_main_option("dialect", "postgresql")
    command.upgrade(offline, "head", sql=True)
    assert "CREATE TABLE audit_events" in said.getvalue()
    assert "BEFORE UPDATE OR DELETE OR TRUNCATE ON audit_events" in said.getvalue()
    assert "AUTOINCREMENT" not in said.getvalue()


def test_sqlite_is_set_up_for_one_writer_and_many_readers(tmp_path):
    engine = connect(f"sqlite:///{tmp_path}/state.db")
    with engine.connect() as connection:
        pragmas = {
            name: connection.execute(text(f"PRAGMA {name}")).scalar() for name in ("journal_mode", "foreign_keys")
        }
    assert pragmas == {"journal_mode": "wal", "foreign_keys": 1}
    engine.dispose()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "nonsense", "oracle9://x"])
def test_a_database_that_can_not_be_used_is_told(url):
    with pytest.raises(SettingsError, match="database_url"):
        connect(url)


def test_a_full_disk_is_507_and_nothing_is_lost(world):
    world.put(world.pinned())
    store = world.assembly.store
    with store._engine.connect() as connection:
        pages = connection.execute(text("PRAGMA page_count")).scalar()
    # SQLite answers as on a full disk when a database may not grow; each connection of the pool has to be told.
    store._engine.dispose()
    event.listen(store._engine, "connect", lambda raw, _: raw.execute(f"PRAGMA max_page_count={pages}"))
    statuses = set()
    for number in range(30):
        answer = world.put(world.pinned(f"chat-{number}"))
        statuses.add(answer.status_code)
        if answer.status_code == 507:
            assert "no room" in answer.json()["detail"]
            break
    assert 507 in statuses
    assert world.get("/v1/deployments/chat").status_code == 200
    assert world.assembly.house.audit.verify() is None


def test_a_read_only_database_is_503(world):
    world.put(world.pinned())
    store = world.assembly.store
    store._engine.dispose()
    event.listen(store._engine, "connect", lambda raw, _: raw.execute("PRAGMA query_only=ON"))
    answer = world.put(world.pinned("other"))
    assert answer.status_code == 503
    assert answer.headers["retry-after"]
    assert "can't be written" in answer.json()["detail"]
    assert world.get("/v1/deployments/chat").status_code == 200


def test_a_unit_that_fails_or_is_discarded_stores_nothing(world):
    store = world.assembly.store
    before = store.revision

    def tokens() -> object:
        with store.read() as unit:
            return unit.audit.head()

    head = tokens()

    def fail() -> None:
        with store.write() as unit:
            unit.deployments.delete("x")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    with store.write() as unit:
        unit.deployments.delete("x")
        unit.discard()
    assert (store.revision, tokens()) == (before, head)


def test_a_database_that_is_not_there_any_more_makes_it_not_ready(world):
    store = world.assembly.store
    store.close()
    for path in world.folder.glob("state.db*"):
        path.unlink()
    world.assembly.house.readiness.refresh()
    ready = world.get("/readyz", scope=None)
    assert ready.status_code == 503
    assert world.get("/livez", scope=None).status_code == 200
    with pytest.raises(StorageError):
        TokenService(store=store, clock=world.clock).create("x", Scope.READER)


def test_several_that_open_a_new_database_at_once_all_get_it(tmp_path):
    def opened(url, gate):
        engine = connect(url)
        gate.wait()
        try:
            migrate(engine)
            with engine.connect() as connection:
                return connection.exec_driver_sql("PRAGMA journal_mode").scalar()
        finally:
            engine.dispose()

    for number in range(10):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        gate = threading.Barrier(3)
        with ThreadPoolExecutor(3) as threads:
            modes = [threads.submit(opened, url, gate) for _ in range(3)]
        assert [mode.result() for mode in modes] == ["wal"] * 3

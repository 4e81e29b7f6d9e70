"""The schema's history: numbered without gaps, taken once by whoever comes first, and never taken back."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import apsw
import psycopg
import pytest

from handrail.kernel.errors import StoreAway, StoreRefused, StoreTooNew, StoreUnusable
from handrail.store.migrations import LATEST, STEPS, for_postgres, statements
from handrail.store.postgres import PostgresEngine
from handrail.store.sqlite import SqliteEngine
from handrail.store.writes import NEW_STREAM, KeyWrite
from tests.store.ground import VERSION, Ground, sqlite_ground
from tests.store.process import elsewhere
from tests.store.records import happened, put, workflow

BROKEN = STEPS[-1]._replace(
    sql=f"{STEPS[-1].sql}CREATE TABLE half_way (id TEXT PRIMARY KEY); CREATE TABLE workflow (again TEXT);"
)
"""The last step with two more statements, of which the second fails."""
NewSchema = Callable[[], contextlib.AbstractContextManager[str]]


def test_steps_are_numbered_from_one_without_gaps() -> None:
    assert [step.number for step in STEPS] == list(range(1, LATEST + 1))
    assert all(step.since for step in STEPS)


def test_a_step_is_taken_apart_into_its_statements() -> None:
    assert statements("A;\n B (1, 2) ;\n\n") == ["A", "B (1, 2)"]


def test_the_words_of_one_engine_become_those_of_the_other() -> None:
    text = for_postgres("CREATE TABLE t (a TEXT, b INTEGER NOT NULL, c BLOB) STRICT, WITHOUT ROWID;")
    assert text == 'CREATE TABLE t (a TEXT COLLATE "C", b BIGINT NOT NULL, c BYTEA);'


def test_a_store_tells_its_schema(lasting: Ground) -> None:
    assert lasting.store.info().schema == LATEST


def test_a_newer_schema_is_refused_with_the_version_that_understands_it(lasting: Ground) -> None:
    put(lasting.store, workflow())
    lasting.tamper("UPDATE meta SET value = '9.9.9' WHERE key = 'needs'")
    if lasting.kind == "sqlite":
        lasting.tamper(f"PRAGMA user_version = {LATEST + 1}")
    else:
        lasting.tamper(f"UPDATE meta SET value = '{LATEST + 1}' WHERE key = 'schema'")
    try:
        with pytest.raises(StoreTooNew, match=f"has schema {LATEST + 1}, .* knows {LATEST}") as refused:
            lasting.another()
        assert refused.value.details["needs"] == "9.9.9"
        assert "9.9.9" in refused.value.hint
    finally:
        if lasting.kind == "postgres":  # its tables are used again
            lasting.tamper(f"UPDATE meta SET value = '{LATEST}' WHERE key = 'schema'")
            lasting.tamper("UPDATE meta SET value = ? WHERE key = 'needs'", STEPS[-1].since)


@pytest.mark.parametrize("keyed", [False, True])
def test_a_schema_that_was_upgraded_while_it_was_open_is_written_to_no_more(postgres: Ground, keyed: bool) -> None:
    """The same on SQLite is among the tests of its faults."""
    put(postgres.store, workflow())
    postgres.tamper(f"UPDATE meta SET value = '{LATEST + 1}' WHERE key = 'schema'")
    try:
        key = KeyWrite("tool", "key", "hash", b"", 100, 1) if keyed else None
        with pytest.raises(StoreTooNew, match=f"has schema {LATEST + 1}"):
            postgres.engine.commit(happened("new", NEW_STREAM, "too late")._replace(key=key))
        with pytest.raises(StoreTooNew):
            put(postgres.store, workflow(name="too late"))
    finally:
        postgres.tamper(f"UPDATE meta SET value = '{LATEST}' WHERE key = 'schema'")
    assert [event.kind for event in postgres.store.feed()] == ["thing.put"]
    with postgres.engine.reading() as reader:
        assert reader.key_answer("tool", "key", 1) is None


def test_opening_a_current_file_writes_nothing(tmp_path: Path) -> None:
    ground = sqlite_ground(tmp_path / "handrail.db")
    put(ground.store, workflow())
    held = apsw.Connection(ground.address)  # keeps the log there, as another process that has the file open would
    held.execute("SELECT count(*) FROM event").fetchall()

    def seen() -> dict[str, tuple[int, bytes]]:
        return {
            path.name: (path.stat().st_mtime_ns, path.read_bytes())
            for path in tmp_path.iterdir()
            if not path.name.endswith("-shm")
        }

    before = seen()
    assert f"{ground.address}-wal".endswith("handrail.db-wal")
    assert "handrail.db-wal" in before
    second = ground.another()
    assert len(second.feed()) == 1
    second.engine.close()
    assert seen() == before
    held.close()
    ground.close()


def test_opening_a_current_schema_writes_nothing(postgres: Ground) -> None:
    put(postgres.store, workflow())
    with psycopg.connect(postgres.address, autocommit=True) as connection:

        def next_transaction() -> tuple[object, ...] | None:
            return connection.execute("SELECT pg_snapshot_xmax(pg_current_snapshot())::text").fetchone()

        # Others write to the same server, so a run that nobody disturbed is waited for.
        for _ in range(50):
            before = next_transaction()
            postgres.another()
            if next_transaction() == before:
                return
    pytest.fail("every opening took a transaction number: it wrote something")


@pytest.mark.parametrize("mode", ["delete", "wal"])
@pytest.mark.parametrize("version", [0, LATEST, LATEST + 5])
def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path, mode: str, version: int) -> None:
    path = tmp_path / "other.db"
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {mode}").fetchall()
    connection.execute(f"CREATE TABLE theirs (id); PRAGMA user_version = {version}").fetchall()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="something else"):
        SqliteEngine(path, version=VERSION)
    assert path.read_bytes() == before


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("these are notes, many of them\n" * 100)
    with pytest.raises(StoreUnusable):
        SqliteEngine(path, version=VERSION)
    assert path.read_text().startswith("these are notes")


def test_a_schema_of_something_else_is_refused_and_left_alone(new_schema: NewSchema) -> None:
    with new_schema() as address, psycopg.connect(address, autocommit=True) as connection:
        connection.execute("CREATE TABLE task (id bigint)")
        with pytest.raises(StoreUnusable, match="something else"):
            PostgresEngine(address, version=VERSION)
        connection.execute("CREATE TABLE meta (key text, value text)")
        with pytest.raises(StoreUnusable, match="something else"):
            PostgresEngine(address, version=VERSION)
        found = connection.execute(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace"
        ).fetchall()
    assert sorted(name for (name,) in found) == ["meta", "task"]


def test_eight_processes_open_a_fresh_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "handrail.db"
    with contextlib.ExitStack() as stack:
        crew = [stack.enter_context(elsewhere(str(path), "put", f"wf_{number}")) for number in range(8)]
        for process in crew:
            process.go()
        assert [process.answer() for process in crew] == ["done"] * 8
    ground = sqlite_ground(path)
    assert sorted(event.stream for event in ground.store.feed()) == [f"wf_{number}" for number in range(8)]
    assert ground.store.verify() == []
    ground.close()


def test_several_processes_make_the_tables_of_a_fresh_schema_at_once(new_schema: NewSchema) -> None:
    with new_schema() as address, contextlib.ExitStack() as stack:
        crew = [stack.enter_context(elsewhere(address, "put", f"wf_{number}")) for number in range(4)]
        for process in crew:
            process.go()
        assert [process.answer() for process in crew] == ["done"] * 4
        engine = PostgresEngine(address, version=VERSION)
        with engine.reading() as reader:
            assert sorted(stream for stream, _ in reader.streams()) == [f"wf_{number}" for number in range(4)]
        engine.close()


def test_a_step_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("handrail.store.sqlite.STEPS", (*STEPS[:-1], BROKEN))
    path = tmp_path / "handrail.db"
    with pytest.raises((StoreRefused, apsw.SQLError)):
        SqliteEngine(path, version=VERSION)
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA user_version").get == LATEST - 1
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'half_way'").get == 0
    assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'workflow'").get == 1
    connection.close()
    monkeypatch.undo()
    SqliteEngine(path, version=VERSION).close()


def test_a_step_that_fails_on_a_server_leaves_nothing_behind(
    new_schema: NewSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.store.postgres_schema.STEPS", (*STEPS[:-1], BROKEN))
    with new_schema() as address:
        with pytest.raises(StoreAway):
            PostgresEngine(address, version=VERSION)
        with psycopg.connect(address, autocommit=True) as connection:
            assert connection.execute("SELECT to_regclass('half_way')").fetchone() == (None,)
        monkeypatch.undo()
        PostgresEngine(address, version=VERSION).close()

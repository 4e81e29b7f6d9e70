"""What SQLite has of its own: how the file is opened, how it is kept, how it comes back. Crashes, faults and many
processes are among the process tests."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import apsw
import pytest

from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.ledger import NewEvent
from handrail.store import sqlite as module
from handrail.store import sqlite_connections
from handrail.store.places import whole_file
from handrail.store.queries import Query, select_sql, where
from handrail.store.sqlite import APPLICATION_ID, SqliteEngine
from handrail.store.store_move import move
from handrail.store.tables import BY_NAME
from handrail.store.writes import RowWrite, WriteSet, chained
from tests.store.ground import VERSION, Ground, sqlite_ground
from tests.store.records import found, put, task, workflow


def pragma(engine: SqliteEngine, name: str) -> object:
    return engine._writer.execute(f"PRAGMA {name}").get


@pytest.mark.parametrize(("durable", "synchronous"), [(False, 1), (True, 2)])
def test_the_file_is_opened_as_it_was_measured(tmp_path: Path, durable: bool, synchronous: int) -> None:
    engine = SqliteEngine(tmp_path / "handrail.db", version=VERSION, durable=durable)
    assert pragma(engine, "journal_mode") == "wal"
    assert pragma(engine, "synchronous") == synchronous
    assert pragma(engine, "auto_vacuum") == 2
    assert pragma(engine, "busy_timeout") == 30_000
    assert pragma(engine, "wal_autocheckpoint") == 4000
    assert pragma(engine, "trusted_schema") == 0
    assert pragma(engine, "application_id") == APPLICATION_ID
    engine.close()


def test_nobody_else_may_read_it_or_a_copy_of_it(tmp_path: Path) -> None:
    file, backup, copy = (tmp_path / name for name in ("handrail.db", "backup.db", "copy.db"))
    before = os.umask(0o022)
    try:
        ground = sqlite_ground(file)
        put(ground.store, workflow())
        with whole_file(backup) as part:
            ground.lasting.backup(str(part))
        move(ground.lasting, str(copy), project=tmp_path, version=VERSION, keep=True)
        made = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir() if path.suffix != ".gate"}
        ground.close()
    finally:
        os.umask(before)
    assert {"handrail.db", "handrail.db-wal", "backup.db", "copy.db"} <= set(made)
    assert set(made.values()) == {0o600}


def test_what_a_link_leads_to_is_made_for_its_owner_too(tmp_path: Path) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    before = os.umask(0o022)
    try:
        sqlite_ground(tmp_path / "link.db").close()
    finally:
        os.umask(before)
    assert (tmp_path / "real.db").stat().st_mode & 0o777 == 0o600


def test_many_readers_at_once_leave_few_connections_behind(sqlite: Ground) -> None:
    put(sqlite.store, workflow())
    engine = sqlite.engine
    assert isinstance(engine, SqliteEngine)
    with contextlib.ExitStack() as looks:
        for _ in range(module.KEEP_IDLE + 5):
            assert looks.enter_context(engine.reading(aside=True)).position() > 0
    assert len(engine._readers) == module.KEEP_IDLE


def test_who_still_reads_while_it_is_closed_leaves_no_connection_behind(tmp_path: Path) -> None:
    ground = sqlite_ground(tmp_path / "handrail.db")
    put(ground.store, workflow())
    engine = ground.engine
    assert isinstance(engine, SqliteEngine)
    with engine.reading(aside=True) as reader:
        engine.close()
        assert reader.position() > 0
    assert engine._readers == []
    assert not (tmp_path / "handrail.db-wal").exists(), "the last one to leave has emptied the log"


def test_rights_that_somebody_gave_stay(tmp_path: Path) -> None:
    file = tmp_path / "handrail.db"
    sqlite_ground(file).close()
    file.chmod(0o660)
    sqlite_ground(file).close()
    assert file.stat().st_mode & 0o777 == 0o660


def test_the_store_tells_what_it_is(sqlite: Ground) -> None:
    info = sqlite.store.info()
    assert (info.engine, info.location, info.version) == ("sqlite", sqlite.address, apsw.sqlite_lib_version())


def test_an_old_library_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_connections, "OLDEST_SQLITE", (99, 0, 0))
    with pytest.raises(StoreUnusable, match="can lose data") as refused:
        SqliteEngine(tmp_path / "handrail.db", version=VERSION)
    assert "99.0.0" in refused.value.hint


def test_positions_are_numbered_without_gaps(sqlite: Ground) -> None:
    for number in range(3):
        put(sqlite.store, workflow(f"wf_{number}"))
    assert [event.position for event in sqlite.store.feed()] == [1, 2, 3]


def test_a_backup_is_a_store_of_its_own_and_comes_back_as_it_was(sqlite: Ground, tmp_path: Path) -> None:
    put(sqlite.store, workflow(), task())
    feed = sqlite.store.feed()
    kept = tmp_path / "kept.db"
    sqlite.lasting.backup(str(kept))
    put(sqlite.store, workflow(name="later"))
    copy = sqlite_ground(kept)
    assert copy.store.feed() == feed
    assert copy.store.verify() == []
    copy.close()

    other = sqlite.another()
    sqlite.lasting.restore(str(kept))
    for store in (sqlite.store, other):
        assert store.feed() == feed
        assert found(store, Workflow, "wf_1") == workflow()
    put(other, workflow(name="after"))
    assert sqlite.store.verify() == []


def test_only_the_columns_that_differ_are_written(sqlite: Ground) -> None:
    """Every column that is written takes the indexes it stands in along."""
    put(sqlite.store, workflow(), task())
    assert isinstance(sqlite.engine, SqliteEngine)
    sqlite.engine._writer.execute(
        "CREATE TEMP TRIGGER kept BEFORE UPDATE OF name, sequence, context ON task "
        "BEGIN SELECT RAISE(ABORT, 'written again'); END"
    )
    put(sqlite.store, task(status="in_progress", updated_at=7))
    changed = found(sqlite.store, Task, "task_1")
    assert (changed.status, changed.updated_at) == ("in_progress", 7)
    assert sqlite.store.verify() == []


def test_a_record_that_is_recorded_as_it_was_is_not_written(sqlite: Ground) -> None:
    put(sqlite.store, workflow(), task())
    assert isinstance(sqlite.engine, SqliteEngine)
    sqlite.engine._writer.execute(
        "CREATE TEMP TRIGGER kept BEFORE UPDATE ON task BEGIN SELECT RAISE(ABORT, 'written again'); END"
    )
    put(sqlite.store, task())
    assert sqlite.store.verify() == []


def test_a_change_to_a_row_that_is_not_there_puts_the_row(sqlite: Ground) -> None:
    put(sqlite.store, workflow())
    with sqlite.engine.reading() as reader:
        head = reader.head("wf_1")
    event = NewEvent("task.changed", "ann", "cli", 1, {}, ())
    row = RowWrite("task", "task_1", BY_NAME["task"].row_of(task()), ("status",))
    sqlite.engine.commit(WriteSet((chained("wf_1", head, [event]),), (row,)))
    assert found(sqlite.store, Task, "task_1") == task()


def test_plans_do_not_depend_on_values(sqlite: Ground) -> None:
    """Or each would be made anew for every value. An index over only some values would serve just such plans; one that
    leaves out nothing but NULL serves all."""
    assert isinstance(sqlite.engine, SqliteEngine)
    assert sqlite.engine._writer.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, -1) == 1
    partial = "SELECT sql FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'"
    indexes = sqlite.engine._writer.execute(partial)
    assert [text for (text,) in indexes if not text.endswith("IS NOT NULL")] == []


def test_who_comes_through_a_link_meets_the_others(sqlite: Ground, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.db"
    link.symlink_to(sqlite.address)
    put(sqlite.store, workflow())
    through = sqlite_ground(link)
    put(through.store, workflow(name="through the link"))
    assert isinstance(through.engine, SqliteEngine)
    assert isinstance(sqlite.engine, SqliteEngine)
    assert os.path.samestat(os.fstat(through.engine._gate._descriptor), os.fstat(sqlite.engine._gate._descriptor))
    assert list(link.parent.iterdir()) == [link]
    Path(f"{sqlite.address}-wal").unlink()
    with pytest.raises(StoreUnusable, match="removed or replaced"):
        put(through.store, workflow(name="lost"))
    through.close()


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_who_waits_hears_that_the_file_is_gone(sqlite: Ground, tmp_path: Path, change: str) -> None:
    put(sqlite.store, workflow())
    position = sqlite.store.position()
    Path(sqlite.address).rename(tmp_path / "away.db")
    if change == "replaced":
        Path(sqlite.address).touch()
    with pytest.raises(StoreUnusable, match="removed or replaced"):
        sqlite.store.wait(position, 0.0)


def test_tables_that_somebody_changed_are_told(sqlite: Ground) -> None:
    put(sqlite.store, workflow())
    connection = apsw.Connection(sqlite.address)
    connection.execute("DROP TABLE task")
    connection.close()
    with pytest.raises(StoreUnusable, match="no such table: task") as refused:
        put(sqlite.store, task())
    assert "handrail db restore" in refused.value.hint


def test_what_is_asked_for_often_has_an_index(sqlite: Ground) -> None:
    """No question of daily work reads a whole table."""
    connection = apsw.Connection(sqlite.address)
    table = BY_NAME["task"]
    for query in (
        Query((("workflow_id", "wf_1"), ("unmet", 0), ("status", "pending")), ("priority", "sequence"), 20),
        Query((("workflow_id", "wf_1"),), ("sequence",)),
        where(workflow_id="wf_1", name="build"),
        where(id="task_1"),
    ):
        text, parameters = select_sql("task", table.columns, query)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", parameters)]
        assert not [step for step in plan if step.startswith("SCAN")], plan
    connection.close()

"""A store holds its schema and nothing else: whatever was added or changed is named, and nothing of it runs."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import apsw
import pytest

from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import StoreUnusable
from handrail.store import shapes
from handrail.store.migrations import LATEST, STEPS, statements
from handrail.store.sqlite import APPLICATION_ID
from tests.store.ground import Ground, older, sqlite_ground
from tests.store.records import found, put, workflow

STRANGERS = {
    "a trigger": (
        "CREATE TRIGGER sly AFTER INSERT ON event BEGIN UPDATE workflow SET name = 'mine'; END",
        "trigger sly on event is not part of a store",
    ),
    "a view": ("CREATE VIEW peek AS SELECT * FROM task", "view peek is not part of a store"),
    "a table": ("CREATE TABLE more (x)", "table more is not part of a store"),
    "a virtual table": ("CREATE VIRTUAL TABLE words USING fts5(x)", "table words is not part of a store"),
    "an index": ("CREATE INDEX quick ON task (description)", "index quick on task is not part of a store"),
    "an index with a rule": (
        "CREATE UNIQUE INDEX narrow ON workflow (name)",
        "index narrow on workflow is not part of a store",
    ),
    "a column": ("ALTER TABLE task ADD COLUMN more TEXT DEFAULT 'x'", "table task is not as Handrail makes it"),
    "a computed column": (
        "ALTER TABLE task ADD COLUMN more TEXT AS (upper(name)) VIRTUAL",
        "table task is not as Handrail makes it",
    ),
    "statistics": ("ANALYZE", "table sqlite_stat1 is not part of a store"),
    "a missing index": ("DROP INDEX task_order", "index task_order on task is missing"),
    "a missing table": ("DROP TABLE fact", "table fact is missing"),
    "an index over something else": (
        "DROP INDEX task_order; CREATE INDEX task_order ON task (workflow_id, sequence DESC, id)",
        "index task_order on task is not as Handrail makes it",
    ),
    "a default, written into the schema": (
        """PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'description TEXT NOT NULL',
        'description TEXT NOT NULL DEFAULT (hex(randomblob(8)))') WHERE name = 'task';
        PRAGMA writable_schema = RESET""",
        "table task is not as Handrail makes it",
    ),
    "a way to compare, written into the schema": (
        """PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'name TEXT NOT NULL',
        'name TEXT NOT NULL COLLATE NOCASE') WHERE name = 'agent'; PRAGMA writable_schema = RESET""",
        "table agent is not as Handrail makes it",
    ),
}


def test_the_hash_of_every_schema_is_noted() -> None:
    """A new step needs a line in DIGESTS, or every opening makes its schema in memory to compare."""
    assert {number: shapes.digest(shapes.made_by_steps(number)) for number in range(1, LATEST + 1)} == shapes.DIGESTS


@pytest.mark.parametrize("stranger", STRANGERS.values(), ids=STRANGERS)
def test_whatever_is_not_the_schema_is_named_and_the_store_not_opened(
    sqlite: Ground, tmp_path: Path, stranger: tuple[str, str]
) -> None:
    statement, named = stranger
    put(sqlite.store, workflow())
    assert sqlite.engine.check() == []
    sqlite.tamper(statement)
    assert named in sqlite.engine.check()
    assert named in sqlite.store.verify()
    with pytest.raises(StoreUnusable, match="changed by something other than Handrail") as refused:
        sqlite.another()
    assert named in refused.value.details["strangers"]
    assert "handrail db rebuild" in refused.value.hint


def test_an_older_store_is_compared_with_its_own_schema(sqlite: Ground, tmp_path: Path) -> None:
    put(sqlite.store, workflow())
    copy = tmp_path / "older.db"
    sqlite.lasting.backup(str(copy))
    older(copy, LATEST - 1)
    sly = tmp_path / "sly.db"
    shutil.copyfile(copy, sly)
    upgraded = sqlite_ground(copy)
    assert upgraded.store.verify() == []
    upgraded.close()
    with contextlib.closing(apsw.Connection(str(sly))) as connection:
        connection.execute("CREATE VIEW peek AS SELECT * FROM task")
    before = sly.read_bytes()
    with pytest.raises(StoreUnusable, match="view peek is not part of a store"):
        sqlite_ground(sly)
    assert sly.read_bytes() == before


def test_a_trigger_that_comes_while_the_store_is_open_never_runs_and_stops_the_next_write(sqlite: Ground) -> None:
    put(sqlite.store, workflow())
    sqlite.tamper("CREATE TRIGGER sly AFTER UPDATE ON stream BEGIN UPDATE workflow SET name = 'mine'; END")
    with pytest.raises(StoreUnusable, match="trigger sly on stream"):
        put(sqlite.store, workflow(name="second"))
    assert found(sqlite.store, Workflow, "wf_1").name == "Ship it"
    sqlite.tamper("DROP TRIGGER sly")
    put(sqlite.store, workflow(name="third"))
    assert sqlite.store.verify() == []


def test_even_what_nobody_noticed_does_not_run(sqlite: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    sqlite.tamper("CREATE TRIGGER sly AFTER INSERT ON stream BEGIN UPDATE counter SET position = 99; END")
    monkeypatch.setattr("handrail.store.sqlite.check_shape", lambda *_: None)
    put(sqlite.store, workflow())
    assert sqlite.store.position() == 1


def test_vacuum_and_restore_change_no_schema(sqlite: Ground, tmp_path: Path) -> None:
    """Both raise the number by which a change of the schema shows."""
    put(sqlite.store, workflow())
    other = sqlite.another()
    sqlite.lasting.vacuum(1)
    sqlite.lasting.backup(str(tmp_path / "copy.db"))
    sqlite.lasting.restore(str(tmp_path / "copy.db"))
    put(other, workflow(name="second"))
    put(sqlite.store, workflow(name="third"))
    assert sqlite.store.verify() == []


def test_another_encoding_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.db"
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA encoding = 'UTF-16le'").fetchall()
        for step in STEPS:
            for statement in statements(step.sql):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {LATEST}").fetchall()
    with pytest.raises(StoreUnusable, match="kept as UTF-16le"):
        sqlite_ground(path)

"""A store made anew from its ledger: rows, heads and indexes as they should be, and whatever else is sound."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import apsw
import pytest

from handrail.kernel.errors import StoreUnusable
from handrail.store.migrations import LATEST
from handrail.store.ports import Engine
from handrail.store.postgres import PostgresEngine
from handrail.store.rebuild import Rebuilt, rebuild_file, set_aside
from handrail.store.store_copy import COPIED
from tests.hostile.bit_flips.full_store import fill
from tests.store.ground import VERSION, Ground, older, sqlite_ground
from tests.store.records import put, workflow

DAMAGE = (
    "UPDATE task SET name = 'forged', context = '{', unmet = 99 WHERE id = 'task_1'",
    "DELETE FROM message",
    "UPDATE stream SET head = 77 WHERE name <> 'workflow_1'",
    "UPDATE stream SET hash = 'x' WHERE name = 'workflow_1'",
    "INSERT INTO repository (id, path, name, created_at, stream) VALUES ('repo_9', '/x', 'x', 1, 'nowhere')",
    "UPDATE lease SET fence = fence + 1",
    "UPDATE idempotency SET request_hash = 'other' WHERE key = 'key 1'",
    "UPDATE meta SET value = '9.9' WHERE key = 'needs'",
)


def everything(engine: Engine) -> dict[str, list[Any]]:
    with engine.reading(aside=True) as reader:
        return {table.name: [tuple(row) for row in reader.stored(table)] for table in COPIED}


def rebuilt(ground: Ground, kept: Path) -> Rebuilt:
    if isinstance(ground.engine, PostgresEngine):
        return ground.engine.rebuild()
    return rebuild_file(Path(ground.address), kept, version=VERSION, tell=lambda *_: None)


def test_everything_that_the_ledger_says_is_as_it_was(lasting: Ground, tmp_path: Path) -> None:
    fill(lasting.store)
    before = everything(lasting.engine)
    before["idempotency"] = [row for row in before["idempotency"] if row[1] not in (b"key 1", "key 1")]
    for statement in DAMAGE:
        lasting.tamper(statement)
    assert len(lasting.store.verify()) >= len(DAMAGE)
    done = rebuilt(lasting, tmp_path / "kept.db")
    again = lasting.another()
    assert again.verify() == []
    assert everything(again.engine) == before
    assert (done.events, done.keys) == (len(before["event"]), 2)
    put(again, workflow("workflow_1", name="goes on"))
    assert again.verify() == []


def test_a_damaged_ledger_is_refused_and_left_as_it_is(lasting: Ground, tmp_path: Path) -> None:
    fill(lasting.store)
    lasting.tamper("UPDATE event SET actor = 'somebody' WHERE seq = 2")
    before = everything(lasting.engine)
    with pytest.raises(StoreUnusable, match=r"the ledger itself is damaged: .* event 2 was changed") as refused:
        rebuilt(lasting, tmp_path / "kept.db")
    assert "handrail db restore BACKUP" in refused.value.hint
    assert everything(lasting.engine) == before
    assert [path.name for path in tmp_path.iterdir() if "kept" in path.name or "rebuilt" in path.name] == []


@pytest.mark.parametrize(
    "lost",
    ["DELETE FROM event WHERE stream = 'workflow_1' AND seq > 3", "UPDATE stream SET head = 77, hash = 'x'"],
    ids=["events at the end", "heads that say otherwise"],
)
def test_events_that_may_be_missing_at_the_end_are_damage(lasting: Ground, tmp_path: Path, lost: str) -> None:
    fill(lasting.store)
    lasting.tamper(lost)
    with pytest.raises(StoreUnusable, match=r"the ledger itself is damaged: .*its head says"):
        rebuilt(lasting, tmp_path / "kept.db")


def test_who_has_the_file_open_is_told(sqlite: Ground, tmp_path: Path) -> None:
    fill(sqlite.store)
    rebuilt(sqlite, tmp_path / "kept.db")
    with pytest.raises(StoreUnusable, match="was removed or replaced while it was open"):
        put(sqlite.store, workflow("wf_late"))


def test_what_was_only_in_the_log_is_in_both(sqlite: Ground, tmp_path: Path) -> None:
    """The file is kept with its log, as it was; nothing acknowledged is missing in either."""
    held = apsw.Connection(sqlite.address)
    held.execute("SELECT count(*) FROM event").fetchall()
    fill(sqlite.store)
    count = len(sqlite.store.feed(limit=10_000))
    kept = tmp_path / "kept.db"
    assert rebuilt(sqlite, kept).events == count
    held.close()
    assert Path(f"{kept}-wal").stat().st_size > 0
    other = sqlite_ground(kept)
    assert len(other.store.feed(limit=10_000)) == count
    other.close()


def test_only_a_number_that_is_damaged_is_put_right(sqlite: Ground, tmp_path: Path) -> None:
    fill(sqlite.store)
    sqlite.tamper("PRAGMA user_version = 2")
    with pytest.raises(StoreUnusable, match="changed by something other"):
        sqlite.another()
    rebuilt(sqlite, tmp_path / "kept.db")
    assert sqlite.another().verify() == []


def test_an_older_store_is_first_brought_up_to_date(sqlite: Ground, tmp_path: Path) -> None:
    put(sqlite.store, workflow())
    copy = tmp_path / "older.db"
    sqlite.lasting.backup(str(copy))
    older(copy, LATEST - 1)
    with pytest.raises(StoreUnusable, match=f"has schema {LATEST - 1}, not {LATEST}"):
        rebuild_file(copy, tmp_path / "kept.db", version=VERSION, tell=lambda *_: None)


def test_a_file_set_aside_is_whole_and_out_of_the_way(sqlite: Ground, tmp_path: Path) -> None:
    fill(sqlite.store)
    path, kept = Path(sqlite.address), tmp_path / "kept.db"
    set_aside(path, kept)
    assert not path.exists()
    assert not Path(f"{path}-wal").exists()
    other = sqlite_ground(kept)
    assert other.store.verify() == []
    assert len(other.store.feed(limit=10_000)) > 50
    other.close()
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        assert connection.execute("SELECT count(*) FROM sqlite_schema").get == 0

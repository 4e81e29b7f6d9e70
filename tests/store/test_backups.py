"""A backup before it is believed: copied once, looked through completely, refused by name."""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import apsw
import pytest

from handrail.kernel.errors import InvalidParams
from handrail.store.backups import checked_copy
from handrail.store.migrations import LATEST
from tests.store.ground import VERSION, Ground, older, sqlite_ground
from tests.store.records import put, workflow

SLY = "CREATE TRIGGER sly AFTER UPDATE ON stream BEGIN UPDATE workflow SET name = 'mine'; END"
CHANGES = {
    "a trigger": (SLY, "trigger sly on stream is not part of a store"),
    "a view in a table's place": (
        """ALTER TABLE fact RENAME TO fact_of_mine; CREATE VIEW fact AS SELECT * FROM fact_of_mine;
        CREATE TRIGGER sly INSTEAD OF INSERT ON fact BEGIN SELECT 1; END""",
        "fact",
    ),
    "a virtual table": ("CREATE VIRTUAL TABLE words USING fts5(x)", "words"),
    "statistics": ("ANALYZE", "sqlite_stat1"),
    "a row that nobody recorded": ("UPDATE workflow SET name = 'mine'", "disagree about name"),
    "an event that was changed": ("UPDATE event SET actor = 'somebody'", "was changed after it was written"),
    "another number": ("PRAGMA user_version = 3", "is not part of a store"),
    "a number from tomorrow": ("PRAGMA user_version = 9000", "schema 9000"),
    "a store that has moved": ("PRAGMA user_version = 1000010", "has moved to another place"),
    "another program's mark": ("PRAGMA application_id = 7", "a database of something else"),
    "nothing but a mark": ("DROP TABLE fact; PRAGMA user_version = 0", "a database of something else"),
}


@pytest.fixture
def backup(sqlite: Ground, tmp_path: Path) -> Path:
    put(sqlite.store, workflow())
    copy = tmp_path / "backup.db"
    sqlite.lasting.backup(str(copy))
    return copy


def changed(path: Path, statement: str) -> None:
    with contextlib.closing(apsw.Connection(str(path))) as connection:
        connection.execute(statement).fetchall()


def refusal_of(source: Path) -> str:
    with pytest.raises(InvalidParams) as refused, checked_copy(source, version=VERSION, tell=lambda *_: None):
        pass
    assert str(source) in refused.value.message
    return refused.value.message


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_is_not_exactly_a_sound_store_is_refused(backup: Path, change: tuple[str, str]) -> None:
    statement, named = change
    changed(backup, statement)
    before = backup.read_bytes()
    assert named in refusal_of(backup)
    assert backup.read_bytes() == before


def test_what_is_no_ordinary_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    empty, letter, pipe, behind = (tmp_path / name for name in ("empty.db", "letter.db", "pipe.db", "behind.db"))
    empty.touch()
    letter.write_text("dear all, " * 100, encoding="utf-8")
    os.mkfifo(pipe)
    behind.symlink_to("/dev/zero")
    hollow = tmp_path / "hollow.db"
    changed(hollow, "CREATE TABLE x (y); DROP TABLE x; VACUUM")
    assert refusal_of(empty).endswith("is empty")
    assert "is no database" in refusal_of(letter)
    for odd in (pipe, behind, Path("/dev/zero"), Path("/dev/null"), tmp_path):
        assert "is no ordinary file" in refusal_of(odd)
    assert "No such file" in refusal_of(tmp_path / "missing.db")
    assert "a database of something else" in refusal_of(hollow)


def test_a_sound_one_of_an_older_schema_is_brought_up_to_date_in_the_copy(backup: Path) -> None:
    older(backup, LATEST - 1)
    before = backup.read_bytes()
    with checked_copy(backup, version=VERSION, tell=lambda *_: None) as copy:
        ground = sqlite_ground(copy)
        assert ground.store.verify() == []
        assert len(ground.store.feed()) == 1
        ground.close()
    assert backup.read_bytes() == before
    assert not copy.exists()


def test_what_lies_beside_it_is_part_of_it(backup: Path, tmp_path: Path) -> None:
    """What was written last may be in the log; and whatever the log adds is checked like the rest."""
    taken, good = tmp_path / "taken.db", tmp_path / "good.db"
    ground = sqlite_ground(backup)
    held = apsw.Connection(str(backup))
    held.execute("SELECT count(*) FROM event").fetchall()
    put(ground.store, workflow("wf_2"))
    for ending in ("", "-wal"):
        shutil.copyfile(f"{backup}{ending}", f"{good}{ending}")
    with checked_copy(good, version=VERSION, tell=lambda *_: None) as copy:
        again = sqlite_ground(copy)
        assert len(again.store.feed()) == 2
        again.close()
    held.execute(SLY)
    for ending in ("", "-wal"):
        shutil.copyfile(f"{backup}{ending}", f"{taken}{ending}")
    held.close()
    ground.close()
    assert "trigger sly on stream" in refusal_of(taken)


def test_what_becomes_of_the_file_meanwhile_does_not_matter(backup: Path, tmp_path: Path) -> None:
    with checked_copy(backup, version=VERSION, tell=lambda *_: None) as copy:
        changed(backup, SLY)
        with contextlib.closing(apsw.Connection(str(copy))) as connection:
            assert not connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").get

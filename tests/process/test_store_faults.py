"""Disks and files that fail: full, read-only, damaged, cut short, foreign, gone. Each is refused in words that help,
and what was acknowledged before is still there."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from handrail.kernel.errors import StoreRefused, StoreUnusable
from handrail.store.sqlite import SqliteEngine
from tests.process.store_audit import audit, every_event, open_store
from tests.process.store_patient import Patient, note, open_files

PAGE_BYTES = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def written(path: Path, count: int) -> list[dict[str, Any]]:
    """A store with some events in it, closed in order."""
    store = open_store(path)
    acks = [note(store, f"before-{number}", 300) for number in range(count)]
    store.engine.close()
    return acks


def wal(path: Path) -> Path:
    return path.with_name(path.name + "-wal")


# -- full -----------------------------------------------------------------------------------------------------------


def test_a_full_disk_is_told_and_the_same_engine_goes_on_when_there_is_room_again(path: Path) -> None:
    with Patient(path) as patient:
        acks = patient.do("write", 20)["acks"]
        patient.do("room", wal(path).stat().st_size + 30_000)
        outcome = patient.do("write", 1000)
        acks += outcome["acks"]
        assert outcome["refused"]["code"] == "STORE_FULL"
        assert str(path) in outcome["refused"]["message"]
        assert "space" in outcome["refused"]["hint"]
        assert patient.do("events") == len(acks), "reading goes on, and the refused unit left nothing"
        patient.do("room", None)
        more = patient.do("write", 20)
        assert "refused" not in more
        acks += more["acks"]
    assert audit(path, acks) == []


def test_a_full_disk_refuses_every_thread_of_a_group_and_writes_none_in_half(path: Path) -> None:
    with Patient(path) as patient:
        acks = patient.do("write", 5)["acks"]
        patient.do("room", wal(path).stat().st_size + 60_000)
        outcomes = patient.do("write_in_threads", 8, 200)
        assert [outcome["refused"]["code"] for outcome in outcomes] == ["STORE_FULL"] * 8
        patient.do("room", None)
        outcomes += patient.do("write_in_threads", 8, 5)
        acks += [ack for outcome in outcomes for ack in outcome["acks"]]
        assert len(acks) >= 45
        assert patient.do("events") == len(acks)
    assert audit(path, acks) == []


def test_a_store_is_not_begun_without_room_and_can_be_begun_later(path: Path) -> None:
    with Patient() as patient:
        patient.do("room", 8000)
        assert patient.refused("open", str(path), 1000)["code"] == "STORE_FULL"
        patient.do("room", None)
        patient.do("open", str(path), 1000)
        acks = patient.do("write", 3)["acks"]
    assert audit(path, acks) == []


# -- read-only ------------------------------------------------------------------------------------------------------


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """A folder that another user can reach, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_read_only_file_can_be_neither_written_nor_harmed(public_folder: Path) -> None:
    path = public_folder / "store.db"
    acks = written(path, 5)
    path.chmod(0o444)
    public_folder.chmod(0o777)
    with Patient() as patient:
        patient.do("become_nobody")
        patient.ask("open", str(path), 1000)
        told = patient.told()
        refusal = told["refused"] if "refused" in told else patient.do("write", 1)["refused"]
        assert refusal["code"] in ("STORE_UNUSABLE", "STORE_AWAY")
        assert str(path) in refusal["message"]
        assert "permissions" in refusal["hint"] or "may be written" in refusal["hint"]
        if "refused" not in told:  # it is open, and can be read
            path.chmod(0o666)
            for beside in public_folder.iterdir():
                beside.chmod(0o666)
            more = patient.do("write", 2)
            assert "refused" not in more
            acks += more["acks"]
    assert audit(path, acks) == []


def test_a_read_only_folder_is_told(public_folder: Path) -> None:
    path = public_folder / "store.db"
    acks = written(path, 5)
    path.chmod(0o444)
    public_folder.chmod(0o555)
    before = sorted(public_folder.iterdir())
    with Patient() as patient:
        patient.do("become_nobody")
        refusal = patient.refused("open", str(path), 1000)
        assert refusal["code"] == "STORE_UNUSABLE"
        assert "folder" in refusal["hint"]
    assert sorted(public_folder.iterdir()) == before
    public_folder.chmod(0o755)
    assert audit(path, acks) == []


def test_a_new_store_in_a_read_only_folder_is_told(public_folder: Path) -> None:
    public_folder.chmod(0o555)
    with Patient() as patient:
        patient.do("become_nobody")
        refusal = patient.refused("open", str(public_folder / "store.db"), 1000)
        assert refusal["code"] == "STORE_UNUSABLE"
        assert "folder" in refusal["hint"]
    assert list(public_folder.iterdir()) == []


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable) as caught:
        open_store(tmp_path / "nowhere" / "store.db")
    assert "folder" in caught.value.hint


# -- damaged --------------------------------------------------------------------------------------------------------


def noticed(path: Path) -> str:
    """How the damage showed: refused at opening, refused at reading, or found by looking; empty when it did not."""
    try:
        store = open_store(path)
    except StoreUnusable as refusal:
        return "opening" if refusal.hint else ""
    try:
        return "found" if [*store.engine.check(), *store.verify()] else ""
    except StoreUnusable as refusal:
        return "reading" if "damaged" in refusal.message else ""
    finally:
        store.engine.close()


def overwritten(path: Path, offset: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(content)


def test_a_damaged_beginning_is_told_with_the_way_back(path: Path) -> None:
    written(path, 5)
    overwritten(path, 0, b"\0" * 64)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable) as caught:
        open_store(path)
    assert "damaged" in caught.value.message
    assert "handrail db restore" in caught.value.hint
    assert path.read_bytes() == before


@pytest.mark.parametrize("garbage", [b"\0" * PAGE_BYTES, bytes(range(256)) * 16], ids=["zeros", "noise"])
@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.torture)])
def test_no_damaged_page_goes_unnoticed(path: Path, tmp_path: Path, garbage: bytes, step: int) -> None:
    """Every fourth page; in the torture all of them."""
    written(path, 150)
    pages = path.stat().st_size // PAGE_BYTES
    assert pages > 30
    shown: dict[str, int] = {}
    for page in range(1, pages, step):
        copy = tmp_path / f"copy_{page}.db"
        shutil.copyfile(path, copy)
        overwritten(copy, page * PAGE_BYTES, garbage)
        how = noticed(copy)
        assert how, f"page {page + 1} of {pages}"
        shown[how] = shown.get(how, 0) + 1
    print(f"{sum(shown.values())} damaged pages: {shown}")


@pytest.mark.parametrize("other", [b"before-8", b"before\xff\xff"], ids=["changed", "unreadable"])
def test_an_event_that_was_changed_on_disk_is_found(path: Path, other: bytes) -> None:
    written(path, 10)
    told = b'"thread_id":"before-3"'
    content = path.read_bytes()
    assert told in content
    path.write_bytes(content.replace(told, told.replace(b"before-3", other)))
    assert noticed(path)


@pytest.mark.parametrize("kept", [0.5, 0.9])
@pytest.mark.parametrize("ragged", [0, 1000])
def test_a_file_cut_short_is_told(path: Path, kept: float, ragged: int) -> None:
    written(path, 100)
    size = path.stat().st_size
    os.truncate(path, int(size * kept) // PAGE_BYTES * PAGE_BYTES + ragged)
    assert noticed(path)


def test_a_file_cut_within_its_first_page_is_told(path: Path) -> None:
    written(path, 5)
    os.truncate(path, 50)
    assert noticed(path) == "opening"


def test_an_empty_file_is_a_new_store(path: Path) -> None:
    path.touch()
    acks = written(path, 3)
    assert audit(path, acks) == []


# -- foreign --------------------------------------------------------------------------------------------------------


def foreign(path: Path, journal: str, version: int) -> None:
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA journal_mode = {journal}").fetchall()
    connection.execute("CREATE TABLE theirs (x)")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


@pytest.mark.parametrize("journal", ["delete", "wal"])
@pytest.mark.parametrize("version", [0, 1, 99])
def test_a_database_of_something_else_is_left_alone(path: Path, journal: str, version: int) -> None:
    foreign(path, journal, version)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="something else") as caught:
        open_store(path)
    assert "--db" in caught.value.hint
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [path.name], "nothing is left beside it"


def test_a_text_file_is_left_alone(path: Path) -> None:
    path.write_text("Not a database, but somebody's notes.\n" * 40)
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match="no database") as caught:
        open_store(path)
    assert "--db" in caught.value.hint
    assert path.read_bytes() == before
    assert [found.name for found in path.parent.iterdir()] == [path.name]


def test_a_folder_in_place_of_the_file_is_told(path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreUnusable, match="cannot be opened"):
        open_store(path)


# -- taken away -----------------------------------------------------------------------------------------------------


def replace_with_a_copy(path: Path) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    path.with_name("copy").replace(path)


@pytest.mark.parametrize(
    "take_away",
    [lambda path: path.unlink(), replace_with_a_copy, lambda path: wal(path).unlink()],
    ids=["removed", "replaced", "wal removed"],
)
def test_files_taken_away_under_an_open_store_refuse_the_next_write(
    path: Path, take_away: Callable[[Path], None]
) -> None:
    store = open_store(path)
    note(store, "seen-1")
    take_away(path)
    for _ in range(2):
        with pytest.raises(StoreUnusable, match="removed or replaced") as caught:
            note(store, "never-1")
        assert "start this process again" in caught.value.hint
    assert [event.data["unit"] for event in every_event(store)] == ["seen-1"]
    store.engine.close()


def test_a_removed_wal_costs_nothing_that_was_acknowledged_while_its_writer_lives(path: Path) -> None:
    store = open_store(path)
    acks = [note(store, f"seen-{number}") for number in range(20)]
    wal(path).unlink()
    with pytest.raises(StoreUnusable):
        note(store, "never-1")
    store.engine.close()  # still has the removed file open, and takes it into the database
    assert audit(path, acks) == []


def test_a_wal_removed_after_a_crash_leaves_an_older_whole_store(path: Path) -> None:
    """What was only in it is gone, and nobody can tell: the three files belong together."""
    acks = written(path, 10)
    with Patient(path) as patient:
        patient.do("write", 10)
    assert wal(path).exists()
    wal(path).unlink()
    assert audit(path, acks) == []


def test_a_removed_gate_is_made_anew_and_everybody_meets_there(path: Path) -> None:
    first, second = open_store(path), open_store(path)
    acks = [note(first, "first-1"), note(second, "second-1")]
    gate = path.with_name(path.name + ".gate")
    gate.unlink()
    acks += [note(first, "first-2"), note(second, "second-2")]
    for store in (first, second):
        assert isinstance(store.engine, SqliteEngine)
        assert os.fstat(store.engine._gate._descriptor).st_ino == gate.stat().st_ino
        store.engine.close()
    assert audit(path, acks) == []


def test_a_copy_that_is_not_in_wal_mode_is_brought_back_into_it(path: Path) -> None:
    acks = written(path, 5)
    connection = apsw.Connection(str(path))
    assert connection.execute("PRAGMA journal_mode = DELETE").get == "delete"
    connection.close()
    store = open_store(path)
    assert isinstance(store.engine, SqliteEngine)
    assert store.engine._writer.execute("PRAGMA journal_mode").get == "wal"
    store.engine.close()
    assert audit(path, acks) == []


# -- out of descriptors ---------------------------------------------------------------------------------------------


def test_a_process_without_free_descriptors_is_told_and_goes_on_when_it_has_some(path: Path) -> None:
    with Patient() as patient:
        patient.do("files", 1)
        assert "ulimit" in patient.refused("open", str(path), 1000)["hint"]
        patient.do("files", None)
        patient.do("open", str(path), 1000)
        acks = patient.do("write", 2)["acks"]
        patient.do("files", 0)
        assert "ulimit" in patient.refused("look_twice")["hint"]
        assert patient.do("events") == 2, "what is open goes on"
        acks += patient.do("write", 2)["acks"]
        patient.do("files", None)
        assert patient.do("look_twice") == 8
    assert audit(path, acks) == []


def test_the_first_write_without_a_free_descriptor_is_refused_not_lost(path: Path) -> None:
    acks = written(path, 2)
    with Patient(path) as patient:
        patient.do("files", 0)
        outcome = patient.do("write", 1)
        assert outcome["acks"] == []
        assert "ulimit" in outcome["refused"]["hint"]
        patient.do("files", None)
        acks += patient.do("write", 2)["acks"]
    assert audit(path, acks) == []


def test_the_files_are_for_their_owner_alone(path: Path) -> None:
    written(path, 1)
    gate = path.with_name(path.name + ".gate")
    assert stat.S_IMODE(gate.stat().st_mode) == 0o600


def test_a_refused_opening_leaves_nothing_open(path: Path) -> None:
    foreign(path, "wal", 0)
    before = open_files()
    for _ in range(5):
        with contextlib.suppress(StoreRefused):
            open_store(path)
    assert open_files() == before

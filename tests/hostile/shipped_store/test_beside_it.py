"""What lies beside a store and came with a tree: notes, a search index and snapshots are not believed either."""

from __future__ import annotations

import shutil
from pathlib import Path

import apsw

from tests.hostile.shipped_store.scene import WORDS, Done, Machine, Shipped

LIE = "READ-THIS-AND-OBEY.py"


def begun(machine: Machine) -> None:
    """A store of the machine's own, with a task that is journalled."""
    machine.store.unlink()
    shutil.rmtree(machine.repo / ".handrail" / "snapshots")
    assert machine.run("call", "start_workflow", "name=Own", "description=d").code == 0
    started = start(machine, "own task")
    assert started.code == 0, started


def start(machine: Machine, name: str) -> Done:
    """Begins another task of the only workflow."""
    with apsw.Connection(str(machine.store)) as connection:
        workflow = connection.execute("SELECT id FROM workflow").get
    connection.close()
    about = (f"workflow_id={workflow}", f"name={name}", "goal=g", f"directory={machine.repo}")
    return machine.run("call", "start_task", *about)


def test_notes_from_elsewhere_are_told_to_nobody(unpacked: Machine) -> None:
    begun(unpacked)
    notes = Path(f"{unpacked.store}.hooks")
    for schema in (1, 2):
        with apsw.Connection(str(notes)) as forged:
            forged.execute(
                "DROP TABLE IF EXISTS edited; DROP TABLE IF EXISTS store; DROP TABLE IF EXISTS reminded;"
                "CREATE TABLE edited (directory, path, agent, at_ms); CREATE TABLE reminded (session, task, at_ms);"
                "CREATE TABLE store (mark)"
            )
            forged.execute("INSERT INTO store VALUES (?)", (f"{'0' * 32}:{'0' * 64}",))
            forged.execute("INSERT INTO edited VALUES (?, ?, '', ?)", (str(unpacked.repo), LIE, 10**15))
            forged.execute(f"PRAGMA user_version = {schema}")
        forged.close()
        told = unpacked.hook("start")
        assert ("own task" in told, LIE in told) == (True, False)
    assert unpacked.hook("stop") != "", "they are begun anew"
    assert LIE.encode() not in notes.read_bytes()


def test_a_search_index_from_elsewhere_is_built_anew(shipped: Shipped, unpacked: Machine) -> None:
    author = shipped.machine
    kept = author.home / ".handrail" / "trusted-stores"
    try:
        assert author.run("db", "trust", "--yes").code == 0
        assert "shipped task" in author.run("search", "shipped").said
    finally:
        kept.unlink()
    index = Path(f"{author.store}-search")
    begun(unpacked)
    shutil.copyfile(index, f"{unpacked.store}-search")
    with apsw.Connection(f"{unpacked.store}-search") as forged:  # as if it had read nothing yet
        forged.execute("UPDATE stand SET position = 0, hash = ''")
    forged.close()
    assert "shipped task" not in unpacked.run("search", "shipped").said
    assert "own task" in unpacked.run("search", "own").said
    index.unlink()


def test_snapshots_from_elsewhere_are_no_evidence(unpacked: Machine) -> None:
    """An index among them could hide every change of a task."""
    folder = unpacked.repo / ".handrail" / "snapshots"
    shutil.copytree(folder, folder.with_name("shipped"))
    begun(unpacked)
    shutil.rmtree(folder)
    folder.with_name("shipped").rename(folder)
    refused = start(unpacked, "next task")
    assert (refused.code, "STORE_NOT_TRUSTED" in refused.said) == (1, True), refused
    assert str(folder) in refused.said
    assert WORDS not in refused.said
    assert unpacked.run("db", "trust", "--yes").code == 0
    assert start(unpacked, "next task").code == 0
    (folder / "made").write_text(f"{'0' * 32}:{'0' * 64}\n", encoding="ascii")
    assert start(unpacked, "third task").code == 1
    shutil.rmtree(folder)
    assert start(unpacked, "third task").code == 0

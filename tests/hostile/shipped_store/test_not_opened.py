"""A store that came with a tree is opened by nothing before its user said so, and is named."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.hostile.shipped_store.scene import WORDS, Machine, Shipped, call

NOT_TRUSTED = "STORE_NOT_TRUSTED"
WRITE = ("call", "start_workflow", "name=Own", "description=d")
UP = ("up", "--http", "127.0.0.1:0", "--json")


@pytest.fixture(params=["cloned", "unpacked"])
def victim(request: pytest.FixtureRequest) -> Machine:
    found: Machine = request.getfixturevalue(request.param)
    return found


def test_no_command_uses_it(victim: Machine) -> None:
    before = victim.store.read_bytes()
    for argv in (("status",), WRITE, ("db", "check"), ("db", "upgrade"), ("token", "list"), UP):
        done = victim.run(*argv)
        assert (done.code, NOT_TRUSTED in done.said) == (1, True), (argv, done)
        assert "handrail db trust" in done.said
        assert "Shipped" not in done.said
    assert victim.store.read_bytes() == before


def test_no_agent_is_told_of_it(victim: Machine) -> None:
    assert victim.hook("start") == ""
    assert victim.hook("stop") == ""
    with victim.serve() as server:
        refused = call(server, "workflow_list")
        assert refused["code"] == NOT_TRUSTED
        assert victim.hook("start") == "", "this machine has a key by now, and the store not its mark"
        assert victim.run("db", "trust", "--yes").code == 0
        assert "Shipped" in str(call(server, "workflow_list")), "the server that refused goes on"
    assert WORDS in victim.hook("start")


def test_doctor_names_it(victim: Machine) -> None:
    done = victim.run("doctor")
    assert done.code == 1
    assert f"{victim.store} was not made on this machine" in done.said
    assert "handrail db trust" in done.said
    assert ": schema" not in done.said


def test_one_that_git_tracks_is_named_though_this_machine_made_it(shipped: Shipped) -> None:
    """Whoever can push can change it."""
    author = shipped.machine
    done = author.run("status")
    assert "git tracks .handrail/handrail.db" in done.said
    assert author.hook("start") == ""
    assert "git tracks" in author.run("doctor").said
    kept = author.home / ".handrail" / "trusted-stores"
    try:
        assert author.run("db", "trust", "--yes").code == 0
        assert author.run("status").code == 0, "the word is kept"
        assert WORDS in author.hook("start")
    finally:
        kept.unlink(missing_ok=True)


def own_store(machine: Machine) -> None:
    """A store of the victim's own, in place of the shipped one."""
    machine.store.unlink()
    assert machine.run(*WRITE).code == 0


@pytest.mark.parametrize("ending", ["-journal", "-wal"])
def test_a_journal_or_log_beside_the_own_store_is_not_written_into_it(
    unpacked: Machine, tmp_path: Path, ending: str
) -> None:
    own_store(unpacked)
    hot = Path(f"{unpacked.store}{ending}")
    if ending == "-journal":
        hot.write_bytes(_hot_journal(tmp_path))
    else:
        hot.symlink_to(tmp_path / "elsewhere")
    before = unpacked.store.read_bytes()
    done = unpacked.run("status")
    assert (done.code, NOT_TRUSTED in done.said) == (1, True), done
    assert unpacked.run("db", "trust", "--yes").code == 1, "nobody can agree to that"
    assert unpacked.hook("start") == ""
    assert unpacked.store.read_bytes() == before
    hot.unlink()
    assert unpacked.run("status").code == 0


def _hot_journal(folder: Path) -> bytes:
    """A journal that SQLite would roll back into the database beside it."""
    connection = sqlite3.connect(folder / "other.db", isolation_level=None)
    connection.execute("PRAGMA journal_mode = PERSIST")
    connection.execute("CREATE TABLE a (b)")
    connection.execute("BEGIN")
    connection.execute("INSERT INTO a VALUES (zeroblob(9000))")
    connection.execute("PRAGMA cache_spill = ON")
    content = (folder / "other.db-journal").read_bytes()
    connection.close()
    return content


def test_one_that_others_may_read_is_closed_by_one_command(unpacked: Machine) -> None:
    own_store(unpacked)
    unpacked.store.chmod(0o644)
    done = unpacked.run("status")
    assert "mode 644" in done.said
    assert unpacked.hook("start") == ""
    assert unpacked.run("db", "trust", "--yes").code == 0
    assert unpacked.store.stat().st_mode & 0o777 == 0o600
    assert unpacked.run("status").code == 0
    assert unpacked.run("doctor", "--json").said.count("was not made") == 0

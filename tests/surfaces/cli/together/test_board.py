"""`handrail board` as a person uses it: boards, the entries of one, an entry whole. It writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.board.board import Board, EntryUpdate
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.outside.world import SystemClock
from handrail.store.store import Store
from handrail.surfaces.cli.together.board import board
from tests.own_store import own_store

MINUTE = 60_000


class Hall:
    """A project with boards, and a person who looks at them."""

    def __init__(self, project: Path) -> None:
        project.mkdir()
        self.project = project
        self.clock = FixedClock(SystemClock().now_ms() - 10 * MINUTE)

    def put(self, key: str, value: Any, **more: Any) -> None:
        store = self.store()
        wanted = EntryUpdate(key, value, **more)
        store.run(Actor("ada", "mcp"), lambda unit: Board(unit, key.partition(":")[0]).put(wanted))
        store.engine.close()

    def store(self) -> Store:
        return own_store(self.project, self.project.parent / "home", clock=self.clock, ids=CountingIds())

    def run(self, *argv: str) -> click.testing.Result:
        home = {"HOME": str(self.project.parent / "home"), "COLUMNS": "80", "NO_COLOR": "1"}
        return click.testing.CliRunner(env=home).invoke(board, [*argv, "--root", str(self.project)])

    def shown(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    def json(self, *argv: str) -> Any:
        return msgspec.json.decode(self.shown(*argv, "--json"))


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path / "project")


def test_nothing_yet_says_so_and_makes_no_store(hall: Hall) -> None:
    assert hall.shown() == "No board has an entry. Agents set them with bb_set.\n"
    assert hall.json("list") == {"boards": []}
    assert not (hall.project / ".handrail").exists()


def test_boards_are_listed_with_what_stands_on_them(hall: Hall) -> None:
    hall.put("plan:next", 1)
    hall.put("plan:next", 2)
    hall.put("plan:port", 3)
    hall.put("notes:a", 1)
    hall.put("gone:a", 1, ttl_ms=MINUTE)
    assert hall.shown() == hall.shown("list") == "notes  1 entry, version 1\nplan   2 entries, version 3\n"
    assert hall.json() == {
        "boards": [{"name": "notes", "entries": 1, "version": 1}, {"name": "plan", "entries": 2, "version": 3}]
    }


def test_the_entries_of_a_board_come_by_key_with_what_is_known_of_them(hall: Hall) -> None:
    hall.put("plan:port", {"n": "x" * 200}, tags=["net", "dev"])
    hall.put("plan:next", "wrap", ttl_ms=60 * MINUTE)
    text = hall.shown("show", "plan")
    lines = text.splitlines()
    assert lines[0] == "plan:next"
    assert lines[1] == '  "wrap"'
    assert lines[2].startswith("  version 2, set by ada 10 minutes ago, runs out in ")
    assert lines[4].startswith('  {"n":"xxx')
    assert lines[4].endswith("…")
    assert lines[5] == "  version 1, set by ada 10 minutes ago, tags net, dev"
    assert max(map(len, lines)) <= 80
    page = hall.json("show", "plan")
    assert (page["namespace"], page["total"]) == ("plan", 2)
    assert page["entries"][1]["value"] == {"n": "x" * 200}


def test_more_than_the_limit_is_counted(hall: Hall) -> None:
    for n in range(3):
        hall.put(f"plan:{n}", n)
    assert hall.shown("show", "plan", "--limit", "1").endswith("2 more; --limit 500 shows more of them.\n")


def test_an_empty_board_says_so_and_names_one_that_is_near(hall: Hall) -> None:
    hall.put("plan:next", 1)
    text = hall.shown("show", "plam")
    assert "Nothing stands on the board plam" in text
    assert "plan" in text


def test_an_entry_is_shown_whole(hall: Hall) -> None:
    hall.put("plan:next", {"a": ["b", "x" * 3000]})
    text = hall.shown("get", "plan:next")
    assert text.startswith("plan:next\nversion 1, set by ada 10 minutes ago\n")
    assert '    "b",' in text.splitlines()[4]
    assert text.count("x") >= 3000
    assert hall.json("get", "plan:next")["value"] == {"a": ["b", "x" * 3000]}


def test_a_key_without_a_board_is_on_the_default_one(hall: Hall) -> None:
    hall.put("default:note", "line one\nline \x1b[31mtwo")
    text = hall.shown("get", "note")
    assert text.startswith("default:note\n")
    assert "  line one\n  line [31mtwo\n" in text


def test_what_is_not_there_or_no_key_is_refused_with_the_way_out(hall: Hall) -> None:
    hall.put("plan:old", 1, ttl_ms=MINUTE)
    gone = hall.run("get", "plan:old")
    assert gone.exit_code == 1
    assert "nothing stands under plan:old" in gone.stderr
    assert "handrail board show plan" in gone.stderr
    for argv in (("get", "plan:"), ("get", "\udcff"), ("show", "no board")):
        wrong = hall.run(*argv)
        assert wrong.exit_code in (1, 2), (argv, wrong.output, wrong.exception)
        assert wrong.exception is None or isinstance(wrong.exception, SystemExit)


def test_looking_writes_nothing(hall: Hall) -> None:
    hall.put("plan:old", 1, ttl_ms=MINUTE)
    before = hall.store().position()
    for argv in (("list",), ("show", "plan"), ("show", "plan", "--json")):
        hall.shown(*argv)
    assert hall.store().position() == before

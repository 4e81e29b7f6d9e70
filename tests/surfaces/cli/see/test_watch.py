"""`handrail watch`: a frame is a function of what there is and of the terminal's size."""

from __future__ import annotations

import re
from datetime import UTC
from pathlib import Path
from types import SimpleNamespace

import click.testing
import msgspec
import pytest

from handrail.domain.journal.journal import LOOKING
from handrail.kernel.errors import StoreAway
from handrail.surfaces.cli.chosen import looking_call
from handrail.surfaces.cli.columns import width
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.see import watch
from handrail.surfaces.cli.see.status import OpenWork
from handrail.surfaces.cli.see.watch import Screen, looked
from handrail.surfaces.cli.see.watch_frame import FrameSize, Happened, Watcher, WatchReading, frame, read_frame
from handrail.wiring import WorkPlace
from tests.page.rich import Facts, build
from tests.page.rich_stage import Stage
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

NOW = 1_700_000_000_000
NOTHING = OpenWork(workflows=(), questions=(), more_workflows=0, elsewhere=0)


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return build(tmp_path_factory.mktemp("rich"))


@pytest.fixture(scope="module")
def found(rich: Facts) -> WatchReading:
    stage = Stage(rich.project, rich.home, minutes=0)
    call = stage.handrail.call
    made = call.ledger.run(LOOKING, lambda unit: read_frame(msgspec.structs.replace(call, unit=unit), None, "notes"))
    stage.close()
    return made


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")


def test_a_frame_fits_every_terminal_and_nothing_commands_it(found: WatchReading) -> None:
    for columns in (20, 39, 80, 120):
        for rows in (2, 5, 10, 24, 60, 200):
            lines = frame(found, FrameSize(columns, rows), UTC)
            assert len(lines) <= rows, (columns, rows)
            assert max(map(width, lines)) <= columns, (columns, rows)
            assert all(line.isprintable() for line in lines), (columns, rows)


def test_a_tall_terminal_shows_all_of_it(found: WatchReading) -> None:
    lines = frame(found, FrameSize(110, 200), UTC)
    assert [line for line in lines if line and not line.startswith(" ")][1:] == [
        "Waiting for you",
        "Workflows",
        "Under way",
        "Agents",
        "Newest",
    ]
    text = "\n".join(lines)
    for part in (
        '? checkpoint-a of "Share a note by a link that expires" (approve / reject / abandon)',
        "! Migrate old notes: May notes older than a year be dropped? <img",
        "✉ 2 unread messages: handrail message",
        "[###---------] 9/32, 3 in progress, 1 paused, 1 failed",
        "✗ Index the words",
        "✗ scout",
        "lost, 1 hour ago; Write down the protocol",
        "● planner  ok",
    ):
        assert part in text
    assert "more" not in text


def test_what_has_no_room_is_counted(found: WatchReading) -> None:
    lines = frame(found, FrameSize(80, 24), UTC)
    assert "Waiting for you" in lines
    cut = [line for line in lines if line.startswith("  and ")]
    assert cut, "a terminal of 24 rows has no room for all of it"
    for line in cut:
        assert int(line.split()[1]) > 0


def test_a_small_terminal_keeps_what_waits_for_you(found: WatchReading) -> None:
    lines = frame(found, FrameSize(80, 7), UTC)
    assert lines[2] == "Waiting for you"
    assert "Newest" not in lines


def test_late_and_lost_are_told_in_words_too() -> None:
    agents = tuple(
        Watcher(name=tier, tier=tier, heard_at=NOW - 60_000, task=None if tier == "ok" else "Paint")
        for tier in ("ok", "late", "lost")
    )
    events = (Happened(at=NOW, who="a\x1b[2J", kind="task.completed", about="b", words="completed “b\u202ec”"),)
    made = WatchReading(title="here", now=NOW, status=NOTHING, agents=agents, agents_in_all=5, events=events)
    lines = frame(made, FrameSize(80, 24), UTC)
    assert lines[0] == f"Handrail here{' ' * 59}22:13:20"
    assert "No workflow is open here." in lines[2]
    assert lines[4:9] == [
        "Agents",
        "  ● ok    ok, 1 minute ago; without a task",
        "  ◐ late  late, 1 minute ago; Paint",
        "  ✗ lost  lost, 1 minute ago; Paint",
        "  and 2 more",
    ]
    assert lines[-1] == "  22:13:20  a [2J  completed “b c”"


def test_turns_of_a_run_are_folded_and_the_phase_is_said(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "checkpoint")
    call = desk._handrail.call
    seen = desk.store.run(LOOKING, lambda unit: read_frame(msgspec.structs.replace(call, unit=unit), None, "here"))
    turns = [event for event in seen.events if event.kind == "pipeline.moved"]
    assert [event.times for event in turns] == [1, 4], "the question in between keeps its place"
    assert turns[0].about.endswith(", at checkpoint-a")
    drawn = "\n".join(frame(seen, FrameSize(110, 60), UTC))
    assert re.search(r"advanced “.*”, now at phase-.* ×4\n", drawn)


def test_live_it_makes_no_store_where_there_is_none(tmp_path: Path) -> None:
    call = looking_call(WorkPlace(project=tmp_path, home=tmp_path, environ={}), {})
    assert looked(call, None, "here").position == 0
    assert not call.ledger.wait(0, 0.0, lambda: False)
    assert not (tmp_path / ".handrail").exists()


def test_in_a_pipe_it_is_printed_once(rich: Facts) -> None:
    runner = click.testing.CliRunner(env={"HOME": str(rich.home), "COLUMNS": "100"})
    done = runner.invoke(cli, ["watch", "--root", str(rich.project)])
    assert done.exit_code == 0, done.output
    assert "Under way" in done.output
    assert "\x1b" not in done.output
    one = runner.invoke(cli, ["watch", "The site", "--once", "--root", str(rich.project)])
    assert "Notes without a net" not in one.output
    as_json = runner.invoke(cli, ["watch", "--json", "--root", str(rich.project)])
    assert msgspec.json.decode(as_json.output)["title"] == "notes"


def test_an_unknown_workflow_is_refused(rich: Facts) -> None:
    runner = click.testing.CliRunner(env={"HOME": str(rich.home)})
    done = runner.invoke(cli, ["watch", "nothing like it", "--root", str(rich.project)])
    assert done.exit_code == 1
    assert "there is no workflow nothing like it" in done.output


def test_looking_makes_no_store(tmp_path: Path) -> None:
    done = click.testing.CliRunner(env={"HOME": str(tmp_path)}).invoke(cli, ["watch", "--root", str(tmp_path)])
    assert done.exit_code == 0
    assert "No workflow is open here." in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_away_for_a_while_ends_no_watching(
    found: WatchReading, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was seen last stays on the screen, under a line that says so."""
    drawn: list[str] = []
    screen = Screen(drawn.append)
    looks = iter([found, None, found])

    def look_once(*_: object) -> WatchReading:
        now = next(looks)
        if now is None:
            raise StoreAway("the server does not answer")
        return now

    def wait(*_: object) -> bool:
        if len(drawn) == 3:
            screen.leave()
        return True

    for name, value in {
        "looked": look_once,
        "_size": lambda: FrameSize(80, 20),
        "BETWEEN_S": 0,
        "LOOK_AGAIN_S": 0,
    }.items():
        monkeypatch.setattr(watch, name, value)
    watch._follow(SimpleNamespace(ledger=SimpleNamespace(wait=wait)), screen, None, "notes")  # type: ignore[arg-type]
    assert len(drawn) == 3
    assert "the server does not answer; looking again" in drawn[1]
    assert "notes" in drawn[1]
    assert drawn[2] == drawn[0]

"""The ledger for people: when, who, through what, and what they did, by name."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import NothingToUndo
from handrail.kernel.ids import CountingIds
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.see.log import undo_refusal_in_words


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def run(project: Path, *argv: str) -> str:
    done = invoke(project, *argv)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(project: Path, *argv: str) -> str:
    done = invoke(project, *argv)
    assert done.exit_code == 1, done.output
    return done.stderr


def invoke(project: Path, *argv: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "LOGNAME": "ann", "COLUMNS": "80"}
    return click.testing.CliRunner(env=home).invoke(cli, [*argv, "--root", str(project)])


def kinds(project: Path, *argv: str) -> list[str]:
    return [event["kind"] for event in msgspec.json.decode(run(project, "log", "--json", *argv))]


def call(project: Path, tool: str, **values: Any) -> Any:
    return msgspec.json.decode(run(project, "call", tool, msgspec.json.encode(values).decode(), "--json"))


def story(project: Path) -> str:
    """A workflow with one task, claimed and failed by Anna. The workflow's id."""
    plan = {"tasks": [{"name": "Wrap the fetch", "description": "x", "sequence": 1}], "summary": "s", "approach": "a"}
    made: str = call(project, "workflow_create", name="Import", source_type="prompt", source_content="x")["id"]
    call(project, "workflow_set_plan", id=made, plan=plan)
    agent = call(project, "agent_register", name="Anna \x1b[2J", runtime="codex")["id"]
    task = call(project, "workflow_next_tasks")["tasks"][0]["id"]
    call(project, "task_claim", task_id=task, agent_id=agent, start=True)
    call(project, "task_update_status", id=task, status="failed", error="the proxy\nhangs", agent_id=agent)
    return made


def test_each_line_says_when_who_through_what_and_what_by_name(project: Path) -> None:
    story(project)
    head, *lines = run(project, "log").splitlines()
    assert head.split("  ")[0] == "when"
    assert all(re.match(r"(a moment|\d+ seconds?) ago +", line) for line in lines)
    words = [re.split(r" {2,}", line)[1:] for line in lines]
    assert ["ann (call)", "created “Import”"] in words
    assert ["Anna [2J (call)", "started “Wrap the fetch”"] in words
    assert ["Anna [2J (call)", "failed at “Wrap the fetch”: the proxy hangs"] in words
    assert "\x1b" not in "\n".join(lines)


def test_programs_get_what_they_always_got(project: Path) -> None:
    made = story(project)
    first = msgspec.json.decode(run(project, "log", "--json"))[0]
    assert (first["position"], first["stream"], first["kind"]) == (1, made, "workflow.created")
    assert {"at_ms", "actor", "channel", "seq", "data", "changes"} <= set(first)


def test_what_was_taken_back_is_said_by_name(project: Path) -> None:
    call(project, "workflow_create", name="A mistake", source_type="prompt", source_content="x")
    told = run(project, "undo")
    assert "created “A mistake”" in told
    assert "workflow.created, event 1" in " ".join(told.split())
    lines = run(project, "log").splitlines()
    assert lines[1].endswith("created “A mistake”"), "it is not there any more, and still has its name"
    assert lines[2].endswith("took back: created “A mistake”")


def test_undo_goes_on_step_by_step_and_says_what_each_step_was(project: Path) -> None:
    for name in ("a", "b", "c"):
        call(project, "workflow_create", name=name, source_type="prompt", source_content="x")
    assert [run(project, "undo").split("“")[1][0] for _ in range(3)] == ["c", "b", "a"]
    assert "what ann wrote last is all taken back" in invoke(project, "undo").output
    assert [line.split("  ")[-1] for line in run(project, "log").splitlines()[-3:]] == [
        "took back: created “c”",
        "took back: created “b”",
        "took back: created “a”",
    ]


def test_the_end_of_a_workflow_is_told_in_words(project: Path) -> None:
    call(project, "workflow_create", name="Import", source_type="prompt", source_content="x")
    run(project, "done", "Import", "--abandon")
    assert run(project, "log").splitlines()[-1].endswith("abandoned “Import”")
    assert "abandoned “Import”" in run(project, "undo")


def test_who_registers_an_agent_is_told_with_its_name(project: Path) -> None:
    call(project, "agent_register", name="Anna", runtime="codex")
    assert run(project, "log").splitlines()[-1].endswith("registered “Anna”")


def test_an_actor_may_be_called_by_the_name_that_the_table_shows(project: Path) -> None:
    call(project, "agent_register", name="Ben", runtime="codex")
    ada = call(project, "agent_register", name="Ada", runtime="codex")["id"]
    call(project, "bb_set", key="shared:k", value=1, agent_id=ada)
    assert kinds(project, "--actor", "Ada") == kinds(project, "--actor", ada) == ["agent.unproven", "bb.set"]
    assert kinds(project, "--actor", "Ben") == [], "it is known, and did nothing"
    assert kinds(project, "--actor", "ann") == ["agent.registered", "agent.registered"]
    told = refused(project, "log", "--actor", "ada")
    assert "nobody called ada has written here; did you mean Ada?" in told
    assert "handrail agents --all" in told


def test_a_stream_may_be_called_by_its_workflow_or_by_one_of_its_tasks(project: Path) -> None:
    made = story(project)
    whole = kinds(project, "--stream", made)
    assert whole[0] == "workflow.created"
    assert kinds(project, "--stream", "Import") == whole
    own = kinds(project, "--stream", "Wrap the fetch")
    assert own
    assert all(kind.startswith("task.") for kind in own)
    assert kinds(project, "--stream", "Wrap the fetch", "--limit", "1") == own[-1:]
    assert kinds(project, "--stream", "Wrap the fetch", "--actor", "ann") == []
    assert "did you mean Wrap the fetch?" in refused(project, "log", "--stream", "Wrap the fetsh")


def test_where_nothing_is_stored_undo_makes_no_store_and_says_what_can_be_undone(project: Path) -> None:
    told = refused(project, "undo")
    assert "NOTHING_TO_UNDO" in told
    assert "only your own writes can be; `handrail log` shows who wrote what" in told
    assert list(project.iterdir()) == []


def test_a_released_task_is_not_given_back_behind_the_agents_back(project: Path) -> None:
    made = call(project, "workflow_create", name="Import", source_type="prompt", source_content="x")["id"]
    plan = {"tasks": [{"name": "Wrap the fetch", "description": "x", "sequence": 1}], "summary": "s", "approach": "a"}
    call(project, "workflow_set_plan", id=made, plan=plan)
    agent = call(project, "agent_register", name="Ada", runtime="codex")["id"]
    task = call(project, "workflow_next_tasks")["tasks"][0]["id"]
    call(project, "task_claim", task_id=task, agent_id=agent, start=True)
    run(project, "release", task)
    before = kinds(project)
    told = refused(project, "undo")
    assert "your last write cannot be taken back: " in told
    assert "ago you released “Wrap the fetch” (task.released, event" in told
    assert "let the task be claimed again" in told
    assert kinds(project) == before


@pytest.mark.parametrize(("options", "kind"), [((), "message.read"), (("--ack",), "message.acknowledged")])
def test_reading_a_message_is_not_what_undo_takes_back(project: Path, options: tuple[str, ...], kind: str) -> None:
    agent = call(project, "agent_register", name="Ada", runtime="codex")["id"]
    asked = {"sender_id": agent, "recipient_id": "human", "message_type": "query", "requires_ack": True}
    message = call(project, "message_send", body="May I?", agent_id=agent, **asked)["id"]
    call(project, "workflow_create", name="A mistake", source_type="prompt", source_content="x")
    run(project, "message", "read", message, *options)
    assert "created “A mistake”" in run(project, "undo")
    assert kinds(project)[-2:] == [kind, "ledger.undo"]


def test_a_refusal_about_what_the_feed_does_not_show_yet_stays_as_it_is() -> None:
    """On PostgreSQL a slow writer keeps what came after it out of the feed."""
    store = Store(MemoryEngine(), clock=FixedClock(), ids=CountingIds())
    refusal = NothingToUndo("no", hint="wait", position=7)
    assert undo_refusal_in_words(store, refusal) is refusal

"""One task in full: why, around it, who tried it and how that ended, what was said and found. Bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.journal.entry import moves_once, totals
from handrail.domain.overview.inspector import LINKED, NOTES, TaskDocument, attempts_in, task_document
from handrail.domain.work.lookup import find_task
from tests.domain.overview.looking import asked_to_review, counted, look
from tests.store.records import task
from tests.toolsets.plan.planned import Desk

HOSTILE = "<img src=x onerror=alert(1)>"
MINUTE = 60_000


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def seen(desk: Desk, key: str) -> TaskDocument:
    return look(desk, lambda unit: task_document(unit, find_task(unit, key)))


def agent(desk: Desk, name: str) -> str:
    return str(desk.call("agent_register", name=name, role="worker", runtime="custom")["id"])


def test_a_task_names_what_it_waits_for_and_what_waits_for_it(desk: Desk) -> None:
    desk.plan(
        {"name": "a"},
        {"name": HOSTILE, "depends_on": ["a"], "description": HOSTILE, "acceptance": ["It works"]},
        {"name": "c", "depends_on": [HOSTILE]},
        {"name": "part", "parent": HOSTILE},
    )
    found = seen(desk, "task_2")
    assert [(one.name, one.status) for one in found.needs] == [("a", "ready")]
    assert [(one.name, one.status) for one in found.unlocks] == [("c", "blocked")]
    assert [one.name for one in found.subtasks] == ["part"]
    assert (found.description, found.acceptance) == (HOSTILE, ["It works"])
    assert 'waits for "a", which is ready' in found.why
    parent = seen(desk, "task_4").parent
    assert parent is not None
    assert (parent.id, parent.name) == ("task_2", HOSTILE)


def test_each_try_has_who_when_and_how_it_ended(desk: Desk) -> None:
    desk.plan({"name": "a"})
    ada, ben = agent(desk, "Ada"), agent(desk, "Ben")
    start = desk.clock.now_ms()
    desk.call("task_claim", task_id="task_1", agent_id=ada, start=True)
    desk.clock.advance(MINUTE)
    desk.call("task_update_status", id="task_1", agent_id=ada, status="failed", error="No network")
    desk.clock.advance(MINUTE)
    desk.call("task_claim", task_id="task_1", agent_id=ben, start=True)
    desk.clock.advance(10 * MINUTE)
    desk.call("task_claim", task_id="task_1", agent_id=agent(desk, "Cyd"), start=True)
    found = seen(desk, "task_1")
    told = [(one.number, one.agent, one.outcome, one.error) for one in found.attempts]
    assert told == [(3, "Cyd", None, None), (2, "Ben", "taken over", None), (1, "Ada", "failed", "No network")]
    first = found.attempts[-1]
    assert (first.started_at, first.ended_at) == (start, start + MINUTE)
    assert found.lease is not None
    assert (found.lease.agent, found.lease.fence) == ("Cyd", 3)


def test_a_pause_is_no_new_try_and_a_release_ends_one(desk: Desk) -> None:
    desk.plan({"name": "a"})
    desk.move("task_1", "in_progress", "paused", "in_progress")
    assert [(one.number, one.outcome) for one in seen(desk, "task_1").attempts] == [(1, None)]
    ada = agent(desk, "Ada")
    desk.call("task_claim", task_id="task_1", agent_id=ada)
    desk.call("task_release", task_id="task_1", agent_id=ada, reason="tired")
    assert [(one.number, one.agent, one.outcome) for one in seen(desk, "task_1").attempts] == [(1, "Ada", "released")]


def test_a_try_further_back_than_was_looked_is_told_from_the_task_itself() -> None:
    ended = task(status="failed", attempts=3, started_at=5, updated_at=9, error="No network")
    (told,) = attempts_in(ended, [])
    assert (told.number, told.started_at, told.ended_at, told.outcome) == (3, 5, 9, "failed")
    assert attempts_in(task(), []) == []


def test_notes_decisions_messages_and_reviews_are_there(desk: Desk) -> None:
    desk.plan({"name": "a"}, {"name": "b"})
    ada = agent(desk, "Ada")
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary=HOSTILE)
    desk.call("checkpoint_add", task_id="task_1", type="decision", summary="Use RS256")
    desk.call("checkpoint_add", task_id="task_2", type="decision", summary="Not this one")
    letter: dict[str, Any] = {"sender_id": ada, "recipient_id": "human", "message_type": "query", "body": HOSTILE}
    desk.call("message_send", **letter, task_id="task_1")
    desk.call("message_send", **letter, task_id="task_2")
    asked_to_review(desk, "task_1", "Safe?")
    found = seen(desk, "task_1")
    assert [(one.type, one.summary, one.by) for one in found.checkpoints] == [
        ("decision", "Use RS256", "tester"),
        ("progress", HOSTILE, "tester"),
    ]
    assert [one.title for one in found.decisions] == ["Use RS256"]
    assert [(one.sender, one.body) for one in found.messages] == [("Ada", HOSTILE)]
    assert [(one.question, one.status) for one in found.gates] == [("Safe?", "open")]


def test_the_end_of_a_task_is_told_with_its_evidence(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="all")
    key = desk.call("start_workflow", name="W")["workflow_id"]
    begun = desk.call("start_task", workflow_id=key, name="t", goal="g", areas=["src/"])["task_id"]
    (tmp_path / "project" / "other.txt").write_text("x\n", encoding="utf-8")
    desk.call(
        "complete_task",
        task_id=begun,
        status="success",
        outcome={"summary": "Done", "limitations": [HOSTILE]},
        metadata={},
        checks=[{"command": "pytest", "exit_code": 1}],
    )
    found = seen(desk, begun)
    assert (found.outcome, found.detail) == ("Done", f"**Limitations**\n- {HOSTILE}")
    (check,) = found.evidence
    assert (check.name, check.ok, check.text) == ("pytest", False, "$ pytest (as the agent reports it)")
    assert found.journal is not None
    assert (found.journal.areas, found.journal.out_of_scope, found.journal.files) == (["src/"], ["other.txt"], 1)
    assert [one.outcome for one in found.attempts] == ["completed"]


def test_every_list_has_an_end(desk: Desk) -> None:
    desk.plan({"name": "root"}, *({"name": f"t{n}", "depends_on": ["root"]} for n in range(LINKED + 50)))
    for n in range(NOTES + 5):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary=str(n))
    found, asked = counted(desk, lambda unit: task_document(unit, find_task(unit, "task_1")))
    assert (len(found.unlocks), len(found.checkpoints)) == (LINKED, NOTES)
    assert found.task.checkpoints == NOTES + 5
    assert sum(asked.values()) < 40, asked


def test_what_it_changed_can_be_looked_at_where_a_snapshot_was_taken(desk: Desk) -> None:
    desk.plan({"name": "a"})
    assert seen(desk, "task_1").changes is False


def test_a_moved_file_counts_once() -> None:
    files = [
        {"path": "old.py", "change": "deleted", "lines_added": 0, "lines_removed": 9},
        {"path": "new.py", "change": "added", "lines_added": 10, "lines_removed": 0},
        {"path": "b.py", "change": "modified", "lines_added": 1, "lines_removed": 1},
    ]
    found = totals(moves_once({"files": files, "renamed": [{"from": "old.py", "to": "new.py"}]}))
    assert (found.files, found.lines_added, found.lines_removed) == (2, 1, 1)
    assert totals(moves_once({"files": files})).files == 3

"""Rows of workflows and tasks: what they say, and that a large plan costs few questions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from handrail.domain.overview.explanations import explain_task
from handrail.domain.overview.inspector import task_document
from handrail.domain.overview.rows import STANDINGS, Driven, HealthFacts, TaskRow, WorkflowRow, last_part, standing_of
from handrail.domain.overview.workflows import SHOWN, WorkflowDocument, home, workflow_document
from handrail.domain.pipeline.ownership import HELD_MS
from handrail.domain.work.blockers import SILENT_MS
from handrail.domain.work.lookup import find_task, find_workflow
from handrail.kernel.errors import RunNotFound
from tests.domain.overview.looking import asked_to_review, counted, look
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import Desk

HOSTILE = "<img src=x onerror=alert(1)>\u202e ${x} </script>"


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def document(desk: Desk, key: str) -> WorkflowDocument:
    return look(desk, lambda unit: workflow_document(unit, find_workflow(unit, key)))


def row(desk: Desk, key: str) -> WorkflowRow:
    return document(desk, key).workflow


def task(desk: Desk, key: str, name: str) -> TaskRow:
    return next(found for found in document(desk, key).tasks if found.name == name)


def claimed(desk: Desk, task_id: str = "task_1") -> str:
    agent = desk.call("agent_register", name="Ada", role="worker", runtime="custom")["id"]
    desk.call("task_claim", task_id=task_id, agent_id=agent, start=True)
    return str(agent)


def test_a_workflow_counts_its_tasks(desk: Desk) -> None:
    key = desk.plan(
        {"name": "a"}, {"name": "b", "depends_on": ["a"]}, {"name": "c"}, {"name": "d"}, {"name": "e"}, name=HOSTILE
    )
    desk.move("task_3", "in_progress", "failed")
    desk.move("task_4", "in_progress", "completed")
    desk.move("task_5", "skipped")
    found = row(desk, key)
    assert (found.total, found.finished, found.failed, found.ready) == (5, 2, 1, 1)
    assert (found.blocked, found.skipped, found.running) == (1, 1, 0)
    assert found.name == HOSTILE
    assert '"c" failed' in found.sentence


def test_a_task_says_what_it_waits_for_and_who_has_it(desk: Desk) -> None:
    key = desk.plan({"name": "a", "parallel_group": "first"}, {"name": HOSTILE, "depends_on": ["a"]})
    agent = claimed(desk)
    first, second = document(desk, key).tasks
    assert (first.agent, first.agent_id, first.lost, first.group) == ("Ada", agent, False, "first")
    assert (second.name, second.status, second.needs) == (HOSTILE, "blocked", ["task_1"])
    assert second.agent is None


def test_an_inherited_need_is_not_drawn_twice(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]}, {"name": "b1", "parent": "b"})
    assert task(desk, key, "b1").needs == []
    assert task(desk, key, "b1").status == "blocked"
    assert task(desk, key, "b1").parent == "task_2"


def test_a_task_is_ready_only_once_its_subtasks_are_over(desk: Desk) -> None:
    key = desk.plan({"name": "whole"}, {"name": "part", "parent": "whole"})
    assert (task(desk, key, "whole").status, task(desk, key, "part").status) == ("pending", "ready")
    assert row(desk, key).ready == 1
    assert [one["name"] for one in desk.call("workflow_next_tasks", workflow_id=key)["tasks"]] == ["part"]
    inspected = look(desk, lambda unit: task_document(unit, find_task(unit, "task_2")))
    assert inspected.parent is not None
    assert inspected.parent.status == "pending"

    desk.move("task_2", "in_progress", "completed")
    assert task(desk, key, "whole").status == "ready"


def test_who_is_lost_or_silent_is_stuck(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b"})
    claimed(desk)
    assert (row(desk, key).stuck, row(desk, key).agents) == (0, 1)
    desk.clock.advance(10 * 60_000)
    assert (row(desk, key).stuck, row(desk, key).agents) == (1, 0)
    assert task(desk, key, "a").lost
    desk.move("task_2", "in_progress")
    desk.clock.advance(SILENT_MS - 1)
    assert row(desk, key).stuck == 1
    desk.clock.advance(1)
    assert row(desk, key).stuck == 2


def test_a_lost_agent_s_task_stands_still_and_is_free_to_take(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    claimed(desk)
    assert '"Work" is under way: "a" has been in progress' in row(desk, key).sentence
    desk.clock.advance(5 * 60_000)
    left = "was left by Ada, who was last heard from 5 minutes ago: take it over, or release it"
    assert row(desk, key).sentence == f'"Work" is idle; "a" {left}.'
    waits = look(desk, lambda unit: explain_task(unit, find_task(unit, "task_2")))
    assert waits.sentence == f'"b" waits for "a", which {left}.'
    assert look(desk, lambda unit: explain_task(unit, find_task(unit, "task_1"))).sentence == f'"a" {left}.'


def test_of_what_nothing_is_heard_is_not_said_to_move(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b"})
    desk.move("task_1", "in_progress")
    desk.clock.advance(SILENT_MS)
    assert row(desk, key).sentence.startswith('"Work" is idle; "a" has been in progress for 15 minutes: check')
    desk.move("task_2", "in_progress")
    assert row(desk, key).sentence.startswith('"Work" is under way, but "a" has been in progress')


def test_a_review_of_a_task_shows_on_its_row(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b"})
    asked_to_review(desk, "task_2")
    assert [one.waiting for one in document(desk, key).tasks] == [False, True]
    assert (row(desk, key).reviews, row(desk, key).waiting) == (1, 0)


def test_a_run_says_its_phase_and_that_it_waits(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "checkpoint")
    found = row(desk, run.workflow)
    assert found.waiting == 1
    assert found.phase
    assert found.sentence == "The pipeline standard waits for you at checkpoint-a."
    assert found.standing == "waits_for_you"


def test_a_run_is_running_while_whoever_drives_it_is_believed_to_be_there(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "spawn_agent")
    found = row(desk, run.workflow)
    assert (found.standing, "`" in found.sentence, "_" in found.sentence) == ("running", False, False)
    desk.clock.advance(HELD_MS)
    assert row(desk, run.workflow).standing == "stuck"
    desk.call("workflow_update_status", id=run.workflow, status="paused")
    assert row(desk, run.workflow).standing == "paused"


def test_how_a_plan_stands_is_told_by_who_can_move_it(desk: Desk) -> None:
    key = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    assert row(desk, key).standing == "ready"
    claimed(desk)
    assert row(desk, key).standing == "running"
    desk.clock.advance(5 * 60_000)
    assert row(desk, key).standing == "stuck"
    desk.move("task_1", "failed")
    assert row(desk, key).standing == "failed"
    desk.move("task_1", "skipped")
    desk.move("task_2", "in_progress", "completed")
    assert row(desk, key).standing == "done_but_open"
    desk.call("workflow_update_status", id=key, status="completed")
    assert row(desk, key).standing == "completed"


@pytest.mark.parametrize(
    ("seen", "standing"),
    [
        (HealthFacts("planning"), "ready"),
        (HealthFacts("in_progress", total=2, moving=1, stuck=1), "running"),
        (HealthFacts("in_progress", total=2, stuck=1, ready=1), "stuck"),
        (HealthFacts("in_progress", total=2, waiting=1), "waits_for_you"),
        (HealthFacts("in_progress", total=2, waiting=1, moving=1), "running"),
        (HealthFacts("in_progress", total=2, waiting=1, ready=1), "ready"),
        (HealthFacts("in_progress", total=2, paused=1), "paused"),
        (HealthFacts("in_progress", total=2, paused=1, failed=1), "failed"),
        (HealthFacts("in_progress", total=2), "stuck"),
        (HealthFacts("failed", total=2, moving=1), "failed"),
        (HealthFacts("in_progress", run=Driven(True, True, True, True)), "waits_for_you"),
        (HealthFacts("in_progress", run=Driven(False, True, True, True)), "paused"),
        (HealthFacts("in_progress", run=Driven(False, False, False, False)), "ready"),
        (
            HealthFacts("in_progress", total=1, finished=1, run=Driven(False, False, False, False, True)),
            "done_but_open",
        ),
        (HealthFacts("abandoned", total=1, waiting=1), "abandoned"),
    ],
)
def test_each_standing(seen: HealthFacts, standing: str) -> None:
    assert standing_of(seen) == standing
    assert standing in STANDINGS


def test_the_first_screen_has_the_open_ones_and_counts_the_others(desk: Desk) -> None:
    first, second = desk.plan({"name": "a"}, name="First"), desk.plan({"name": "a"}, name="Second")
    desk.call("workflow_update_status", id=first, status="abandoned")
    found = look(desk, home)
    assert [(one.id, found.closed, found.more) for one in found.workflows] == [(second, 1, 0)]
    every = look(desk, lambda unit: home(unit, archived=True))
    assert [one.id for one in every.workflows] == [second, first]
    assert found.position == look(desk, lambda unit: unit.position())


def test_the_first_screen_is_bounded(desk: Desk) -> None:
    for number in range(SHOWN + 3):
        desk.call("workflow_create", name=f"W{number}", source_type="prompt", source_content="x")
    found = look(desk, home)
    assert (len(found.workflows), found.more) == (SHOWN, 3)


def test_a_plan_of_5000_tasks_takes_few_questions_and_little_time(desk: Desk) -> None:
    tasks = [{"name": f"t{n}", "depends_on": [f"t{n - 1}"] if n % 5 else []} for n in range(5000)]
    key = desk.plan(*tasks)
    began = time.process_time()
    found, asked = counted(desk, lambda unit: workflow_document(unit, find_workflow(unit, key)))
    assert len(found.tasks) == 5000
    assert sum(asked.values()) < 60, asked
    assert time.process_time() - began < 2


def test_what_is_not_there_is_refused(desk: Desk) -> None:
    with pytest.raises(RunNotFound):
        document(desk, "wf_9")


@pytest.mark.parametrize(
    ("path", "name"), [("/a/b/", "b"), (None, None), ("/", "/"), ("C:\\x\\repo", "repo"), ("plain", "plain")]
)
def test_a_repository_is_called_by_the_last_part_of_its_path(path: str | None, name: str | None) -> None:
    assert last_part(path) == name

"""Bars from the ledger: waits, attempts, pauses and questions, whichever vocabulary moved the tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.overview import timeline as module
from handrail.domain.overview.timeline import Bar, WorkflowTimeline, timeline
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import UnitOfWork
from tests.domain.overview.crewed import MINUTE, Crewed
from tests.toolsets.pipeline.test_tools_control import Deskbound
from tests.toolsets.plan.correspondents import PERSON


def bars_of(found: WorkflowTimeline, task_id: str) -> list[tuple[Any, ...]]:
    """Kind, minutes from the beginning of the workflow to its own and to its end, attempt, how it ended."""
    begin = found.since
    return [
        (
            bar.kind,
            (bar.since - begin) / MINUTE,
            (bar.until - begin) / MINUTE if bar.until is not None else None,
            bar.attempt,
            bar.status,
        )
        for bar in found.bars
        if bar.task_id == task_id
    ]


def at(run: Deskbound) -> WorkflowTimeline:
    def work(unit: UnitOfWork) -> WorkflowTimeline:
        workflow = unit.get(Workflow, run.workflow)
        assert workflow is not None
        return timeline(unit, workflow)

    return run.desk.store.run(PERSON, work)


def test_a_plain_plan_without_agents_has_bars(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]})
    desk.wait(2)
    desk.move("task_1", "in_progress")
    desk.wait(3)
    desk.move("task_1", "completed")
    desk.wait(1)
    desk.move("task_2", "in_progress")
    found = desk.at(plan, timeline)
    assert bars_of(found, "task_1") == [("queue", 0, 2, 1, "pending"), ("work", 2, 5, 1, "completed")]
    assert bars_of(found, "task_2") == [("queue", 5, 6, 1, "pending"), ("work", 6, None, 1, "in_progress")]
    assert {bar.agent for bar in found.bars} == {"tester"}, "whoever moved it is shown where nobody claimed it"
    assert (found.until, found.more) == (desk.clock.now_ms(), 0)


def test_attempts_are_bars_of_their_own_and_pauses_lie_between_them(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one", "parallel_group": "first"})
    desk.move("task_1", "in_progress")
    desk.wait(1)
    desk.move("task_1", "paused")
    desk.wait(1)
    desk.move("task_1", "in_progress")
    desk.wait(1)
    desk.move("task_1", "failed")
    desk.wait(1)
    desk.move("task_1", "in_progress")
    desk.wait(1)
    desk.move("task_1", "completed")
    found = desk.at(plan, timeline)
    assert bars_of(found, "task_1") == [
        ("work", 0, 1, 1, "failed"),
        ("paused", 1, 2, 1, "failed"),
        ("work", 2, 3, 1, "failed"),
        ("work", 4, 5, 2, "completed"),
    ]
    assert {bar.group for bar in found.bars} == {"first"}


def test_a_task_that_another_took_over_is_two_attempts_of_two_agents(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    anna, ben = desk.register("Anna", "Ben")
    desk.wait(1)
    desk.claim(anna, "task_1")
    desk.wait(10)  # silence: its claim runs out
    desk.claim(ben, "task_1")
    desk.wait(1)
    desk.done(ben, "task_1")
    found = desk.at(plan, timeline)
    work = [bar for bar in found.bars if bar.kind == "work"]
    assert [(bar.agent, bar.attempt, bar.status, bar.how) for bar in work] == [
        ("Anna", 1, "failed", "taken over"),
        ("Ben", 2, "completed", "completed"),
    ]
    assert [(row.id, row.name) for row in found.rows.agents] == [(anna, "Anna"), (ben, "Ben")]
    queue = next(bar for bar in found.bars if bar.kind == "queue")
    assert queue.agent == "Anna", "a wait belongs to whoever ended it"


def test_a_task_that_was_given_back_waits_again(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    (anna,) = desk.register("Anna")
    desk.wait(1)
    desk.claim(anna, "task_1")
    desk.wait(1)
    desk.as_agent(anna, "task_release", task_id="task_1", agent_id=anna, reason="too hard")
    found = desk.at(plan, timeline)
    assert [(bar.kind, bar.status, bar.how) for bar in found.bars] == [
        ("queue", "pending", "pending"),
        ("work", "pending", "released"),
        ("queue", "pending", "pending"),
    ]
    assert (found.bars[-1].until, found.bars[-1].attempt, found.bars[-1].agent_id) == (None, 2, None)


def test_what_is_blocked_does_not_wait_for_an_agent(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]})
    assert bars_of(desk.at(plan, timeline), "task_2") == []


def test_a_task_that_was_taken_out_keeps_its_name_and_ends(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two"})
    desk.wait(1)
    desk.call("workflow_remove_task", task_id="task_2", reason="not needed")
    bars = [bar for bar in desk.at(plan, timeline).bars if bar.task_id == "task_2"]
    assert [(bar.name, bar.until is not None, bar.how) for bar in bars] == [("two", True, "removed")]


def test_nothing_goes_on_after_a_workflow_has_ended(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two"})
    desk.move("task_1", "in_progress")
    end = desk.wait(2)
    desk.call("workflow_update_status", id=plan, status="abandoned")
    desk.wait(60)
    found = desk.at(plan, timeline)
    assert found.until == end
    assert {bar.until for bar in found.bars if bar.task_id == "task_2"} == {end}


def test_only_the_newest_part_of_a_long_history_is_folded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two"}, {"name": "three"})
    desk.move("task_1", "in_progress")
    begin = desk.wait(1)
    for _ in range(3):
        desk.move("task_2", "in_progress", "failed")
        desk.wait(1)
    monkeypatch.setattr(module, "EVENTS", 4)
    found = desk.at(plan, timeline)
    assert found.more > 0
    assert found.since <= begin + MINUTE
    assert [bar.task_id for bar in found.bars if bar.until is None] == ["task_1"], "what is under way is still there"
    assert [bar.attempt for bar in found.bars if bar.task_id == "task_2" and bar.kind == "work"][-1] == 3


def test_the_newest_bars_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    for _ in range(4):
        desk.move("task_1", "in_progress", "failed")
        desk.wait(1)
    monkeypatch.setattr(module, "BARS", 2)
    found = desk.at(plan, timeline)
    assert [bar.attempt for bar in found.bars] == [3, 4]
    assert found.more == 2


def test_a_run_has_bars_for_its_phases_and_questions_for_its_gates(tmp_path: Path) -> None:
    run = Deskbound(tmp_path)
    run.run(lambda action: action["type"] == "checkpoint")
    run.desk.clock.advance(5 * MINUTE)
    found = at(run)
    assert found.rows.phases[0].id == "phase-1"
    phases = [bar for bar in found.bars if bar.task_id is None]
    assert phases[0].phase == "phase-1"
    assert all(bar.until is not None for bar in phases)
    (gate,) = found.gates
    assert (gate.until, gate.state, gate.phase) == (None, "open", gate.question)
    run.run(lambda action: action["type"] == "done")
    whole = at(run)
    tasks = {bar.name: bar for bar in whole.bars if bar.task_id is not None and bar.kind == "work"}
    assert {bar.status for bar in tasks.values()} == {"completed"}
    assert all(bar.phase is not None for bar in tasks.values())
    answered = {span.id: span for span in whole.gates}[gate.id]
    assert answered.until is not None
    assert answered.until - answered.since == 5 * MINUTE


def test_a_bar_is_told_with_from_and_to() -> None:
    fields = {field.encode_name for field in msgspec.structs.fields(Bar)}
    assert {"from", "to", "kind", "attempt", "agent_id", "task_id", "phase", "group", "status", "name"} <= fields

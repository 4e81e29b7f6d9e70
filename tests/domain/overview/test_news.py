"""News: which screens an event concerns, the rows as they are now, and how little is asked for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.gates.gate import close_review
from handrail.domain.overview import news as telling
from handrail.domain.overview.gates import find_gate
from handrail.domain.overview.news import GoneTask, News, news
from tests.domain.overview.looking import asked_to_review, counted, look
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER, Desk


class Newsroom(Desk):
    """A desk that hears what happened since it listened last."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.heard = 0

    def news(self) -> News:
        found: News = look(self, lambda unit: news(unit, unit.feed(self.heard, 1000)))
        self.heard = found.position
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Newsroom:
    return Newsroom(tmp_path)


def test_a_task_that_moves_is_told_with_its_workflow(desk: Newsroom) -> None:
    key = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]}, {"name": "c"})
    assert "plan" in desk.news().topics
    desk.move("task_1", "in_progress")
    told = desk.news()
    assert told.topics == ["tasks", "workflows"]
    assert [(row.id, row.running) for row in told.workflows] == [(key, 1)]
    assert [(row.id, row.status) for row in told.tasks if not isinstance(row, GoneTask)] == [("task_1", "in_progress")]
    assert told.streams == [key]


def test_a_task_that_is_set_free_is_told_too(desk: Newsroom) -> None:
    desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    desk.move("task_1", "in_progress")
    desk.news()
    desk.move("task_1", "completed")
    statuses = {row.id: row.status for row in desk.news().tasks if not isinstance(row, GoneTask)}
    assert statuses == {"task_1": "completed", "task_2": "ready"}


def test_a_task_that_is_gone_is_told_as_gone(desk: Newsroom) -> None:
    key = desk.plan({"name": "a"}, {"name": "b"})
    desk.news()
    desk.call("workflow_remove_task", task_id="task_2", reason="not needed")
    told = desk.news()
    assert GoneTask(id="task_2", workflow_id=key) in told.tasks
    assert "plan" in told.topics


def test_reviews_messages_and_notes_have_their_topics(desk: Newsroom) -> None:
    key = desk.plan({"name": "a"})
    desk.news()
    gate = asked_to_review(desk, "task_1")
    told = desk.news()
    assert "reviews" in told.topics
    assert "gates" not in told.topics
    assert [row.waiting for row in told.tasks if not isinstance(row, GoneTask)] == [True]
    desk.store.run(TESTER, lambda unit: close_review(unit, find_gate(unit, gate), TESTER, "ok", None))
    told = desk.news()
    assert told.topics == ["reviews"]
    assert [row.waiting for row in told.tasks if not isinstance(row, GoneTask)] == [False]
    desk.call("checkpoint_add", task_id="task_1", type="decision", summary="Use RS256")
    assert {"checkpoints", "decisions"} <= set(desk.news().topics)
    agent = desk.call("agent_register", name="Ada", role="worker", runtime="custom")["id"]
    assert desk.news().topics == ["agents"]
    desk.call("message_send", sender_id=agent, recipient_id="human", body="Look", message_type="query")
    told = desk.news()
    assert "messages" in told.topics
    assert told.workflows == []
    assert look(desk, lambda unit: find_gate(unit, gate)).workflow_id == key


def test_an_agent_that_leaves_changes_the_workflow_it_works_in(desk: Newsroom) -> None:
    key = desk.plan({"name": "a"})
    agent = desk.call("agent_register", name="Ada", role="worker", runtime="custom")["id"]
    desk.call("task_claim", task_id="task_1", agent_id=agent)
    assert [row.agents for row in desk.news().workflows] == [1]
    desk.clock.advance(60 * 60_000)
    desk.call("agent_heartbeat", agent_id=agent)
    told = desk.news()
    assert "agents" in told.topics
    assert [row.id for row in told.workflows] == [key]


def test_a_gate_is_told_with_its_run(tmp_path: Path) -> None:
    desk = Newsroom(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "checkpoint")
    told = desk.news()
    assert {"gates", "pipeline"} <= set(told.topics)
    assert [row.waiting for row in told.workflows] == [1]


def test_many_events_are_one_look(desk: Newsroom) -> None:
    desk.plan(*({"name": f"t{n}"} for n in range(200)))
    for n in range(1, 101):
        desk.move(f"task_{n}", "in_progress")
    told, asked = counted(desk, lambda unit: news(unit, unit.feed(0, 1000)))
    assert len(told.tasks) == 200
    assert sum(asked.values()) < 40, asked


def test_too_many_tasks_are_left_out_and_the_plan_is_to_be_read_again(
    desk: Newsroom, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.plan(*({"name": f"t{n}"} for n in range(5)))
    desk.news()
    monkeypatch.setattr(telling, "TASKS", 2)
    for n in range(1, 6):
        desk.move(f"task_{n}", "skipped")
    told = desk.news()
    assert (len(told.tasks), told.more) == (2, 3)
    assert "plan" in told.topics

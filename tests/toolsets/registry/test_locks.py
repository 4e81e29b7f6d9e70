"""Locks on graphs and plans: whose they are, when they end, what they hinder, and that a late holder is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import GraphNotFound, InvalidParams, LockHeld, NotAllowed
from tests.toolsets.registry.graphs import Graphs, node

MINUTE = 60_000


@pytest.fixture
def desk(tmp_path: Path) -> Graphs:
    return Graphs(tmp_path)


def lock(desk: Graphs, graph_id: str = "g", holder: str = "anna", **more: Any) -> Any:
    return desk.call("graph_lock", graph_id=graph_id, holder=holder, **more)


def test_a_lock_says_whose_it_is_and_until_when(desk: Graphs) -> None:
    desk.make()
    now = desk.clock.now_ms()
    assert lock(desk) == {
        "lock_id": "lock:g",
        "graph_id": "g",
        "holder": "anna",
        "fence": 1,
        "acquired_at": now,
        "refreshed_at": now,
        "expires_at": now + 10 * MINUTE,
    }


def test_asking_again_renews_for_as_long_as_before(desk: Graphs) -> None:
    desk.make()
    first = lock(desk, ttl_ms=2 * MINUTE)
    desk.clock.advance(MINUTE)
    again = lock(desk)
    assert (again["fence"], again["acquired_at"]) == (1, first["acquired_at"])
    assert (again["refreshed_at"], again["expires_at"]) == (desk.clock.now_ms(), desk.clock.now_ms() + 2 * MINUTE)
    assert lock(desk, ttl_ms=5 * MINUTE)["expires_at"] == desk.clock.now_ms() + 5 * MINUTE


def test_no_lock_is_for_ever(desk: Graphs) -> None:
    desk.make()
    for wrong in (0, 24 * 60 * MINUTE + 1):
        assert isinstance(desk.refusal("graph_lock", graph_id="g", ttl_ms=wrong), InvalidParams)


def test_another_waits_until_it_ends(desk: Graphs) -> None:
    desk.make()
    held = lock(desk, ttl_ms=MINUTE)
    refusal = desk.refusal("graph_lock", graph_id="g", holder="ben")
    assert isinstance(refusal, LockHeld)
    assert (refusal.details["holder"], refusal.details["expires_at"]) == ("anna", held["expires_at"])
    desk.clock.advance(MINUTE)
    assert lock(desk, holder="ben")["fence"] == 2


def test_being_heard_of_does_not_renew_a_lock(desk: Graphs) -> None:
    desk.make()
    anna = desk.agent("Anna")
    desk.call("graph_lock", graph_id="g", ttl_ms=MINUTE, agent_id=anna)
    for _ in range(3):
        desk.clock.advance(MINUTE // 3)
        desk.call("agent_list", agent_id=anna)
    assert lock(desk, holder="ben")["fence"] == 2
    assert desk.call("agent_get", id=anna)["current_task_id"] is None


def test_who_gives_it_back_must_have_it(desk: Graphs) -> None:
    desk.make()
    lock(desk)
    assert isinstance(desk.refusal("graph_unlock", lock_id="lock:g", holder="ben"), LockHeld)
    assert isinstance(desk.refusal("graph_unlock", lock_id="lock:g"), InvalidParams)
    assert isinstance(desk.refusal("graph_unlock", lock_id="lock:x", holder="anna"), GraphNotFound)
    assert isinstance(desk.refusal("graph_unlock", lock_id="g", holder="anna"), GraphNotFound)
    done = desk.call("graph_unlock", lock_id="lock:g", holder="anna")
    assert (done["released"], done["expired"], done["released_at"]) == (True, False, desk.clock.now_ms())
    again = desk.call("graph_unlock", lock_id="lock:g", holder="anna")
    assert (again["released"], again["expired"]) == (False, True)
    assert lock(desk, holder="ben")["fence"] == 2
    assert desk.store.verify() == []


def test_one_that_has_ended_can_still_be_given_back(desk: Graphs) -> None:
    desk.make()
    lock(desk, ttl_ms=10)
    desk.clock.advance(10)
    assert desk.call("graph_unlock", lock_id="lock:g", holder="ben")["released"] is False
    done = desk.call("graph_unlock", lock_id="lock:g", holder="anna")
    assert (done["released"], done["expired"]) == (True, True)


def test_an_agents_name_is_its_own(desk: Graphs) -> None:
    desk.make()
    anna = desk.agent("Anna")
    assert isinstance(desk.refusal("graph_lock", graph_id="g", holder=anna), NotAllowed)
    desk.call("graph_lock", graph_id="g", agent_id=anna)
    assert isinstance(desk.refusal("graph_unlock", lock_id="lock:g", holder=anna), NotAllowed)
    assert desk.call("graph_unlock", lock_id="lock:g", holder=anna, agent_id=anna)["released"] is True


CHANGES: list[tuple[str, dict[str, Any]]] = [
    ("graph_batch_mutate", {"graph_id": "g", "operations": [node("x")]}),
    ("graph_patch", {"graph_id": "g", "merge": {"name": "H"}}),
    ("tx_commit", {"tx_id": "tx_1"}),
]


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
def test_while_one_has_it_no_other_changes_the_graph(desk: Graphs, tool: str, arguments: dict[str, Any]) -> None:
    desk.make()
    desk.begin("g", node("y"))
    lock(desk, ttl_ms=MINUTE)
    refusal = desk.refusal(tool, **arguments)
    assert isinstance(refusal, LockHeld)
    assert refusal.details["holder"] == "anna"
    desk.clock.advance(MINUTE)
    assert desk.call(tool, **arguments)["changed"] is True


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
def test_who_has_it_changes_the_graph(desk: Graphs, tool: str, arguments: dict[str, Any]) -> None:
    desk.make()
    desk.begin("g", node("y"), owner="anna")
    lock(desk)
    assert desk.call(tool, owner="anna", **arguments)["changed"] is True


@pytest.mark.parametrize(("tool", "arguments"), CHANGES)
def test_a_late_holder_with_its_old_fence_is_refused(desk: Graphs, tool: str, arguments: dict[str, Any]) -> None:
    desk.make()
    desk.begin("g", node("y"), owner="anna")
    old = lock(desk, ttl_ms=10)["fence"]
    desk.clock.advance(10)
    for between in ("ben", "anna"):
        late = desk.refusal(tool, owner="anna", fence=old, **arguments)
        assert isinstance(late, LockHeld)
        new = lock(desk, holder=between, ttl_ms=10)["fence"]
        assert isinstance(desk.refusal(tool, owner="anna", fence=old, **arguments), LockHeld)
        if between == "ben":
            desk.clock.advance(10)
    assert desk.call(tool, owner="anna", fence=new, **arguments)["changed"] is True


def test_a_locked_plan_is_worked_on_and_not_changed(desk: Graphs) -> None:
    work = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    anna = desk.agent("Anna")
    desk.call("graph_lock", graph_id=work, agent_id=anna)
    draft = {"name": "c", "description": "", "sequence": 3}
    for tool, arguments in (
        ("workflow_replan", {"id": work, "reason": "r", "tasks": [draft]}),
        ("workflow_add_tasks", {"id": work, "tasks": [draft]}),
        ("workflow_remove_task", {"task_id": "task_2"}),
        ("graph_batch_mutate", {"graph_id": work, "operations": [node("x")]}),
    ):
        assert isinstance(desk.refusal(tool, **arguments), LockHeld)
    desk.move("task_1", "in_progress", "completed")
    desk.call("task_claim", task_id="task_2", agent_id=desk.agent("Ben"), start=True)
    desk.call("workflow_add_tasks", id=work, tasks=[draft], agent_id=anna)
    assert set(desk.tasks(work)) == {"a", "b", "c"}
    desk.audit(work)


def test_a_first_plan_waits_too(desk: Graphs) -> None:
    work = desk.call("workflow_create", name="w", source_type="prompt", source_content="")["id"]
    lock(desk, work)
    plan = {"summary": "", "approach": "", "tasks": [{"name": "a", "description": "", "sequence": 1}]}
    assert isinstance(desk.refusal("workflow_set_plan", id=work, plan=plan), LockHeld)
    desk.call("graph_unlock", lock_id=f"lock:{work}", holder="anna")
    desk.call("workflow_set_plan", id=work, plan=plan)
    desk.audit(work)

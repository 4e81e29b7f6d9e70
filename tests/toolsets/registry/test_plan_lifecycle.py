"""A run's life as agents see it: how it stands, pause and resume, and a dry run that writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.dry_run.steps import ASSUMED
from handrail.domain.graphs.records import GraphEdge, GraphNode, SharedGraph, member_id
from handrail.kernel.errors import IllegalTransition, InvalidParams, NotAllowed, WorkflowClosed
from handrail.kernel.records import UnitOfWork
from handrail.protocol.wire import encode
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import RegistryDesk

EIGHT_KB = 8192
LOW, MEDIUM, HIGH = ASSUMED["low"], ASSUMED["medium"], ASSUMED["high"]


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "plan-lifecycle")


def names(dry: dict[str, Any]) -> list[list[str]]:
    return [[task["name"] for task in wave["tasks"]] for wave in dry["waves"]]


# -- how a run stands -------------------------------------------------------------------------------------------------


def test_a_run_goes_from_nothing_to_done(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    begun = desk.clock.now_ms()
    status = desk.call("plan_status", run_id=run)
    assert (status["state"], status["status"], status["progress"]) == ("running", "ready", 0)
    assert (status["started_at"], status["supports_pause"]) == (None, False)
    assert status["tasks"]["ready"] == 1
    assert status["tasks"]["blocked"] == 1
    desk.move("task_1", "in_progress", "completed")
    status = desk.call("plan_status", run_id=run)
    assert (status["state"], status["progress"], status["started_at"]) == ("running", 50, begun)
    desk.move("task_2", "in_progress", "completed")
    assert desk.call("plan_status", run_id=run)["progress"] == 99
    desk.clock.advance(5_000)
    desk.call("workflow_update_status", id=run, status="completed")
    status = desk.call("plan_status", run_id=run)
    assert (status["state"], status["progress"], status["finished_at"]) == ("done", 100, begun + 5_000)
    assert status["last_event"]["kind"] == "workflow.completed"
    assert status["last_event"]["seq"] == status["last_event_seq"]


def test_what_failed_is_named_while_the_run_goes_on_and_after_it_failed(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"}, {"name": "b"})
    desk.move("task_1", "in_progress", "failed")
    failure = desk.call("plan_status", run_id=run)["failure"]
    assert failure == {"tasks": [{"id": "task_1", "name": "a", "error": "broken", "can_be_retried": True}]}
    desk.call("workflow_update_status", id=run, status="failed", reason="no network")
    status = desk.call("plan_status", run_id=run)
    assert (status["state"], status["progress"], status["reason"]) == ("failed", 0, "no network")
    assert (status["failure"]["status"], status["failure"]["by"]) == ("failed", "tester")


# -- pause and resume -------------------------------------------------------------------------------------------------


def test_while_a_run_is_paused_nothing_is_begun_and_everybody_is_told_why(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"}, {"name": "b"})
    desk.move("task_1", "in_progress")
    since = desk.clock.now_ms()
    paused = desk.call("plan_pause", run_id=run, reason="a freeze")
    assert (paused["state"], paused["paused_at"], paused["reason"]) == ("paused", since, "a freeze")
    assert (paused["last_event"]["kind"], paused["supports_resume"]) == ("workflow.paused", True)
    desk.clock.advance(1_000)
    read = desk.call("plan_status", run_id=run)
    assert {**read, "changed": True} == paused
    told = desk.call("workflow_next_tasks", workflow_id=run)
    assert told["tasks"] == []
    assert told["paused"]["reason"] == "a freeze"
    assert (told["paused"]["since"], told["paused"]["by"]) == (since, "tester")
    desk.call("agent_register", name="Anna", runtime="claude_code")
    offered = desk.call("task_get_available", agent_id="ag_1")
    assert (offered["tasks"], offered["paused"][0]["workflow_id"]) == ([], run)
    assert isinstance(desk.refusal("task_claim", task_id="task_2", agent_id="ag_1"), WorkflowClosed)
    assert isinstance(desk.refusal("task_update_status", id="task_2", status="in_progress"), WorkflowClosed)
    desk.move("task_1", "completed")  # what was under way may end
    resumed = desk.call("plan_resume", run_id=run)
    assert (resumed["state"], resumed["paused_at"], resumed["reason"]) == ("running", None, None)
    told = desk.call("workflow_next_tasks", workflow_id=run)
    assert [task["name"] for task in told["tasks"]] == ["b"]
    assert "paused" not in told


def test_pausing_twice_writes_nothing_and_resuming_needs_a_pause(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"})
    assert isinstance(desk.refusal("plan_pause", run_id=run), IllegalTransition)
    desk.move("task_1", "in_progress")
    assert isinstance(desk.refusal("plan_resume", run_id=run), IllegalTransition)
    desk.call("plan_pause", run_id=run, reason="first")
    before = desk.store.position()
    again = desk.call("plan_pause", run_id=run, reason="second")
    assert (again["changed"], again["reason"], desk.store.position()) == (False, "first", before)
    desk.call("workflow_update_status", id=run, status="abandoned")
    for tool in ("plan_pause", "plan_resume"):
        assert isinstance(desk.refusal(tool, run_id=run), WorkflowClosed)


def piped(desk: RegistryDesk, folder: Path) -> Orchestrator:
    driver = Orchestrator(desk.call, folder / "project")
    driver.next()
    return driver


def test_a_pipelines_run_is_paused_by_its_own_steering(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "plan-lifecycle", toolsets="pipeline,workflow,orchestration", profile="")
    driver = piped(desk, tmp_path)
    paused = desk.call("plan_pause", run_id=driver.workflow, reason="lunch")
    assert (paused["mode"], paused["state"], paused["reason"]) == ("pipeline", "paused", "lunch")
    assert desk.call("plan_status", run_id=driver.workflow)["reason"] == "lunch"
    assert driver.next()["stopped"]["reason"] == "paused"
    assert desk.call("plan_resume", run_id=driver.workflow)["state"] == "running"
    assert "stopped" not in driver.next()


def test_where_only_people_decide_an_agent_does_not_resume_a_pipeline(tmp_path: Path) -> None:
    on = "pipeline,workflow"
    desk = RegistryDesk(tmp_path, "plan-lifecycle", toolsets=on, profile="", approvals="human")
    driver = piped(desk, tmp_path)
    desk.call("plan_pause", run_id=driver.workflow)
    assert isinstance(desk.refusal("plan_resume", run_id=driver.workflow), NotAllowed)


# -- a dry run --------------------------------------------------------------------------------------------------------


def test_a_dry_run_of_a_run_under_way_writes_nothing(desk: RegistryDesk) -> None:
    run = desk.plan(
        {"name": "a", "estimated_complexity": "low"},
        {"name": "b", "depends_on": ["a"], "estimated_complexity": "low"},
        {"name": "c", "depends_on": ["a"], "estimated_complexity": "high"},
        {"name": "d", "depends_on": ["b", "c"]},
        max_parallel_tasks=2,
    )
    desk.move("task_1", "in_progress")
    desk.clock.advance(4 * 60_000)
    before = desk.store.position()
    dry = desk.call("plan_dry_run", run_id=run)
    assert desk.store.position() == before
    assert names(dry) == [["a"], ["b", "c"], ["d"]]
    left = LOW - 4 * 60_000
    assert dry["estimated_ms"] == left + HIGH + MEDIUM
    assert [(step["name"], step["ms"]) for step in dry["critical_path"]["steps"]] == [
        ("a", left),
        ("c", HIGH),
        ("d", MEDIUM),
    ]
    assert dry["waves"][0]["tasks"][0]["status"] == "in_progress"
    desk.move("task_1", "completed")  # it took four minutes: so will what is as simple
    dry = desk.call("plan_dry_run", run_id=run, max_parallel=1)
    assert (dry["finished"], dry["would_run"], dry["widest"]) == (1, 3, 1)
    assert dry["estimated_ms"] == dry["work_ms"] == 4 * 60_000 + HIGH + MEDIUM
    assert "low: 4 minutes, by 1 finished" in dry["assumptions"]


def test_what_failed_holds_up_what_waits_for_it_unless_it_is_tried_again(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]}, {"name": "c"})
    desk.move("task_1", "in_progress", "failed")
    dry = desk.call("plan_dry_run", run_id=run)
    assert names(dry) == [["c"]]
    assert [one["name"] for one in dry["cannot_run"]] == ["a", "b"]
    assert "broken" in dry["cannot_run"][0]["why"]
    assert names(desk.call("plan_dry_run", run_id=run, retry_failed=True)) == [["a"], ["b"], ["c"]]


def test_a_task_with_parts_comes_after_them_and_takes_no_time_of_its_own(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "whole"}, {"name": "part", "parent": "whole"}, {"name": "after", "depends_on": ["whole"]})
    dry = desk.call("plan_dry_run", run_id=run)
    assert names(dry) == [["part"], ["whole"], ["after"]]
    assert dry["estimated_ms"] == 2 * MEDIUM


def test_tasks_that_touch_the_same_are_not_begun_together(desk: RegistryDesk) -> None:
    tasks = [
        {"name": "a", "files_likely_affected": ["src/fetch.py"]},
        {"name": "b", "files_likely_affected": ["src/"]},
        {"name": "c", "files_likely_affected": ["docs/"]},
    ]
    dry = desk.call("plan_dry_run", tasks=tasks, max_parallel=3)
    assert names(dry) == [["a", "c"], ["b"]]
    assert dry["conflicts"] == [{"first": "a", "second": "b", "path": "src/fetch.py"}]
    assert dry["all_compared"] is True


def test_a_plan_with_mistakes_is_looked_at_all_the_same(desk: RegistryDesk) -> None:
    tasks = [{"name": "a", "depends_on": ["gone"]}, {"name": "b", "depends_on": ["a"]}, {"name": "c", "parent": "none"}]
    dry = desk.call("plan_dry_run", tasks=tasks)
    assert (dry["would_run"], dry["cannot_run_total"]) == (0, 3)
    assert dry["summary"] == "Nothing would run; 3 cannot run."
    assert isinstance(desk.refusal("plan_dry_run"), InvalidParams)
    assert isinstance(desk.refusal("plan_dry_run", run_id="wf_1", tasks=tasks), InvalidParams)


def test_a_graph_is_read_as_a_plan(desk: RegistryDesk) -> None:
    def lay(unit: UnitOfWork) -> None:
        now = unit.now_ms()
        graph = SharedGraph(
            id="free",
            name="Free",
            version=1,
            metadata={},
            repository_path=None,
            created_by="tester",
            created_at=now,
            committed_at=now,
        )
        told: dict[str, dict[str, Any]] = {
            "a": {"duration_ms": 10, "files": "x.py, y.py"},
            "b": {"complexity": "low", "files": "y.py"},
            "c": {"status": "done"},
            "d": {},
        }
        nodes = [
            GraphNode(id=member_id("free", key), graph_id="free", key=key, label=key.upper(), attributes=said)
            for key, said in told.items()
        ]
        ends = [("a", "d", ""), ("b", "d", ""), ("c", "d", "")]
        edges = [
            GraphEdge(
                id=member_id("free", f"{one}->{other}"),
                graph_id="free",
                key=f"{one}->{other}",
                source=one,
                target=other,
                label=label,
                said={},
            )
            for one, other, label in ends
        ]
        unit.record("graph.created", graph, *nodes, *edges)

    desk.store.run(TESTER, lay)
    dry = desk.call("plan_dry_run", graph_id="free", max_parallel=2)
    assert names(dry) == [["A"], ["B"], ["D"]]  # a and b touch the same file
    assert (dry["finished"], dry["critical_path"]["ms"]) == (1, LOW + MEDIUM)
    run = desk.plan({"name": "a"})
    assert desk.call("plan_dry_run", graph_id=run) == desk.call("plan_dry_run", run_id=run)


def test_an_answer_stays_small_however_large_the_plan_is(desk: RegistryDesk) -> None:
    tasks = [
        {"name": f"{number} {'x' * 150}", "files_likely_affected": ["same.py"] if number % 2 else []}
        for number in range(600)
    ]
    tasks += [{"name": f"stuck {number}", "depends_on": ["gone"]} for number in range(600)]
    dry = desk.call("plan_dry_run", tasks=tasks, max_parallel=50)
    assert len(encode(dry)) < EIGHT_KB
    assert (dry["would_run"], dry["cannot_run_total"]) == (600, 600)
    assert sum(map(len, names(dry))) < 600
    whole = desk.call("plan_dry_run", tasks=tasks, max_parallel=50, limit=1000)
    assert sum(map(len, names(whole))) == 600

"""What the tools of a plan promise beyond their examples."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.store.records import put, task, workflow
from tests.toolsets.plan.planned import Desk

OLD_PLAN: dict[str, list[str]] = {"a": [], "b": ["a"], "c": ["a", "b"]}
REPLY_BYTES = 8 * 1024
"""What a reply may take where nobody asked for more."""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_started_task_starts_its_workflow_and_a_paused_one_starts_nothing(desk: Desk) -> None:
    workflow = desk.plan({"name": "a"}, {"name": "b"})
    desk.move("task_1", "in_progress")
    assert desk.call("workflow_get", id=workflow)["status"] == "in_progress"
    desk.call("workflow_update_status", id=workflow, status="paused")
    assert desk.refusal("task_update_status", id="task_2", status="in_progress").code == "WORKFLOW_CLOSED"
    desk.move("task_1", "completed")
    assert desk.call("workflow_next_tasks")["tasks"] == []


def test_a_failed_task_is_offered_again_with_its_error_and_without_its_claim(desk: Desk) -> None:
    desk.plan({"name": "a"})
    desk.move("task_1", "in_progress", "failed")
    offered = desk.call("workflow_next_tasks")["tasks"]
    assert [(task["name"], task["error"]) for task in offered] == [("a", "broken")]
    assert desk.call("workflow_next_tasks", include_failed=False)["tasks"] == []
    assert desk.task("task_1")["assigned_agent_id"] is None


def test_a_task_that_failed_and_is_started_again_has_no_error_and_another_attempt(desk: Desk) -> None:
    desk.plan({"name": "a"})
    desk.move("task_1", "in_progress", "failed", "in_progress")
    task = desk.task("task_1")
    assert (task["error"], task["attempts"]) == (None, 2)


def test_a_skipped_dependency_counts_as_satisfied(desk: Desk) -> None:
    desk.plan({"name": "a"}, {"name": "b", "depends_on": ["a"]})
    desk.move("task_1", "skipped")
    assert desk.task("task_2")["status"] == "pending"
    assert desk.call("task_check_dependencies", task_id="task_2")["satisfied"]


def test_priority_comes_before_sequence_and_sequence_before_what_is_unblocked(desk: Desk) -> None:
    desk.plan(
        {"name": "late", "sequence": 2},
        {"name": "quiet", "sequence": 1},
        {"name": "hub", "sequence": 1},
        {"name": "urgent", "sequence": 9, "priority": 5},
        {"name": "waits", "sequence": 0, "depends_on": ["hub"]},
    )
    assert [task["name"] for task in desk.call("workflow_next_tasks")["tasks"]] == ["urgent", "hub", "quiet", "late"]


@pytest.mark.parametrize("limit", [1, 10, 50])
def test_what_is_recommended_counts_all_that_is_ready_however_few_are_shown(desk: Desk, limit: int) -> None:
    desk.plan(*({"name": f"part {number}"} for number in range(15)), max_parallel_tasks=12)
    found = desk.call("workflow_next_tasks", limit=limit)
    assert (len(found["tasks"]), found["recommended_count"]) == (min(limit, 15), 12)
    assert found.get("more", False) is (limit < 15)


def test_what_is_recommended_leaves_room_for_what_runs(desk: Desk) -> None:
    desk.plan({"name": "a"}, {"name": "b"}, {"name": "c"}, max_parallel_tasks=2)
    assert desk.call("workflow_next_tasks")["recommended_count"] == 2
    desk.move("task_1", "in_progress")
    assert desk.call("workflow_next_tasks")["recommended_count"] == 1
    desk.move("task_2", "in_progress")
    assert desk.call("workflow_next_tasks")["recommended_count"] == 0


def test_the_others_of_a_group_are_named(desk: Desk) -> None:
    desk.plan(*({"name": name, "parallel_group": "g"} for name in "abc"), {"name": "d"})
    offered = {task["name"]: task for task in desk.call("workflow_next_tasks")["tasks"]}
    assert offered["a"]["can_parallelize"]
    assert set(offered["a"]["parallel_with"]) == {"task_2", "task_3"}
    assert not offered["d"]["can_parallelize"]


def test_subtasks_wait_for_what_the_task_they_are_part_of_waits_for(desk: Desk) -> None:
    desk.plan({"name": "first"}, {"name": "whole", "depends_on": ["first"]}, {"name": "part", "parent": "whole"})
    refusal = desk.refusal("task_update_status", id="task_3", status="in_progress")
    assert refusal.code == "TASK_BLOCKED"
    assert '"first"' in refusal.message
    assert desk.task("task_3")["parent_task_id"] == "task_2"
    assert desk.task("task_3")["depends_on"] == []


def test_a_task_with_open_subtasks_is_not_offered_and_not_completed(desk: Desk) -> None:
    desk.plan({"name": "whole"}, {"name": "part", "parent": "whole"})
    assert [task["name"] for task in desk.call("workflow_next_tasks")["tasks"]] == ["part"]
    desk.move("task_1", "in_progress")
    refusal = desk.refusal("task_update_status", id="task_1", status="completed", outcome="done")
    assert refusal.code == "TASKS_OPEN"
    assert refusal.details["open_tasks"] == [{"id": "task_2", "name": "part", "status": "pending"}]
    desk.move("task_2", "in_progress", "completed")
    desk.move("task_1", "completed")


def test_a_plan_whose_parts_wait_for_their_whole_shows_the_circle(desk: Desk) -> None:
    created = desk.call("workflow_create", name="w", source_type="prompt", source_content="")
    tasks = [
        {"name": "whole", "description": "", "sequence": 1},
        {"name": "next", "description": "", "sequence": 2, "depends_on": ["whole"]},
        {"name": "part", "description": "", "sequence": 1, "parent": "whole", "depends_on": ["next"]},
    ]
    plan = {"summary": "", "approach": "", "tasks": tasks}
    refusal = desk.refusal("workflow_set_plan", id=created["id"], plan=plan)
    assert refusal.code == "INVALID_PLAN"
    assert set(refusal.details["cycle"]) == {"whole", "next", "part"}


def test_an_added_part_may_not_wait_for_what_waits_for_its_whole(desk: Desk) -> None:
    workflow = desk.plan({"name": "whole"}, {"name": "next", "depends_on": ["whole"]})
    part = {"name": "part", "description": "", "sequence": 1, "parent": "whole", "depends_on": ["next"]}
    assert desk.refusal("workflow_add_tasks", id=workflow, tasks=[part]).code == "INVALID_PLAN"


def test_a_task_that_is_planned_anew_keeps_why_and_what_it_left(desk: Desk) -> None:
    desk.plan({"name": "a"})
    desk.call("task_set_plan", id="task_1", plan={"approach": "old", "steps": ["x"]}, context={"limit": 5})
    desk.move("task_1", "in_progress", "failed")
    desk.call("task_replan", id="task_1", reason="no proxy", new_plan={"approach": "new", "steps": ["y"]})
    task = desk.call("task_get", id="task_1", include_checkpoints=True)
    assert (task["status"], task["plan"]["approach"], task["error"]) == ("pending", "new", None)
    assert task["context"] == {"limit": 5}
    checkpoint = task["checkpoints"][-1]
    assert (checkpoint["type"], checkpoint["summary"]) == ("replan", "no proxy")
    assert checkpoint["detail"]["previous_plan"]["approach"] == "old"
    assert [c["type"] for c in desk.call("checkpoint_list", task_id="task_1", type=["replan"])["checkpoints"]] == [
        "replan"
    ]


def test_a_new_plan_keeps_what_is_done_and_what_runs(desk: Desk) -> None:
    workflow = desk.plan({"name": "done"}, {"name": "runs"}, {"name": "tried"}, {"name": "untouched"})
    desk.move("task_1", "in_progress", "completed")
    desk.move("task_2", "in_progress")
    desk.move("task_3", "in_progress", "failed")
    answer = desk.call(
        "workflow_replan",
        id=workflow,
        reason="simpler",
        tasks=[
            {"name": "done", "description": "other", "sequence": 9},
            {"name": "new", "description": "", "sequence": 3, "depends_on": ["runs"]},
        ],
    )
    assert answer["kept"] == ["done"]
    assert answer["added"] == ["new"]
    assert answer["removed"] == ["untouched"]
    assert answer["skipped"] == ["tried"]
    assert desk.task("task_1")["sequence"] == 1
    assert desk.task("task_2")["status"] == "in_progress"
    assert desk.task("task_3")["outcome"] == "taken out of the plan: simpler"
    assert desk.refusal("task_get", id="task_4").code == "TASK_NOT_FOUND"
    assert desk.task("task_5")["status"] == "blocked"


def test_time_left_is_judged_by_what_tasks_took(desk: Desk) -> None:
    desk.plan({"name": "a"}, {"name": "b"}, {"name": "c"})
    assert desk.call("workflow_progress")["estimated_remaining_ms"] is None
    desk.move("task_1", "in_progress")
    desk.clock.advance(60_000)
    desk.move("task_1", "completed")
    assert desk.call("workflow_progress")["estimated_remaining_ms"] == 120_000


def test_replies_about_a_large_plan_stay_small(desk: Desk) -> None:
    long = "x" * 20_000
    group = [{"name": f"task number {n}", "description": long, "parallel_group": "g"} for n in range(300)]
    waiting = [{"name": f"waits {n}", "description": long, "depends_on": ["task number 0"]} for n in range(300)]
    workflow = desk.plan(*group, *waiting, source_content=long)
    for tool, arguments in (
        ("workflow_get", {"id": workflow}),
        ("workflow_get", {"id": workflow, "include_tasks": True}),
        ("task_get", {"id": "task_1"}),
        ("workflow_next_tasks", {}),
        ("workflow_progress", {}),
        ("workflow_list", {}),
        ("workflow_get_summary", {}),
        ("workflow_get_summary", {"format": "markdown"}),
    ):
        size = len(msgspec.json.encode(desk.call(tool, **arguments)))
        assert size <= REPLY_BYTES, (tool, arguments, size)
    whole = desk.call("workflow_get", id=workflow, full=True)
    assert whole["source_content"] == long


def test_a_task_that_waits_for_very_many_is_told_in_a_short_reply_that_says_how_many(desk: Desk) -> None:
    many = [
        {"name": f"{number:03} {'part ' * 30}".strip(), "parallel_group": f"group {number}"} for number in range(200)
    ]
    desk.plan(*many, {"name": "last", "depends_on": [task["name"] for task in many]})
    for number in range(1, 101):
        desk.call("task_update_status", id=f"task_{number}", status="in_progress")
        desk.call("task_update_status", id=f"task_{number}", status="completed", outcome="Done. " * 100)
    needs = desk.call("task_check_dependencies", task_id="task_201")
    assert len(msgspec.json.encode(needs)) <= REPLY_BYTES
    assert (needs["satisfied"], needs["pending_total"], needs["completed_total"]) == (False, 100, 100)
    assert (needs["pending"][0]["id"], needs["completed"][0]["id"]) == ("task_101", "task_1")
    progress = desk.call("workflow_progress")
    assert len(msgspec.json.encode(progress)) <= REPLY_BYTES
    assert (progress["by_status"]["blocked"], progress["parallel_groups_total"]) == (1, 200)


def test_a_workflow_is_listed_for_its_repository_only(desk: Desk) -> None:
    desk.plan({"name": "a"}, repository_path="/srv/one")
    desk.plan({"name": "a"}, repository_path="/srv/two")
    listed = desk.call("workflow_list", repository_path="/srv/two")
    assert (listed["total"], listed["workflows"][0]["repository_path"]) == (1, "/srv/two")
    assert desk.call("workflow_list", repository_path="/srv/three") == {"workflows": [], "total": 0}


def test_a_plan_from_before_dependencies_were_records_is_worked_through_like_any_other(desk: Desk) -> None:
    old = [task(f"task_{name}", name=name, depends_on=needs, unmet=len(needs)) for name, needs in OLD_PLAN.items()]
    put(desk.store, workflow("wf_1", status="ready"), *old)
    assert desk.call("workflow_progress")["by_status"]["blocked"] == 2
    desk.move("task_a", "in_progress", "completed")
    assert [found["name"] for found in desk.call("workflow_next_tasks")["tasks"]] == ["b"]
    desk.move("task_b", "in_progress", "completed")
    assert [found["name"] for found in desk.call("workflow_next_tasks")["tasks"]] == ["c"]
    assert desk.call("workflow_progress")["by_status"]["completed"] == 2
    assert desk.store.verify() == []


def test_a_new_plan_may_not_make_a_task_wait_for_its_own_part(desk: Desk) -> None:
    workflow = desk.plan({"name": "whole"}, {"name": "part", "parent": "whole"})
    desk.move("task_2", "in_progress")
    tasks = [{"name": "whole", "description": "", "sequence": 1, "depends_on": ["part"]}]
    refusal = desk.refusal("workflow_replan", id=workflow, reason="try", tasks=tasks)
    assert refusal.code == "INVALID_PLAN"
    assert "part of it" in refusal.message


def test_a_task_whose_parts_are_open_leaves_its_place_to_them(desk: Desk) -> None:
    desk.plan({"name": "whole"}, {"name": "part", "parent": "whole"})
    desk.move("task_1", "in_progress")
    answer = desk.call("workflow_next_tasks")
    assert ([task["name"] for task in answer["tasks"]], answer["recommended_count"]) == (["part"], 1)


@pytest.mark.parametrize("tool", ["workflow_list", "repository_list", "template_list"])
def test_a_number_too_large_for_any_list_is_refused(desk: Desk, tool: str) -> None:
    assert desk.refusal(tool, offset=2**63).code == "INVALID_PARAMS"


def test_a_name_with_a_blank_at_its_end_is_refused(desk: Desk) -> None:
    workflow = desk.plan({"name": "a"})
    tasks = [{"name": "a ", "description": "", "sequence": 1}]
    assert desk.refusal("workflow_add_tasks", id=workflow, tasks=tasks).code == "INVALID_PLAN"


def test_an_old_decision_is_fetched_by_something_else_than_the_call_just_made(desk: Desk) -> None:
    desk.plan({"name": "a"})
    desk.move("task_1", "in_progress")
    for number in range(60):
        desk.call("checkpoint_add", task_id="task_1", type="decision", summary=f"decision {number}")
    bundle = desk.call("task_load_context", max_tokens=200_000, include={"recent_checkpoints": 0})
    older = [entry for entry in bundle["omitted"] if "older_decisions" in entry["sections"]]
    assert [entry["command"] for entry in older] == ["handrail decisions wf_1"]


def test_a_wrong_value_is_answered_with_the_right_ones(desk: Desk) -> None:
    desk.plan({"name": "a"})
    refusal = desk.refusal("task_update_status", id="task_1", status="done")
    assert "in_progress, paused" in refusal.hint
    refusal = desk.refusal("workflow_list", status=["open"])
    assert "planning" in refusal.hint


def test_long_notes_are_cut_unless_asked_for_whole(desk: Desk) -> None:
    desk.plan({"name": "a"})
    for _ in range(12):
        files = [f"file{number}.py" for number in range(50)]
        detail = {"log": "x" * 20_000}
        desk.call(
            "checkpoint_add", task_id="task_1", type="progress", summary="y" * 4000, detail=detail, files_changed=files
        )
    for tool, arguments in (
        ("checkpoint_list", {"task_id": "task_1"}),
        ("task_get", {"id": "task_1", "include_checkpoints": True}),
    ):
        assert len(msgspec.json.encode(desk.call(tool, **arguments))) <= REPLY_BYTES, tool
    whole = desk.call("checkpoint_list", task_id="task_1", full=True, limit=1)["checkpoints"][0]
    assert whole["detail"] == {"log": "x" * 20_000}

"""A text that is cut says how to get the rest, and what it says works: the tool it names has that argument."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.toolsets.plan.planned import Desk

LONG = "Wrap the fetch in a retry. " * 100


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_the_rest_of_a_next_task_is_in_its_context(desk: Desk) -> None:
    desk.plan({"name": "wrap", "description": LONG})
    (task,) = desk.call("workflow_next_tasks")["tasks"]
    assert task["description"].endswith("more characters; task_load_context with this task's id shows them)")
    assert desk.call("task_load_context", task_id=task["id"])["current_task"]["description"] == LONG


def test_the_rest_of_an_error_is_in_its_tasks_context(desk: Desk) -> None:
    desk.plan({"name": "wrap"})
    desk.call("task_update_status", id="task_1", status="in_progress")
    desk.call("task_update_status", id="task_1", status="failed", error=LONG)
    (task,) = desk.call("workflow_next_tasks")["tasks"]
    assert task["error"].endswith("task_load_context with this task's id shows them)")
    assert desk.call("task_load_context", task_id="task_1")["open_issues"][0]["error"] == LONG


def test_the_rest_of_an_outcome_is_in_the_context_of_what_waited_for_it(desk: Desk) -> None:
    desk.plan({"name": "wrap"}, {"name": "test", "depends_on": ["wrap"]})
    desk.call("task_update_status", id="task_1", status="in_progress")
    desk.call("task_update_status", id="task_1", status="completed", outcome=LONG)
    (need,) = desk.call("task_check_dependencies", task_id="task_2")["completed"]
    assert need["outcome"].endswith("task_load_context with the waiting task's id shows them)")
    assert desk.call("task_load_context", task_id="task_2")["dependency_outcomes"][0]["outcome"] == LONG


@pytest.mark.parametrize("tool", ["task_get_available", "workflow_get"])
def test_the_rest_of_a_listed_task_is_in_the_task_itself(desk: Desk, tool: str) -> None:
    workflow = desk.plan({"name": "wrap", "description": LONG}, {"name": "test"})
    agent = desk.call("agent_register", name="Anna", runtime="codex")["id"]
    desk.call("task_update_status", id="task_2", status="in_progress")
    desk.call("task_update_status", id="task_2", status="completed", outcome=LONG)
    if tool == "task_get_available":
        (found,) = desk.call(tool, agent_id=agent)["tasks"]
        cut, member = found["description"], "description"
    else:
        found = desk.call(tool, id=workflow, include_tasks=True, full=True)["tasks"][1]
        cut, member = found["outcome"], "outcome"
    assert cut.endswith("task_get with `full` shows them)")
    assert desk.call("task_get", id=found["id"], full=True)[member] == LONG


def test_the_rest_of_a_template_is_in_the_template_itself(desk: Desk) -> None:
    task = {"name": "one", "description": "-", "sequence": 1}
    made = desk.call("template_create", name="long", description=LONG, template={"tasks": [task]})
    listed = next(one for one in desk.call("template_list")["templates"] if one["id"] == made["id"])
    assert listed["description"].endswith("template_list with its template_id shows them)")
    assert desk.call("template_list", template_id=made["id"])["templates"][0]["description"] == LONG

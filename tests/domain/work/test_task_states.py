"""Which state of a task and of a workflow may follow which, held against the rules written out."""

from __future__ import annotations

from handrail.domain.work.task import FINISHED, TASK_MACHINE
from handrail.domain.work.workflow import CLOSED, WORKFLOW_MACHINE
from tests.toolsets.plan.plan_model import DONE, LEGAL

WORKFLOWS = {
    "planning": {"ready", "abandoned"},
    "ready": {"in_progress", "abandoned"},
    "in_progress": {"paused", "completed", "failed", "abandoned"},
    "paused": {"in_progress", "abandoned"},
    "failed": {"in_progress", "abandoned"},
    "completed": set(),
    "abandoned": set(),
}


def test_a_task_goes_where_the_rules_say() -> None:
    assert {state: set(after) for state, after in TASK_MACHINE.transitions.items()} == LEGAL
    assert (TASK_MACHINE.initial, set(FINISHED)) == ("pending", set(DONE))


def test_a_workflow_goes_where_the_rules_say() -> None:
    assert {state: set(after) for state, after in WORKFLOW_MACHINE.transitions.items()} == WORKFLOWS
    assert (WORKFLOW_MACHINE.initial, set(CLOSED)) == ("planning", {"completed", "abandoned"})

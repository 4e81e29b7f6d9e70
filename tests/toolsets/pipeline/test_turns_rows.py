"""A run and the rows of its plan: who may finish what, and that they agree when the run is over."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.pipeline.ownership import check_task
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import TaskState
from handrail.domain.pipeline.task_mirror import NOT_THE_RUNS, PASSED, UNREVIEWED, mirror_tasks
from handrail.domain.work.lease import Lease
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition
from handrail.kernel.records import UnitOfWork
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER, Desk

BARE = """name: bare
phases:
  - {id: list, label: List, kind: agent, agent: task-decomposer, output: tasks.md}
  - {id: do, label: Do, kind: tasks, plan: tasks.md, agent: implementer, output: "impl-{N}.md"}
"""


class Run(Orchestrator):
    """A run over a memory store, and the rows of its plan."""

    def __init__(self, folder: Path) -> None:
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan")
        super().__init__(self.desk.call, folder / "project")

    def rows(self) -> list[dict[str, Any]]:
        shown = self.desk.call("workflow_get", id=self.workflow, include_tasks=True, include_task_summaries=False)
        return list(shown["tasks"])

    def states(self) -> list[str]:
        return [row["status"] for row in self.rows()]

    def finish_row(self, place: int, status: str = "completed", outcome: str = "did it myself") -> None:
        """A row finished past every check, as the store of an older Handrail may have it."""

        def work(unit: UnitOfWork) -> None:
            task, workflow = unit.get(Task, self.rows()[place]["id"]), unit.get(Workflow, self.workflow)
            assert task is not None
            assert workflow is not None
            edit = PlanEdit(unit, workflow)
            edit.change(task, status=status, outcome=outcome, finished_at=edit.now)
            edit.record(f"task.{status}")

        self.desk.store.run(TESTER, work)

    def to_tasks(self) -> dict[str, Any]:
        return self.run(lambda action: action.get("phase") == "phase-5")

    def mirrored(self, **changes: Any) -> None:
        """The rows brought in line with the run as it would be with these changes."""

        def work(unit: UnitOfWork) -> None:
            run, workflow = unit.get(PipelineRun, self.workflow), unit.get(Workflow, self.workflow)
            assert run is not None
            assert workflow is not None
            edit = PlanEdit(unit, workflow)
            mirror_tasks(unit, edit, run, run.run_state().but(**changes), None)
            edit.record("pipeline.moved")

        self.desk.store.run(TESTER, work)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


# -- a run that is given up --------------------------------------------------------------------------------------------


def test_an_abandoned_run_leaves_no_row_open_and_no_claim(run: Run) -> None:
    run.to_tasks()
    agent = run.desk.call("agent_register", name="Ann", runtime="claude_code")["id"]
    row = run.rows()[0]["id"]
    assert run.desk.call("task_claim", task_id=row, agent_id=agent)["success"] is True
    assert run.states() == ["in_progress", "blocked", "in_progress"]
    run.mirrored(ended="abandoned")
    assert run.states() == ["skipped", "skipped", "skipped"]
    assert {task["outcome"] for task in run.rows()} == {"Its run is abandoned."}
    assert run.desk.call("workflow_progress", workflow_id=run.workflow)["by_status"]["skipped"] == 3
    lease = run.desk.store.run(TESTER, lambda unit: unit.get(Lease, row))
    assert lease is not None
    assert lease.holder is None
    assert run.desk.store.verify() == []


def test_a_run_abandoned_at_a_gate_closes_its_rows(run: Run) -> None:
    run.written["review-1.md"] = [f"{n}\n## Verdict: FAIL\n" for n in range(9)]
    run.answers["task-1-limit"] = ["abandon"]
    assert run.run()["summary"].startswith("Pipeline abandoned")
    assert run.states() == ["skipped", "completed", "completed"]
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "abandoned"


def test_what_others_put_into_the_workflow_is_over_with_the_run_too(run: Run) -> None:
    run.to_tasks()
    run.desk.call("workflow_add_tasks", id=run.workflow, tasks=[{"name": "z", "description": "", "sequence": 9}])
    assert run.run()["summary"].startswith("Pipeline completed")
    assert [(row["name"], row["status"], row["outcome"]) for row in run.rows()][3:] == [
        ("z", "skipped", "Its run is completed.")
    ]


def test_tasks_that_nobody_reviews_are_completed_with_the_run(tmp_path: Path) -> None:
    flows = tmp_path / "project" / ".handrail" / "flows"
    flows.mkdir(parents=True)
    (flows / "bare.yaml").write_text(BARE, encoding="utf-8")
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    begun = desk.call(
        "pipeline_init_with_context",
        workspace=".specs/20260401-x",
        task_text="Fix it",
        user_confirmation={"effort": "S", "workspace_slug": "bare", "flow": "bare"},
    )
    folder = tmp_path / "project" / begun["workspace"]
    for files in ({}, {"tasks.md": "## Task 1: Do it\n"}, {"impl-1.md": "done"}):
        for name, text in files.items():
            (folder / name).write_text(text, encoding="utf-8")
        action = desk.call("pipeline_next_action", workspace=begun["workspace"], previous_action_complete=bool(files))
    assert action["type"] == "done"
    (row,) = desk.call("workflow_get", id=begun["workflow_id"], include_tasks=True)["tasks"]
    assert (row["status"], row["outcome"]) == ("completed", UNREVIEWED)


# -- rows that others move ---------------------------------------------------------------------------------------------


def test_a_row_that_was_finished_behind_the_runs_back_says_so_until_the_run_is_done_with_it(run: Run) -> None:
    run.to_tasks()
    run.finish_row(0)
    run.run(lambda action: action.get("phase") == "phase-6")
    assert run.rows()[0]["status"] == "completed"
    assert run.rows()[0]["outcome"] == f"{NOT_THE_RUNS}did it myself"
    run.run(lambda action: action.get("phase") == "phase-7")
    assert [row["outcome"] for row in run.rows()] == [f"{PASSED}PASS"] * 3
    assert run.desk.store.verify() == []


def test_a_row_that_somebody_skipped_stays_so_and_says_what_its_run_thinks(run: Run) -> None:
    run.to_tasks()
    run.finish_row(1, "skipped", "not needed")
    run.run(lambda action: action.get("phase") == "phase-6")
    assert (run.rows()[1]["status"], run.rows()[1]["outcome"]) == ("skipped", f"{NOT_THE_RUNS}not needed")
    assert run.run()["summary"].startswith("Pipeline completed")
    assert (run.rows()[1]["status"], run.rows()[1]["outcome"]) == ("skipped", "not needed")


def test_a_row_whose_work_is_done_again_says_so(run: Run) -> None:
    run.run(lambda action: action.get("phase") == "phase-7")
    titles = ("Wrap the fetch", "Use it", "Say so")
    anew = [TaskState(number=number, title=title, mode="parallel") for number, title in enumerate(titles, 1)]
    run.mirrored(tasks=anew)
    assert {row["outcome"] for row in run.rows()} == {f"{NOT_THE_RUNS}{PASSED}PASS"}
    assert run.states() == ["completed"] * 3


def test_a_row_that_failed_or_was_paused_is_taken_up_by_the_run_again(run: Run) -> None:
    run.to_tasks()
    first, _, third = (row["id"] for row in run.rows())
    run.desk.call("task_update_status", id=first, status="failed", error="the proxy hangs")
    run.desk.call("task_update_status", id=third, status="paused")
    before = {row["id"]: row["attempts"] for row in run.rows()}
    run.run(lambda action: action.get("phase") == "phase-6")
    rows = {row["id"]: row for row in run.rows()}
    assert (rows[first]["status"], rows[first]["error"]) == ("in_progress", None)
    assert rows[third]["status"] == "in_progress"
    assert rows[first]["attempts"] == before[first] + 1
    assert rows[third]["attempts"] == before[third]


def test_claims_on_rows_of_a_run_work_and_end_with_its_review(run: Run) -> None:
    run.to_tasks()
    agent = run.desk.call("agent_register", name="Ann", runtime="claude_code")["id"]
    row = run.rows()[0]["id"]
    claimed = run.desk.call("task_claim", task_id=row, agent_id=agent, start=True)
    assert claimed["success"] is True
    run.run(lambda action: action.get("phase") == "phase-6")
    lease = run.desk.store.run(TESTER, lambda unit: unit.get(Lease, row))
    assert lease is not None
    assert (lease.holder, lease.fence) == (agent, claimed["fence"]), "until its review it is still the agent's"
    run.run(lambda action: action.get("phase") == "phase-7")
    lease = run.desk.store.run(TESTER, lambda unit: unit.get(Lease, row))
    assert lease is not None
    assert lease.holder is None


@pytest.mark.parametrize("status", ["completed", "skipped"])
def test_a_row_of_a_run_is_not_finished_by_the_plans_tools(run: Run, status: str) -> None:
    run.to_tasks()
    first = run.rows()[0]["id"]

    def check(task_id: str, wanted: str) -> None:
        def work(unit: UnitOfWork) -> None:
            task = unit.get(Task, task_id)
            assert task is not None
            check_task(unit, task, wanted)

        run.desk.store.run(TESTER, work)

    with pytest.raises(IllegalTransition) as refused:
        check(first, status)
    assert run.workspace in refused.value.message
    assert "pipeline_next_action" in refused.value.hint
    for other in ("in_progress", "paused", "failed", "pending"):
        check(first, other)
    run.desk.call("workflow_add_tasks", id=run.workflow, tasks=[{"name": "z", "description": "", "sequence": 9}])
    check(run.rows()[3]["id"], status)
    own = run.desk.plan({"name": "a"})
    check(run.desk.call("workflow_get", id=own, include_tasks=True)["tasks"][0]["id"], status)


# -- the workflow of a run ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["completed", "abandoned", "failed"])
def test_a_run_is_not_ended_behind_its_back(run: Run, status: str) -> None:
    run.run(lambda action: action["type"] == "checkpoint")
    refusal = run.desk.refusal("workflow_update_status", id=run.workflow, status=status)
    assert isinstance(refusal, IllegalTransition)
    assert "only a person abandons it" in refusal.hint
    assert "handrail pipeline abandon" not in refusal.hint  # nobody pastes what ends a run
    assert "pipeline_next_action" in refusal.hint
    assert run.desk.call("workflow_get", id=run.workflow)["status"] == "in_progress"
    assert run.run()["summary"].startswith("Pipeline completed")


def test_a_run_is_paused_and_goes_on_by_its_workflow(run: Run) -> None:
    run.to_tasks()
    run.desk.call("workflow_update_status", id=run.workflow, status="paused")
    run.desk.call("workflow_update_status", id=run.workflow, status="in_progress")
    assert run.run()["summary"].startswith("Pipeline completed")


def test_a_workflow_that_is_no_run_ends_as_ever(run: Run) -> None:
    own = run.desk.plan({"name": "a"})
    assert run.desk.call("workflow_update_status", id=own, status="abandoned") == {"success": True}
    assert isinstance(run.desk.refusal("workflow_update_status", id=own, status="in_progress"), IllegalTransition)

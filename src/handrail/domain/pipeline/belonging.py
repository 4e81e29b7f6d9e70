"""What of a plan belongs to a run: its workflow ends with the run and not before, its tasks are finished by the run's
own reviews. Reads the run's row and nothing more; how the tasks follow the run is `tasking.py`'s."""

from __future__ import annotations

from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.task import FINISHED, Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, NotAllowed
from handrail.kernel.records import UnitOfWork

OPEN_TO_ALL = ("paused", "in_progress")
"""States that anybody may give the workflow of a run: so it is stopped, and goes on."""


def check_workflow(unit: UnitOfWork, workflow: Workflow, status: str, *, humans_decide: bool = False) -> None:
    """Raises IllegalTransition where a run under way would be ended behind its back, NotAllowed where only people let
    one go on that stands still."""
    run = _run_under_way(unit, workflow.id)
    if run is None:
        return
    if (humans_decide or run.for_people) and workflow.status == "paused" and status == "in_progress":
        raise NotAllowed(
            f"workflow {workflow.id} is the run of {run.workspace}, and here only a person lets it go on",
            hint=f"the person runs: handrail pipeline resume {run.workspace}",
        )
    if status not in OPEN_TO_ALL:
        raise IllegalTransition(
            f"workflow {workflow.id} is the run of {run.workspace}, which nobody makes {status} from outside",
            hint="pipeline_next_action goes on with it, paused stops it; a person gives it up with: "
            f"handrail pipeline abandon {run.workspace}",
            status=workflow.status,
            workspace=run.workspace,
        )


def check_task(unit: UnitOfWork, task: Task, status: str) -> None:
    """Raises IllegalTransition where a task of a run under way would be finished without the run's review."""
    run = _run_under_way(unit, task.workflow_id) if status in FINISHED else None
    if run is not None and task.id in run.task_ids.values():
        raise IllegalTransition(
            f'task "{task.name}" belongs to the run of {run.workspace}, which says itself when it is {status}',
            hint="write the task's file and report with pipeline_next_action; its review finishes the task",
            status=task.shown_status,
            workspace=run.workspace,
        )


def _run_under_way(unit: UnitOfWork, workflow_id: str) -> PipelineRun | None:
    run = unit.get(PipelineRun, workflow_id)
    # Looked at as it lies there: making a state of it is the business of whoever runs pipelines.
    return run if run is not None and run.state.get("ended") is None else None

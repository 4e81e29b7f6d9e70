"""What of a plan belongs to a run: its workflow ends with the run and not before, and the run's own reviews finish its
tasks. Reads only the run's row; `task_mirror.py` makes the tasks follow the run."""

from __future__ import annotations

from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.task import FINISHED, Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import IllegalTransition, NotAllowed
from handrail.kernel.records import UnitOfWork

OPEN_TO_ALL = ("paused", "in_progress")
"""States anyone may give the workflow of a run, to stop or resume it."""


def check_workflow(unit: UnitOfWork, workflow: Workflow, status: str, *, humans_decide: bool = False) -> None:
    """Raises IllegalTransition if a run would be ended behind its back, NotAllowed if only people may resume it."""
    run = run_under_way(unit, workflow.id)
    if run is None:
        return
    if (humans_decide or run.for_people) and workflow.status == "paused" and status == "in_progress":
        raise NotAllowed(
            f"workflow {workflow.id} is the run of {run.workspace}, and only a person may resume it here",
            hint=f"the person runs: handrail pipeline resume {run.workspace}",
        )
    if status not in OPEN_TO_ALL:
        raise IllegalTransition(
            f"workflow {workflow.id} is the run of {run.workspace}, which cannot be made {status} from outside",
            hint="pipeline_next_action continues it, status paused stops it; only a person abandons it, at its gate or "
            "with `handrail pipeline`",
            status=workflow.status,
            workspace=run.workspace,
        )


def check_task(unit: UnitOfWork, task: Task, status: str) -> None:
    """Raises IllegalTransition if this would finish a task of a run under way without the run's review."""
    run = run_under_way(unit, task.workflow_id) if status in FINISHED else None
    if run is not None and task.id in run.task_ids.values():
        raise IllegalTransition(
            f'task "{task.name}" belongs to the run of {run.workspace}, and only the run makes it {status}',
            hint="write the task's file and report with pipeline_next_action; its review finishes the task",
            status=task.shown_status,
            workspace=run.workspace,
        )


def run_under_way(unit: UnitOfWork, workflow_id: str) -> PipelineRun | None:
    """The run of a workflow, unless it has ended."""
    run = unit.get(PipelineRun, workflow_id)
    # Reads the stored form: decoding the state is left to those who run pipelines.
    return run if run is not None and run.state.get("ended") is None else None

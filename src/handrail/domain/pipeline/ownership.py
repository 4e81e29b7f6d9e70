"""What of a plan belongs to a run: its workflow ends with the run and not before, and the run's own reviews finish its
tasks. Reads only the run's row; `task_mirror.py` makes the tasks follow the run.

Who drives a run. One orchestrator at a time: a second one is told who the first is, and may explicitly take over.

Someone who is gone holds nothing: a process that has ended, an agent that is lost, or anyone whose presence cannot be
checked and who has not moved the run for a long time. A caller that cannot be identified cannot hold a run either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.task import FINISHED, Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import IllegalTransition, NotAllowed, WorkspaceHeld
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


HELD_MS = 30 * 60_000
"""How long a holder whose presence cannot be checked is assumed to be there."""


class RunDriver(NamedTuple):
    """Who makes a call, as far as that is known."""

    name: str = ""
    agent_id: str | None = None
    session: str | None = None
    """The connection it comes through; None if every call is its own connection."""


Presence = Callable[[Mapping[str, Any]], bool | None]
"""Whether a holder is still there; None if that cannot be determined."""


def holder_of(caller: RunDriver, now_ms: int) -> dict[str, Any] | None:
    """The caller as a run's holder; None for a caller that could not be recognised again."""
    if caller.agent_id is None and caller.session is None:
        return None
    return {"name": caller.name, "agent_id": caller.agent_id, "session": caller.session, "since": now_ms}


def is_same(holder: Mapping[str, Any], caller: RunDriver) -> bool:
    """Two agents are told apart by their ids, even on one connection; callers without an agent id by connection."""
    if caller.agent_id is not None and holder.get("agent_id") is not None:
        return bool(caller.agent_id == holder["agent_id"])
    return caller.session is not None and caller.session == holder.get("session")


def still_holding(holder: Mapping[str, Any], caller: RunDriver) -> Mapping[str, Any]:
    """The same holder with its current connection: an agent may have come back through another one."""
    if caller.session is None or caller.session == holder.get("session"):
        return holder
    return {**holder, "session": caller.session}


def held_by_another(
    holder: Mapping[str, Any] | None, moved_at: int, caller: RunDriver, presence: Presence, now_ms: int
) -> bool:
    """Whether someone else is working on a run that last moved at `moved_at`."""
    if holder is None or is_same(holder, caller):
        return False
    there = presence(holder)
    return there if there is not None else now_ms - moved_at < HELD_MS


def refuse_second(workspace: str, holder: Mapping[str, Any], moved_at: int, now_ms: int) -> WorkspaceHeld:
    who = holder.get("name") or "another orchestrator"
    return WorkspaceHeld(
        f"{who} drives {workspace}; it moved {spoken_time(now_ms - moved_at)} ago",
        hint="let it continue; to take the run over, call pipeline_next_action with take_over: true",
        held_by=shown_holder(holder),
    )


def shown_holder(holder: Mapping[str, Any]) -> dict[str, Any]:
    """A holder as shown to others, without its connection, which stays private."""
    return {key: value for key, value in holder.items() if key != "session"}

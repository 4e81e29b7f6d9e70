"""A run's lifecycle in registry.md's terms: running, paused, done or failed, how far, since when, and why. Reads only.

Handrail has more states than those four; its own status is given alongside.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from handrail.domain.registry.envelopes import line_of
from handrail.domain.work.blockers import can_move, startable
from handrail.domain.work.plan_edit import tally_of, tasks_in
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Tally, Workflow, reason_of, status_event
from handrail.kernel.ledger import Event
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import shortened

State = Literal["running", "paused", "done", "failed"]
STATES: dict[str, State] = {
    "planning": "running",
    "ready": "running",
    "in_progress": "running",
    "paused": "paused",
    "completed": "done",
    "failed": "failed",
    "abandoned": "failed",
}
"""What registry.md calls each status of a workflow. It calls an abandoned one failed."""
UNTIL_DONE = 99
"""The highest percentage shown for a run that is not done."""
FAILED = 5
"""How many failed tasks are named."""
TEXT = 200


class Lifecycle(NamedTuple):
    """A run at one moment."""

    state: State
    progress: int
    counts: dict[str, int]
    last_event_seq: int
    last_event: dict[str, Any] | None
    started_at: int | None
    finished_at: int | None
    paused_at: int | None
    reason: str | None
    """Why it is paused or ended, in the words of whoever did it."""
    failure: dict[str, Any] | None


def lifecycle_of(unit: UnitOfWork, workflow: Workflow, just: Event | None = None) -> Lifecycle:
    """The run as it is now. `just` is an event that this unit has recorded and that reads do not show yet."""
    state, tally = STATES[workflow.status], tally_of(unit, workflow.id)
    event = just or (status_event(unit, workflow) if state != "running" else None)
    since = event.at_ms if event is not None else workflow.updated_at
    head = unit.head_seq(workflow.stream)
    last = just or (next(iter(unit.events(workflow.stream, head - 1, 1)), None) if head else None)
    return Lifecycle(
        state=state,
        progress=progress_of(state, tally),
        counts=_counts(unit, workflow, tally),
        last_event_seq=head,
        last_event=_event_summary(last) if last is not None else None,
        started_at=_started_at(unit, workflow),
        finished_at=since if workflow.status in (*CLOSED, "failed") else None,
        paused_at=since if state == "paused" else None,
        reason=reason_of(event),
        failure=_failure(unit, workflow, state, event),
    )


def just_recorded(unit: UnitOfWork, workflow: Workflow, reason: str | None) -> Event:
    """The event with which this unit gave a workflow its status."""
    name, channel = unit.actor
    data = {"reason": reason} if reason else {}
    head, kind = unit.head_seq(workflow.stream), f"workflow.{workflow.status}"
    return Event(workflow.stream, head, 0, kind, name, channel, unit.now_ms(), data, (), "")


def progress_of(state: State, tally: Tally) -> int:
    """How much is done, in percent; 100 only once the run itself is done."""
    if state == "done":
        return 100
    return min(UNTIL_DONE, tally.finished * 100 // tally.total) if tally.total else 0


def _counts(unit: UnitOfWork, workflow: Workflow, tally: Tally) -> dict[str, int]:
    return {
        "total": tally.total,
        "finished": tally.finished,
        "ready": unit.count(Task, Query(startable(workflow.id))),
        "running": tally.counts["planning"] + tally.counts["in_progress"],
        "blocked": tally.counts["blocked"],
        "paused": tally.counts["paused"],
        "failed": tally.counts["failed"],
    }


def _started_at(unit: UnitOfWork, workflow: Workflow) -> int | None:
    """When its first task began."""
    begun = Query((("workflow_id", workflow.id), ("started_at >", 0)), ("started_at",), 1)
    return next((task.started_at for task in unit.select(Task, begun)), None)


def _failure(unit: UnitOfWork, workflow: Workflow, state: State, event: Event | None) -> dict[str, Any] | None:
    """What went wrong: how the run ended, or which tasks have failed."""
    failed = tasks_in(unit, workflow.id, ("failed",), FAILED)
    if state != "failed" and not failed:
        return None
    told: dict[str, Any] = {}
    if state == "failed":
        told["status"] = workflow.status
    if state == "failed" and event is not None:
        told |= {"at": event.at_ms, "by": event.actor, "reason": reason_of(event)}
    if failed:
        told["tasks"] = [
            {
                "id": task.id,
                "name": task.name,
                "error": shortened(task.error or "", TEXT),
                "can_be_retried": can_move(task),
            }
            for task in failed
        ]
    return told


def _event_summary(event: Event) -> dict[str, Any]:
    return {"seq": event.seq, "kind": event.kind, "ts": event.at_ms, "by": event.actor, "msg": line_of(event)}

"""Since when a workflow has had its status, who set it and why; and what an agent looking for work is told about a
paused one. Reads only: `transitions.py` makes sure that no task starts in it.
"""

from __future__ import annotations

from typing import Any

from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork

LOOKED_AT = 50
"""Events of a workflow that are searched for the one that set its status."""
TEXT = 300


def status_event(unit: UnitOfWork, workflow: Workflow) -> Event | None:
    """The event that gave a workflow its current status; None if it is too far back to be found."""
    about = Only(streams=(workflow.stream,), kinds=("workflow.", "pipeline."))
    events = unit.newest(LOOKED_AT, about)
    return next((event for event in reversed(events) if _is_move_to(event, workflow.status)), None)


def _is_move_to(event: Event, status: str) -> bool:
    if event.kind.endswith(f".{status}"):
        return True
    return any(row.get("status") == status for row in event.rows("workflow"))


def reason_of(event: Event | None) -> str | None:
    """The reason given by the person or agent who did it."""
    reason = event.data.get("reason") if event is not None else None
    return reason[:TEXT] if isinstance(reason, str) and reason else None


def pause_details(unit: UnitOfWork, workflow: Workflow) -> dict[str, Any] | None:
    """Why no task can start in a workflow; None if it is not paused."""
    if workflow.status != "paused":
        return None
    event = status_event(unit, workflow)
    details: dict[str, Any] = {"since": event.at_ms if event is not None else workflow.updated_at}
    if event is not None:
        details["by"] = event.actor
    if (reason := reason_of(event)) is not None:
        details["reason"] = reason
    return {**details, "hint": "no task can start; workflow_update_status with in_progress resumes it"}

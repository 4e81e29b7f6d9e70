"""Since when a workflow is what it is, who made it so and what they said; and what whoever looks for work is told of
one that is paused. Reads only: that nothing is begun in it is `moving.py`'s to see to.
"""

from __future__ import annotations

from typing import Any

from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import UnitOfWork

LOOKED_AT = 50
"""Events of a workflow that are looked through for the one that gave it its status."""
TEXT = 300


def status_event(unit: UnitOfWork, workflow: Workflow) -> Event | None:
    """The event that made a workflow what it is now; None where that was too long ago to be looked for."""
    about = Only(streams=(workflow.stream,), kinds=("workflow.", "pipeline."))
    events = unit.newest(LOOKED_AT, about)
    return next((event for event in reversed(events) if _made(event, workflow.status)), None)


def _made(event: Event, status: str) -> bool:
    if event.kind.endswith(f".{status}"):
        return True
    rows = (change.after for change in event.changes if change.table == "workflow" and change.after is not None)
    return any(row.get("status") == status for row in rows)


def reason_of(event: Event | None) -> str | None:
    """Why, as whoever did it said."""
    reason = event.data.get("reason") if event is not None else None
    return reason[:TEXT] if isinstance(reason, str) and reason else None


def told_pause(unit: UnitOfWork, workflow: Workflow) -> dict[str, Any] | None:
    """Why nothing is begun in a workflow; None where it is not paused."""
    if workflow.status != "paused":
        return None
    event = status_event(unit, workflow)
    told: dict[str, Any] = {"since": event.at_ms if event is not None else workflow.updated_at}
    if event is not None:
        told["by"] = event.actor
    if (reason := reason_of(event)) is not None:
        told["reason"] = reason
    return {**told, "hint": "nothing is begun in it; workflow_update_status with in_progress lets it go on"}

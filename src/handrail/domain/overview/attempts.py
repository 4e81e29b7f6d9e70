"""Who attempted a task, when, and how each attempt ended: folded from the newest events of its workflow. Pure.

An attempt begins when the task's own counter goes up, whichever toolset caused that, and ends when the task leaves the
states in which somebody works on it. Attempts older than the given events are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from handrail.domain.overview.rows import cut
from handrail.domain.work.task import RUNNING, Task
from handrail.kernel.ledger import Event

ERROR = 2000
"""The most characters of an attempt's error."""
RELEASED = "released"
REPLACED = "taken over"


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One attempt. Without an end it is under way."""

    number: int
    agent: str | None
    """The agent's id; the page shows its name."""
    started_at: int
    ended_at: int | None = None
    outcome: str | None = None
    """completed, failed, skipped, released or taken over."""
    error: str | None = None


def attempts_in(task: Task, events: Iterable[Event]) -> list[Attempt]:
    """The attempts recorded in these events, oldest first; if there are none, the last one as the task itself records
    it."""
    found: list[Attempt] = []
    for event in events:
        for change in event.changes:
            if change.table == "task" and change.key == task.id and change.after is not None:
                _go_on(found, event, change.after)
    if not found and task.attempts and task.started_at is not None:
        over = task.is_finished or task.status == "failed"
        ended = (task.finished_at or task.updated_at) if over else None
        error = cut(task.error, ERROR)
        return [
            Attempt(
                number=task.attempts,
                agent=task.assigned_agent_id,
                started_at=task.started_at,
                ended_at=ended,
                outcome=task.status if over else None,
                error=error,
            )
        ]
    return found


def _go_on(found: list[Attempt], event: Event, after: Mapping[str, Any]) -> None:
    """Folds in one change of the task."""
    number, status, agent = after.get("attempts"), after.get("status"), after.get("assigned_agent_id")
    if number:
        if found and found[-1].ended_at is None:
            found[-1] = _ended(found[-1], event, REPLACED)
        found.append(Attempt(number=number, agent=agent or event.actor, started_at=event.at_ms))
        return
    if not found or found[-1].ended_at is not None:
        return
    if agent is not None:
        found[-1] = msgspec.structs.replace(found[-1], agent=agent)
    if status is not None and status not in RUNNING:
        outcome = RELEASED if status == "pending" else status
        found[-1] = _ended(found[-1], event, outcome, cut(after.get("error"), ERROR))


def _ended(attempt: Attempt, event: Event, outcome: str, error: str | None = None) -> Attempt:
    return msgspec.structs.replace(attempt, ended_at=event.at_ms, outcome=outcome, error=error)

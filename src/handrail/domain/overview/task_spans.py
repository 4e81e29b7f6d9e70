"""The events of a workflow folded into stretches of its tasks' lives: waits, attempts, pauses. Pure.

Only row values before and after count, not the kind of an event: a task moves the same way whichever toolset moved it,
and an undo moves it back.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.work.task import AT_WORK
from handrail.kernel.ledger import Change, Event

_KEPT = ("name", "status", "unmet", "open_children", "assigned_agent_id", "attempts")
"""Columns of a task that decide which stretch it is in."""
_ENDED_BY = {"task.released": "released", "task.replanned": "replanned", "ledger.undo": "taken back"}


class Stretch(msgspec.Struct, kw_only=True):
    """One stretch of one task. It can change until its attempt is over."""

    task_id: str
    kind: str
    """queue, work or paused."""
    attempt: int
    since: int
    until: int | None = None
    agent_id: str | None = None
    phase: str | None = None
    status: str
    how: str = ""


class _Life(msgspec.Struct, kw_only=True):
    """A task, as far as its events have been folded."""

    row: dict[str, Any]
    now: Stretch | None = None
    """The stretch it is in."""
    attempt: list[Stretch] = []
    """The stretches of the current attempt."""


class Attempts:
    """The lives of a workflow's tasks, as far as its events have been folded."""

    def __init__(self, since: int) -> None:
        self._since = since
        """The time from which a task is taken to have been in the state it had before its first event here."""
        self._lives: dict[str, _Life] = {}
        self._stretches: list[Stretch] = []
        self._phase: str | None = None

    def take(self, event: Event) -> None:
        if event.kind == "pipeline.moved":
            phase = event.data.get("phase")
            self._phase = phase if isinstance(phase, str) and phase else self._phase
        for change in event.changes:
            if change.table == "task":
                self._take(event, change)

    def knows(self, task_id: str) -> bool:
        return task_id in self._lives

    def name_of(self, task_id: str) -> str:
        """The name of a task that is no longer in the plan."""
        life = self._lives.get(task_id)
        return str(life.row.get("name") or task_id) if life is not None else task_id

    def stretches(self) -> list[Stretch]:
        """All stretches, except waits of no length: those tasks began the moment they could."""
        return [one for one in self._stretches if one.kind != "queue" or one.since != one.until]

    def ended_at(self, at_ms: int) -> list[Stretch]:
        """All stretches, for a workflow that ended at that time: nothing continues after it."""
        for life in self._lives.values():
            if life.now is not None:
                life.now.until = max(at_ms, life.now.since)
                life.now = None
        return self.stretches()

    # -- one change of one task ---------------------------------------------------------------------------------------

    def _take(self, event: Event, change: Change) -> None:
        life = self._lives.get(change.key)
        if life is None:
            life = self._lives[change.key] = self._first_seen(event, change)
        row, after = life.row, change.after
        if after is None:
            self._close(life, event, "skipped", "removed")
            return
        had = row.get("assigned_agent_id") if row.get("status") in AT_WORK else None
        for name in _KEPT:
            if name in after:
                row[name] = after[name]
        kind, was = _kind(row), life.now.kind if life.now is not None else None
        taken = had is not None and row.get("assigned_agent_id") not in (None, had)  # another agent has it now
        if kind == was and not taken:
            self._go_on(life)
            return
        if taken and kind == was == "work":
            self._close(life, event, "failed", "taken over")
        elif kind is None or (kind == "queue" and was is not None):
            self._close(life, event, str(life.row.get("status")), _ENDED_BY.get(event.kind, ""))
        elif life.now is not None:  # from the queue to work, or between work and a pause
            self._step(life, event)
        if kind is not None:
            self._open(life, event, change.key, kind)

    def _first_seen(self, event: Event, change: Change) -> _Life:
        """A task that this change created, or that existed before the first event."""
        if change.before is None:
            return _Life(row={})
        life = _Life(row={name: value for name, value in change.before.items() if name in _KEPT})
        kind = _kind(life.row)
        if kind is not None:
            self._open(life, event, change.key, kind, since=self._since)
        return life

    def _open(self, life: _Life, event: Event, key: str, kind: str, since: int | None = None) -> None:
        done = int(life.row.get("attempts") or 0)
        begun = kind != "queue" and life.row.get("status") != "planning"
        stretch = Stretch(
            task_id=key,
            kind=kind,
            attempt=max(1, done if begun else done + 1),
            since=event.at_ms if since is None else since,
            phase=self._phase,
            status=str(life.row.get("status") or "pending"),
        )
        if kind != "queue":
            stretch.agent_id = life.row.get("assigned_agent_id") or event.actor
        life.now = stretch
        life.attempt = [*life.attempt, stretch]
        self._stretches.append(stretch)

    def _go_on(self, life: _Life) -> None:
        """Continues the same stretch with what is known now: planning that became work, a claim that came later."""
        if life.now is None:
            return
        life.now.status = str(life.row.get("status") or life.now.status)
        if life.now.kind != "queue":
            done = int(life.row.get("attempts") or 0)
            life.now.attempt = max(life.now.attempt, done)
            life.now.agent_id = life.row.get("assigned_agent_id") or life.now.agent_id

    def _step(self, life: _Life, event: Event) -> None:
        """Ends a stretch within an attempt. A wait is credited to the agent that then begins."""
        assert life.now is not None
        life.now.until = event.at_ms
        if life.now.kind == "queue":
            life.now.agent_id = life.row.get("assigned_agent_id") or event.actor
        life.now = None

    def _close(self, life: _Life, event: Event, status: str, how: str) -> None:
        """Ends an attempt, and records on all of its stretches how it ended."""
        if life.now is not None:
            life.now.until = event.at_ms
            life.now = None
        for stretch in life.attempt:
            if stretch.kind != "queue" or len(life.attempt) == 1:
                stretch.status, stretch.how = status, how
        life.attempt = []


def _kind(row: Mapping[str, Any]) -> str | None:
    """The kind of stretch a task with these values is in; None if it waits for others, failed or is over."""
    status = row.get("status")
    if status in AT_WORK:
        return "work"
    if status == "paused":
        return "paused"
    if status == "pending" and not row.get("unmet") and not row.get("open_children"):
        return "queue"
    return None

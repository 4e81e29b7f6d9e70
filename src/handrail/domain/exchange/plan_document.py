"""A plan outside of any store: every file read becomes one, and every file is written from one.

Complete on purpose: two documents are equal exactly if nothing was lost between them, which is how round trips are
tested. Each format has its own module for reading; `importer.py` turns a document into rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from handrail.domain.work.transitions import BEGUN

KEPT = "imported"
"""The key in a task's context that keeps what another tool said about it, verbatim."""
HELD_THERE = ("in_progress", "planning")
"""States in which someone works on a task. Nobody here does, so it is laid as paused, with its state under `BEGUN` in
its context: it uses no slot until someone takes it up."""
_UNDER_WAY = ("in_progress", "paused")


class TaskOrigin(msgspec.Struct, frozen=True, omit_defaults=True):
    """Where a task comes from, with everything its source says about it that Handrail has no field for."""

    system: str
    """`beads`, `task-master`, `github`, `markdown`."""
    id: str = ""
    """Its id in the source: `bd-a1b2`, `3.1`, `#12`."""
    fields: dict[str, Any] = {}
    source: str = ""
    """The source the id belongs to: a repository, a file, a tag of a file. Ids from two sources have nothing to do with
    each other."""

    @property
    def key(self) -> tuple[str, str, str] | None:
        """Identifies the same task in the same source, whatever its name is now; None if nothing does."""
        own_id = self.id.removeprefix(self.source)
        return (self.system, self.source, own_id) if self.id and self.source else None


class PlanNote(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something said while working on a task; it becomes a checkpoint. Times are milliseconds since 1970."""

    type: str = "progress"
    summary: str
    detail: dict[str, Any] = {}
    files_changed: list[str] = []
    at: int | None = None
    key: str | None = None
    """The name under which notes that replace it refer to it (`supersedes` in their detail)."""


class PlannedTask(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One task. `depends_on` and `parent` name other tasks of the document; names are unique in it."""

    name: str
    description: str = ""
    status: str = "pending"
    """A stored state (`TASK_MACHINE.states`)."""
    sequence: int = 0
    priority: int = 0
    parent: str | None = None
    depends_on: list[str] = []
    parallel_group: str | None = None
    estimated_complexity: str | None = None
    files_likely_affected: list[str] = []
    requires: list[str] = []
    acceptance: list[str] = []
    plan: dict[str, Any] | None = None
    """How the one doing it goes about it: approach, steps, files."""
    context: dict[str, Any] = {}
    """What is stored with it, besides its origin."""
    outcome: str | None = None
    outcome_detail: dict[str, Any] | None = None
    error: str | None = None
    attempts: int | None = None
    """How often work on it began; None means as its state and start time imply."""
    created_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    notes: list[PlanNote] = []
    origin: TaskOrigin | None = None


class PlanDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A whole plan. `remarks` are for the person who imports it: what was changed to fit, what was not understood."""

    name: str
    source_type: str = "custom"
    """One of `SOURCE_TYPES`."""
    source_ref: str | None = None
    description: str = ""
    """What the work is about: a workflow's `source_content`."""
    status: str | None = None
    """The status of the workflow; None means as its tasks imply."""
    plan: dict[str, Any] | None = None
    """How the work will be done: summary, approach, risks, assumptions."""
    max_parallel_tasks: int | None = None
    auto_create_workspaces: bool = False
    created_at: int | None = None
    tasks: list[PlannedTask] = []
    remarks: list[str] = []


def attempts_assumed(status: str, started_at: int | None) -> int:
    """How often work on a task began, if nothing says so."""
    return 1 if started_at is not None or status in _UNDER_WAY else 0


def origin_in(context: Mapping[str, Any]) -> TaskOrigin | None:
    """Where a task comes from, if its context says so and an `Origin` can hold all of it without loss."""
    kept: Any = context.get(KEPT)
    try:
        origin = msgspec.convert(kept, TaskOrigin)
    except msgspec.ValidationError:  # nothing is there, or someone wrote something else there
        return None
    return origin if msgspec.to_builtins(origin) == kept else None


def context_with(context: Mapping[str, Any], origin: TaskOrigin | None, status: str) -> dict[str, Any]:
    """A task's context as stored: with its origin, and with its original state if it is laid in a different one."""
    kept = {**context, KEPT: msgspec.to_builtins(origin)} if origin is not None else dict(context)
    return {**kept, BEGUN: status} if status in HELD_THERE else kept


def context_beside(context: Mapping[str, Any], origin: TaskOrigin | None) -> dict[str, Any]:
    """A stored context without what `context_with` added."""
    return {key: value for key, value in context.items() if key != BEGUN and (origin is None or key != KEPT)}


def status_here(status: str) -> str:
    """The state in which a task is laid."""
    return "paused" if status in HELD_THERE else status


def status_there(status: str, context: Mapping[str, Any]) -> str:
    """The state of a stored task according to its source, as long as nobody has taken it up here."""
    kept = context.get(BEGUN)
    return kept if status == "paused" and kept in HELD_THERE else status

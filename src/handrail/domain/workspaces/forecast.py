"""Which tasks can be worked on at the same time: the one check of everything that says what a task will touch.

A task's footprint is what its plan entry, its own plan and its journal declare, and what is reserved for it. Two tasks
are safe together where nothing they declare meets; what nobody declared, nobody can foresee. Reading only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.meeting import Reach
from handrail.domain.workspaces.reservation import Reservation
from handrail.domain.workspaces.reserving import agent_name, live
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

MOST_READY = 20
MOST_RUNNING = 50
MOST_PAIRS = 20_000
"""Pairs of areas that are looked at closely, in all: half a second. Plain paths and names that differ take none."""


class Declared(NamedTuple):
    """What one place declares of a task."""

    source: str
    """files_likely_affected, plan, areas or reservation."""
    reach: Reach


class Footprint(msgspec.Struct, frozen=True):
    """Everything that says what will be touched by something. What one place takes back another may still claim."""

    id: str
    name: str
    parts: tuple[Declared, ...]

    @property
    def is_unknown(self) -> bool:
        return not self.parts


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task is not safe together with something else."""

    task_id: str
    name: str
    other: str
    """`ready` or `running` for another task, `reserved` for what an agent keeps for itself."""
    other_id: str
    """The other task's id, or the agent's."""
    other_name: str
    path: str
    """A path that lies in both. It need not exist."""
    declared: str
    """By what the task declares it, and how."""
    other_declared: str
    until: int | None = None
    """When the reservation ends by itself."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """What can be begun at once, and why the rest cannot."""

    batch: tuple[str, ...] = ()
    """Ids of tasks that are safe together, with what is under way, and with what others have reserved."""
    conflicts: tuple[Conflict, ...] = ()
    """One for each two things that are not safe together."""
    unknown: frozenset[str] = frozenset()
    """Ids of tasks that declare nothing: they claim nothing, and may touch anything."""
    unchecked: tuple[str, ...] = ()
    """Ids of tasks that there was no time to compare with everything: they are in no batch."""


def forecast(
    unit: UnitOfWork,
    workflow: Workflow,
    ready: Sequence[Task],
    running: Sequence[Task],
    *,
    places: int,
    agent_id: str | None = None,
    repository: str | None = None,
) -> Forecast:
    """What of `ready`, best first, can be begun at once on so many free places, and what stands against the rest.

    The batch is greedy: whoever comes first in the order given is in it before anybody who comes later. What `agent_id`
    has reserved is in nobody's way: it is the one that asks.
    """
    listed = {task.id for task in ready}
    # A task with open parts leaves the work to them, and declares what they do.
    ready = [task for task in ready if not task.open_children][:MOST_READY]
    under_way = [task for task in running if task.id not in listed and not task.open_children][:MOST_RUNNING]
    where = workflow.repository_path or repository
    reservations = live(unit, where) if where is not None else []
    prints = footprints(unit, (*ready, *under_way), reservations)
    looking = _Looking(
        [prints[task.id] for task in ready],
        [prints[task.id] for task in under_way],
        _of_others(unit, reservations, agent_id, {task.id for task in under_way}),
    )
    return looking.batched(max(0, places))


def footprints(unit: UnitOfWork, tasks: Sequence[Task], reservations: Sequence[Reservation]) -> dict[str, Footprint]:
    """What each of these tasks declares, with what is reserved for it."""
    ids = tuple(task.id for task in tasks)
    open_entries = unit.select(JournalEntry, Query((("id", ids), ("completed_at", None)))) if ids else []
    areas = {entry.id: entry.areas for entry in open_entries}
    kept: dict[str | None, list[str]] = {}
    for reservation in reservations:
        kept.setdefault(reservation.task_id, []).extend(reservation.paths)
    return {task.id: _footprint(task, areas, kept.get(task.id, [])) for task in tasks}


def _footprint(task: Task, areas: Mapping[str, list[str]], reserved: list[str]) -> Footprint:
    plan = task.plan or {}
    planned = [plan.get(name) for name in ("files_to_modify", "files_to_create")]
    journalled = areas.get(task.id, []) if task.status in RUNNING else []
    declared = {
        "files_likely_affected": task.files_likely_affected,
        "plan": [path for listed in planned if isinstance(listed, list) for path in listed if isinstance(path, str)],
        "areas": journalled,
        "reservation": reserved,
    }
    parts = (Declared(source, Reach(listed)) for source, listed in declared.items() if listed)
    return Footprint(task.id, task.name, tuple(part for part in parts if part.reach.claims))


class _Kept(NamedTuple):
    """What somebody else keeps for itself, as a footprint."""

    reservation: Reservation
    footprint: Footprint


def _of_others(
    unit: UnitOfWork, reservations: Sequence[Reservation], agent_id: str | None, told: set[str]
) -> list[_Kept]:
    """Other agents' reservations. Those for a task that is under way are in its own footprint."""
    return [
        _Kept(
            one, Footprint(one.agent_id, agent_name(unit, one.agent_id), (Declared("reservation", Reach(one.paths)),))
        )
        for one in reservations
        if one.agent_id != agent_id and one.task_id not in told
    ]


class _Looking:
    """Compares the ready tasks with everything that could be in their way, while there is time."""

    def __init__(self, ready: Sequence[Footprint], running: Sequence[Footprint], kept: Sequence[_Kept]) -> None:
        self._ready = ready
        self._running = running
        self._kept = kept
        self._left = MOST_PAIRS
        self._unchecked: dict[str, None] = {}
        self._conflicts: list[Conflict] = []

    def batched(self, places: int) -> Forecast:
        batch: list[str] = []
        for at, task in enumerate(self._ready):
            before = len(self._conflicts)
            for other in self._running:
                self._compare(task, other, "running")
            for kept in self._kept:
                if kept.reservation.task_id != task.id:
                    self._compare(task, kept.footprint, "reserved", kept.reservation.expires_at)
            barred = len(self._conflicts) > before
            for earlier in self._ready[:at]:
                found = self._compare(task, earlier, "ready")
                barred |= found and earlier.id in batch
            if not barred and task.id not in self._unchecked and len(batch) < places:
                batch.append(task.id)
        return Forecast(
            batch=tuple(batch),
            conflicts=tuple(self._conflicts),
            unknown=frozenset(task.id for task in self._ready if task.is_unknown),
            unchecked=tuple(self._unchecked),
        )

    def _compare(self, task: Footprint, other: Footprint, what: str, until: int | None = None) -> bool:
        """Notes the first path in which two things meet, and whether there is one."""
        for mine in task.parts:
            for theirs in other.parts:
                near = mine.reach.near(theirs.reach)
                cost = near.pairs
                if not cost:
                    continue
                if cost > self._left:
                    self._unchecked[task.id] = None
                    return False
                self._left -= cost
                met = next(iter(near.meetings()), None)
                if met is not None:
                    self._conflicts.append(
                        Conflict(
                            task_id=task.id,
                            name=task.name,
                            other=what,
                            other_id=other.id,
                            other_name=other.name,
                            path=met.path,
                            declared=f"{mine.source}: {met.area}",
                            other_declared=f"{theirs.source}: {met.other}",
                            until=until,
                        )
                    )
                    return True
        return False

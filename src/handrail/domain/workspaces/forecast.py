"""Which tasks can be worked on at the same time: one check over everything that says what a task will touch.

A task's footprint is what its plan entry, its own plan and its journal declare, and what is reserved for it. Two tasks
are safe together if nothing they declare overlaps; what nobody declared cannot be foreseen. Reads only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.crew.agent import agent_name
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.scope import AreaOverlap
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.records import Reservation
from handrail.domain.workspaces.reservations import live
from handrail.domain.workspaces.scope_overlap import Reach
from handrail.kernel.records import Query, UnitOfWork

MOST_READY = 20
MOST_RUNNING = 50
MOST_PAIRS = 20_000
"""How many pairs of areas are compared closely, in all: half a second's worth. Plain paths and names that differ cost
nothing."""


class DeclaredFiles(NamedTuple):
    """What one source declares about a task."""

    source: str
    """files_likely_affected, plan, areas or reservation."""
    reach: Reach


class Footprint(msgspec.Struct, frozen=True):
    """Everything that says what a task or agent will touch. What one source takes back another may still claim."""

    id: str
    name: str
    parts: tuple[DeclaredFiles, ...]

    @property
    def is_unknown(self) -> bool:
        return not self.parts


class Met(NamedTuple):
    """An overlap of two footprints: what declares it in each, and how."""

    mine: DeclaredFiles
    theirs: DeclaredFiles
    overlap: AreaOverlap


class OutOfTime(Exception):  # noqa: N818 - not an error: there is more than can be compared
    """Two footprints declare more than the time left allows to compare."""


class Comparing:
    """Compares footprints, within a limited amount of work."""

    def __init__(self) -> None:
        self._left = MOST_PAIRS

    def met(self, one: Footprint, other: Footprint) -> Met | None:
        """The first path in which two footprints overlap. Raises OutOfTime."""
        for mine in one.parts:
            for theirs in other.parts:
                near = mine.reach.near(theirs.reach)
                if near.pairs > self._left:
                    raise OutOfTime
                self._left -= near.pairs
                for overlap in near.meetings():
                    return Met(mine, theirs, overlap)
        return None


class TaskConflict(msgspec.Struct, frozen=True, kw_only=True):
    """Why a task is not safe alongside something else."""

    task_id: str
    name: str
    other: str
    """`ready` or `running` for another task, `reserved` for an agent's reservation."""
    other_id: str
    """The other task's id, or the agent's."""
    other_name: str
    path: str
    """A path that lies in both. It need not exist."""
    declared: str
    """Which source of the task declares it, and how."""
    other_declared: str
    until: int | None = None
    """When the reservation expires."""


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Which tasks can begin together, and why the others cannot."""

    batch: tuple[str, ...] = ()
    """Ids of tasks that are safe with each other, with what is under way, and with what others have reserved."""
    conflicts: tuple[TaskConflict, ...] = ()
    """One for each pair of things that are not safe together."""
    unknown: frozenset[str] = frozenset()
    """Ids of tasks that declare nothing: they claim nothing, and may touch anything."""
    unchecked: tuple[str, ...] = ()
    """Ids of tasks that there was no time to compare with everything; they are left out of the batch."""


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
    """Which of the `ready` tasks, best first, can begin now with this many free places, and what prevents the others.

    The batch is greedy: tasks join it in the order given. What `agent_id` has reserved blocks nothing, because that
    agent is the one asking.
    """
    listed = {task.id for task in ready}
    # A task with open subtasks leaves the work to them, and what it declares is what they will do.
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
    """What each of these tasks declares, including what is reserved for it."""
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
    parts = (DeclaredFiles(source, Reach(listed)) for source, listed in declared.items() if listed)
    return Footprint(task.id, task.name, tuple(part for part in parts if part.reach.claims))


class _Kept(NamedTuple):
    """Another agent's reservation, as a footprint."""

    reservation: Reservation
    footprint: Footprint


def _of_others(
    unit: UnitOfWork, reservations: Sequence[Reservation], agent_id: str | None, told: set[str]
) -> list[_Kept]:
    """Other agents' reservations, except those for a task under way, which are part of that task's footprint."""
    return [
        _Kept(
            one,
            Footprint(one.agent_id, agent_name(unit, one.agent_id), (DeclaredFiles("reservation", Reach(one.paths)),)),
        )
        for one in reservations
        if one.agent_id != agent_id and one.task_id not in told
    ]


class _Looking:
    """Compares the ready tasks with everything that could conflict, as far as time allows."""

    def __init__(self, ready: Sequence[Footprint], running: Sequence[Footprint], kept: Sequence[_Kept]) -> None:
        self._ready = ready
        self._running = running
        self._kept = kept
        self._comparing = Comparing()
        self._unchecked: dict[str, None] = {}
        self._conflicts: list[TaskConflict] = []

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
        """Whether two things overlap; records the first path in which they do."""
        try:
            met = self._comparing.met(task, other)
        except OutOfTime:
            self._unchecked[task.id] = None
            return False
        if met is None:
            return False
        self._conflicts.append(
            TaskConflict(
                task_id=task.id,
                name=task.name,
                other=what,
                other_id=other.id,
                other_name=other.name,
                path=met.overlap.path,
                declared=f"{met.mine.source}: {met.overlap.area}",
                other_declared=f"{met.theirs.source}: {met.overlap.other}",
                until=until,
            )
        )
        return True

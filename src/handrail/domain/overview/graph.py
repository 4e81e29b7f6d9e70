"""A workflow's plan as the page draws it: boxes with positions, lines with points, groups, and the critical path.

Nothing here depends on the state of tasks. The page takes that from its rows, so a task that changes state never moves
a box, and each plan is laid out only once: `Layouts` keeps the latest drawings.

The critical path of a plan: the chain of tasks that takes longest, and so sets the least time the plan takes.

The chain is found as a dry run finds it (`dry_run/forecast.py`), but over the whole plan: a finished task counts with
the time it took, any other with the dry run's estimate. So the page and `plan_dry_run` name the same chain. Pure.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

import msgspec

from handrail.domain.dry_run.forecast import ForecastStep, longest_path
from handrail.domain.dry_run.steps import Pace, pace_of
from handrail.domain.layout.edges import Edge
from handrail.domain.layout.layered import Box, Layout, lay_out
from handrail.domain.overview.groups import MOST_BOXES, Group, groups_of
from handrail.domain.overview.rows import links
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Tally
from handrail.kernel.records import Query, UnitOfWork

_LEAST_MS = 1
"""Every task takes some time, so that a chain never skips a task between two of its members."""


def critical_path(tasks: Sequence[Task], edges: Sequence[Edge]) -> list[int]:
    """Indexes into `tasks`, first to last. Of equally long chains, the one with more tasks, then the first."""
    before: list[list[str]] = [[] for _ in tasks]
    for source, target in edges:
        before[target].append(tasks[source].id)
    steps = [
        ForecastStep(task.id, task.name, tuple(needs), work_ms)
        for task, needs, work_ms in zip(tasks, before, durations(tasks), strict=True)
    ]
    place = {task.id: number for number, task in enumerate(tasks)}
    return [place[step.id] for step in longest_path(steps)]


def durations(tasks: Sequence[Task]) -> list[int]:
    """How long each task took or will probably take, in milliseconds."""
    parts_ended: dict[str, int] = {}
    for task in tasks:
        if task.parent_task_id is not None and task.finished_at is not None:
            parts_ended[task.parent_task_id] = max(parts_ended.get(task.parent_task_id, 0), task.finished_at)
    pace = pace_of(tasks)
    return [
        _worked_ms(task, parts_ended.get(task.id, 0)) if task.is_finished else _expected_ms(task, pace)
        for task in tasks
    ]


def _expected_ms(task: Task, pace: Pace) -> int:
    """How long an unfinished task will probably take. One with open parts is done when they are."""
    return _LEAST_MS if task.open_children else pace.of(task.estimated_complexity)


def _worked_ms(task: Task, parts_ended: int) -> int:
    """How long a finished task took; if it had parts, only its own share after they ended."""
    if task.status != "completed" or task.started_at is None or task.finished_at is None:
        return _LEAST_MS
    return max(_LEAST_MS, task.finished_at - max(task.started_at, parts_ended))


TASK_BOX = (190.0, 44.0)
GROUP_BOX = (210.0, 56.0)
GROUPED_ABOVE = MOST_BOXES
"""A plan with more tasks than this is drawn in groups by default."""
TASKS = 10_000
"""How many tasks are drawn; the first in plan order."""
KEPT = 32
"""How many drawings are kept."""


class PlanBox(msgspec.Struct, frozen=True, kw_only=True):
    """A box: a task, or a group of tasks under the id `group:<key>`."""

    id: str
    kind: Literal["task", "group"]
    x: float
    y: float
    w: float
    h: float
    label: str
    tasks: list[str]
    """The members of a group."""
    group: str | None
    """The key of the group it is or belongs to."""
    on_critical: bool


class PlanLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line from what must be finished first."""

    source: str
    target: str
    points: list[tuple[float, float]]
    on_critical: bool


class GraphView(msgspec.Struct, frozen=True, kw_only=True):
    """The drawing of a plan."""

    version: int
    """The version of the plan."""
    grouped: bool
    can_group: bool
    width: float
    height: float
    nodes: list[PlanBox]
    edges: list[PlanLine]
    crossings: int
    critical: list[str]
    """The tasks on the critical path, first to last."""


class _Plan(NamedTuple):
    """The tasks in plan order; edges join their indexes."""

    tasks: list[Task]
    edges: list[Edge]


class _Box(NamedTuple):
    """What a box stands for, regardless of where it is drawn."""

    id: str
    label: str
    group: str | None
    members: list[str]
    """The tasks of a group; a task has none."""

    @property
    def size(self) -> tuple[float, float]:
        return GROUP_BOX if self.members else TASK_BOX


class _Drawn(NamedTuple):
    """A drawing without anything that changes while the plan stays the same."""

    grouped: bool
    can_group: bool
    boxes: list[_Box]
    box_of: list[str]
    """The id of each task's box, by the task's index in the plan."""
    layout: Layout


class Layouts:
    """A cache of the latest drawings. Threads may share it: at worst, two of them make the same drawing."""

    def __init__(self, lay: Callable[[Sequence[Box], Sequence[tuple[str, str]]], Layout] = lay_out) -> None:
        self._lay = lay
        self._kept: dict[bytes, _Drawn] = {}

    def view(
        self, unit: UnitOfWork, workflow_id: str, grouped: bool | None = None, opened: tuple[str, ...] = ()
    ) -> GraphView:
        """The plan of a workflow. `grouped` says whether to draw groups, None means by size; `opened` are the keys of
        groups whose tasks are drawn individually. A workflow without a plan has an empty view."""
        plan = _read(unit, workflow_id)
        tally = unit.get(Tally, workflow_id)
        if grouped is None:
            grouped = len(plan.tasks) > GROUPED_ABOVE
        drawn = self._drawn(plan, grouped, tuple(sorted(set(opened))) if grouped else ())
        return _view(plan, drawn, tally.version if tally is not None else 0)

    def _drawn(self, plan: _Plan, grouped: bool, opened: tuple[str, ...]) -> _Drawn:
        key = _fingerprint(plan, grouped, opened)
        drawn = self._kept.pop(key, None) or _draw(plan, grouped, opened, self._lay)
        self._kept[key] = drawn  # moved to the end: the least recently used is dropped first
        for oldest in list(self._kept)[:-KEPT]:
            self._kept.pop(oldest, None)
        return drawn


def critical_tasks(unit: UnitOfWork, workflow_id: str) -> list[str]:
    """The tasks of the critical path, first to last, as the drawing has them; nothing is drawn for it."""
    plan = _read(unit, workflow_id)
    return [plan.tasks[place].id for place in critical_path(plan.tasks, plan.edges)]


def _read(unit: UnitOfWork, workflow_id: str) -> _Plan:
    """The tasks of a plan, and what comes before each: what it waits for, and its parts."""
    tasks = unit.select(Task, Query((("workflow_id", workflow_id),), ("sequence",), TASKS))
    place = {task.id: number for number, task in enumerate(tasks)}
    edges = {(place[needs], place[task]) for task, needs, _ in links(unit, list(place)) if needs in place}
    for number, task in enumerate(tasks):
        if task.parent_task_id in place:
            edges.add((number, place[task.parent_task_id]))
    return _Plan(tasks, sorted(edges))


def _fingerprint(plan: _Plan, grouped: bool, opened: tuple[str, ...]) -> bytes:
    """Identifies a drawing: covers everything it depends on, and nothing that changes as work goes on."""
    tasks = [(task.id, task.name, task.parent_task_id, task.parallel_group) for task in plan.tasks]
    return hashlib.sha256(msgspec.msgpack.encode((tasks, plan.edges, grouped, opened))).digest()


def _draw(
    plan: _Plan,
    grouped: bool,
    opened: tuple[str, ...],
    lay: Callable[[Sequence[Box], Sequence[tuple[str, str]]], Layout],
) -> _Drawn:
    groups = groups_of(plan.tasks, plan.edges)
    boxes, number_of = _boxes(plan, groups, opened if grouped else tuple(group.key for group in groups))
    # A drawing breaks ties by the order of names: boxes named by number keep the order of the plan.
    names = [f"{number:06d}" for number in range(len(boxes))]
    joined = {(names[number_of[source]], names[number_of[target]]) for source, target in plan.edges}
    layout = lay([Box(name, *box.size) for name, box in zip(names, boxes, strict=True)], sorted(joined))
    return _Drawn(grouped and bool(groups), bool(groups), boxes, [boxes[number].id for number in number_of], layout)


def _boxes(plan: _Plan, groups: Sequence[Group], opened: Sequence[str]) -> tuple[list[_Box], list[int]]:
    """The boxes in plan order, and the index of each task's box."""
    group_of = {place: group for group in groups for place in group.members}
    boxes: list[_Box] = []
    numbers: dict[str, int] = {}
    number_of: list[int] = []
    for place, task in enumerate(plan.tasks):
        group = group_of.get(place)
        if group is None or group.key in opened:
            box = _Box(task.id, task.name, group.key if group is not None else None, [])
        else:
            box = _Box(f"group:{group.key}", group.label, group.key, [plan.tasks[one].id for one in group.members])
        if box.id not in numbers:
            numbers[box.id] = len(boxes)
            boxes.append(box)
        number_of.append(numbers[box.id])
    return boxes, number_of


def _view(plan: _Plan, drawn: _Drawn, version: int) -> GraphView:
    path = critical_path(plan.tasks, plan.edges)
    critical = {drawn.box_of[place] for place in path}
    steps = {(drawn.box_of[one], drawn.box_of[other]) for one, other in pairwise(path)}
    nodes = [
        PlanBox(
            id=box.id,
            kind="group" if box.members else "task",
            x=x,
            y=y,
            w=box.size[0],
            h=box.size[1],
            label=box.label,
            tasks=box.members,
            group=box.group,
            on_critical=box.id in critical,
        )
        for box, (x, y) in zip(drawn.boxes, drawn.layout.places.values(), strict=True)
    ]
    edges = []
    for route in drawn.layout.routes:
        ends = drawn.boxes[int(route.source)].id, drawn.boxes[int(route.target)].id
        edges.append(PlanLine(source=ends[0], target=ends[1], points=route.points, on_critical=ends in steps))
    return GraphView(
        version=version,
        grouped=drawn.grouped,
        can_group=drawn.can_group,
        width=drawn.layout.width,
        height=drawn.layout.height,
        nodes=nodes,
        edges=edges,
        crossings=drawn.layout.crossings,
        critical=[plan.tasks[place].id for place in path],
    )

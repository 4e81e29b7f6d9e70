"""The remaining steps a dry run works with: of a workflow, of a graph, or of a plan that has not been laid yet.

Reads only. Durations come from finished tasks of the same complexity in the same workflow, or are assumed if there are
none; every such figure says which.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.dry_run.forecast import ForecastStep
from handrail.domain.graphs.graph import PART_OF
from handrail.domain.graphs.records import GraphEdge, GraphNode, SharedGraph
from handrail.domain.pipeline.budget import percentile
from handrail.domain.work.plan import PlanTask, waits
from handrail.domain.work.task import AT_WORK, RUNNING, Task, dependencies_of
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.domain.workspaces.forecast import Comparing, DeclaredFiles, Footprint, OutOfTime, footprints
from handrail.domain.workspaces.scope_overlap import Reach
from handrail.kernel.records import CHUNK, UnitOfWork, where
from handrail.kernel.wording import on_one_line, shortened

MINUTE_MS = 60_000
ASSUMED = {"low": 15 * MINUTE_MS, "medium": 45 * MINUTE_MS, "high": 120 * MINUTE_MS}
"""How long a task of each complexity takes if nothing is known."""
UNTOLD = "medium"
"""The complexity of a task that does not state one."""
DONE = ("completed", "done", "skipped")
"""Values of a node's `status` attribute that mean nothing is left to do."""
TEXT = 120


class Pace(NamedTuple):
    """How long tasks take by complexity, and how many finished tasks that is based on."""

    ms: Mapping[str, int]
    measured: Mapping[str, int]

    def of(self, complexity: str | None) -> int:
        return self.ms.get(complexity or UNTOLD, self.ms[UNTOLD])

    def said(self) -> list[str]:
        """The assumptions, in words."""
        return [
            f"{name}: {self.ms[name] // MINUTE_MS} minutes, "
            + (f"by {count} finished" if (count := self.measured.get(name, 0)) else "assumed")
            for name in self.ms
        ]


class DryRunPlan(NamedTuple):
    """The input of a dry run."""

    steps: list[ForecastStep]
    prints: Mapping[str, Footprint]
    pace: Pace
    finished: int = 0


def pace_of(tasks: Sequence[Task]) -> Pace:
    """From the times of completed tasks, with the assumed ones for any complexity that has none."""
    took: dict[str, list[int]] = {}
    for task in tasks:
        if task.status == "completed" and task.took_ms is not None:
            took.setdefault(task.estimated_complexity or UNTOLD, []).append(task.took_ms)
    known = {name: int(percentile(times, 0.5)) for name, times in took.items()}
    return Pace({**ASSUMED, **known}, {name: len(times) for name, times in took.items()})


# -- a workflow -------------------------------------------------------------------------------------------------------


def steps_of_workflow(unit: UnitOfWork, workflow: Workflow, *, retry_failed: bool) -> DryRunPlan:
    """What is left of a workflow's plan. A failed task is held unless it is to be retried."""
    tasks = unit.select(Task, where(workflow_id=workflow.id))
    left = [task for task in tasks if not task.is_finished]
    needs = _needs(unit, left)
    pace, now = pace_of(tasks), unit.now_ms()
    steps = [_step(task, needs[task.id], pace, now, workflow, retry_failed=retry_failed) for task in left]
    prints: dict[str, Footprint] = {}
    for start in range(0, len(left), CHUNK):
        prints |= footprints(unit, left[start : start + CHUNK], ())
    return DryRunPlan(steps, prints, pace, len(tasks) - len(left))


def _needs(unit: UnitOfWork, left: Sequence[Task]) -> dict[str, list[str]]:
    """What each unfinished task waits for: its dependencies, including inherited ones, and its parts."""
    needs: dict[str, list[str]] = {task.id: [] for task in left}
    for link in dependencies_of(unit, [task.id for task in left if task.unmet]):
        if link.needs_id in needs:
            needs[link.task_id].append(link.needs_id)
    for task in left:
        if task.parent_task_id in needs:
            needs[task.parent_task_id].append(task.id)
    return needs


def _step(
    task: Task, needs: Sequence[str], pace: Pace, now: int, workflow: Workflow, *, retry_failed: bool
) -> ForecastStep:
    work = 0 if task.open_children else pace.of(task.estimated_complexity)
    if task.status in RUNNING and task.started_at is not None:
        work = max(0, work - (now - task.started_at))
    held = ""
    if workflow.status in CLOSED:
        held = f"its workflow is {workflow.status}"
    elif task.status == "failed" and not retry_failed:
        held = f"it failed{_quoted(task.error)}; somebody must take it up again or skip it"
    return ForecastStep(
        id=task.id,
        name=task.name,
        needs=tuple(dict.fromkeys(needs)),
        work_ms=work,
        rank=(-task.priority, task.sequence, -task.unblocks),
        status=task.shown_status,
        under_way=task.status in AT_WORK and not needs,
        held=held,
    )


def _quoted(text: str | None) -> str:
    line = on_one_line(text or "")
    return f": {shortened(line, TEXT)}" if line else ""


# -- a plan that is only proposed -------------------------------------------------------------------------------------


def steps_of_tasks(tasks: Sequence[PlanTask]) -> DryRunPlan:
    """A plan as `workflow_set_plan` would take it. A task that names one missing from the plan is held."""
    names = {task.name for task in tasks}
    edges = waits(tasks)
    pace = pace_of(())
    wholes = {task.parent for task in tasks}
    steps = []
    for task in tasks:
        unknown = next((need for need in edges[task.name] if need not in names), None)
        if unknown is None and task.parent is not None and task.parent not in names:
            unknown = task.parent
        steps.append(
            ForecastStep(
                id=task.name,
                name=task.name,
                needs=tuple(dict.fromkeys(need for need in edges[task.name] if need in names)),
                work_ms=0 if task.name in wholes else pace.of(task.estimated_complexity),
                rank=(-task.priority, task.sequence),
                held=f'"{unknown}", which it names, is not in the plan' if unknown is not None else "",
            )
        )
    prints = {task.name: _footprint(task.name, task.name, task.files_likely_affected) for task in tasks}
    return DryRunPlan(steps, prints, pace)


# -- a graph ----------------------------------------------------------------------------------------------------------


def steps_of_graph(unit: UnitOfWork, graph: SharedGraph) -> DryRunPlan:
    """A graph read as a plan: an edge points to the node that waits; one labelled `part_of` points to a part.
    Attributes used: `complexity`, `duration_ms`, `priority`, `sequence`, `status` and `files` (comma-separated)."""
    nodes = {node.key: node for node in unit.select(GraphNode, where(graph_id=graph.id))}
    left = {key: node for key, node in nodes.items() if node.attributes.get("status") not in DONE}
    needs: dict[str, list[str]] = {key: [] for key in left}
    wholes: set[str] = set()
    for edge in unit.select(GraphEdge, where(graph_id=graph.id)):
        first, second = (edge.target, edge.source) if edge.label == PART_OF else (edge.source, edge.target)
        if first in left and second in left:
            needs[second].append(first)
            wholes |= {second} if edge.label == PART_OF else set()
    pace = pace_of(())
    steps = [
        ForecastStep(
            id=key,
            name=node.label or key,
            needs=tuple(dict.fromkeys(needs[key])),
            work_ms=0 if key in wholes else _duration(node.attributes, pace),
            rank=(-_number(node.attributes, "priority"), _number(node.attributes, "sequence")),
        )
        for key, node in left.items()
    ]
    prints = {
        key: _footprint(key, node.label or key, str(node.attributes.get("files") or "").split(","))
        for key, node in left.items()
    }
    return DryRunPlan(steps, prints, pace, len(nodes) - len(left))


def _duration(attributes: Mapping[str, Any], pace: Pace) -> int:
    told = _number(attributes, "duration_ms")
    complexity = attributes.get("complexity")
    return int(told) if told > 0 else pace.of(complexity if isinstance(complexity, str) else None)


def _number(attributes: Mapping[str, Any], name: str) -> float:
    value = attributes.get(name)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def _footprint(key: str, name: str, files: Sequence[str]) -> Footprint:
    reach = Reach([path.strip() for path in files])
    return Footprint(key, name, (DeclaredFiles("files_likely_affected", reach),) if reach.claims else ())


# -- what must be kept apart ------------------------------------------------------------------------------------------


class Meeting(NamedTuple):
    """Two steps that could run at the same time but touch the same path."""

    first: str
    second: str
    path: str


class Meetings:
    """Which steps touch the same paths. Compared only when two could run together, and only while time allows."""

    def __init__(self, prints: Mapping[str, Footprint]) -> None:
        self._prints = prints
        self._comparing = Comparing()
        self._known: dict[tuple[str, str], bool] = {}
        self.found: list[Meeting] = []
        self.is_whole = True

    def apart(self, one: str, other: str) -> bool:
        pair = (one, other) if one < other else (other, one)
        if pair not in self._known:
            self._known[pair] = self._compare(*pair)
        return self._known[pair]

    def _compare(self, first: str, second: str) -> bool:
        try:
            met = self._comparing.met(self._prints[first], self._prints[second])
        except OutOfTime:
            self.is_whole = False
            return False
        if met is not None:
            self.found.append(Meeting(first, second, met.overlap.path))
        return met is not None

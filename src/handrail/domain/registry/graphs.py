"""A workflow's plan as a graph: tasks are nodes, what waits for what are edges. As it is now, and as it was when each
of its versions was committed, told again from the ledger. No store.

A version is a plan: a task that moves changes the graph but makes no version. What a version was is found by folding
the workflow's events up to the one that made it, so nothing is kept twice and no later change can reach it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.registry.addresses import graph, graph_version, snapshot
from handrail.domain.work.dependency import Dependency
from handrail.domain.work.tally import Tally
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.ledger import Event
from handrail.kernel.query import Query, where
from handrail.kernel.records import UnitOfWork

PART_OF = "part_of"
"""The label of an edge from a task to a part of it."""
_ATTRIBUTES = {
    "sequence": "sequence",
    "priority": "priority",
    "parallel_group": "parallelGroup",
    "estimated_complexity": "complexity",
    "assigned_agent_id": "assignedAgent",
    "workspace_id": "workspace",
    "started_at": "startedAt",
    "finished_at": "finishedAt",
}
"""Columns of a task and the attributes they are, where something stands in them."""
_METADATA = {
    "status": "status",
    "source_type": "sourceType",
    "repository_path": "repositoryPath",
    "max_parallel_tasks": "maxParallelTasks",
}
_SHOWN: dict[str, frozenset[str]] = {
    "workflow": frozenset(("name", *_METADATA)),
    "task": frozenset(("name", "status", "unmet", "parent_task_id", *_ATTRIBUTES)),
    "dependency": frozenset(("task_id", "needs_id", "inherited")),
}
"""Of each table a graph is made of, the columns that are seen in it."""
_SHARED = ("graph", "graph_node", "graph_edge")
"""The tables of a graph that is no plan."""
_COUNTS_VERSIONS = ("tally", "graph")
"""The tables that hold a graph's version."""
_CHUNK = 500
"""Values in one question to the store."""
_PAGE = 250
_PAGE_CHANGES = 20_000
"""Changes of rows that are in memory at once, as far as events can be parted."""

Row = Mapping[str, Any]
Scalar = str | int | float | bool
SeenT = TypeVar("SeenT")


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A task, or a node of a graph that is no plan."""

    id: str
    label: str
    attributes: dict[str, Scalar]


class Edge(msgspec.Struct, frozen=True, kw_only=True, rename={"source": "from", "target": "to"}):
    """From a task to one that waits for it, or to a part of it; in other graphs from any node to any other."""

    source: str
    target: str
    label: str | UnsetType = UNSET
    weight: float | UnsetType = UNSET
    id: str | UnsetType = UNSET
    """Only where it is not `from->to`, with `#label` where there is one."""
    attributes: dict[str, Scalar]


class NormalisedGraph(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A graph at one moment."""

    name: str
    graph_id: str
    graph_version: int
    nodes: list[Node]
    edges: list[Edge]
    metadata: dict[str, Scalar]


class GraphVersion(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A graph, and since when its plan is what it is."""

    graph_id: str
    version: int
    committed_at: int | None
    graph: NormalisedGraph


class GraphSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A change of a graph as a transaction: the graph right before it and right after it."""

    graph_id: str
    tx_id: str
    base_version: int
    started_at: int
    state: str
    committed_at: int | None
    final_version: int | None
    base_graph: NormalisedGraph
    final_graph: NormalisedGraph | None
    owner: str
    note: str | UnsetType = UNSET
    expires_at: int | UnsetType = UNSET
    ended_at: int | UnsetType = UNSET
    """When it was rolled back, or ran out."""
    expired: bool | UnsetType = UNSET
    operations: int | UnsetType = UNSET
    """How many changes it holds."""


class _Commit(NamedTuple):
    """The event that made a version, and the graphs around it."""

    event: Event
    at: int
    before: NormalisedGraph
    after: NormalisedGraph


# -- as it is now -----------------------------------------------------------------------------------------------------


def latest(unit: UnitOfWork, workflow: Workflow) -> GraphVersion:
    """The graph as it is now. A workflow without a plan has an empty one, of version 0."""
    tasks = unit.select(Task, where(workflow_id=workflow.id))
    links = dependencies_of(unit, [task.id for task in tasks])
    version, laid_at = latest_version(unit, workflow.id)
    shown = _graph(
        workflow.id,
        version,
        _columns("workflow", workflow),
        {task.id: _columns("task", task) for task in tasks},
        [_columns("dependency", link) for link in links],
    )
    return GraphVersion(graph_id=workflow.id, version=version, committed_at=laid_at or None, graph=shown)


def dependencies_of(unit: UnitOfWork, task_ids: Sequence[str]) -> list[Dependency]:
    """What these tasks wait for."""
    links: list[Dependency] = []
    for start in range(0, len(task_ids), _CHUNK):
        links += unit.select(Dependency, where(task_id=tuple(task_ids[start : start + _CHUNK])))
    return links


def latest_version(unit: UnitOfWork, workflow_id: str) -> tuple[int, int]:
    """The number of a graph's newest version, and when it was committed; 0 where that is not known. A plan from before
    versions were counted is the first."""
    tally = unit.get(Tally, workflow_id)
    if tally is not None and tally.version:
        return tally.version, tally.laid_at
    return len(unit.select(Task, Query((("workflow_id", workflow_id),), limit=1))), 0


def _columns(table: str, record: Any) -> Row:
    return {name: getattr(record, name) for name in _SHOWN[table]}


def _graph(
    graph_id: str, version: int, workflow: Row, tasks: Mapping[str, Row], links: Sequence[Row]
) -> NormalisedGraph:
    edges = [_waiting(link) for link in links]
    edges += [_part(task["parent_task_id"], key) for key, task in tasks.items() if task.get("parent_task_id")]
    ordered = sorted(tasks.items(), key=lambda item: (item[1]["sequence"], item[0]))
    return NormalisedGraph(
        name=workflow.get("name", ""),
        graph_id=graph_id,
        graph_version=version,
        nodes=[_node(key, task) for key, task in ordered],
        edges=sorted(edges, key=lambda edge: (edge.source, edge.target, edge.label is not UNSET)),
        metadata={name: workflow[column] for column, name in _METADATA.items() if workflow.get(column) is not None},
    )


def _node(key: str, task: Row) -> Node:
    blocked = task["status"] == "pending" and task["unmet"]  # as `Task.shown_status` has it
    attributes: dict[str, Scalar] = {"status": "blocked" if blocked else task["status"]}
    attributes |= {name: task[column] for column, name in _ATTRIBUTES.items() if task.get(column) is not None}
    return Node(id=key, label=task["name"], attributes=attributes)


def _waiting(link: Row) -> Edge:
    """An edge from what must be finished first. One that a task has from what it is part of says so."""
    inherited: dict[str, Scalar] = {"inherited": True} if link["inherited"] else {}
    return Edge(source=link["needs_id"], target=link["task_id"], attributes=inherited)


def _part(whole: str, part: str) -> Edge:
    return Edge(source=whole, target=part, label=PART_OF, attributes={})


# -- as it was --------------------------------------------------------------------------------------------------------


def at_version(unit: UnitOfWork, workflow: Workflow, version: int) -> GraphVersion:
    """The graph as it was when this version was committed; refused where no event made it."""
    commit = _commit(unit, workflow, version)
    return GraphVersion(graph_id=workflow.id, version=version, committed_at=commit.at, graph=commit.after)


def snapshot_of(unit: UnitOfWork, workflow: Workflow, tx: str) -> GraphSnapshot:
    """The change of the plan that this transaction was."""
    version = version_of_tx(tx)
    if version is None:
        raise ResourceNotFound(
            f"{workflow.id} has no transaction {tx}",
            hint=f"the changes of a plan are v1, v2 …: {snapshot(workflow.id, 'v1').uri}",
            uri=snapshot(workflow.id, tx).uri,
        )
    commit = _commit(unit, workflow, version)
    reason = commit.event.data.get("reason")
    return GraphSnapshot(
        graph_id=workflow.id,
        tx_id=tx,
        base_version=version - 1,
        started_at=commit.at,
        state="committed",
        committed_at=commit.at,
        final_version=version,
        base_graph=commit.before,
        final_graph=commit.after,
        owner=commit.event.actor,
        note=reason if isinstance(reason, str) else UNSET,
    )


def tx_of_version(version: int) -> str:
    return f"v{version}"


def version_of_tx(tx: str) -> int | None:
    """The version that a transaction made; None where its name is of another kind."""
    digits = tx.removeprefix("v")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 16 or tx_of_version(int(digits)) != tx:
        return None
    return int(digits) or None


def versions_of(unit: UnitOfWork, workflow_id: str) -> range:
    """The versions that can be read. The first of a plan from before versions were counted cannot."""
    tally = unit.get(Tally, workflow_id)
    if tally is None or not tally.laid_at:
        return range(1, 1)
    first = 1 if tally.version == 1 or _was_always_counted(unit, workflow_id) else 2
    return range(first, tally.version + 1)


def _was_always_counted(unit: UnitOfWork, workflow_id: str) -> bool:
    for event in history(unit, workflow_id, size=2):  # a plan is among the first things that happen to a workflow
        for change in event.changes:
            if change.table == "tally":
                return "version" in (change.after or {})
    return False


def _commit(unit: UnitOfWork, workflow: Workflow, version: int) -> _Commit:
    newest = unit.get(Tally, workflow.id)
    made = None
    if newest is not None and 1 <= version <= newest.version:
        past = Past(_SHOWN)
        made = made_by(unit, workflow.id, version, past, lambda number: _seen(workflow.id, past, number))
    if made is None:
        raise _no_version(unit, workflow.id, version)
    laid_at = next((change.after or {}).get("laid_at") for change in made.event.changes if change.table == "tally")
    before = msgspec.structs.replace(made.before, name=made.before.name or made.after.name)
    return _Commit(made.event, laid_at or made.event.at_ms, before, made.after)


def _seen(graph_id: str, past: Past, version: int) -> NormalisedGraph:
    rows = past.rows
    workflow = rows["workflow"].get(graph_id, {})
    return _graph(graph_id, version, workflow, rows["task"], list(rows["dependency"].values()))


class Made(NamedTuple, Generic[SeenT]):
    """The event that made a version, and what was seen right before and right after it."""

    event: Event
    before: SeenT
    after: SeenT


def made_by(unit: UnitOfWork, stream: str, version: int, past: Past, see: Callable[[int], SeenT]) -> Made[SeenT] | None:
    """How a version was made: the events of its stream are taken in until then, and `see` looks at what they come to
    as one version and as the next. One that was taken back counts only where somebody made it anew."""
    found: Made[SeenT] | None = None
    for event in history(unit, stream):
        step = version_step(event)
        if found is not None:
            if step is None or step[1] >= version:
                return found
            found = None  # it was taken back, and somebody made it anew
        if step is not None and step[0] < version == step[1]:
            before = see(version - 1)
            past.take(event)
            found = Made(event, before, see(version))
        else:
            past.take(event)
    return found


def _no_version(unit: UnitOfWork, workflow_id: str, version: int) -> ResourceNotFound:
    there = versions_of(unit, workflow_id)
    now = graph(workflow_id).uri
    if not there:
        hint = f"{now} is the plan as it is; its next change makes a version"
    elif version < there.start:
        first = snapshot(workflow_id, tx_of_version(there.start)).uri
        hint = f"it was there before versions were counted; {first} begins with what it had become"
    else:
        hint = f"the newest is {graph_version(workflow_id, there[-1]).uri}; {now} is the plan as it is"
    uri = graph_version(workflow_id, version).uri
    return ResourceNotFound(f"there is no version {version} of {workflow_id}", hint=hint, uri=uri)


class Past:
    """The rows of some tables, as far as the events of a stream have been taken in."""

    def __init__(self, shown: Mapping[str, frozenset[str]]) -> None:
        self._shown = shown
        self.rows: dict[str, dict[str, dict[str, Any]]] = {table: {} for table in shown}

    def take(self, event: Event) -> None:
        for change in event.changes:
            rows, shown = self.rows.get(change.table), self._shown.get(change.table)
            if rows is None or shown is None:
                continue
            if change.after is None:
                rows.pop(change.key, None)
            else:
                row = rows.setdefault(change.key, {})
                row |= {name: value for name, value in change.after.items() if name in shown}


# -- its events -------------------------------------------------------------------------------------------------------


def history(unit: UnitOfWork, stream: str, after: int = 0, *, size: int = 4) -> Iterator[Event]:
    """The events of a stream in order. Few at a time where they are large: one of them can hold a whole plan."""
    while True:
        page = unit.events(stream, after=after, limit=size)
        yield from page
        if len(page) < size:
            return
        after = page[-1].seq
        largest = max(len(event.changes) for event in page)
        size = max(1, min(_PAGE, _PAGE_CHANGES // max(1, largest)))


def changes_graph(event: Event) -> bool:
    """Whether the graph that an event belongs to looks different after it."""
    for change in event.changes:
        if change.table in _SHARED:
            return True
        shown = _SHOWN.get(change.table)
        if shown is not None and (change.after is None or change.before is None or not shown.isdisjoint(change.after)):
            return True
    return version_step(event) is not None


def version_step(event: Event) -> tuple[int, int] | None:
    """From which version to which an event leads; None where the plan stays what it is. Only what was taken back leads
    to a lower one."""
    for change in event.changes:
        if change.table in _COUNTS_VERSIONS:
            before, after = (change.before or {}).get("version", 0), (change.after or {}).get("version", 0)
            return (before, after) if before != after else None
    return None

"""The plan of a workflow as a graph: tasks are nodes, edges lead from what must be done first, and from a task to its
parts (`part_of`). As it is, and as it was. Reads only; what a changed one does is `replan.py`.

There are two views of it, made by the same code. One is for changing: what a plan says, with each task's description.
One is for showing at an address (`registry/graphs.py`): without descriptions, and with the dependencies that follow
from others, marked as inherited: a part waits for what its whole waits for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.graphs.graph import LONGEST_TEXT, PART_OF, Edge, Graph, Node, Scalar, edge_id
from handrail.domain.graphs.history import Past, history, made_by
from handrail.domain.work.task import Dependency, Task, dependencies_of, shown_status
from handrail.domain.work.workflow import Tally, Workflow
from handrail.kernel.records import Query, UnitOfWork, where

WRITABLE = {
    "description": "description",
    "sequence": "sequence",
    "priority": "priority",
    "parallelGroup": "parallel_group",
    "complexity": "estimated_complexity",
}
"""Attributes of a node that are plan, and the columns of a task they are."""
READ_ONLY = {
    "status": "status",
    "assignedAgent": "assigned_agent_id",
    "workspace": "workspace_id",
    "startedAt": "started_at",
    "finishedAt": "finished_at",
}
"""Attributes that tell how far a task is. They follow the work; left out, they are as they are."""
_METADATA = {
    "status": "status",
    "sourceType": "source_type",
    "repositoryPath": "repository_path",
    "maxParallelTasks": "max_parallel_tasks",
}
_ROWS: dict[str, frozenset[str]] = {
    "workflow": frozenset(("name", *_METADATA.values())),
    "task": frozenset(("name", "unmet", "parent_task_id", *WRITABLE.values(), *READ_ONLY.values())),
    "dependency": frozenset(("task_id", "needs_id", "inherited")),
}
"""Of each table a plan is made of, the columns that are the plan."""
SHOWN_ROWS = {**_ROWS, "task": _ROWS["task"] - {"description"}}
"""Those that are seen where it is shown."""

Row = Mapping[str, Any]
Rows = Mapping[str, Mapping[str, Row]]
"""Rows by table and key."""


class PlanRows(NamedTuple):
    """The rows of a plan."""

    workflow: Workflow
    tasks: dict[str, Task]
    links: list[Dependency]

    def own_needs(self) -> dict[str, list[str]]:
        """What each task waits for by itself."""
        needs: dict[str, list[str]] = {key: [] for key in self.tasks}
        for link in self.links:
            if not link.inherited:
                needs[link.task_id].append(link.needs_id)
        return needs


def plan_of(unit: UnitOfWork, workflow: Workflow) -> PlanRows:
    tasks = {task.id: task for task in unit.select(Task, where(workflow_id=workflow.id))}
    return PlanRows(workflow, tasks, dependencies_of(unit, list(tasks)))


def graph_of(plan: PlanRows) -> Graph:
    """The plan as a graph."""
    return drawn(plan.workflow, plan.tasks.values(), plan.own_needs())


def drawn(
    workflow: Workflow,
    tasks: Iterable[Task],
    needs: Mapping[str, Iterable[str]],
    known: Mapping[str, Node] | None = None,
) -> Graph:
    """The graph of these tasks, of which each waits for these others. `known` are nodes that are as they were."""
    there = known or {}
    placed = {
        task.id: _Placed(task.sequence, task.parent_task_id, there.get(task.id) or _node(_row(task, _ROWS["task"])))
        for task in tasks
    }
    waits = [
        Edge(source=need, target=key)
        for key, all_of in needs.items()
        if key in placed
        for need in all_of
        if need in placed
    ]
    return _graph(_row(workflow, _ROWS["workflow"]), placed, waits)


def shown_graph_of(plan: PlanRows) -> Graph:
    """The plan as it is shown."""
    return shown_graph_from(
        plan.workflow.id,
        {
            "workflow": {plan.workflow.id: _row(plan.workflow, SHOWN_ROWS["workflow"])},
            "task": {key: _row(task, SHOWN_ROWS["task"]) for key, task in plan.tasks.items()},
            "dependency": {link.id: _row(link, SHOWN_ROWS["dependency"]) for link in plan.links},
        },
    )


def shown_graph_from(workflow_id: str, rows: Rows) -> Graph:
    """The plan that these rows are, as it is shown."""
    return _from_rows(workflow_id, rows, shown=True)


def plan_graph_at(unit: UnitOfWork, workflow_id: str, version: int) -> Graph | None:
    """The plan as it was when a version was committed; None where no event made it."""
    past = Past(_ROWS)
    made = made_by(unit, workflow_id, version, past, lambda _: _from_rows(workflow_id, past.rows, shown=False))
    return made.after if made is not None else None


def without_progress(graph: Graph) -> Graph:
    """The graph without what follows the work: two plans are compared by what was planned."""
    nodes = {key: _planned(node) for key, node in graph.nodes.items()}
    return msgspec.structs.replace(graph, nodes=nodes, metadata={})


def _planned(node: Node) -> Node:
    if READ_ONLY.keys().isdisjoint(node.attributes):
        return node
    kept = {name: value for name, value in node.attributes.items() if name not in READ_ONLY}
    return msgspec.structs.replace(node, attributes=kept)


class _Placed(NamedTuple):
    """A node, where it stands among the others, and what it is part of."""

    sequence: int
    whole: str | None
    node: Node


def _row(record: Workflow | Task | Dependency, columns: Iterable[str]) -> Row:
    return {name: getattr(record, name) for name in columns}


def _from_rows(workflow_id: str, rows: Rows, *, shown: bool) -> Graph:
    waits = [_waiting(link) for link in rows["dependency"].values() if shown or not link.get("inherited")]
    placed = {
        key: _Placed(task["sequence"], task.get("parent_task_id"), _node(task, blank=shown))
        for key, task in rows["task"].items()
    }
    return _graph(rows["workflow"].get(workflow_id, {}), placed, waits)


def _waiting(link: Row) -> Edge:
    """An edge from what must be finished first. One that a task has from what it is part of says so."""
    attributes: dict[str, Scalar] = {"inherited": True} if link.get("inherited") else {}
    return Edge(source=link["needs_id"], target=link["task_id"], attributes=attributes)


def _graph(workflow: Row, placed: Mapping[str, _Placed], waits: Iterable[Edge]) -> Graph:
    ordered = sorted(placed.items(), key=lambda item: (item[1].sequence, item[0]))
    edges = {edge_id(one.source, one.target): one for one in waits}
    for key, one in ordered:
        if one.whole is not None:
            edges[edge_id(one.whole, key, PART_OF)] = Edge(source=one.whole, target=key, label=PART_OF)
    return Graph(
        name=workflow.get("name", ""),
        nodes={key: one.node for key, one in ordered},
        edges=edges,
        metadata={name: workflow[column] for name, column in _METADATA.items() if workflow.get(column) is not None},
    )


def _node(task: Row, *, blank: bool = False) -> Node:
    """The node of a task, with what stands in its row; an empty text only where `blank` ones are told."""
    attributes: dict[str, Scalar] = {"status": shown_status(task["status"], task["unmet"])}
    for name, column in (*WRITABLE.items(), *READ_ONLY.items()):
        value = task.get(column)
        if value is not None and (blank or value != "") and name not in attributes:
            attributes[name] = value
    if len(str(attributes.get("description", ""))) > LONGEST_TEXT:  # a graph does not hold it; left out, it stays
        del attributes["description"]
    return Node(label=task["name"], attributes=attributes)


# -- its versions -----------------------------------------------------------------------------------------------------


def latest_version(unit: UnitOfWork, workflow_id: str) -> tuple[int, int]:
    """The number of a graph's newest version, and when it was committed; 0 where that is not known. A plan from before
    versions were counted is the first."""
    tally = unit.get(Tally, workflow_id)
    if tally is not None and tally.version:
        return tally.version, tally.laid_at
    return len(unit.select(Task, Query((("workflow_id", workflow_id),), limit=1))), 0


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

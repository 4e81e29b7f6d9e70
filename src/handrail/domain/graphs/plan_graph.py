"""The plan of a workflow as a graph that can be changed: tasks are nodes, edges lead from what must be done first, and
from a task to its parts (`part_of`). As it is, and as it was. Reads only; what a changed one does is `replanning.py`.

It is what `registry/graphs.py` shows, without the dependencies that follow from others (a part waits for what its whole
waits for) and with what a plan says of each task.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.graphs.graph import LONGEST_TEXT, Edge, Graph, Node, Scalar, edge_id
from handrail.domain.registry.graphs import PART_OF, Past, dependencies_of, made_by
from handrail.domain.work.dependency import Dependency
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.query import where
from handrail.kernel.records import UnitOfWork

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
_TASK = frozenset(("name", "unmet", *WRITABLE.values(), *READ_ONLY.values()))
_ROWS: dict[str, frozenset[str]] = {
    "workflow": frozenset(("name", *_METADATA.values())),
    "task": _TASK | {"parent_task_id"},
    "dependency": frozenset(("task_id", "needs_id", "inherited")),
}

Row = Mapping[str, Any]


class Plan(NamedTuple):
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


def plan_of(unit: UnitOfWork, workflow: Workflow) -> Plan:
    tasks = {task.id: task for task in unit.select(Task, where(workflow_id=workflow.id))}
    return Plan(workflow, tasks, dependencies_of(unit, list(tasks)))


def graph_of(plan: Plan) -> Graph:
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
        task.id: _Placed(task.sequence, task.parent_task_id, there.get(task.id) or _node_of(task)) for task in tasks
    }
    waits = [(need, key) for key, all_of in needs.items() if key in placed for need in all_of if need in placed]
    return _graph({name: getattr(workflow, name) for name in _ROWS["workflow"]}, placed, waits)


def plan_graph_at(unit: UnitOfWork, workflow_id: str, version: int) -> Graph | None:
    """The plan as it was when a version was committed; None where no event made it."""
    past = Past(_ROWS)
    made = made_by(unit, workflow_id, version, past, lambda _: _told(workflow_id, past.rows))
    return made.after if made is not None else None


def _told(workflow_id: str, rows: Mapping[str, Mapping[str, Row]]) -> Graph:
    own = [link for link in rows["dependency"].values() if not link.get("inherited")]
    waits = [(link["needs_id"], link["task_id"]) for link in own]
    placed = {
        key: _Placed(task["sequence"], task.get("parent_task_id"), _node(task)) for key, task in rows["task"].items()
    }
    return _graph(rows["workflow"].get(workflow_id, {}), placed, waits)


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


def _graph(workflow: Row, placed: Mapping[str, _Placed], waits: Iterable[tuple[str, str]]) -> Graph:
    ordered = sorted(placed.items(), key=lambda item: (item[1].sequence, item[0]))
    edges = {edge_id(need, key): Edge(source=need, target=key) for need, key in waits}
    for key, one in ordered:
        if one.whole is not None:
            edges[edge_id(one.whole, key, PART_OF)] = Edge(source=one.whole, target=key, label=PART_OF)
    return Graph(
        name=workflow.get("name", ""),
        nodes={key: one.node for key, one in ordered},
        edges=edges,
        metadata={name: workflow[column] for name, column in _METADATA.items() if workflow.get(column) is not None},
    )


def _node_of(task: Task) -> Node:
    return _node({name: getattr(task, name) for name in _TASK})


def _node(task: Row) -> Node:
    blocked = task["status"] == "pending" and task["unmet"]  # as `Task.shown_status` has it
    attributes: dict[str, Scalar] = {"status": "blocked" if blocked else task["status"]}
    for name, column in (*WRITABLE.items(), *READ_ONLY.items()):
        value = task.get(column)
        if value is not None and value != "" and name not in attributes:
            attributes[name] = value
    if len(str(attributes.get("description", ""))) > LONGEST_TEXT:  # a graph does not hold it; left out, it stays
        del attributes["description"]
    return Node(label=task["name"], attributes=attributes)

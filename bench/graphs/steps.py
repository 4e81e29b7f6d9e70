"""What is measured, each step beside the least that could do it: in memory, and on a store. Starts nothing."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from bench.graphs.making import graph_of, name, with_other_nodes
from bench.plan.filling import WORKFLOW
from handrail.domain.graphs.diff import difference
from handrail.domain.graphs.graph import Graph, document_of, graph_from
from handrail.domain.graphs.json_patch import merged, patched
from handrail.domain.graphs.mutations import mutate, mutation_from
from handrail.domain.graphs.records import GraphEdge, GraphNode
from handrail.domain.work.task import Dependency, Task
from handrail.kernel.ledger import Actor
from handrail.kernel.records import where
from handrail.store.store import Store
from handrail.store.unit import Unit
from handrail.surfaces.invocation import invoke
from handrail.wiring import Handrail

ASKER = Actor("bench", "mcp")
MANY = 100
"""Members that a large change touches."""
PART = 40
"""Tasks of a plan that a change touches: the smallest that is measured has 49 that have not begun."""
FREE = "measured"
PLAIN = "plain"
"""A graph of which only rows are written."""

Step = Callable[[], Any]


class Measured(NamedTuple):
    """One row of a table."""

    name: str
    step: Step
    against: str | None = None
    """The row that is its floor."""


# -- in memory --------------------------------------------------------------------------------------------------------


def in_memory(count: int) -> list[Measured]:
    graph = graph_of(count)
    document = document_of(graph)
    encoded = msgspec.json.encode(document)
    one, many = with_other_nodes(graph, 1), with_other_nodes(graph, MANY)
    # As they come from a store or a client: nothing is the same object.
    apart = msgspec.json.decode(msgspec.json.encode(many), type=Graph)
    relabel = [mutation_from({"op": "rename_node", "id": name(at), "label": "other"}) for at in range(MANY)]
    trip, whole = "the document to JSON and back", "copy.deepcopy of the document"
    return [
        Measured(trip, lambda: msgspec.json.decode(msgspec.json.encode(document))),
        Measured(whole, lambda: copy.deepcopy(document)),
        Measured("difference, one node is another", lambda: difference(graph, one), trip),
        Measured(f"difference, {MANY} are, and all was read anew", lambda: difference(graph, apart), trip),
        Measured("patch alone, 1 operation", lambda: patched(document, replaced(1)), trip),
        Measured(f"patch, {MANY} operations, from graph to graph", lambda: _patch(graph, replaced(MANY)), trip),
        Measured(f"merge patch of {MANY} nodes, from graph to graph", lambda: _merge(graph, laid_over(MANY)), trip),
        Measured("mutate, 1 operation", lambda: mutate(graph, relabel[:1]), trip),
        Measured(f"mutate, {MANY} operations", lambda: mutate(graph, relabel), trip),
        Measured("a graph from its JSON, checked", lambda: graph_from(msgspec.json.decode(encoded)), trip),
    ]


def replaced(count: int) -> list[dict[str, Any]]:
    return [{"op": "replace", "path": f"/nodes/{name(at)}/label", "value": "other"} for at in range(count)]


def laid_over(count: int) -> dict[str, Any]:
    return {"nodes": {name(at): {"label": "other"} for at in range(count)}}


def _patch(graph: Graph, operations: list[dict[str, Any]]) -> Graph:
    return graph_from(patched(document_of(graph), operations))


def _merge(graph: Graph, patch: dict[str, Any]) -> Graph:
    return graph_from(merged(document_of(graph), patch))


# -- on a store -------------------------------------------------------------------------------------------------------


class Committing:
    """Changes to a graph and to a plan on one store, each through its tool, and plain writes of as many rows."""

    def __init__(self, handrail: Handrail, store: Store, count: int) -> None:
        self._handrail = handrail
        self._store = store
        self._numbers = itertools.count(1)
        graph = graph_of(count)
        nodes = [{"id": key, **msgspec.to_builtins(node)} for key, node in graph.nodes.items()]
        edges = [msgspec.to_builtins(edge) for edge in graph.edges.values()]
        self.ask("graph_create", graph_id=FREE, name="measured", nodes=nodes, edges=edges, metadata=graph.metadata)
        # The second half of a filled plan has not begun.
        self._open = store.run(ASKER, lambda unit: unit.select(Task, where(workflow_id=WORKFLOW, status="pending")))
        self.replan(1)  # a plan that was filled from outside has no version yet

    def ask(self, tool: str, **arguments: Any) -> Any:
        operation = self._handrail.switch.find(tool)
        assert operation is not None, tool
        return invoke(operation, self._handrail.call, arguments, actor=ASKER)

    def steps(self) -> list[Measured]:
        """A commit looks at all of its graph: its floor reads the rows of the graph and writes those that change."""
        one, many = "read the graph, write 1 row", f"read the graph, write {MANY} rows"
        found = [
            Measured("write 1 row", lambda: self.write(1)),
            Measured(f"write {MANY} rows", lambda: self.write(MANY)),
            Measured(one, lambda: self.write(1, GraphNode, GraphEdge)),
            Measured(many, lambda: self.write(MANY, GraphNode, GraphEdge)),
            Measured("graph_batch_mutate, 1 node", lambda: self.change(1), one),
            Measured(f"graph_batch_mutate, {MANY} nodes", lambda: self.change(MANY), many),
            Measured("graph_patch, 1 node", lambda: self.patch(1), one),
            Measured(f"graph_patch, {MANY} nodes", lambda: self.patch(MANY), many),
            Measured("tx_begin, tx_apply and tx_commit, 1 node", lambda: self.transaction(1), one),
            Measured("graph_diff with the version before", self.compare, one),
        ]
        read = "read the plan, write 1 row"
        found += [
            Measured(read, lambda: self.write(1, Task, Dependency)),
            Measured("graph_batch_mutate on the plan, 1 task", lambda: self.replan(1), read),
            Measured(f"graph_batch_mutate on the plan, {PART} tasks", lambda: self.replan(PART), read),
        ]
        return found

    def write(self, rows: int, *read: type[Any]) -> None:
        """Plain rows in one event, after everything of these kinds was read."""
        number = next(self._numbers)
        made = [
            GraphNode(id=f"{PLAIN}/{at}", graph_id=PLAIN, key=f"{at}", label=f"{number}", attributes={})
            for at in range(rows)
        ]

        def work(unit: Unit) -> None:
            for kind in read:
                unit.select(
                    kind, where(graph_id=FREE) if kind in (GraphNode, GraphEdge) else where(workflow_id=WORKFLOW)
                )
            unit.record("graph.committed", *made)

        self._store.run(ASKER, work, writing=True)

    def change(self, count: int) -> Any:
        return self.ask("graph_batch_mutate", graph_id=FREE, operations=self._relabelled(count))

    def patch(self, count: int) -> Any:
        label = f"{next(self._numbers)}"
        patch = [{"op": "replace", "path": f"/nodes/{name(at)}/label", "value": label} for at in range(count)]
        return self.ask("graph_patch", graph_id=FREE, patch=patch)

    def transaction(self, count: int) -> Any:
        tx = self.ask("tx_begin", graph_id=FREE)["tx_id"]
        self.ask("tx_apply", tx_id=tx, operations=self._relabelled(count))
        return self.ask("tx_commit", tx_id=tx)

    def compare(self) -> Any:
        return self.ask("graph_diff", graph_id=FREE, **{"from": {"version": self.change(1)["base_version"]}})

    def _relabelled(self, count: int) -> list[dict[str, Any]]:
        label = f"{next(self._numbers)}"
        return [{"op": "rename_node", "id": name(at), "label": label} for at in range(count)]

    def replan(self, count: int) -> Any:
        priority = next(self._numbers) % 1000
        operations = [
            {"op": "set_node_attribute", "id": task.id, "key": "priority", "value": priority}
            for task in self._open[-count:]
        ]
        return self.ask("graph_batch_mutate", graph_id=WORKFLOW, operations=operations)

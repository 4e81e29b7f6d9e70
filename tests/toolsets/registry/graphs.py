"""Graphs at a desk: transactions, patches, locks and bulk are on, beside plans and addresses; and a brute-force look at
what a plan's counters must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from handrail.domain.work.task import FINISHED, RUNNING, Task
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Event
from handrail.kernel.records import Query, where
from handrail.store.tables import BY_NAME as TABLES
from tests.toolsets.registry.registry_desk import RegistryDesk

ON = ("tx", "diff-patch", "locks", "bulk", "resources")
CHAIN = [{"id": key, "label": key.upper()} for key in ("a", "b", "c")]


class Graphs(RegistryDesk):
    """A desk where graphs are changed."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, *ON, **settings)

    def make(self, graph_id: str = "g", **more: Any) -> str:
        """A graph a → b → c."""
        edges = [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]
        self.call("graph_create", **{"graph_id": graph_id, "name": "G", "nodes": CHAIN, "edges": edges, **more})
        return graph_id

    def begin(self, graph_id: str, *operations: dict[str, Any], **more: Any) -> str:
        """A transaction with these changes in it."""
        tx: str = self.call("tx_begin", graph_id=graph_id, **more)["tx_id"]
        if operations:
            who = {name: more[name] for name in ("agent_id", "owner") if name in more}
            self.call("tx_apply", tx_id=tx, operations=list(operations), **who)
        return tx

    def change(self, graph_id: str, *operations: dict[str, Any], **more: Any) -> Any:
        return self.call("graph_batch_mutate", graph_id=graph_id, operations=list(operations), **more)

    def refuse(self, graph_id: str, *operations: dict[str, Any], **more: Any) -> Refusal:
        before = self.state(graph_id)
        refusal = self.refusal("graph_batch_mutate", graph_id=graph_id, operations=list(operations), **more)
        assert self.state(graph_id) == before
        return refusal

    def read(self, uri: str) -> Any:
        return self.call("resources_read", uri=uri)["payload"]

    def state(self, graph_id: str) -> Any:
        return self.read(f"sc://graphs/{graph_id}")

    def nodes(self, graph_id: str) -> dict[str, Any]:
        """Its nodes by id, without their ids."""
        return {node["id"]: node for node in self.state(graph_id)["graph"]["nodes"]}

    def edges(self, graph_id: str) -> set[tuple[str, str, str]]:
        edges = self.state(graph_id)["graph"]["edges"]
        return {(edge["from"], edge["to"], edge.get("label", "")) for edge in edges}

    def rows(self, table: str, query: Query) -> list[Any]:
        with self.store.engine.reading() as reader:
            return [record for record, _ in reader.select(TABLES[table], query)]

    def tasks(self, workflow_id: str) -> dict[str, Task]:
        """Its tasks by name."""
        return {task.name: task for task in self.rows("task", where(workflow_id=workflow_id))}

    def last(self, stream: str) -> Event:
        return self.store.newest(1, stream=stream)[0]

    def agent(self, name: str) -> str:
        return str(self.call("agent_register", name=name, runtime="codex")["id"])

    def ready(self, workflow_id: str) -> list[str]:
        found = self.call("workflow_next_tasks", workflow_id=workflow_id)
        return [task["name"] for task in found["tasks"]]

    def audit(self, workflow_id: str) -> None:
        """Everything that is counted, against a look at everything; and the ledger against the tables."""
        tasks = {task.id: task for task in self.rows("task", where(workflow_id=workflow_id))}
        links = self.rows("dependency", where(workflow_id=workflow_id))
        names = {task.name: task for task in tasks.values()}
        assert len(names) == len(tasks)
        for task in tasks.values():
            needs = [tasks[link.needs_id] for link in links if link.task_id == task.id]
            assert task.unmet == sum(not need.is_finished for need in needs), task.name
            assert task.unblocks == sum(link.needs_id == task.id for link in links), task.name
            parts = [part for part in tasks.values() if part.parent_task_id == task.id]
            assert task.open_children == sum(not part.is_finished for part in parts), task.name
            if task.status in FINISHED:
                continue
            own = {link.needs_id for link in links if link.task_id == task.id and not link.inherited}
            assert own == {names[name].id for name in task.depends_on}, task.name
            above, due = task.parent_task_id, set()
            while above is not None:
                due |= {link.needs_id for link in links if link.task_id == above and not link.inherited}
                above = tasks[above].parent_task_id
            inherited = {link.needs_id for link in links if link.task_id == task.id and link.inherited}
            assert inherited == due - own, task.name
        assert can_end(tasks, [(link.task_id, link.needs_id) for link in links])
        assert self.store.verify() == []


def can_end(tasks: dict[str, Task], waits: list[tuple[str, str]]) -> bool:
    """Whether every task can end in some order: looked for by ending what can. What is under way waits for parts."""
    done = {key for key, task in tasks.items() if task.is_finished}
    while True:
        blocked = {key for key, need in waits if need not in done and tasks[key].status not in RUNNING}
        blocked |= {str(task.parent_task_id) for key, task in tasks.items() if key not in done}
        able = tasks.keys() - done - blocked
        if not able:
            return len(done) == len(tasks)
        done |= able


def node(key: str, label: str | None = None, **attributes: Any) -> dict[str, Any]:
    return {"op": "add_node", "id": key, "label": label or key, "attributes": attributes}


def edge(source: str, target: str, label: str = "") -> dict[str, Any]:
    return {"op": "add_edge", "from": source, "to": target, **({"label": label} if label else {})}


def no_edge(source: str, target: str, label: str = "") -> dict[str, Any]:
    return {"op": "remove_edge", "from": source, "to": target, **({"label": label} if label else {})}


def gone(key: str) -> dict[str, Any]:
    return {"op": "remove_node", "id": key}


def relabel(key: str, label: str) -> dict[str, Any]:
    return {"op": "rename_node", "id": key, "label": label}


def attribute(key: str, name: str, value: Any) -> dict[str, Any]:
    return {"op": "set_node_attribute", "id": key, "key": name, "value": value}

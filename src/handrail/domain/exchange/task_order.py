"""Orders a document's tasks so that each comes after everything it names, and cuts them into batches that can be laid
one after the other. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from handrail.domain.exchange.checklist import TOGETHER
from handrail.domain.exchange.exporter import superseded
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask


def first_batch(tasks: Sequence[PlannedTask], most: int) -> list[PlannedTask]:
    """As many tasks as fit into one batch, none naming a task left for later. Tasks that name each other in a cycle, as
    finished ones may, stay together."""
    if len(tasks) <= most:
        return list(tasks)
    by_name = {task.name: task for task in tasks}
    noted = {note.key: task.name for task in tasks for note in task.notes if note.key is not None}
    names = {task.name: [name for name in _named_by(task, noted) if name in by_name] for task in tasks}
    chosen: list[str] = []
    for together in _components(names):
        if chosen and len(chosen) + len(together) > most:
            break
        chosen += together
    return [by_name[name] for name in chosen]


def _named_by(task: PlannedTask, noted: Mapping[str, str]) -> Iterator[str]:
    """The tasks that a task names, and those with notes that one of its own replaces."""
    yield from task.depends_on
    yield task.parent or ""
    for note in task.notes:
        yield from (noted[key] for key in superseded(note.detail) if key in noted and noted[key] != task.name)


def _components(edges: Mapping[str, Sequence[str]]) -> Iterator[list[str]]:
    """The strongly connected components, dependencies first (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    held: list[str] = []
    on_hold: set[str] = set()
    for start in edges:
        pending: list[tuple[str, int]] = [(start, 0)] if start not in index else []
        while pending:
            node, place = pending.pop()
            if place == 0:
                index[node] = low[node] = len(index)
                held.append(node)
                on_hold.add(node)
            targets = edges[node]
            if place > 0:
                low[node] = min(low[node], low[targets[place - 1]])
            while place < len(targets):
                target = targets[place]
                place += 1
                if target not in index:
                    pending += [(node, place), (target, 0)]
                    break
                if target in on_hold:
                    low[node] = min(low[node], index[target])
            else:
                if low[node] == index[node]:
                    group = _pop_component(held, node)
                    on_hold.difference_update(group)
                    yield group


def _pop_component(held: list[str], node: str) -> list[str]:
    group: list[str] = []
    while not group or group[-1] != node:
        group.append(held.pop())
    return group[::-1]


def in_order(document: PlanDocument) -> PlanDocument:
    """The document with the dependencies its order implies."""
    before: dict[str | None, list[str]] = {}
    """For each parent, the tasks that the next sequential one waits for."""
    tasks: list[PlannedTask] = []
    for task in document.tasks:
        waiting = before.setdefault(task.parent, [])
        if task.parallel_group == TOGETHER:
            tasks.append(task)
            waiting.append(task.name)
            continue
        needs = list(dict.fromkeys([*task.depends_on, *waiting]))
        tasks.append(msgspec.structs.replace(task, depends_on=needs))
        before[task.parent] = [task.name]
    return msgspec.structs.replace(document, tasks=tasks)

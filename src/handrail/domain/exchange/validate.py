"""Whether the tasks of a document can be laid at all: names are unique, references resolve, and unfinished tasks can
end. In real files some tasks are done before what they depend on; those are accepted as they are, with a remark.

Pure. Never stricter than `work/plan.py`, and more lenient about finished tasks: they wait for nothing.

Orders a document's tasks so that each comes after everything it names, and cuts them into batches that can be laid one
after the other. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise

import msgspec

from handrail.domain.exchange.checklist import TOGETHER
from handrail.domain.exchange.exporter import superseded
from handrail.domain.exchange.foreign_tasks import several
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.domain.work.plan import find_cycle
from handrail.domain.work.task import FINISHED, REPLACEABLE, RUNNING
from handrail.kernel.errors import InvalidPlan

MOST_LEVELS = 100
"""Nesting depth of parts. Each level also waits for whatever the levels above it wait for."""
MOST_LINKS = 500_000
"""Dependencies that parts inherit from the tasks they are part of."""
_NEEDS = "\0"
"""Prefix, never part of a name, for a task's second node: what it and its parts wait for before they start."""


def check_references(tasks: Sequence[PlannedTask], known: Collection[str] = ()) -> None:
    """Raises InvalidPlan for a duplicate name, a reference to nothing, or a task within itself."""
    by_name: dict[str, PlannedTask] = {}
    for task in tasks:
        if task.name in by_name:
            raise InvalidPlan(f'two tasks are named "{task.name}"', hint="give each a name of its own", task=task.name)
        by_name[task.name] = task
    for task in tasks:
        for other, relation in (*((need, "needs") for need in task.depends_on), (task.parent, "is part of")):
            if other == task.name:
                raise InvalidPlan(f'task "{task.name}" {relation} itself', hint="leave that out", task=task.name)
            if other is not None and other not in by_name and other not in known:
                raise InvalidPlan(
                    f'task "{task.name}" {relation} "{other}", which is not in the file',
                    hint="add it, or leave the reference out",
                    task=task.name,
                )
    _check_levels(by_name)


def _check_levels(by_name: Mapping[str, PlannedTask]) -> None:
    links = 0
    for task in by_name.values():
        path = [task.name]
        above = by_name.get(task.parent or "")
        while above is not None:
            if above.name in path:
                circle = [*path[path.index(above.name) :], above.name]
                raise InvalidPlan(
                    f"tasks are part of each other: {' → '.join(circle)}",
                    hint="take one of them out of the other",
                    cycle=circle,
                )
            path.append(above.name)
            links += len(above.depends_on)
            if len(path) > MOST_LEVELS:
                raise InvalidPlan(
                    f'task "{task.name}" is part of a part, and so on, more than {MOST_LEVELS} times',
                    hint="make the plan flatter",
                    task=task.name,
                )
            above = by_name.get(above.parent or "")
    if links > MOST_LINKS:
        raise InvalidPlan(
            f"parts would have {links:,} dependencies because of what they are part of",
            hint="give the dependencies to the parts that need them",
        )


def check_ends(tasks: Iterable[PlannedTask]) -> None:
    """Raises InvalidPlan, with the path and what to remove, if unfinished tasks wait for each other."""
    by_name = {task.name: task for task in tasks}
    path = find_cycle(_waiting(by_name))
    if not path:
        return
    cycle = [name for name in path if not name.startswith(_NEEDS)]
    if path[0] not in by_name:  # the path starts at a task's second node
        cycle.append(cycle[0])
    edges = [_why_it_waits(by_name[one], by_name[other], by_name) for one, other in pairwise(cycle)]
    raise InvalidPlan(
        f"the tasks wait for each other: {' → '.join(cycle)}",
        hint=f"take one of these out of the file, then import it again: {'; '.join(dict.fromkeys(edges))}",
        cycle=cycle,
    )


def _waiting(by_name: Mapping[str, PlannedTask]) -> dict[str, list[str]]:
    """What must end before what. A running task waits only for its parts, a finished one for nothing."""
    edges: dict[str, list[str]] = {}
    for task in by_name.values():
        needs = [need for need in task.depends_on if need in by_name and by_name[need].status not in FINISHED]
        whole = by_name.get(task.parent or "")
        edges[_NEEDS + task.name] = [*needs, *([_NEEDS + whole.name] if whole is not None else [])]
        edges.setdefault(task.name, [])
        if task.status in FINISHED:
            continue
        if task.status in REPLACEABLE:
            edges[task.name].append(_NEEDS + task.name)
        if whole is not None and whole.status not in FINISHED:
            edges.setdefault(whole.name, []).append(task.name)
    return edges


def _why_it_waits(one: PlannedTask, other: PlannedTask, by_name: Mapping[str, PlannedTask]) -> str:
    """Why one cannot end before the other."""
    if other.name in one.depends_on:
        return f'"{one.name}" needs "{other.name}"'
    if other.parent == one.name:
        return f'"{other.name}" is part of "{one.name}"'
    above = by_name.get(one.parent or "")
    while above is not None and other.name not in above.depends_on:
        above = by_name.get(above.parent or "")
    assert above is not None, "a part waits for what those above it need"
    return f'"{above.name}", which "{one.name}" is part of, needs "{other.name}"'


def oddities(tasks: Sequence[PlannedTask], fresh: Collection[str] | None = None) -> list[str]:
    """What no plan of ours would lead to, but is accepted all the same. `fresh` names the tasks to examine; all if it
    is not given."""
    by_name = {task.name: task for task in tasks}
    early: list[str] = []
    begun: list[str] = []
    wholes: dict[str, None] = {}
    for task in tasks:
        if fresh is not None and task.name not in fresh:
            continue
        is_waiting = any(by_name[need].status not in FINISHED for need in task.depends_on if need in by_name)
        if is_waiting and task.status == "completed":
            early.append(task.name)
        elif is_waiting and task.status in RUNNING:
            begun.append(task.name)
        whole = by_name.get(task.parent or "")
        if whole is not None and whole.status in FINISHED and task.status not in FINISHED:
            wholes[whole.name] = None
    found = []
    if early:
        found.append(f"completed before something they depend on: {several(early)}")
    if begun:
        found.append(f"started before something they depend on was done: {several(begun)}")
    if wholes:
        found.append(f"finished, but with open parts: {several(list(wholes))}")
    return found


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

"""What a plan may say, and which plans are sound: names are unique, dependencies exist, nothing waits for itself.

A plan with a mistake is refused as a whole, and the refusal points at the mistake. Pure: rules over plain data.
`apply_plan.py` applies a sound plan to the existing tasks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta

from handrail.kernel.errors import InvalidPlan
from handrail.kernel.wording import did_you_mean

MOST_TASKS = 10_000
"""Tasks in one call; further ones are added with `workflow_add_tasks`."""
MOST_SEQUENCE = 2**53
SHOWN_NAMES = 20

Complexity = Literal["low", "medium", "high"]
COMPLEXITIES: tuple[str, ...] = get_args(Complexity)
Name = Annotated[str, Meta(min_length=1, max_length=200)]
Text = Annotated[str, Meta(max_length=200_000)]
NodeT = TypeVar("NodeT", bound=Hashable)
Strings = Annotated[list[Annotated[str, Meta(max_length=4000)]], Meta(max_length=500)]


class PlanTask(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One task of a plan."""

    name: Name
    description: Text
    sequence: Annotated[int, Meta(ge=0, le=MOST_SEQUENCE)]
    parallel_group: Annotated[str, Meta(max_length=200)] | None = None
    depends_on: Annotated[Strings, Meta(description="Names of tasks that must be finished first")] = []
    estimated_complexity: Complexity | None = None
    files_likely_affected: Strings = []
    priority: Annotated[int, Meta(ge=-1000, le=1000, description="Higher comes first")] = 0
    requires: Annotated[Strings, Meta(description="Capabilities an agent needs")] = []
    acceptance: Annotated[Strings, Meta(description="What must hold when it is done")] = []
    parent: Annotated[str, Meta(max_length=200, description="Name of the task it is part of")] | None = None


ENTRY_FIELDS = tuple(name for name in PlanTask.__struct_fields__ if name != "parent")
"""What a plan says of a task itself: members of the same name in a plan, in a task's row and in a plan's document. The
parent is a name in some and an id in others."""
LIST_FIELDS = tuple(name for name in ENTRY_FIELDS if isinstance(getattr(PlanTask("-", "", 0), name), list))


def entry_fields(source: object, **other: Any) -> dict[str, Any]:
    """What a plan says of a task, copied from whatever holds it. `other` goes beside it, or in its place."""
    copied = {name: getattr(source, name) for name in ENTRY_FIELDS if name not in other}
    return {**copied, **{name: list(copied[name]) for name in LIST_FIELDS if name in copied}, **other}


def check_plan(tasks: Sequence[PlanTask], known: Collection[str] = ()) -> None:
    """Raises InvalidPlan for the first mistake: a duplicate name, an unknown dependency or parent, a task that refers
    to itself, a cycle (with its path). `known` holds names outside the plan that it may refer to."""
    names = {task.name for task in tasks}
    for name, times in Counter(task.name for task in tasks).items():
        if times > 1:
            raise InvalidPlan(f'two tasks are named "{name}"', hint="give each task a different name", task=name)
    for task in tasks:
        if task.name != task.name.strip():
            raise InvalidPlan(f'the name "{task.name}" begins or ends with a blank', hint="remove the blank")
        for other, relation in (*((name, "depends on") for name in task.depends_on), (task.parent, "is part of")):
            if other is not None:
                _check_reference(task.name, relation, other, names, known)
    check_ends(waits(tasks))


def check_ends(waiting: Mapping[str, Sequence[str]]) -> None:
    """Raises InvalidPlan with the path if some of these wait for each other in a cycle."""
    cycle = find_cycle(waiting)
    if cycle:
        raise InvalidPlan(
            f"the tasks wait for each other: {' → '.join(cycle)}", hint="remove one of these dependencies", cycle=cycle
        )


def _check_reference(name: str, relation: str, other: str, names: set[str], known: Collection[str]) -> None:
    if other == name:
        raise InvalidPlan(f'task "{name}" {relation} itself', hint="remove its own name", task=name)
    if other not in names and other not in known:
        all_names = [*names, *known]
        shown = ", ".join(sorted(all_names)[:SHOWN_NAMES]) + (" …" if len(all_names) > SHOWN_NAMES else "")
        raise InvalidPlan(
            f'task "{name}" {relation} "{other}", which is not in the plan{did_you_mean(other, all_names)}',
            hint=f"tasks: {shown}",
            task=name,
        )


def waits(tasks: Sequence[PlanTask]) -> dict[str, list[str]]:
    """Which tasks cannot end before which: a task waits for its dependencies and for those of its enclosing tasks, and
    a task with parts cannot end before they do."""
    parents = {task.name: task.parent for task in tasks}
    own = {task.name: list(task.depends_on) for task in tasks}
    edges = {name: list(needs) for name, needs in own.items()}
    for task in tasks:
        for ancestor in _ancestors(task.name, parents):
            edges[task.name] += own.get(ancestor, ())
        if task.parent is not None:
            edges.setdefault(task.parent, []).append(task.name)
    return edges


def _ancestors(name: str, parents: Mapping[str, str | None]) -> list[str]:
    """The tasks a task is part of, nearest first. Stops if the parents form a cycle; the cycle check reports it."""
    found: list[str] = []
    above = parents.get(name)
    while above is not None and above not in found:
        found.append(above)
        above = parents.get(above)
    return found


def inherited_needs(task: PlanTask, by_name: Mapping[str, PlanTask]) -> list[str]:
    """What a subtask waits for because its enclosing tasks do, without its own dependencies."""
    found: list[str] = []
    seen = {task.name}
    above = by_name.get(task.parent or "")
    while above is not None and above.name not in seen:
        seen.add(above.name)
        found += above.depends_on
        above = by_name.get(above.parent or "")
    return [need for need in dict.fromkeys(found) if need not in task.depends_on]


def find_cycle(edges: Mapping[NodeT, Sequence[NodeT]]) -> list[NodeT]:
    """One cycle as a path that ends where it began; empty if there is none. Does not recurse."""
    finished: set[NodeT] = set()
    for start in edges:
        if start in finished:
            continue
        path: list[NodeT] = []
        on_path: set[NodeT] = set()
        pending: list[tuple[NodeT, int]] = [(start, 0)]
        while pending:
            node, next_edge = pending.pop()
            if next_edge == 0:
                path.append(node)
                on_path.add(node)
            targets = edges.get(node, ())
            while next_edge < len(targets) and targets[next_edge] in finished:
                next_edge += 1
            if next_edge == len(targets):
                finished.add(node)
                on_path.discard(node)
                path.pop()
                continue
            target = targets[next_edge]
            if target in on_path:
                return [*path[path.index(target) :], target]
            pending.append((node, next_edge + 1))
            pending.append((target, 0))
    return []

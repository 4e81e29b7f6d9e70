"""From a plan as it is told to the tasks it means: names are unique, dependencies exist, nothing waits for itself.

A plan with a mistake is refused whole, and the refusal shows it. Pure: rules over plain data.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from handrail.kernel.errors import InvalidPlan
from handrail.kernel.nearest import did_you_mean


class PlannedTask(NamedTuple):
    """What the rules need to know of one task."""

    name: str
    depends_on: tuple[str, ...]


def check_plan(tasks: Sequence[PlannedTask]) -> None:
    """Raises InvalidPlan for the first mistake: a name twice, an unknown or own dependency, a cycle with its path."""
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise InvalidPlan(f'two tasks are named "{name}"', hint="give each task a name of its own", task=name)
    for task in tasks:
        for dependency in task.depends_on:
            if dependency == task.name:
                raise InvalidPlan(f'task "{task.name}" depends on itself', hint="leave it out of its depends_on")
            if dependency not in names:
                raise InvalidPlan(
                    f'task "{task.name}" depends on "{dependency}", which is not in the plan'
                    f"{did_you_mean(dependency, names)}",
                    hint=f"tasks: {', '.join(names)}",
                )
    cycle = find_cycle({task.name: task.depends_on for task in tasks})
    if cycle:
        raise InvalidPlan(
            f"the tasks wait for each other: {' → '.join(cycle)}", hint="remove one of these dependencies", cycle=cycle
        )


def find_cycle(edges: Mapping[str, Sequence[str]]) -> list[str]:
    """One cycle as a path that ends where it began; empty where there is none. Walks without recursion."""
    finished: set[str] = set()
    for start in edges:
        if start in finished:
            continue
        path: list[str] = []
        on_path: set[str] = set()
        pending: list[tuple[str, int]] = [(start, 0)]
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

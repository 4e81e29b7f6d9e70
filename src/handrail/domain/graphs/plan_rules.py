"""The rules a changed graph must obey to still be the plan of a workflow. Works on plain data; no store.

Work that is done or under way stays as planned; names are unique within the plan; every task must be able to end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from handrail.domain.graphs.graph import LONGEST_TEXT, PART_OF, Graph, Node
from handrail.domain.graphs.plan_graph import READ_ONLY, WRITABLE
from handrail.domain.work.plan import COMPLEXITIES, find_cycle
from handrail.domain.work.task import FINISHED, REPLACEABLE, Task
from handrail.kernel.errors import GraphInvalid
from handrail.kernel.json_values import same_json

LONGEST_NAME = 200
_DEFAULTS: dict[str, Any] = {"description": "", "priority": 0, "parallel_group": None, "estimated_complexity": None}
"""Defaults for what a task's node does not say."""


class Ways(NamedTuple):
    """The edges of a plan, by meaning."""

    needs: dict[str, list[str]]
    """For each node, what must be done before it."""
    parents: dict[str, str]
    """For each part, the node it is part of."""


def ways_of(graph: Graph) -> Ways:
    """The edges as a plan interprets them; refused if one has no meaning in a plan."""
    needs: dict[str, dict[str, None]] = {key: {} for key in graph.nodes}
    parents: dict[str, str] = {}
    for key, edge in graph.edges.items():
        if edge.label not in ("", PART_OF):
            raise _invalid_plan(
                f"edge {key} is labelled {edge.label}, which means nothing in a plan",
                f'no label: the second waits for the first; "{PART_OF}": the second is part of the first',
                edge=key,
            )
        if edge.attributes or edge.weight is not None:
            raise _invalid_plan(f"edge {key} has attributes or a weight", "edges of a plan have none", edge=key)
        if edge.source == edge.target:
            raise _invalid_plan(f"node {edge.source} leads to itself", "remove the edge", edge=key)
        if not edge.label:
            needs[edge.target][edge.source] = None
        elif parents.setdefault(edge.target, edge.source) != edge.source:
            raise _invalid_plan(f"node {edge.target} is part of two others", "a task is part of one", node=edge.target)
    return Ways({key: list(all_of) for key, all_of in needs.items()}, parents)


def check_said(before: Graph, after: Graph) -> None:
    """Refuses what a plan cannot express: changed metadata, unknown attributes, values that follow from the work."""
    if before.name != after.name or not same_json(before.metadata, after.metadata):
        raise _invalid_plan(
            "name and metadata are the workflow's, not its plan's",
            "change nodes and edges; workflow_update_status and workflow_set_parallelism change the workflow",
        )
    for key, node in after.nodes.items():
        old = before.nodes.get(key)
        if old is not node:
            _check_node(key, node, old)
    _check_names(before, after)


def _check_node(key: str, node: Node, old: Node | None) -> None:
    for name, value in node.attributes.items():
        if name in READ_ONLY:
            if old is None or not same_json(old.attributes.get(name), value):
                raise _invalid_plan(
                    f"{name} of node {key} follows the work and is not planned",
                    f"leave it out; writable are {', '.join(WRITABLE)}",
                    node=key,
                )
        elif name not in WRITABLE:
            raise _invalid_plan(f"a task has no {name} (node {key})", f"a task has {', '.join(WRITABLE)}", node=key)
        elif problem := _problem(name, value):
            raise _invalid_plan(f"{name} of node {key} {problem}", "give it one, or leave it out", node=key)
    if old is not None and "sequence" in old.attributes and "sequence" not in node.attributes:
        raise _invalid_plan(f"node {key} loses its sequence", "every task has one: give another", node=key)
    name = node.label
    if not name.strip() or name != name.strip() or len(name) > LONGEST_NAME:
        raise _invalid_plan(
            f"node {key} needs a label: the task's name",
            f"1 to {LONGEST_NAME} characters, no blank at either end",
            node=key,
        )


def _problem(name: str, value: Any) -> str:
    number = isinstance(value, int) and not isinstance(value, bool)
    match name:
        case "sequence":
            return "" if number and 0 <= value <= 2**53 else "is a number from 0"
        case "priority":
            return "" if number and -1000 <= value <= 1000 else "is a number from -1000 to 1000"
        case "complexity":
            return "" if value in COMPLEXITIES else f"is one of {', '.join(COMPLEXITIES)}"
        case _:
            longest = LONGEST_TEXT if name == "description" else LONGEST_NAME
            return "" if isinstance(value, str) and len(value) <= longest else f"is a text of at most {longest}"


def _check_names(before: Graph, after: Graph) -> None:
    names = Counter(node.label for node in after.nodes.values())
    taken = {node.label: key for key, node in before.nodes.items()}
    for key, node in after.nodes.items():
        if names[node.label] > 1:
            raise _invalid_plan(f'two nodes are named "{node.label}"', "give each task a name of its own", node=key)
        if taken.get(node.label, key) != key:
            raise _invalid_plan(
                f'"{node.label}" is the name of {taken[node.label]}, which gives it up only with this change',
                "change that node instead of replacing it, or choose another name",
                node=key,
            )


def values_of(node: Node, old: Node | None) -> dict[str, Any]:
    """The task columns that a node changes. What the graph does not contain is left alone."""
    values: dict[str, Any] = {}
    for name, column in WRITABLE.items():
        if name in node.attributes:
            value = node.attributes[name]
        elif old is not None and name in old.attributes:
            value = _DEFAULTS[column]
        else:
            continue
        if old is None or not same_json(old.attributes.get(name, _DEFAULTS.get(column)), value):
            values[column] = value
    return values


def check_protected(tasks: Mapping[str, Task], before: Graph, after: Graph, ways: tuple[Ways, Ways]) -> None:
    """Refuses a change to what is done or under way."""
    was, now = ways
    gone = before.nodes.keys() - after.nodes.keys()
    for key, task in tasks.items():
        if task.status in REPLACEABLE:
            continue
        if key in gone:
            raise _protected(task, "would go")
        node, old = after.nodes[key], before.nodes[key]
        if node is not old and (node.label != old.label or values_of(node, old)):
            raise _protected(task, "would be another")
        if set(was.needs[key]) - gone != set(now.needs[key]):
            raise _protected(task, "would wait for others")
        above = was.parents.get(key)
        if above != now.parents.get(key):
            if above not in gone or key in now.parents:
                raise _protected(task, "would be part of another")
            if task.status not in FINISHED:
                raise _protected(task, f"is part of {above}, which would go")


def _protected(task: Task, what: str) -> GraphInvalid:
    done = task.status in FINISHED
    way = "add a task that comes after it" if done else "reset it with task_replan first, or let it finish"
    return GraphInvalid(
        f'task "{task.name}" ({task.id}) is {task.status} and {what}',
        hint=f"finished and running tasks cannot change: {way}",
        rule="protected",
        node=task.id,
        status=task.status,
    )


def check_parents(tasks: Mapping[str, Task], was: Ways, now: Ways) -> None:
    """Refuses new parts of a task that has ended, and tasks that are parts of themselves."""
    for key, above in now.parents.items():
        whole = tasks.get(above)
        if was.parents.get(key) != above and whole is not None and whole.is_finished:
            raise _invalid_plan(
                f'node {key} would be part of "{whole.name}", which is {whole.status}',
                "make it a task of its own, or part of an open one",
                node=key,
            )
    for key in now.parents:
        seen = [key]
        for above in above_of(key, now):
            if above == key:
                raise _invalid_plan(
                    f"node {key} would be part of itself: {' → '.join(seen)}", "remove one of these edges"
                )
            seen.append(above)


def above_of(key: str, ways: Ways) -> Iterator[str]:
    """The nodes that a node is part of, nearest first. Stops where a cycle closes."""
    seen: set[str] = set()
    above = ways.parents.get(key)
    while above is not None and above not in seen:
        yield above
        seen.add(above)
        above = ways.parents.get(above)


def inherited(key: str, ways: Ways) -> list[str]:
    """What a node waits for only because its parents do, excluding its own dependencies."""
    own = ways.needs[key]
    found = [need for above in above_of(key, ways) for need in ways.needs[above]]
    return [need for need in dict.fromkeys(found) if need not in own]


def check_ends(tasks: Mapping[str, Task], after: Graph, ways: Ways) -> None:
    """Refuses a plan in which tasks wait for each other in a cycle. A task under way waits only for its parts."""
    open_keys = {key for key in after.nodes if key not in tasks or not tasks[key].is_finished}
    waiting: dict[str, list[str]] = {key: [] for key in open_keys}
    for key in open_keys:
        task = tasks.get(key)
        if task is None or task.status in REPLACEABLE:
            needs = [*ways.needs[key], *(inherited(key, ways) if key in ways.parents else ())]
            waiting[key] += [need for need in needs if need in open_keys]
        above = ways.parents.get(key)
        if above in open_keys:
            waiting[above].append(key)
    cycle = find_cycle(waiting)
    if cycle:
        named = " → ".join(after.nodes[key].label for key in cycle[:20])
        raise GraphInvalid(
            f"the tasks wait for each other: {named}", hint="remove one of these edges", rule="dag", nodes=cycle[:20]
        )


def _invalid_plan(message: str, hint: str, **details: Any) -> GraphInvalid:
    return GraphInvalid(message, hint=hint, rule="plan", **details)

"""Turns a changed graph into a new plan: applies the differences to a workflow's tasks, by way of `PlanEdit`.

Only what differs is edited, and `PlanEdit` keeps counters and readiness right by construction. Nothing is written until
the caller records the edit.

The rules a changed graph must obey to still be the plan of a workflow. Works on plain data; no store.

Work that is done or under way stays as planned; names are unique within the plan; every task must be able to end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from handrail.domain.graphs.graph import LONGEST_TEXT, PART_OF, Graph, Node
from handrail.domain.graphs.plan_graph import READ_ONLY, WRITABLE, PlanRows, drawn
from handrail.domain.work.apply_plan import drop, new_task
from handrail.domain.work.lease import holder_of
from handrail.domain.work.plan import COMPLEXITIES, PlanTask, find_cycle
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import FINISHED, REPLACEABLE, Task
from handrail.kernel.errors import ClaimHeld, GraphInvalid
from handrail.kernel.json_values import same_json
from handrail.kernel.records import UnitOfWork

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


class EditedPlan(NamedTuple):
    """A plan as an edit leaves it."""

    edit: PlanEdit
    graph: Graph
    created: dict[str, str]
    """New tasks: from the id that the caller gave the node to the task's id."""
    added: list[str]
    updated: list[str]
    removed: list[str]
    skipped: list[str]
    """Tasks that the graph omits but that have work recorded on them."""

    @property
    def is_changed(self) -> bool:
        return bool(self.added or self.updated or self.removed or self.skipped)


class PlanChange(NamedTuple):
    """Who changes a plan, why, and where new ids come from."""

    names: frozenset[str]
    """The names whose claims count as the caller's own."""
    reason: str
    new_id: Callable[[str], str]
    """Makes the id of the new task for the node with this key."""


def lay_graph(unit: UnitOfWork, plan: PlanRows, before: Graph, after: Graph, asked: PlanChange) -> EditedPlan:
    """The edit that turns a plan into what a graph describes. Raises GraphInvalid if no plan can be that, or if it
    would touch work that is done or under way, and ClaimHeld if somebody else has claimed what would change."""
    check_said(before, after)
    was, now = ways_of(before), ways_of(after)
    check_protected(plan.tasks, before, after, (was, now))
    gone = before.nodes.keys() - after.nodes.keys()
    now = now._replace(needs={**now.needs, **{key: was.needs[key] for key in gone}})  # skipped tasks keep theirs
    check_parents(plan.tasks, was, now)
    check_ends(plan.tasks, after, now)
    work = _Work(unit, plan, before, after, was, now)
    work.check_claims(asked)
    return work.done(asked)


class _Work:
    """A change of a plan in progress."""

    def __init__(self, unit: UnitOfWork, plan: PlanRows, before: Graph, after: Graph, was: Ways, now: Ways) -> None:
        self._unit = unit
        self._plan = plan
        self._before, self._after = before, after
        self._was, self._now = was, now
        self._new = [key for key in after.nodes if key not in plan.tasks]
        self._gone = [plan.tasks[key] for key in before.nodes if key not in after.nodes]
        self._values = {key: values for key in plan.tasks if (values := self._changed_values(key))}
        open_tasks = [key for key, task in plan.tasks.items() if key in after.nodes and task.status in REPLACEABLE]
        self._rewired = {key for key in open_tasks if set(was.needs[key]) != set(now.needs[key])}
        self._moved = {key for key in open_tasks if was.parents.get(key) != now.parents.get(key)}
        self._ids: dict[str, str] = {}

    def _changed_values(self, key: str) -> dict[str, Any]:
        node, old = self._after.nodes.get(key), self._before.nodes[key]
        if node is None or node is old:
            return {}
        values = values_of(node, old)
        return {**values, "name": node.label} if node.label != old.label else values

    def check_claims(self, asked: PlanChange) -> None:
        changed = {*self._values, *self._rewired, *self._moved, *(task.id for task in self._gone)}
        for key in sorted(changed):
            task = self._plan.tasks[key]
            lease = holder_of(self._unit, task)
            if lease is not None and lease.holder not in asked.names:
                raise ClaimHeld(
                    f'task "{task.name}" would change, and {lease.holder} holds it',
                    hint="leave its node unchanged, or ask the holder (message_send) to release it",
                    task_id=task.id,
                    held_by=lease.holder,
                    expires_at=lease.expires_ms,
                )

    def done(self, asked: PlanChange) -> EditedPlan:
        edit = PlanEdit(self._unit, self._plan.workflow)
        self._ids = {key: asked.new_id(key) for key in self._new}
        relinked = self._with_open_parts({*self._new, *self._rewired, *self._moved})
        self._unlink(edit, relinked)
        self._add(edit)
        self._change(edit)
        removed, skipped = self._leave_out(edit, asked.reason)
        self._link(edit, relinked)
        names = {key: node.label for key, node in self._after.nodes.items()}
        updated = {*self._values, *self._rewired, *self._moved}
        return EditedPlan(
            edit,
            self._graph_after(edit),
            self._ids,
            [names[key] for key in self._new],
            [names[key] for key in self._after.nodes if key in updated],
            removed,
            skipped,
        )

    def _id(self, key: str) -> str:
        return self._ids.get(key, key)

    def _with_open_parts(self, changed: set[str]) -> list[str]:
        """These tasks and all their open parts, since a part inherits what its parent waits for."""
        tasks = self._plan.tasks
        found = list(changed)
        for key in self._now.parents:
            if key not in changed and any(above in changed for above in above_of(key, self._now)):
                found.append(key)
        return [key for key in found if key in self._after.nodes and (key not in tasks or not tasks[key].is_finished)]

    def _needs_of(self, key: str) -> dict[str, bool]:
        """What a task must wait for, each with whether it only inherits that from its parents."""
        needs = {self._id(need): False for need in self._now.needs[key]}
        if key in self._now.parents:
            needs |= {self._id(need): True for need in inherited(key, self._now)}
        return needs

    def _unlink(self, edit: PlanEdit, relinked: Iterable[str]) -> None:
        for key in relinked:
            if key in self._plan.tasks:
                wanted = self._needs_of(key)
                for link in edit.needs_of(key):
                    if link.needs_id not in wanted:
                        edit.unlink(link)

    def _link(self, edit: PlanEdit, relinked: Iterable[str]) -> None:
        for key in relinked:
            there = {link.needs_id: link.inherited for link in edit.needs_of(self._id(key))}
            for need, follows in self._needs_of(key).items():
                if there.get(need) is not follows and edit.holds(need):
                    edit.link(self._id(key), need, inherited=follows)

    def _add(self, edit: PlanEdit) -> None:
        last = max((task.sequence for task in self._plan.tasks.values()), default=0)
        for key in sorted(self._new, key=lambda key: sum(1 for _ in above_of(key, self._now))):  # parents before parts
            node = self._after.nodes[key]
            last += 1
            values = {"description": "", "sequence": last, **values_of(node, None)}
            draft = PlanTask(name=node.label, depends_on=self._named(key), **values)
            above = self._now.parents.get(key)
            edit.add(new_task(edit, draft, self._ids[key], self._id(above) if above is not None else None))

    def _change(self, edit: PlanEdit) -> None:
        renamed = {
            self._before.nodes[key].label: values["name"] for key, values in self._values.items() if "name" in values
        }
        for key, task in self._plan.tasks.items():
            values = dict(self._values.get(key, {}))
            if key in self._rewired:
                values["depends_on"] = self._named(key)
            elif renamed and not renamed.keys().isdisjoint(task.depends_on):
                values["depends_on"] = [renamed.get(name, name) for name in task.depends_on]
            is_planned_anew = key in self._values or key in self._rewired or key in self._moved
            if is_planned_anew and task.status == "failed":
                values |= {"status": "pending", "error": None}  # any new plan offers it again
            if values:
                edit.change(edit.task(key), **values)
            if key in self._moved:
                above = self._now.parents.get(key)
                edit.move_under(edit.task(key), self._id(above) if above is not None else None)

    def _named(self, key: str) -> list[str]:
        """The names of what a node waits for."""
        return [self._after.nodes[need].label for need in self._now.needs[key]]

    def _leave_out(self, edit: PlanEdit, reason: str) -> tuple[list[str], list[str]]:
        removed: list[str] = []
        skipped: list[str] = []
        for task in sorted(self._gone, key=lambda task: -sum(1 for _ in above_of(task.id, self._was))):  # parts first
            (skipped if drop(edit, edit.task(task.id), reason) else removed).append(task.name)
        return removed, skipped

    def _graph_after(self, edit: PlanEdit) -> Graph:
        """The graph after the edit, with new tasks under their ids."""
        touched = edit.outcome()
        now: dict[str, Task | None] = {**self._plan.tasks, **touched}
        known = {key: node for key, node in self._before.nodes.items() if key not in touched}
        needs = {self._id(key): [self._id(need) for need in all_of] for key, all_of in self._now.needs.items()}
        for key, task in self._plan.tasks.items():
            if task.is_finished:  # it may have waited for a task that is omitted now but kept as skipped
                needs[key] = self._was.needs[key]
        return drawn(self._plan.workflow, [task for task in now.values() if task is not None], needs, known)

"""Turns a changed graph into a new plan: applies the differences to a workflow's tasks, by way of `PlanEdit`.

Only what differs is edited, and `PlanEdit` keeps counters and readiness right by construction. Nothing is written until
the caller records the edit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from handrail.domain.graphs.graph import Graph
from handrail.domain.graphs.plan_graph import PlanRows, drawn
from handrail.domain.graphs.plan_rules import (
    Ways,
    above_of,
    check_ends,
    check_parents,
    check_protected,
    check_said,
    inherited,
    values_of,
    ways_of,
)
from handrail.domain.work.apply_plan import drop, new_task
from handrail.domain.work.lease import holder_of
from handrail.domain.work.plan import PlanTask
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import REPLACEABLE, Task
from handrail.kernel.errors import ClaimHeld
from handrail.kernel.records import UnitOfWork


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

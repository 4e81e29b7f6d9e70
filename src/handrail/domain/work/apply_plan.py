"""Turns a sound plan into tasks: lays a first plan, adds tasks, removes one, replaces a plan while it runs.

A new plan never touches work that is done or under way. A task on which work was recorded is not removed but kept as
skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.work.lease import holder_of
from handrail.domain.work.plan import PlanTask, check_ends, check_plan, entry_fields, inherited_needs
from handrail.domain.work.plan_edit import PlanEdit, tasks_named
from handrail.domain.work.task import REPLACEABLE, RUNNING, TASK_MACHINE, Dependency, Task
from handrail.kernel.errors import IllegalTransition, InvalidPlan, TasksOpen
from handrail.kernel.records import Query, UnitOfWork, chunks, where


class Replanned(NamedTuple):
    """The names a new plan kept, changed, added, removed, or left as skipped because work was recorded on them."""

    kept: list[str]
    updated: list[str]
    added: list[str]
    removed: list[str]
    skipped: list[str]


def lay_plan(unit: UnitOfWork, edit: PlanEdit, drafts: Sequence[PlanTask]) -> list[Task]:
    """Adds tasks to a workflow; they may refer to existing tasks."""
    referred = {name for draft in drafts for name in (*draft.depends_on, draft.parent) if name is not None}
    known = tasks_named(unit, edit.workflow.id, [*(draft.name for draft in drafts), *referred])
    for draft in drafts:
        if draft.name in known:
            raise InvalidPlan(
                f'a task "{draft.name}" is already there ({known[draft.name].id})',
                hint="choose another name; workflow_replan changes tasks that have not started",
                task=draft.name,
            )
    check_plan(drafts, known)
    _check_open_parents(drafts, known)
    _check_parents(unit, drafts, known)
    return lay_checked(unit, edit, drafts, known)


def lay_checked(unit: UnitOfWork, edit: PlanEdit, drafts: Sequence[PlanTask], known: Mapping[str, Task]) -> list[Task]:
    """Adds tasks that the caller has already checked by its own rules. `known` holds the stored tasks they refer to."""
    ids = {draft.name: unit.new_id("task") for draft in drafts}
    places = {**{name: task.id for name, task in known.items()}, **ids}
    for draft in _parents_first(drafts):
        edit.add(new_task(edit, draft, ids[draft.name], places.get(draft.parent or "")))
    _link(edit, drafts, places)
    return [edit.task(ids[draft.name]) for draft in drafts]


def _link(edit: PlanEdit, drafts: Sequence[PlanTask], places: Mapping[str, str]) -> None:
    """Links every dependency of these tasks: their own and those inherited from the tasks they are part of."""
    by_name = {draft.name: draft for draft in drafts}
    for draft in drafts:
        for need in dict.fromkeys(draft.depends_on):
            edit.link(places[draft.name], places[need])
        own = {places[need] for need in draft.depends_on}
        inherited = [places[need] for need in inherited_needs(draft, by_name)]
        top = draft
        while top.parent in by_name:
            top = by_name[top.parent]
        if top.parent is not None:
            inherited += [link.needs_id for link in edit.needs_of(places[top.parent])]
        for need_id in dict.fromkeys(inherited):
            if need_id not in own:
                edit.link(places[draft.name], need_id, inherited=True)


def _parents_first(drafts: Sequence[PlanTask]) -> list[PlanTask]:
    by_name = {draft.name: draft for draft in drafts}
    ordered: dict[str, PlanTask] = {}
    for draft in drafts:
        chain = [draft]
        while (above := by_name.get(chain[-1].parent or "")) is not None and above.name not in ordered:
            chain.append(above)
        for member in reversed(chain):
            ordered.setdefault(member.name, member)
    return list(ordered.values())


def _check_open_parents(drafts: Sequence[PlanTask], known: Mapping[str, Task]) -> None:
    for draft in drafts:
        parent = known.get(draft.parent or "")
        if parent is not None and parent.is_finished:
            raise InvalidPlan(
                f'task "{draft.name}" is part of "{parent.name}", which is {parent.status}',
                hint="leave parent out, or name an open task",
                task=draft.name,
            )


def _check_parents(unit: UnitOfWork, drafts: Sequence[PlanTask], known: Mapping[str, Task]) -> None:
    """A new part of an existing task must not wait, even indirectly, for that task: neither could ever end."""
    for draft in drafts:
        parent = known.get(draft.parent or "")
        if parent is None:
            continue
        within = _with_parts(drafts, draft.name)
        found = [known[need] for part in within for need in part.depends_on if need in known]
        needs = {need.id for need in found if not need.is_finished}
        if parent.id in _all_needed_for(unit, needs):
            raise InvalidPlan(
                f'task "{draft.name}" is part of "{parent.name}" and waits for something that waits for it',
                hint="remove one of its dependencies",
                task=draft.name,
            )


def _with_parts(drafts: Sequence[PlanTask], name: str) -> list[PlanTask]:
    members = {name}
    for draft in _parents_first(drafts):
        if draft.parent in members:
            members.add(draft.name)
    return [draft for draft in drafts if draft.name in members]


def _all_needed_for(unit: UnitOfWork, start: Iterable[str]) -> set[str]:
    """Every unfinished task that must end before these can, via dependencies and from a task to its parts."""
    seen: set[str] = set()
    frontier = list(start)
    while frontier:
        seen.update(frontier)
        reached: set[str] = set()
        for chunk in chunks(frontier):
            reached |= {link.needs_id for link in unit.select(Dependency, where(task_id=chunk))}
            reached |= {part.id for part in unit.select(Task, where(parent_task_id=chunk))}
        frontier = [key for key in reached if key not in seen and not _finished(unit, key)]
    return seen


def _finished(unit: UnitOfWork, task_id: str) -> bool:
    task = unit.get(Task, task_id)
    return task is None or task.is_finished


def new_task(edit: PlanEdit, draft: PlanTask, task_id: str, parent_id: str | None) -> Task:
    """The task for one entry of a plan. It does not wait for anything yet."""
    return Task(
        id=task_id,
        workflow_id=edit.workflow.id,
        parent_task_id=parent_id,
        status=TASK_MACHINE.initial,
        unmet=0,
        plan=None,
        context={},
        outcome=None,
        outcome_detail=None,
        error=None,
        checkpoints=0,
        created_at=edit.now,
        updated_at=edit.now,
        **_said(draft),
    )


def _said(draft: PlanTask) -> dict[str, Any]:
    """What a plan says of a task, as its row has it."""
    return entry_fields(draft, depends_on=list(dict.fromkeys(draft.depends_on)))


# -- taking out -------------------------------------------------------------------------------------------------------


def take_out(edit: PlanEdit, task: Task, reason: str) -> list[str]:
    """Removes a task from its plan. Its dependents now wait for what it waited for; returns their names."""
    if task.status not in REPLACEABLE:
        raise IllegalTransition(
            f'task "{task.name}" is {task.status} and cannot be removed from the plan',
            hint="only a pending or failed task can be removed",
            status=task.status,
        )
    if task.open_children:
        raise TasksOpen(f'task "{task.name}" has {task.open_children} open subtasks', hint="remove those first")
    rewired: list[str] = []
    needs = [link.needs_id for link in edit.needs_of(task.id)]
    need_names = [edit.task(need).name for need in needs]
    for link in edit.dependents_of(task.id):
        waiting = edit.task(link.task_id)
        if waiting.is_finished:
            continue
        rewired.append(waiting.name)
        edit.unlink(link)
        for need in needs:
            edit.link(waiting.id, need, inherited=link.inherited)
        if not link.inherited:
            names = [other for name in waiting.depends_on for other in ([name] if name != task.name else need_names)]
            edit.change(waiting, depends_on=list(dict.fromkeys(names)))
    drop(edit, task, reason)
    return rewired


def drop(edit: PlanEdit, task: Task, reason: str) -> bool:
    """Removes a task; returns True if it had to stay, as skipped, because work was recorded on it."""
    if task.checkpoints or task.attempts or edit.parts_of(task.id):
        edit.change(task, status="skipped", outcome=f"taken out of the plan: {reason}", finished_at=edit.now)
        return True
    edit.remove(task)
    return False


# -- replacing --------------------------------------------------------------------------------------------------------


def replace_plan(unit: UnitOfWork, edit: PlanEdit, drafts: Sequence[PlanTask], reason: str) -> Replanned:
    """Replaces the part of the plan that has not started. Names decide: a done or running task is kept as it is, an
    open task of the same name is changed in place, other open ones are removed, new names are added."""
    open_tasks = _replaceable(unit, edit.workflow.id, {draft.name for draft in drafts})
    named = {name for draft in drafts for name in (draft.name, *draft.depends_on, draft.parent) if name is not None}
    known = tasks_named(unit, edit.workflow.id, named - set(open_tasks))
    wanted = [draft for draft in drafts if draft.name not in known]
    names = {draft.name for draft in wanted}
    check_plan(wanted, known)
    _check_open_parents(wanted, known)
    updated = [draft for draft in wanted if draft.name in open_tasks]
    added = [draft for draft in wanted if draft.name not in open_tasks]
    places = {name: task.id for name, task in {**known, **open_tasks}.items()}
    for draft in updated:
        _check_not_above(edit, open_tasks[draft.name], known.get(draft.parent or ""))
    for task in open_tasks.values():
        for link in edit.needs_of(task.id):
            edit.unlink(link)
    places |= {draft.name: unit.new_id("task") for draft in added}
    for draft in _parents_first(added):
        edit.add(new_task(edit, draft, places[draft.name], places.get(draft.parent or "")))
    for draft in updated:
        _renew(edit, open_tasks[draft.name], draft)
        edit.move_under(edit.task(places[draft.name]), places.get(draft.parent or ""))
    removed, skipped = _leave_out(edit, [task for task in open_tasks.values() if task.name not in names], reason)
    _link(edit, wanted, places)
    _check_own_parts(edit, wanted, places)
    _inherit_anew(unit, edit)
    _check_whole(unit, edit, places.values())
    kept = [draft.name for draft in drafts if draft.name in known]
    return Replanned(kept, [draft.name for draft in updated], [draft.name for draft in added], removed, skipped)


def _replaceable(unit: UnitOfWork, workflow_id: str, named: set[str]) -> dict[str, Task]:
    """The tasks a new plan may replace, by name. A task it does not name is exempt if an agent has claimed it or one of
    its parts is under way."""
    found = unit.select(Task, Query((("workflow_id", workflow_id), ("status", REPLACEABLE))))
    by_id = {task.id: task for task in found if task.name in named or holder_of(unit, task) is None}
    held = [
        task.parent_task_id for task in unit.select(Task, Query((("workflow_id", workflow_id), ("status", RUNNING))))
    ]
    while held:
        above = by_id.get(held.pop() or "")
        if above is not None:
            held.append(above.parent_task_id)
            if above.name not in named:
                del by_id[above.id]
    return {task.name: task for task in by_id.values()}


def _inherit_anew(unit: UnitOfWork, edit: PlanEdit) -> None:
    """Relinks running subtasks to what their parent tasks wait for now, in case they are taken up again."""
    for stored in unit.select(Task, Query((("workflow_id", edit.workflow.id), ("status", RUNNING)))):
        own: set[str] = set()
        for link in edit.needs_of(stored.id):
            if link.inherited:
                edit.unlink(link)
            else:
                own.add(link.needs_id)
        for need_id in edit.needs_above(stored):
            if need_id not in own:
                edit.link(stored.id, need_id, inherited=True)


def _check_own_parts(edit: PlanEdit, drafts: Sequence[PlanTask], places: Mapping[str, str]) -> None:
    """Refuses a task that depends on its own part. It cannot end before its parts anyway, and the part would inherit
    the dependency and wait for itself."""
    for draft in drafts:
        for need in draft.depends_on:
            part = edit.task(places[need])
            above = part.parent_task_id
            while above is not None and not part.is_finished:
                if above == places[draft.name]:
                    raise InvalidPlan(
                        f'task "{draft.name}" depends on "{need}", which is part of it',
                        hint="leave it out: a task cannot be completed before its parts",
                        task=draft.name,
                    )
                above = edit.task(above).parent_task_id


def _check_whole(unit: UnitOfWork, edit: PlanEdit, planned: Iterable[str]) -> None:
    """Checks that every unfinished task, planned or kept, can end. A running task waits only for its parts."""
    kept = unit.select(Task, Query((("workflow_id", edit.workflow.id), ("status", (*RUNNING, *REPLACEABLE)))))
    ids = dict.fromkeys([*planned, *(task.id for task in kept)])
    tasks = [edit.task(task_id) for task_id in ids if edit.holds(task_id)]
    names = {task.id: task.name for task in tasks if not task.is_finished}
    waiting: dict[str, list[str]] = {name: [] for name in names.values()}
    for task in tasks:
        if task.id not in names:
            continue
        if task.status in REPLACEABLE:
            waiting[task.name] += [names[link.needs_id] for link in edit.needs_of(task.id) if link.needs_id in names]
        if task.parent_task_id in names:
            waiting[names[task.parent_task_id]].append(task.name)
    check_ends(waiting)


def _check_not_above(edit: PlanEdit, task: Task, parent: Task | None) -> None:
    while parent is not None:
        if parent.id == task.id:
            raise InvalidPlan(f'task "{task.name}" would be part of itself', hint="give it another parent")
        parent = edit.task(parent.parent_task_id) if parent.parent_task_id is not None else None


def _leave_out(edit: PlanEdit, tasks: Sequence[Task], reason: str) -> tuple[list[str], list[str]]:
    removed: list[str] = []
    skipped: list[str] = []
    for task in sorted(tasks, key=lambda task: -_depth(edit, task)):  # parts before the tasks they belong to
        (skipped if drop(edit, edit.task(task.id), reason) else removed).append(task.name)
    return removed, skipped


def _depth(edit: PlanEdit, task: Task) -> int:
    depth = 0
    while task.parent_task_id is not None:
        task, depth = edit.task(task.parent_task_id), depth + 1
    return depth


def _renew(edit: PlanEdit, task: Task, draft: PlanTask) -> None:
    edit.change(task, status="pending", error=None, **_said(draft))

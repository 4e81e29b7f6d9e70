"""A plan made of what was done before: fragments of finished workflows and of plans that facts describe, for a similar
goal. Ranking is pure and deterministic: what was done goes in, ranked fragments come out.

What was done before, as far as it can be reused: finished workflows with their tasks, and plans that facts describe.
Reads only, and never more than a bounded part of the store.

Facts describe a plan in three ways: (plan, includes, task), (task, depends_on, other task), and a task's `label`,
`complexity` and `duration` in milliseconds. A task may also be written `task:name`; that is the same task.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from handrail.domain.dry_run.forecast import ForecastStep, in_order
from handrail.domain.knowledge.records import Fact
from handrail.domain.pipeline.lessons import PastRun, similar_runs, terms
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.plan import COMPLEXITIES, find_cycle
from handrail.domain.work.task import Dependency, Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import Query, UnitOfWork

COMMON = 5
"""How many of the words in common are listed."""


class PastTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task as it was done, or as facts describe it."""

    name: str
    description: str = ""
    depends_on: tuple[str, ...] = ()
    complexity: str | None = None
    files: tuple[str, ...] = ()
    was_skipped: bool = False
    took_ms: int | None = None
    attempts: int = 0
    trouble: tuple[str, ...] = ()
    """What went wrong, in the task's own words."""


class PastPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A plan that was carried out, or that facts describe."""

    id: str
    name: str
    text: str
    """What it was about."""
    kind: str
    """`workflow` or `facts`."""
    at: int
    sources: tuple[str, ...] = ()
    """The names by which a caller may prefer it."""


class RankedPlan(NamedTuple):
    """A past plan with a similar subject, how similar, and by which words."""

    plan: PastPlan
    score: float
    common: tuple[str, ...]
    is_preferred: bool


class Fragment(NamedTuple):
    """Tasks in an order in which they can be done; each waits only for others in the fragment."""

    tasks: list[PastTask]
    skipped: list[str]
    excluded: list[str]
    unknown: list[str]
    """What tasks waited for that was not in the plan."""
    circles: list[str]
    """Dependencies that were left out because they closed a cycle."""


def ranked(goal: str, plans: Sequence[PastPlan], preferred: Collection[str], limit: int) -> list[RankedPlan]:
    """The plans most similar to the goal, preferred ones first."""
    runs = [PastRun(spec_name=plan.name, request=plan.text) for plan in plans]
    by_run = {id(run): plan for run, plan in zip(runs, plans, strict=True)}
    asked = set(terms(goal))
    wanted = set(preferred)
    found = []
    for similar in similar_runs(goal, runs, limit=len(runs)):
        plan = by_run[id(similar.run)]
        common = sorted(asked & set(terms(f"{plan.name} {plan.text}")))[:COMMON]
        is_preferred = not wanted.isdisjoint((plan.id, plan.name, *plan.sources))
        found.append(RankedPlan(plan, similar.score, tuple(common), is_preferred))
    found.sort(key=lambda one: not one.is_preferred)  # a stable sort: each half stays ordered by similarity
    return found[:limit]


def fragment_of(tasks: Sequence[PastTask], exclude: Collection[str]) -> Fragment:
    """The tasks that are worth doing again. Whatever waited for an omitted task waits for that task's dependencies."""
    left_out = {name.casefold() for name in exclude}
    by_name = {task.name: task for task in tasks}
    skipped = [task.name for task in tasks if task.was_skipped]
    excluded = [task.name for task in tasks if not task.was_skipped and task.name.casefold() in left_out]
    gone = {*skipped, *excluded}
    unknown = list(dict.fromkeys(need for task in tasks for need in task.depends_on if need not in by_name))
    needs = {task.name: _needs(task.name, by_name, gone) for task in tasks if task.name not in gone}
    circles = _without_circles(needs)
    steps = [ForecastStep(name, name, tuple(waits)) for name, waits in needs.items()]
    ordered = [msgspec.structs.replace(by_name[step.id], depends_on=tuple(needs[step.id])) for step in in_order(steps)]
    return Fragment(ordered, skipped, excluded, unknown, circles)


def _needs(name: str, by_name: Mapping[str, PastTask], gone: Collection[str]) -> list[str]:
    """What a task waits for once some tasks are omitted."""
    found: dict[str, None] = {}
    seen = {name}
    pending = list(by_name[name].depends_on)
    while pending:
        need = pending.pop(0)
        if need in seen or need not in by_name:
            continue
        seen.add(need)
        if need in gone:
            pending += by_name[need].depends_on
        else:
            found[need] = None
    return list(found)


def _without_circles(needs: dict[str, list[str]]) -> list[str]:
    """Removes one dependency of each cycle, and names those removed."""
    taken = []
    while circle := find_cycle(needs):
        waiting, need = circle[-2], circle[-1]
        needs[waiting].remove(need)
        taken.append(f"{waiting} → {need}")
    return taken


def seen_in(fragments: Sequence[Sequence[PastTask]]) -> dict[str, int]:
    """In how many plans a task of each name was done; case does not matter."""
    counts: dict[str, int] = {}
    for tasks in fragments:
        for name in {task.name.casefold() for task in tasks if not task.was_skipped}:
            counts[name] = counts.get(name, 0) + 1
    return counts


WORKFLOWS = 300
"""How many finished workflows are considered; the newest ones."""
TASKS = 300
"""How many tasks of each."""
FACTS = 5_000
"""How many facts that say what belongs to a plan."""
TROUBLES = 200
TEXT = 2_000
INCLUDES, DEPENDS_ON = "includes", "depends_on"
SAID_OF_TASKS = (DEPENDS_ON, "label", "complexity", "duration")
TASK = "task:"


def finished_workflows(unit: UnitOfWork, repository: str | None) -> list[PastPlan]:
    """The newest workflows that were completed, without their tasks."""
    conditions: tuple[tuple[str, Any], ...] = (("status", "completed"),)
    if repository is not None:
        conditions = (*conditions, ("repository_path", repository))
    return [
        PastPlan(
            id=workflow.id,
            name=workflow.name,
            text=f"{workflow.source_content[:TEXT]} {(workflow.plan or {}).get('summary') or ''}",
            kind="workflow",
            at=workflow.updated_at,
        )
        for workflow in unit.select(Workflow, Query(conditions, ("-updated_at", "-id"), WORKFLOWS))
    ]


def tasks_of_workflow(unit: UnitOfWork, workflow_id: str) -> list[PastTask]:
    """Its tasks as they were done, in order."""
    tasks = unit.select(Task, Query((("workflow_id", workflow_id),), ("sequence",), TASKS))
    names = {task.id: task.name for task in tasks}
    needs: dict[str, list[str]] = {task.id: [] for task in tasks}
    keys = tuple(names)
    for link in unit.select(Dependency, Query((("task_id", keys), ("inherited", False)))) if keys else ():
        if link.needs_id in names:
            needs[link.task_id].append(names[link.needs_id])
    trouble: dict[str, list[str]] = {}
    about = (("task_id", keys), ("type", ("error", "replan")))
    for noted in unit.select(Checkpoint, Query(about, ("created_at",), TROUBLES)) if keys else ():
        trouble.setdefault(noted.task_id, []).append(noted.summary)
    return [
        PastTask(
            name=task.name,
            description=task.description,
            depends_on=tuple(needs[task.id]),
            complexity=task.estimated_complexity,
            files=tuple(task.files_likely_affected),
            was_skipped=task.status == "skipped",
            took_ms=task.took_ms,
            attempts=task.attempts,
            trouble=tuple(trouble.get(task.id, ())),
        )
        for task in tasks
    ]


# -- plans that facts describe ----------------------------------------------------------------------------------------


def described_plans(unit: UnitOfWork, repository: str | None) -> dict[str, PastPlan]:
    """Every plan that facts list the contents of, by its name in those facts."""
    query = Query((("predicate", INCLUDES), ("repository_path", repository)), ("subject", "object"), FACTS)
    facts = unit.select(Fact, query)
    members: dict[str, list[Fact]] = {}
    for fact in facts:
        members.setdefault(fact.subject, []).append(fact)
    return {
        name: PastPlan(
            id=f"facts:{name}",
            name=name,
            text=" ".join(_plain(fact.object) for fact in found),
            kind="facts",
            at=max(fact.updated_at for fact in found),
            sources=tuple(dict.fromkeys(fact.source for fact in found if fact.source)),
        )
        for name, found in members.items()
    }


def tasks_of_facts(unit: UnitOfWork, repository: str | None, plan: str) -> list[PastTask]:
    """The tasks of a plan as facts describe them."""
    mine = (("subject", plan), ("predicate", INCLUDES), ("repository_path", repository))
    names = list(dict.fromkeys(_plain(fact.object) for fact in unit.select(Fact, Query(mine, ("object",), TASKS))))
    subjects = tuple(subject for name in names for subject in (name, f"{TASK}{name}"))
    facts_of: dict[str, list[Fact]] = {name: [] for name in names}
    about = (("subject", subjects), ("predicate", SAID_OF_TASKS), ("repository_path", repository))
    for fact in unit.select(Fact, Query(about, ("subject", "predicate", "object"), FACTS)) if subjects else ():
        facts_of[_plain(fact.subject)].append(fact)
    return [_past_task(name, facts_of[name]) for name in names]


def _past_task(name: str, facts: Sequence[Fact]) -> PastTask:
    values = {fact.predicate: fact.object for fact in facts}
    complexity, duration = values.get("complexity"), values.get("duration", "")
    return PastTask(
        name=name,
        description=values.get("label", ""),
        depends_on=tuple(_plain(fact.object) for fact in facts if fact.predicate == DEPENDS_ON),
        complexity=complexity if complexity in COMPLEXITIES else None,
        took_ms=int(duration) if duration.isdecimal() and len(duration) < 16 else None,
    )


def is_known_task(unit: UnitOfWork, repository: str | None, name: str) -> bool:
    """Whether any plan includes a task of this name."""
    about = (("object", (name, f"{TASK}{name}")), ("predicate", INCLUDES), ("repository_path", repository))
    return bool(unit.select(Fact, Query(about, ("id",), 1)))


def _plain(name: str) -> str:
    return name.removeprefix(TASK)

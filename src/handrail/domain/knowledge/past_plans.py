"""What was done before, as far as it can be reused: finished workflows with their tasks, and plans that facts describe.
Reads only, and never more than a bounded part of the store.

Facts describe a plan in three ways: (plan, includes, task), (task, depends_on, other task), and a task's `label`,
`complexity` and `duration` in milliseconds. A task may also be written `task:name`; that is the same task.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from handrail.domain.knowledge.plan_suggestions import PastPlan, PastTask
from handrail.domain.knowledge.records import Fact
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.dependency import Dependency
from handrail.domain.work.plan import COMPLEXITIES
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

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

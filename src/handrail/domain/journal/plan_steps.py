"""The plan steps, in words, that `start_workflow` was given, and which of them nobody has begun yet.

They are not tasks: nothing waits for them and nothing counts them. But an agent that lost its conversation has the plan
nowhere else, and a workflow whose tasks have all ended is not done while half of its plan was never begun.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.work.plan_edit import tasks_named
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import Query, UnitOfWork, chunks


class PlanStep(NamedTuple):
    """One step: its name, often just a number, and its goal."""

    number: int
    step: str
    goal: str

    @property
    def text(self) -> str:
        """The step in one line, without its name if that is only its number."""
        is_number = self.step.strip().rstrip(".") == str(self.number)
        return ": ".join(part for part in ("" if is_number else self.step, self.goal) if part)

    @property
    def numbered(self) -> str:
        return f"{self.number}. {self.text}"


def plan_steps(plan: Mapping[str, Any] | None) -> list[PlanStep]:
    """The steps of a written plan. In a plan that came from elsewhere they may be plain texts."""
    found: list[PlanStep] = []
    for number, step in enumerate((plan or {}).get("steps") or (), start=1):
        fields = step if isinstance(step, dict) else {"goal": step}
        found.append(PlanStep(number, str(fields.get("step", "")), str(fields.get("goal", ""))))
    return found


def steps_left(unit: UnitOfWork, workflow: Workflow) -> list[PlanStep]:
    """The steps that no task was begun for, in order.

    A task names its step with `plan_step`, or by having the step's name or goal as its own name. A task that names
    none counts for the first step without a task; so a plan is used up once it has as many tasks as steps.
    """
    steps = plan_steps(workflow.plan)
    if not steps:
        return []
    names = {word for step in steps for word in (step.step, step.goal) if word}
    named: dict[str, set[str]] = {name: {task.id} for name, task in tasks_named(unit, workflow.id, names).items()}
    for chunk in chunks(names):
        for entry in unit.select(JournalEntry, Query((("workflow_id", workflow.id), ("plan_step", chunk)))):
            named.setdefault(entry.plan_step or "", set()).add(entry.id)
    left = [step for step in steps if not (named.keys() & {step.step, step.goal})]
    known = set().union(*named.values())
    # No more are read than could matter: a workflow may have far more tasks than its plan has steps.
    whole = Query((("workflow_id", workflow.id), ("parent_task_id", None)), ("sequence",), len(known) + len(left))
    unnamed = sum(task.id not in known for task in unit.select(Task, whole))
    return left[unnamed:]

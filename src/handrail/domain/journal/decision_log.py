"""The log of decisions: which were made, which still hold, and each as a page of its own. Reads, never decides.

A page has the form of an architecture decision record: context, decision, consequences. Which file it becomes, and
whether that may be written, is up to `outside/decision_folder.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.journal.markdown import code, day, inline, quoted
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import UnitOfWork, found_by
from handrail.kernel.wording import on_one_line, shortened

TITLE = 120
"""The most characters of a title; a question may be a page long."""
SUPERSEDES = "supersedes"
"""The member of a decision's detail that names the decisions it replaces, by id or by summary."""


class LoggedDecision(NamedTuple):
    """A decision, with the place it was made in."""

    note: Checkpoint
    task: str
    goal: str
    workflow: Workflow
    replaced_by: Checkpoint | None

    @property
    def question(self) -> str:
        """What was to be decided. A decision noted as a single sentence is its own question."""
        return _text(self.note.detail.get("question")) or self.note.summary

    @property
    def chosen(self) -> str:
        return _text(self.note.detail.get("chosen")) or self.note.summary

    @property
    def reasoning(self) -> str:
        return _text(self.note.detail.get("reasoning")) or _text(self.note.detail.get("rationale"))

    @property
    def category(self) -> str:
        return _text(self.note.detail.get("category"))

    @property
    def trade_offs(self) -> str:
        return _text(self.note.detail.get("trade_offs"))

    @property
    def options(self) -> list[str]:
        given = self.note.detail.get("options_considered")
        return [option for option in given if isinstance(option, str)] if isinstance(given, list) else []

    @property
    def title(self) -> str:
        return shortened(on_one_line(self.question), TITLE)


def decisions_in(unit: UnitOfWork, workflows: Sequence[Workflow]) -> list[LoggedDecision]:
    """Every decision made in these workflows, oldest first."""
    known = {workflow.id: workflow for workflow in workflows}
    notes = sorted(_notes_in(unit, known), key=lambda note: (note.created_at, note.id))
    later = replaced_by(notes)
    tasks: dict[str, Task | None] = {note.task_id: unit.get(Task, note.task_id) for note in notes}
    return [
        LoggedDecision(
            note=note,
            task=task.name if (task := tasks[note.task_id]) is not None else note.task_id,
            goal=task.description if task is not None else "",
            workflow=known[note.workflow_id],
            replaced_by=later.get(note.id),
        )
        for note in notes
    ]


def replaced_by(notes: Iterable[Checkpoint]) -> dict[str, Checkpoint]:
    """Maps each replaced decision to the latest one that replaces it, by id or, within one workflow, by summary."""
    found: dict[str, Checkpoint] = {}
    seen: dict[tuple[str, str], list[Checkpoint]] = {}
    for later in sorted(notes, key=lambda note: (note.created_at, note.id)):
        for name in map(str, later.listed(SUPERSEDES)):
            for earlier in (*seen.get(("", name), ()), *seen.get((later.workflow_id, name), ())):
                found[earlier.id] = later
        seen.setdefault(("", later.id), []).append(later)
        seen.setdefault((later.workflow_id, later.summary), []).append(later)
    return found


def superseded_in(unit: UnitOfWork, workflow_ids: Iterable[str]) -> dict[str, Checkpoint]:
    """Maps each decision of these workflows that no longer holds to the latest one that replaces it."""
    return replaced_by(_notes_in(unit, workflow_ids))


def _notes_in(unit: UnitOfWork, workflow_ids: Iterable[str]) -> Iterable[Checkpoint]:
    return found_by(unit, Checkpoint, "workflow_id", workflow_ids, more=(("type", "decision"),))


def decision_page(decision: LoggedDecision, number: int, names: Mapping[str, str]) -> Iterator[str]:
    """A decision as lines of Markdown, with its number in the folder. `names` maps decision ids to their files."""
    note = decision.note
    yield f"# {number}. {inline(decision.title)}"
    yield ""
    yield f"- Status: {_status(decision, names)}"
    yield f"- Date: {day(note.created_at)}"
    if decision.category:
        yield f"- Category: {inline(decision.category.replace('_', ' '))}"
    yield f"- Task: {inline(decision.task)} ({code(note.task_id)})"
    yield f"- Workflow: {inline(decision.workflow.name)} ({code(decision.workflow.id)})"
    yield f"- Decision: {code(note.id)}"
    yield ""
    yield "## Context"
    yield ""
    yield from quoted(decision.question)
    yield from quoted(decision.goal)
    if decision.options:
        yield "Considered:"
        yield ""
        for option in decision.options:
            yield f"- {inline(option)}"
        yield ""
    yield "## Decision"
    yield ""
    yield from quoted(decision.chosen)
    yield from quoted(decision.reasoning)
    if decision.trade_offs:
        yield "## Consequences"
        yield ""
        yield from quoted(decision.trade_offs)


def _status(decision: LoggedDecision, names: Mapping[str, str]) -> str:
    if decision.replaced_by is None:
        return "accepted"
    later = decision.replaced_by.id
    file = names.get(later)
    return f"superseded by [{file}]({file})" if file is not None else f"superseded by {code(later)}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

"""A workflow as a report for people, in Markdown: what was asked, what was done, what was decided, what is left.

Everything comes from records; nothing is judged. What an agent claims and what was found out stand apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.gates.reviews import REVIEW
from handrail.domain.journal.deciding import Decision, decisions_in
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.file_changes import lines_told, told, totals
from handrail.domain.journal.markdown import code, inline, minute, quoted
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.editing import CHUNK, tally_of
from handrail.domain.work.tally import Tally
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.clock import spoken_time
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork

TASKS = 2000
"""Tasks that a report tells of; the first of them, in the plan's order."""
NOTES = 2000
FILES = 200
"""Files that are listed of one task."""


class WorkflowReport(NamedTuple):
    """What a report is made from."""

    workflow: Workflow
    tally: Tally
    tasks: Sequence[Task]
    entries: Mapping[str, JournalEntry]
    decisions: Sequence[Decision]
    issues: Sequence[Checkpoint]
    reviews: Sequence[Gate]


def gather_report(unit: UnitOfWork, workflow: Workflow) -> WorkflowReport:
    """Reads what a report of this workflow needs."""
    own = ("workflow_id", workflow.id)
    tasks = unit.select(Task, Query((own,), ("sequence",), TASKS))
    entries: dict[str, JournalEntry] = {}
    keys = [task.id for task in tasks]
    for start in range(0, len(keys), CHUNK):
        chunk = Query((("id", tuple(keys[start : start + CHUNK])),))
        entries |= {entry.id: entry for entry in unit.select(JournalEntry, chunk)}
    errors = unit.select(Checkpoint, Query((own, ("type", "error")), ("created_at",), NOTES))
    reviews = [
        gate
        for state in GATE_MACHINE.states
        for gate in unit.select(Gate, Query((own, ("status", state), ("kind", REVIEW)), ("created_at",), NOTES))
    ]
    return WorkflowReport(
        workflow=workflow,
        tally=tally_of(unit, workflow.id),
        tasks=tasks,
        entries=entries,
        decisions=decisions_in(unit, [workflow]),
        issues=[note for note in errors if set(note.detail) != {"status"}],
        reviews=sorted(reviews, key=lambda gate: (gate.created_at, gate.id)),
    )


def markdown(found: WorkflowReport) -> Iterator[str]:
    """The report, line by line."""
    workflow = found.workflow
    yield f"# {inline(workflow.name)}"
    yield ""
    ended = f", ended {minute(workflow.updated_at)}" if workflow.status in CLOSED else ""
    yield f"{_plain(workflow.status)}; begun {minute(workflow.created_at)}{ended}; {code(workflow.id)}"
    yield ""
    yield from _section("Goal", quoted(workflow.source_content))
    yield from _section("Plan", _plan(workflow.plan or {}))
    yield from _section("Totals", _totals(found))
    yield from _section("Tasks", _tasks(found))
    yield from _section("Decisions", _decisions(found.decisions))
    yield from _section("Issues", _issues(found))
    yield from _section("Limitations", _limitations(found.tasks))
    yield from _section("Reviews", _reviews(found.reviews))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading and what is under it; nothing where nothing is."""
    found = list(lines)
    if not any(found):
        return
    yield f"## {title}"
    yield ""
    yield from found
    if found[-1]:
        yield ""


def _plan(plan: Mapping[str, Any]) -> Iterator[str]:
    for part in ("summary", "approach"):
        yield from quoted(str(plan.get(part) or ""))
    for number, step in enumerate(plan.get("steps") or (), start=1):
        text = f"{step.get('step', '')}: {step.get('goal', '')}" if isinstance(step, dict) else str(step)
        label = text.partition(":")[0].strip().rstrip(".")
        yield f"{number}. {inline(text.partition(':')[2] if label == str(number) else text)}"
    for title, name in (("Risks", "risks"), ("Assumptions", "assumptions")):
        if plan.get(name):
            yield ""
            yield f"{title}:"
            yield ""
            yield from (f"- {inline(str(entry))}" for entry in plan[name])


def _totals(found: WorkflowReport) -> Iterator[str]:
    tally = found.tally
    counts = ", ".join(f"{count} {_plain(state)}" for state, count in tally.counts.items() if count)
    yield f"- {tally.total} {_counted(tally.total, 'task')}{f': {counts}' if counts else ''}"
    if tally.worked_ms:
        yield f"- {spoken_time(tally.worked_ms)} from start to end of completed tasks, added up"
    changed = [change for entry in found.entries.values() for change in (entry.report or {}).get("files", ())]
    if changed:
        distinct = len({change["path"] for change in changed})
        yield f"- {told(totals(changed))}, added up over all tasks; {distinct} distinct {_counted(distinct, 'path')}"
    replaced = sum(decision.replaced_by is not None for decision in found.decisions)
    superseded = f", {replaced} of them superseded" if replaced else ""
    yield f"- {len(found.decisions)} {_counted(len(found.decisions), 'decision')}{superseded}"
    yield f"- {len(found.issues)} {_counted(len(found.issues), 'issue')}"
    waiting = sum(gate.status == GATE_MACHINE.initial for gate in found.reviews)
    yield f"- {len(found.reviews)} {_counted(len(found.reviews), 'review')}, {waiting} open"


# -- tasks ------------------------------------------------------------------------------------------------------------


def _tasks(found: WorkflowReport) -> Iterator[str]:
    names = {task.id: task.name for task in found.tasks}
    for task in found.tasks:
        yield from _task(task, found.entries.get(task.id), names)
    left = found.tally.total - len(found.tasks)
    if left > 0:
        yield f"{left} more {_counted(left, 'task')} of this workflow are not told of here."


def _task(task: Task, entry: JournalEntry | None, names: Mapping[str, str]) -> Iterator[str]:
    detail = task.outcome_detail or {}
    said = detail.get("status")
    state = f"{_plain(task.shown_status)}: {_plain(said)}" if isinstance(said, str) else _plain(task.shown_status)
    yield f"### {inline(task.name)} ({state})"
    yield ""
    yield "; ".join(_facts(task, entry, names))
    yield ""
    goal = str(task.context.get("goal") or task.description)
    if goal.strip() and goal != task.name:
        yield from ("Goal:", "", *quoted(goal))
    text = task.error if task.status == "failed" else task.outcome
    if text:
        yield from ("Outcome:", "", *quoted(text))
    lines = [*_claims(detail), *_findings(entry)]
    yield from lines
    if lines:
        yield ""
    yield from _files(entry)


def _facts(task: Task, entry: JournalEntry | None, names: Mapping[str, str]) -> Iterator[str]:
    yield code(task.id)
    if task.parent_task_id is not None:
        yield f'part of "{inline(names.get(task.parent_task_id, task.parent_task_id))}"'
    began = task.started_at
    if began is not None:
        yield f"begun {minute(began)}"
    if began is not None and task.finished_at is not None:
        yield f"took {spoken_time(task.finished_at - began)}"
    if task.attempts > 1:
        yield f"attempt {task.attempts}"
    if entry is not None and entry.areas:
        yield f"areas: {', '.join(code(area) for area in entry.areas)}"
    if entry is not None and entry.plan_step:
        yield f"step {inline(entry.plan_step)} of the plan"


def _claims(detail: Mapping[str, Any]) -> Iterator[str]:
    """What the agent says of its work."""
    metadata = detail.get("metadata") or {}
    for title, texts in (
        ("Achieved", detail.get("achievements")),
        ("Limitation", detail.get("limitations")),
        ("Next", detail.get("next_steps")),
    ):
        yield from (f"- {title}: {inline(str(text))}" for text in texts or ())
    for title, texts in (
        ("Packages added", metadata.get("packages_added")),
        ("Packages removed", metadata.get("packages_removed")),
        ("Commands", metadata.get("commands_executed")),
    ):
        if texts:
            yield f"- {title}: {', '.join(code(str(text)) for text in texts)}"
    if metadata.get("tests_status"):
        yield f"- Tests, as the agent says: {_plain(str(metadata['tests_status']))}"


def _findings(entry: JournalEntry | None) -> Iterator[str]:
    """What was found out."""
    report = (entry.report if entry is not None else None) or {}
    for check in report.get("checks") or ():
        yield f"- Check {code(str(check.get('command', '')))} ended with {check.get('exit_code')}"
    found = report.get("verification", {})
    for warning in found.get("warnings", ()):
        yield f"- Warning: {inline(warning)}"
    outside = found.get("unexpected_files", ())
    if outside:
        more = f" and {len(outside) - FILES} more" if len(outside) > FILES else ""
        yield f"- Outside its areas: {', '.join(code(path) for path in outside[:FILES])}{more}"
    external = len(report.get("external") or ())
    if external:
        yield f"- {external} more {_counted(external, 'file')} changed meanwhile, not by this task"
    if report.get("overlaps"):
        count = len(report["overlaps"])
        yield f"- {count} of its files changed while other tasks were open in the same tree"


def _files(entry: JournalEntry | None) -> Iterator[str]:
    files = ((entry.report if entry is not None else None) or {}).get("files") or []
    if not files:
        return
    yield f"Changed: {told(totals(files))}"
    yield ""
    for change in files[:FILES]:
        yield f"- {change['change']} {code(change['path'])} {lines_told(change)}"
    if len(files) > FILES:
        yield f"- and {len(files) - FILES} more"
    yield ""


# -- notes ------------------------------------------------------------------------------------------------------------


def _decisions(decisions: Iterable[Decision]) -> Iterator[str]:
    for decision in decisions:
        replaced = " (superseded)" if decision.replaced_by is not None else ""
        yield f"### {inline(decision.title)}{replaced}"
        yield ""
        category = f"{inline(decision.category.replace('_', ' '))}; " if decision.category else ""
        later = f"; superseded by {code(decision.replaced_by.id)}" if decision.replaced_by is not None else ""
        made = f"{minute(decision.note.created_at)}, in {inline(decision.task)}"
        yield f"{category}{made}; {code(decision.note.id)}{later}"
        yield ""
        yield from quoted(decision.chosen)
        yield from quoted(decision.reasoning)
        if decision.options:
            yield f"- Considered: {', '.join(inline(option) for option in decision.options)}"
        if decision.trade_offs:
            yield f"- Trade-offs: {inline(decision.trade_offs)}"
        if decision.options or decision.trade_offs:
            yield ""


def _issues(found: WorkflowReport) -> Iterator[str]:
    names = {task.id: task.name for task in found.tasks}
    for note in found.issues:
        detail = note.detail
        kind = f"{inline(_plain(str(detail['type'])))}, " if detail.get("type") else ""
        where = inline(names.get(note.task_id, note.task_id))
        yield f"- {kind}in {where}: {inline(str(detail.get('description') or note.summary))}"
        if detail.get("resolution"):
            yield f"  - Resolved: {inline(str(detail['resolution']))}"
        if detail.get("requires_human_review"):
            yield "  - A person was asked to look at it"


def _limitations(tasks: Iterable[Task]) -> Iterator[str]:
    for task in tasks:
        for text in (task.outcome_detail or {}).get("limitations") or ():
            yield f"- {inline(task.name)}: {inline(str(text))}"


def _reviews(reviews: Iterable[Gate]) -> Iterator[str]:
    for gate in reviews:
        yield f"- {inline(gate.question)} ({code(gate.id)}, asked {minute(gate.created_at)})"
        if gate.answered_at is not None:
            remark = f": {inline(gate.feedback)}" if gate.feedback else ""
            by = f"by {inline(gate.answered_by or 'somebody')} through {inline(gate.channel or 'nothing known')}"
            yield f"  - Closed {minute(gate.answered_at)} {by} with {inline(gate.answer or '')}{remark}"
        else:
            yield f"  - {_plain(gate.status).capitalize()}"


def _plain(word: str) -> str:
    return inline(word.replace("_", " "))


def _counted(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"

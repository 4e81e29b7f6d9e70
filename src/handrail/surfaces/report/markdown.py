"""A report in Markdown, for a pull request, a wiki, or the next person on the job: every fact of the HTML form but its
drawings. What agents wrote cannot end a table, make a heading or become a link (`domain/journal/markdown.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from handrail.domain.gates.gate import REVIEW
from handrail.domain.journal.markdown import cell, code, inline, minute, quoted
from handrail.domain.journal.scope import areas_warned_of
from handrail.domain.overview.gates import GateRow
from handrail.domain.overview.report import Report
from handrail.domain.overview.report_tasks import ReportTask
from handrail.kernel.clock import spoken_time
from handrail.surfaces.report.words import (
    ON_PATH,
    PHASES,
    changed,
    claims,
    findings,
    lines_of,
    path_names,
    state,
    total_rows,
    word,
)


def markdown(report: Report) -> str:
    """The page."""
    lines: list[str] = []
    for line in _lines(report):
        if line or (lines and lines[-1]):  # never two empty ones
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from _head(report)
    yield from _section("Goal", quoted(report.goal))
    yield from _section("Plan", _plan(report))
    yield from _section("Totals", (f"- {name}: {value} ({note})" for name, value, note in total_rows(report)))
    yield from _section("Critical path", _path(report))
    yield from _section("Pipeline", _phases(report))
    yield from _section("Tasks", _tasks(report))
    yield from _section("Outside the declared areas", _strays(report))
    yield from _section("Decisions", _decisions(report))
    yield from _section("Issues", _issues(report))
    yield from _section("Limitations", _limitations(report))
    yield from _section("Questions to people", _questions(report))


def _head(report: Report) -> Iterator[str]:
    row = report.workflow
    yield f"# {inline(row.name)}"
    yield ""
    ended = f", ended {minute(report.ended_at)}" if report.ended_at is not None else ""
    where = f" in {inline(row.repository_name)}" if row.repository_name else ""
    yield f"{state(row.status)}; begun {minute(row.created_at)}{ended}{where}; {code(row.id)}"
    yield ""
    if report.ended_at is None:
        yield from (inline(row.sentence), "")


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    """A heading and what is under it; nothing where nothing is."""
    found = list(lines)
    if found:
        yield from (f"## {title}", "", *found, "")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    found = [f"| {' | '.join(cell(value) for value in row)} |" for row in rows]
    if found:
        yield f"| {' | '.join(heads)} |"
        yield f"|{'---|' * len(heads)}"
        yield from found


def _more(count: int, what: str) -> Iterator[str]:
    if count:
        yield from ("", f"Not listed: {count:,} more {what}.")


def _plan(report: Report) -> Iterator[str]:
    yield from quoted(report.summary or "")
    yield from quoted(report.approach or "")
    yield from (f"{number}. {inline(text)}" for number, text in enumerate(report.steps, 1))
    for title, texts in (("Risks", report.risks), ("Assumptions", report.assumptions)):
        if texts:
            yield from ("", f"{title}:", "", *(f"- {inline(text)}" for text in texts))


def _path(report: Report) -> Iterator[str]:
    for number, name in enumerate(path_names(report), 1):
        yield from (f"{number}. {inline(name)}",) if number <= ON_PATH else ("", name)


def _phases(report: Report) -> Iterator[str]:
    run = report.pipeline
    if run is None:
        return
    branch = f", on {code(run.branch)}" if run.branch else ""
    yield f"{inline(run.flow)}, effort {inline(run.effort)}{branch}: {inline(run.sentence)}"
    yield ""
    yield from _table(
        ("Phase", "State", "Time", "Tries", "Tokens", "Answer"),
        (
            (
                phase.label,
                PHASES.get(phase.state, phase.state),
                spoken_time(phase.elapsed_ms) if phase.elapsed_ms else "",
                str(phase.tries or ""),
                f"{phase.tokens:,}" if phase.tokens else "",
                ": ".join(filter(None, (" by ".join(filter(None, (phase.answer, phase.answered_by))), phase.feedback))),
            )
            for phase in run.phases
        ),
    )


# -- tasks ------------------------------------------------------------------------------------------------------------


def _tasks(report: Report) -> Iterator[str]:
    yield from _table(
        ("Task", "State", "Agent", "Attempts", "At work", "Changes"),
        (
            (
                task.row.name,
                state(task.row.status),
                task.row.agent or "",
                str(task.row.attempts or ""),
                spoken_time(task.worked_ms) if task.worked_ms else "",
                changed(task),
            )
            for task in report.tasks
        ),
    )
    yield from _more(report.tasks_more, "tasks")
    for task in report.tasks:
        yield from _task(task)


def _task(task: ReportTask) -> Iterator[str]:
    ended = f": {inline(task.ended.replace('_', ' '))}" if task.ended else ""
    yield from ("", f"### {inline(task.row.name)} ({word(task.row.status)}{ended})", "", "; ".join(_facts(task)), "")
    if task.goal.strip():
        yield from ("Goal:", "", *quoted(task.goal))
    if task.text and task.text.strip():
        yield from ("Outcome:", "", *quoted(task.text))
    yield from (
        f"- {title}: {', '.join(map(code if is_code else inline, texts))}" for title, texts, is_code in claims(task)
    )
    yield from (f"- Check {code(check.command)} ended with {check.exit_code}" for check in task.checks)
    yield from _outside(task)
    yield from (f"- {inline(text)}" for text in findings(task))
    if task.files:
        yield from ("", f"Changed: {changed(task)}", "")
    yield from (f"- {change.change} {code(change.path)} {lines_of(change)}" for change in task.files)
    yield from _more(task.files_more, "files")


def _facts(task: ReportTask) -> Iterator[str]:
    row = task.row
    yield code(row.id)
    if task.part_of is not None:
        yield f'part of "{inline(task.part_of)}"'
    if row.group:
        yield f"in group {inline(row.group)}"
    if row.started_at is not None:
        yield f"begun {minute(row.started_at)}"
    if row.started_at is not None and row.finished_at is not None:
        yield f"took {spoken_time(row.finished_at - row.started_at)}"
    if row.attempts > 1:
        yield f"attempt {row.attempts}"
    if task.areas:
        yield f"areas: {', '.join(code(area) for area in task.areas)}"
    if task.plan_step:
        yield f"step {inline(task.plan_step)} of the plan"


def _outside(task: ReportTask) -> Iterator[str]:
    """The files outside of its areas, with the areas as they were when it ended."""
    if task.outside:
        areas = next(filter(None, map(areas_warned_of, task.warnings)), "")
        named = f" ({inline(areas)})" if areas else ""
        more = f" and {task.outside_more:,} more" if task.outside_more else ""
        yield f"- ⚠️ Outside its areas{named}: {', '.join(code(path) for path in task.outside)}{more}"


def _strays(report: Report) -> Iterator[str]:
    yield from (f"- {code(one.path)} by {inline(one.task_name)}" for one in report.strays)
    yield from _more(report.strays_more, "files")


def _limitations(report: Report) -> Iterator[str]:
    for task in report.tasks:
        yield from (f"- {inline(task.row.name)}: {inline(text)}" for text in task.claims.limitations)


# -- notes ------------------------------------------------------------------------------------------------------------


def _decisions(report: Report) -> Iterator[str]:
    for one in report.decisions:
        superseded = " (superseded)" if one.superseded_by else ""
        tags = "".join(f"{inline(tag.replace('_', ' '))}; " for tag in one.tags)
        by = f" by {inline(one.by)}" if one.by else ""
        later = f"; superseded by {code(one.superseded_by)}" if one.superseded_by else ""
        made = f"{tags}{minute(one.at)}{by}, in {inline(one.task_name)}; {code(one.id)}{later}"
        yield from ("", f"### {inline(one.title)}{superseded}", "", made, "")
        yield from quoted(one.chosen)
        yield from quoted(one.reason)
        if one.alternatives:
            yield f"- Considered: {', '.join(map(inline, one.alternatives))}"
        if one.consequences:
            yield f"- Trade-offs: {inline(one.consequences)}"
    yield from _more(report.decisions_more, "decisions, made before these")


def _issues(report: Report) -> Iterator[str]:
    for issue in report.issues:
        kind = f"{inline(issue.kind.replace('_', ' '))}, " if issue.kind else ""
        yield f"- {kind}in {inline(issue.task_name)}, {minute(issue.at)}: {inline(issue.text)}"
        if issue.resolution:
            yield f"  - Resolved: {inline(issue.resolution)}"
        if issue.for_review:
            yield "  - A person was asked to look at it"


def _questions(report: Report) -> Iterator[str]:
    for gate in report.gates:
        about = f", in {inline(gate.task_name)}" if gate.task_name else ""
        phase = f", at {inline(gate.phase)}" if gate.phase else ""
        shown = f", about {code(gate.path)}" if gate.path else ""
        asked = f"{gate.kind} {code(gate.id)}, asked {minute(gate.created_at)}{about}{phase}{shown}"
        yield f"- {inline(gate.question)} ({asked})"
        yield f"  - {_answer(gate)}"
    yield from _more(report.gates_more, "questions, asked before these")


def _answer(gate: GateRow) -> str:
    if gate.answered_at is not None:
        by = f"by {inline(gate.answered_by or 'somebody')} through {inline(gate.channel or 'an unknown channel')}"
        remark = f": {inline(gate.feedback)}" if gate.feedback else ""
        waited = f"after {spoken_time(gate.waited_ms)}"
        done = "Closed" if gate.kind == REVIEW else "Answered"
        return f"{done} {minute(gate.answered_at)}, {waited}, {by} with {inline(gate.answer or '')}{remark}"
    if gate.status == "withdrawn":
        return f"Withdrawn: {inline(gate.withdrawn)}" if gate.withdrawn else "Withdrawn"
    return f"{word(gate.status).capitalize()} for {spoken_time(gate.waited_ms)}"

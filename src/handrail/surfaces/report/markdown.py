"""A report in Markdown: the same facts, for a pull request or a wiki. What agents wrote cannot end a table, make a
heading or become a link (`domain/journal/markdown.py`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from handrail.domain.journal.markdown import code, inline, minute, quoted
from handrail.domain.overview.report import Report, ReportTask
from handrail.kernel.clock import spoken_time
from handrail.surfaces.report.words import ON_PATH, PHASES, lines_of, path_names, state, total_rows


def markdown(report: Report) -> str:
    """The page."""
    lines: list[str] = []
    for line in _lines(report):
        if line or (lines and lines[-1]):  # never two empty ones
            lines.append(line)
    return "\n".join(lines).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    row = report.workflow
    yield f"# {inline(row.name)}"
    yield ""
    ended = f", ended {minute(report.ended_at)}" if report.ended_at is not None else ""
    yield f"{state(row.status)}; begun {minute(row.created_at)}{ended}; {code(row.id)}"
    yield ""
    if report.ended_at is None:
        yield from (inline(row.sentence), "")
    yield from quoted(report.goal)
    yield from _section("What it took", (f"- {name}: {value} ({note})" for name, value, note in total_rows(report)))
    yield from _section("Critical path", _path(report))
    yield from _section("Pipeline", _phases(report))
    yield from _section("Tasks", _tasks(report))
    yield from _section("Decisions", _decisions(report))
    yield from _section("Questions to people", _questions(report))
    yield from _section("Outside of what was meant to change", _strays(report))
    yield from _section("Issues", _issues(report))


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


def cell(value: str) -> str:
    """A text that stays in its cell: a bar would begin the next one, even between backticks."""
    return inline(value).replace("\\|", "|").replace("|", "&#124;")


def _more(count: int, what: str) -> Iterator[str]:
    if count:
        yield from ("", f"{count:,} more {what} are not told of here.")


def _path(report: Report) -> Iterator[str]:
    for number, name in enumerate(path_names(report), 1):
        yield f"{number}. {inline(name)}" if number <= ON_PATH else f"\n{name}"


def _phases(report: Report) -> Iterator[str]:
    run = report.pipeline
    if run is None:
        return
    yield f"{inline(run.flow)}, effort {run.effort}: {inline(run.sentence)}"
    yield ""
    yield from _table(
        ("Phase", "State", "Time", "Tries", "Answer"),
        (
            (
                phase.label,
                PHASES.get(phase.state, phase.state),
                spoken_time(phase.elapsed_ms) if phase.elapsed_ms else "",
                str(phase.tries or ""),
                " by ".join(filter(None, (phase.answer, phase.answered_by))),
            )
            for phase in run.phases
        ),
    )


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
                f"+{task.lines_added} −{task.lines_removed}" if task.files else "",
            )
            for task in report.tasks
        ),
    )
    yield from _more(report.tasks_more, "tasks")
    for task in report.tasks:
        yield from _detail(task)


def _detail(task: ReportTask) -> Iterator[str]:
    """What came of a task, where something did."""
    lines = list(quoted(task.text or ""))
    lines += [
        f"- {change.change} {code(change.path)} {lines_of(change)}"
        + (", outside of its areas" if change.in_scope is False else "")
        for change in task.files
    ]
    lines += [f"- and {task.files_more} more files"] if task.files_more else []
    lines += [f"- {code(check.command)} ended with {check.exit_code}" for check in task.checks]
    lines += [f"- {inline(warning)}" for warning in task.warnings]
    if lines:
        yield from ("", f"### {inline(task.row.name)}", "", *lines)


def _decisions(report: Report) -> Iterator[str]:
    for number, one in enumerate(report.decisions):
        superseded = f" (superseded by {code(one.superseded_by)})" if one.superseded_by else ""
        yield from ("",) if number else ()
        yield f"### {inline(one.title)}{superseded}"
        yield ""
        by = f" by {inline(one.by)}" if one.by else ""
        yield f"{minute(one.at)}{by}, in {inline(one.task_name)}; {code(one.id)}"
        yield ""
        yield from quoted(f"{one.chosen}\n{one.reason}")
    yield from _more(report.decisions_more, "decisions")


def _questions(report: Report) -> Iterator[str]:
    yield from _table(
        ("Question", "Answer", "Said with it", "By", "Waited", "When"),
        (
            (
                gate.question,
                gate.answer or gate.status,
                gate.feedback or "",
                f"{gate.answered_by} through {gate.channel}" if gate.answered_by else "",
                spoken_time(gate.waited_ms),
                minute(gate.answered_at) if gate.answered_at else "",
            )
            for gate in report.gates
        ),
    )
    yield from _more(report.gates_more, "questions")


def _strays(report: Report) -> Iterator[str]:
    yield from (f"- {code(one.path)} by {inline(one.task_name)}" for one in report.strays)
    yield from _more(report.strays_more, "files")


def _issues(report: Report) -> Iterator[str]:
    for issue in report.issues:
        yield f"- {inline(issue.text)} ({inline(issue.task_name)}, {minute(issue.at)})"
        if issue.resolution:
            yield f"  - Resolved: {inline(issue.resolution)}"
        if issue.for_review:
            yield "  - A person was asked to look at it"

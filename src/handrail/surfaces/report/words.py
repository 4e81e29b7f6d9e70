"""Words and marks that a report's forms share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from handrail.domain.journal.entry import FileTotals, lines_in_words, totals_in_words
from handrail.domain.journal.scope import areas_warned_of
from handrail.domain.overview.report import Report, Totals
from handrail.domain.overview.report_tasks import ReportedChange, ReportTask
from handrail.kernel.clock import spoken_time
from handrail.kernel.wording import on_one_line, shortened

MARKS = {
    "completed": "✓",
    "skipped": "–",
    "abandoned": "–",
    "failed": "✗",
    "in_progress": "▶",
    "planning": "▷",
    "paused": "‖",
    "ready": "○",
    "pending": "○",
    "blocked": "·",
    "waiting": "?",
}
"""A mark for each state; the state is always said in words too."""


_WORDS = {"in_progress": "running", "completed": "done"}
"""States that people call otherwise, as the page does."""
PHASES = {"now": "running", "waits": "waits for a person"}
"""States of a phase that are said otherwise."""
ON_PATH = 8
"""Tasks of the critical path that are named."""
PATH_NAME = 60


def word(status: str) -> str:
    """A state as people call it."""
    return _WORDS.get(status, status.replace("_", " "))


def state(status: str) -> str:
    return f"{MARKS.get(status, '·')} {word(status)}"


def path_names(report: Report) -> list[str]:
    """The first tasks of the critical path by name, long names cut; the last entry counts those that are left out."""
    known = {task.row.id: on_one_line(task.row.name) for task in report.tasks}
    names = [known[key] for key in report.critical if key in known]
    shown = [shortened(name, PATH_NAME) for name in names[:ON_PATH]]
    return [*shown, f"and {len(names) - ON_PATH} more"] if len(names) > ON_PATH else shown


def counted(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else f'{word}s'}"


def lines_of(change: ReportedChange) -> str:
    return lines_in_words(msgspec.structs.asdict(change))


def changed(task: ReportTask) -> str:
    """What a task changed, in one phrase; empty where it changed nothing."""
    count = len(task.files) + task.files_more
    return totals_in_words(FileTotals(count, task.lines_added, task.lines_removed, task.uncounted)) if count else ""


def claims(task: ReportTask) -> Iterator[tuple[str, list[str], bool]]:
    """What an agent says of its work: a title, the texts under it, and whether they are names and commands."""
    said = task.claims
    yield from (("Achieved", [text], False) for text in said.achievements)
    yield from (("Limitation", [text], False) for text in said.limitations)
    yield from (("Next", [text], False) for text in said.next_steps)
    for title, names in (
        ("Packages added", said.packages_added),
        ("Packages removed", said.packages_removed),
        ("Commands", said.commands),
    ):
        if names:
            yield title, names, True
    if said.tests:
        yield "Tests, as the agent says", [said.tests.replace("_", " ")], False


def findings(task: ReportTask) -> Iterator[str]:
    """What was found out about a task besides its changes and checks. Files outside its areas are listed apart."""
    yield from (f"Warning: {text}" for text in task.warnings if not (task.outside and areas_warned_of(text)))
    if task.external:
        files = "file was" if task.external == 1 else "files were"
        yield f"{task.external:,} more {files} changed meanwhile, not by this task"
    if task.overlaps:
        yield f"{task.overlaps:,} of its files changed while other tasks were open in the same tree"


def total_rows(report: Report) -> Sequence[tuple[str, str, str]]:
    """What it took: a name, the number, and what the number is."""
    totals, row = report.totals, report.workflow
    until = "from its beginning" if report.ended_at is None else "until its end"
    rows = [
        ("Wall time", spoken_time(totals.wall_ms), until),
        ("Agents at work", spoken_time(totals.agent_ms), "added up over all of them"),
        ("Side by side", _side_by_side(totals.parallelism or 0), "on average, while anybody was at work"),
        ("Asked of people", f"{totals.asked + totals.reviews}", _waited(totals)),
    ]
    rows.insert(0, _tasks_row(report))
    if row.total:
        retries = f"{totals.retries} {'retry' if totals.retries == 1 else 'retries'}"
        on_path = f"at work on {counted(len(report.critical), 'task')}"
        rows.append(("Attempts", f"{totals.attempts}", retries))
        rows.append(("Critical path", spoken_time(totals.critical_ms), on_path))
    if totals.files:
        rows.append(("Changes", f"+{totals.lines_added:,} −{totals.lines_removed:,}", _files(totals)))
    if totals.out_of_scope:
        rows.append(("Out of scope", f"{totals.out_of_scope}", "files outside their task's areas"))
    if totals.checks_run:
        rows.append(("Checks", f"{totals.checks_run}", f"{totals.checks_failed} failed, as agents reported them"))
    if report.decisions:
        replaced = f"{totals.superseded} of them superseded" if totals.superseded else "all of them hold"
        rows.append(("Decisions", f"{len(report.decisions) + report.decisions_more}", replaced))
    if report.issues:
        solved = sum(issue.resolution is not None for issue in report.issues)
        rows.append(("Issues", f"{len(report.issues)}", f"{solved} with a resolution"))
    if totals.tokens is not None:
        rows.append(("Tokens", f"{totals.tokens:,}", "as agents reported them"))
    if totals.money is not None:
        rows.append(("Cost", f"{totals.money:,.2f}", "by the prices that are set here"))
    return rows


def _tasks_row(report: Report) -> tuple[str, str, str]:
    row = report.workflow
    if not row.total:
        return "Tasks", "0", "nothing is planned yet"
    states = ", ".join(f"{count:,} {word(status)}" for status, count in report.totals.states.items())
    return "Tasks", f"{row.finished} of {row.total}", f"completed or skipped; {states}"


def _side_by_side(parallelism: float) -> str:
    """How many were at work at once, in words: nobody needs hundredths of an agent."""
    count = round(parallelism, 1)
    if not count:
        return "nobody yet"
    return "one at a time" if count <= 1 else f"{count:g} at once"


def _waited(totals: Totals) -> str:
    """What people were asked, and how long work waited for it."""
    parts = []
    if totals.asked:
        parts.append(f"{counted(totals.asked, 'decision')} waited {spoken_time(totals.person_ms)} in all")
    if totals.reviews:
        parts.append(f"{counted(totals.reviews, 'look')} that nothing waited for")
    if totals.unanswered:
        parts.append(f"{totals.unanswered} still open")
    return "; ".join(parts) or "nobody was asked"


def _files(totals: Totals) -> str:
    found = f"lines in {counted(totals.files, 'change')} of {counted(totals.distinct_files, 'file')}"
    return f"{found}; {totals.uncounted:,} without line counts" if totals.uncounted else found

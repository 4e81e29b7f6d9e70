"""Words and marks that a report's forms share."""

from __future__ import annotations

from collections.abc import Sequence

from handrail.domain.overview.report import FileChange, Report, Totals
from handrail.domain.work.explaining import spoken_time

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


def state(status: str) -> str:
    return f"{MARKS.get(status, '·')} {status.replace('_', ' ')}"


def counted(count: int, word: str) -> str:
    return f"{count:,} {word if count == 1 else f'{word}s'}"


def lines_of(change: FileChange) -> str:
    if change.lines_added is None:
        return "binary" if change.binary else "lines not counted"
    return f"+{change.lines_added} −{change.lines_removed or 0}"


def total_rows(report: Report) -> Sequence[tuple[str, str, str]]:
    """What it took: a name, the number, and what the number is."""
    totals, row = report.totals, report.workflow
    until = "from its beginning" if report.ended_at is None else "until its end"
    rows = [
        ("Wall time", spoken_time(totals.wall_ms), until),
        ("Agents at work", spoken_time(totals.agent_ms), "added up over all of them"),
        ("At once", f"{totals.parallelism or 0:g}", "on average, while anybody was at work"),
        ("Waits for a person", f"{totals.asked}", _waited(totals)),
    ]
    if row.total:
        retries = f"{totals.retries} {'retry' if totals.retries == 1 else 'retries'}"
        on_path = f"at work on {counted(len(report.critical), 'task')}"
        rows.insert(0, ("Tasks", f"{row.finished} of {row.total}", "completed or skipped"))
        rows.append(("Attempts", f"{totals.attempts}", retries))
        rows.append(("Critical path", spoken_time(totals.critical_ms), on_path))
    if totals.files:
        rows.append(("Changes", f"+{totals.lines_added:,} −{totals.lines_removed:,}", _files(totals)))
    if totals.out_of_scope:
        rows.append(("Out of scope", f"{totals.out_of_scope}", "files outside of their task's areas"))
    if totals.checks_run:
        rows.append(("Checks", f"{totals.checks_run}", f"{totals.checks_failed} failed, as agents reported them"))
    if totals.tokens is not None:
        rows.append(("Tokens", f"{totals.tokens:,}", "as agents reported them"))
    if totals.money is not None:
        rows.append(("Cost", f"{totals.money:,.2f}", "by the prices that are set here"))
    return rows


def _waited(totals: Totals) -> str:
    return f"{spoken_time(totals.person_ms)} in all" if totals.asked else "nobody was asked"


def _files(totals: Totals) -> str:
    return f"lines in {counted(totals.files, 'change')} of {counted(totals.distinct_files, 'file')}"

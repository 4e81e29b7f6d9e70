"""A workflow in short: goal, progress, what runs, what is next, what was decided, what is unsolved, what came of it.

The size limit is the same for every workflow; the form is an object, or Markdown for a file that agents read when they
start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.claims.claim import unclaimed_tasks
from handrail.domain.journal.plan_steps import steps_left
from handrail.domain.recovery.material import (
    RUNNING_SHOWN,
    KnownDecision,
    OpenIssue,
    decisions_in_force,
    newest_of_task,
    newest_tasks,
    open_issues,
)
from handrail.domain.recovery.packer import BundlePiece, PieceLength, pack
from handrail.domain.recovery.pieces import growing, plan_text
from handrail.domain.recovery.truncate import gist, line
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.task import RUNNING, Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import UnitOfWork
from handrail.kernel.tokens import estimate_tokens
from handrail.kernel.wording import on_one_line

MOST_TOKENS = 1500
MOST_BYTES = 8 * 1024
_SHRINK = 0.8
_LISTED = 8
_NEXT = 5
"""How many tasks that could start now are listed; claimed ones are left out."""
_RELEVANCE = ("goal", "running", "open_issues", "next_ready", "plan", "decisions", "recent_outcomes")
_HEADINGS = {
    "running": "Running",
    "next_ready": "Next",
    "open_issues": "Unsolved",
    "decisions": "Decided",
    "recent_outcomes": "Done lately",
}


def summarize(unit: UnitOfWork, workflow: Workflow, *, markdown: bool) -> tuple[dict[str, Any] | str, int]:
    """The summary and what its reply costs: at most MOST_TOKENS and MOST_BYTES."""
    skeleton = _skeleton(unit, workflow)
    pieces = _pieces(unit, workflow)
    room = MOST_TOKENS
    while True:
        packed = pack(skeleton, pieces, room, lambda taken, _: _note(pieces, taken)).bundle
        del packed["token_estimate"]
        summary = _markdown(packed) if markdown else packed
        text, tokens = _reply(summary)
        if tokens <= MOST_TOKENS and len(text) <= MOST_BYTES:
            return summary, tokens
        room = int(room * _SHRINK)


def _reply(summary: dict[str, Any] | str) -> tuple[bytes, int]:
    """The whole reply, and an estimate of its cost that counts its own digits."""
    tokens = 0
    while True:
        text = msgspec.json.encode({"summary": summary, "token_estimate": tokens})
        cost = estimate_tokens(text.decode())
        if cost == tokens:
            return text, tokens
        tokens = cost


def _skeleton(unit: UnitOfWork, workflow: Workflow) -> dict[str, Any]:
    counts = tally_of(unit, workflow.id).counts
    return {
        "workflow": {"id": workflow.id, "name": line(workflow.name, 40), "status": workflow.status},
        "goal": None,
        "plan": None,
        "progress": {"total": sum(counts.values()), **{status: count for status, count in counts.items() if count}},
        **dict.fromkeys(_HEADINGS),
    }


def _pieces(unit: UnitOfWork, workflow: Workflow) -> list[BundlePiece]:
    running = newest_tasks(unit, workflow.id, RUNNING, RUNNING_SHOWN)
    done = newest_tasks(unit, workflow.id, ("completed",), _LISTED)
    decisions, _, _ = decisions_in_force(unit, workflow.id, ())
    lists: dict[str, list[list[dict[str, Any]]]] = {
        "running": [_running(unit, task) for task in running],
        "next_ready": [[_brief(task)] for task in unclaimed_tasks(unit, workflow.id, _NEXT)],
        "open_issues": [_issue(issue) for issue in open_issues(unit, workflow.id)[:_LISTED]],
        "decisions": [_decision(decision) for decision in decisions[:_LISTED]],
        "recent_outcomes": [_outcome(task) for task in done],
    }
    pieces = [
        BundlePiece(
            section, (section,), _steps(section, lengths, index), item=True, order=(index,), enough=len(lengths)
        )
        for section, entries in lists.items()
        for index, lengths in enumerate(entries)
    ]
    for section, text, shorten in (
        ("goal", workflow.source_content, gist),
        ("plan", plan_text(workflow.plan or {}, steps_left(unit, workflow)), line),
    ):
        if text:
            lengths = [shorten(text, tokens) for tokens in (40, 120, 250)]
            pieces.append(BundlePiece(section, (section,), _steps(section, lengths, 0)))
    return pieces


def _steps(section: str, lengths: Sequence[Any], index: int) -> tuple[PieceLength, ...]:
    begin, relevance = 1 if index < 3 else 2, _RELEVANCE.index(section)
    return growing(lengths, lambda number: (begin + number, relevance, index))


def _note(pieces: Sequence[BundlePiece], taken: Sequence[int]) -> dict[str, Any]:
    missing: dict[str, int] = {}
    for piece, count in zip(pieces, taken, strict=True):
        if count == 0:
            missing[piece.section] = missing.get(piece.section, 0) + 1
    return {"omitted": missing} if missing else {}


def _brief(task: Task) -> dict[str, Any]:
    return {"id": task.id, "name": line(task.name, 30)}


def _running(unit: UnitOfWork, task: Task) -> list[dict[str, Any]]:
    last = newest_of_task(unit, task.id, 1) if task.checkpoints else []
    shown = _brief(task) if task.status == "in_progress" else {**_brief(task), "status": task.status}
    return [shown, *({**shown, "last": line(last[0].summary, tokens)} for tokens in (25, 60) if last)]


def _issue(issue: OpenIssue) -> list[dict[str, Any]]:
    shown = {"task_id": issue.task.id, "task": line(issue.task.name, 20)}
    return [{**shown, "error": line(issue.text, tokens)} for tokens in (25, 60)]


def _decision(decision: KnownDecision) -> list[dict[str, Any]]:
    return [{"task": line(decision.task, 20), "summary": line(decision.checkpoint.summary, n)} for n in (25, 60)]


def _outcome(task: Task) -> list[dict[str, Any]]:
    return [{"task": line(task.name, 20), "outcome": line(task.outcome or "", tokens)} for tokens in (20, 50)]


# -- for people and CLAUDE.md -----------------------------------------------------------------------------------------


def _markdown(summary: Mapping[str, Any]) -> str:
    workflow, progress = summary["workflow"], dict(summary["progress"])
    total = progress.pop("total")
    counted = ", ".join(f"{count} {status}" for status, count in progress.items())
    lines = [f"## {workflow['name']} ({workflow['id']}, {workflow['status']})", ""]
    lines += [on_one_line(summary[name]) for name in ("goal", "plan") if name in summary]
    lines += ["", f"{total} tasks: {counted}" if total else "No tasks yet"]
    for section, heading in _HEADINGS.items():
        entries = summary.get(section, ())
        if entries:
            lines += ["", f"**{heading}**", *(f"- {_bullet(section, entry)}" for entry in entries)]
    return "\n".join(lines)


def _bullet(section: str, entry: Mapping[str, Any]) -> str:
    if section in ("running", "next_ready"):
        said = [entry["name"], f"({entry['id']})", entry.get("status", "")]
        last = f": {entry['last']}" if "last" in entry else ""
        return " ".join(part for part in said if part) + last
    said_of = entry.get("summary") or entry.get("outcome") or entry.get("error") or ""
    return f"{entry['task']}: {said_of}"

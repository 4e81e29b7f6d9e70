"""How `handrail journal` draws moments: lines of text, nothing read and nothing printed here."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from handrail.domain.journal.file_changes import LETTERS, lines_told, told, totals
from handrail.domain.journal.timeline import Moment
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.surfaces.cli.columns import bold, dim, fit, mark, pad, paint, said, widest, width, wrapped

FEW_FILES, MANY_FILES = 5, 200
"""Files that are shown of a task among others, and of one that was asked for."""
_SIGNS = {"decision": "◆", "issue": "!", "asked": "?", "answered": "✓", "milestone": "·", "note": "·", "created": "○"}
_STATES = {"success": "completed", "partial_success": "completed"}
_TIME = 10
"""Columns of a time and the room after it."""


class Journal(NamedTuple):
    """The moments of a workflow, or of one task of it."""

    workflow: Workflow
    task: Task | None
    moments: list[Moment]
    earlier: bool
    """There were more before them."""
    others: int = 0
    """Other workflows that are open here."""


def journal_lines(found: Journal, room: int) -> Iterator[str]:
    """A journal as lines of at most `room` columns."""
    thing: Task | Workflow = found.task or found.workflow
    state = found.task.shown_status if found.task is not None else found.workflow.status
    ending = f"{thing.id}  {said(state)}"
    yield f"{bold(fit(thing.name, room - width(ending) - 2))}  {dim(thing.id)}  {paint(said(state), state)}"
    if found.task is not None:
        yield fit(f'in "{found.workflow.name}" ({found.workflow.id})', room)
    if found.earlier:
        yield dim("earlier moments are not shown: --limit shows more of them")
    names = 0
    if found.task is None or any(moment.task_id != found.task.id for moment in found.moments):
        names = widest((moment.task or "" for moment in found.moments), room // 4)
    day = ""
    for moment in found.moments:
        at = datetime.fromtimestamp(moment.at / 1000, UTC)
        if day != (day := at.strftime("%Y-%m-%d")):
            yield ""
            yield bold(f"{day} UTC")
        yield from _moment_lines(moment, at.strftime("%H:%M:%S"), names, room, whole=found.task is not None)
    if not found.moments:
        yield "Nothing happened in it yet."
    if found.others:
        yield ""
        count = f"{found.others} other {'workflow is' if found.others == 1 else 'workflows are'}"
        yield f"{count} open here; name one to see what happened in it."


def _moment_lines(moment: Moment, time: str, names: int, room: int, *, whole: bool) -> Iterator[str]:
    """A moment: one line among others, all of it where one task was asked for."""
    name = f"{pad(moment.task or '', names)}  " if names else ""
    lead = f"{dim(time)}  {_sign(moment)} {name}"
    indent = _TIME + 2 + (names + 2 if names else 0)
    text = _text(moment)
    if not whole:
        yield (lead + _painted(moment, fit(text, room - indent))).rstrip()
    else:
        for number, line in enumerate(wrapped(text, room, " " * indent)):
            yield lead + _painted(moment, line.lstrip()) if number == 0 else line
    yield from _ending_lines(moment, room, whole=whole)


def _sign(moment: Moment) -> str:
    if moment.kind == "began":
        return mark("in_progress")
    if moment.kind in ("ended", "closed"):
        return mark(_state(moment))
    return _SIGNS[moment.kind]


def _state(moment: Moment) -> str:
    status = moment.status or ""
    return _STATES.get(status, status)


def _painted(moment: Moment, text: str) -> str:
    return paint(text, _state(moment)) if moment.kind in ("ended", "closed") else text


def _text(moment: Moment) -> str:
    """What happened, in a sentence."""
    text, detail = moment.text, moment.detail
    if moment.kind == "created":
        return f"asked for: {text}"
    if moment.kind == "began":
        areas = ", ".join(detail.get("areas") or ())
        return f"began: {text} [{areas}]" if areas else f"began: {text}"
    if moment.kind == "milestone":
        return f"{moment.progress:g} %: {text}" if moment.progress is not None else text
    if moment.kind == "decision":
        return f"decided{_category(moment)}: {text}"
    if moment.kind == "issue":
        parts = [str(detail[name]) for name in ("description", "resolution") if detail.get(name)]
        return f"issue{_category(moment)}: {' → '.join(parts) or text}"
    if moment.kind == "ended":
        took = f" after {spoken_time(moment.duration_ms)}" if moment.duration_ms is not None else ""
        return f"{said(moment.status or '')}{took}{f': {text}' if text else ''}"
    if moment.kind == "asked":
        return f"{'review' if moment.status == 'review' else 'decision'} asked for: {text} ({moment.id})"
    if moment.kind == "answered":
        return f"answered by {moment.by or 'somebody'}: {text}"
    if moment.kind == "closed":
        return f"the workflow was {said(moment.status or '')}"
    return f"{moment.status}: {text}"


def _category(moment: Moment) -> str:
    return f" ({said(moment.category)})" if moment.category else ""


def _ending_lines(moment: Moment, room: int, *, whole: bool) -> Iterator[str]:
    """What a task's end brought with it: files, what the agent says of its work, warnings."""
    indent = " " * (_TIME + 2)
    if moment.files:
        yield f"{indent}{told(totals(moment.files))}"
        most = MANY_FILES if whole else FEW_FILES
        names = widest((change["path"] for change in moment.files[:most]), room - len(indent) - 38)
        outside = set(moment.unexpected)
        for change in moment.files[:most]:
            counted = lines_told(change) + (", outside its areas" if change["path"] in outside else "")
            yield f"{indent}  {LETTERS[change['change']]} {pad(change['path'], names)}  {dim(counted)}"
        if len(moment.files) > most:
            yield f"{indent}  and {len(moment.files) - most} more"
    if whole:
        for title, name in (("achieved", "achievements"), ("limitation", "limitations"), ("next", "next_steps")):
            for text in moment.detail.get(name) or () if moment.kind == "ended" else ():
                yield from wrapped(f"{title}: {text}", room, indent)
    for warning in moment.warnings:
        yield from wrapped(warning, room, indent)

"""How `handrail journal` draws moments as lines of text. Nothing is read or printed here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from handrail.domain.journal.changes import LETTERS, lines_in_words, totals, totals_in_words
from handrail.domain.journal.scope import areas_warned_of
from handrail.domain.journal.timeline import TimelineMoment
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import spoken_time
from handrail.surfaces.cli.columns import (
    as_words,
    bold,
    counted,
    dim,
    fit,
    fits_beside,
    headline,
    mark,
    pad,
    paint,
    widest,
    wrapped,
)

FEW_FILES, MANY_FILES = 5, 200
"""How many files are shown for a task among others, and for one that was asked for."""
_SIGNS = {"decision": "◆", "issue": "!", "asked": "?", "answered": "✓", "milestone": "·", "note": "·", "created": "○"}
_STATES = {"success": "completed", "partial_success": "completed"}
_TIME = 10
"""The columns of a time and the space after it."""


class Journal(NamedTuple):
    """The moments of a workflow, or of one task of it."""

    workflow: Workflow
    task: Task | None
    moments: list[TimelineMoment]
    earlier: bool
    """True if there were more before them."""
    others: int = 0
    """How many other workflows are open here."""


def journal_lines(found: Journal, room: int) -> Iterator[str]:
    """A journal as lines of at most `room` columns."""
    thing: Task | Workflow = found.task or found.workflow
    state = found.task.shown_status if found.task is not None else found.workflow.status
    yield from headline(thing.name, [dim(thing.id), paint(as_words(state), state)], room)
    if found.task is not None:
        yield from wrapped(f'in "{found.workflow.name}" ({found.workflow.id})', room)
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
        count = counted(found.others, "other workflow is", "other workflows are")
        yield from wrapped(f"{count} open here; name one to see what happened in it.", room)


def _moment_lines(moment: TimelineMoment, time: str, names: int, room: int, *, whole: bool) -> Iterator[str]:
    """A moment: one line among others, or all of it if one task was asked for."""
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


def _sign(moment: TimelineMoment) -> str:
    if moment.kind == "began":
        return mark("in_progress")
    if moment.kind in ("ended", "closed"):
        return mark(_state(moment))
    return _SIGNS[moment.kind]


def _state(moment: TimelineMoment) -> str:
    status = moment.status or ""
    return _STATES.get(status, status)


def _painted(moment: TimelineMoment, text: str) -> str:
    return paint(text, _state(moment)) if moment.kind in ("ended", "closed") else text


def _text(moment: TimelineMoment) -> str:
    """What happened, in a sentence."""
    text, detail = moment.text, moment.detail
    if moment.kind == "created":
        return f"asked for: {text}" if text.strip() else "the workflow was made"
    if moment.kind == "began":
        areas = ", ".join(detail.get("areas") or ())
        words = f"began: {text}" if text.strip() else "began"
        return f"{words} [{areas}]" if areas else words
    if moment.kind == "milestone":
        return f"{moment.progress:g} %: {text}" if moment.progress is not None else text
    if moment.kind == "decision":
        return f"decided{_category(moment)}: {text}"
    if moment.kind == "issue":
        return f"issue{_category(moment)}: {issue_words(detail) or text}"
    if moment.kind == "ended":
        took = f" after {spoken_time(moment.duration_ms)}" if moment.duration_ms is not None else ""
        return f"{as_words(moment.status or '')}{took}{f': {text}' if text else ''}"
    if moment.kind == "asked":
        return f"{'review' if moment.status == 'review' else 'decision'} asked for: {text} ({moment.id})"
    if moment.kind == "answered":
        return f"answered by {moment.by or 'somebody'}: {text}"
    if moment.kind == "closed":
        return f"the workflow was {as_words(moment.status or '')}"
    return f"{moment.status}: {text}"


def issue_words(detail: Mapping[str, Any]) -> str:
    """An issue and what was done about it; empty for a note that is not a journal's issue."""
    return " → ".join(str(detail[name]) for name in ("description", "resolution") if detail.get(name))


def _category(moment: TimelineMoment) -> str:
    told = [as_words(moment.category)] if moment.category else []
    told += ["superseded"] if moment.superseded_by is not None else []
    return f" ({', '.join(told)})" if told else ""


def _ending_lines(moment: TimelineMoment, room: int, *, whole: bool) -> Iterator[str]:
    """What a task's end recorded: files, what the agent says about its work, warnings."""
    indent = " " * (_TIME + 2)
    if moment.files:
        yield from wrapped(totals_in_words(totals(moment.files)), room, indent)
        most = MANY_FILES if whole else FEW_FILES
        outside = set(moment.unexpected)
        lines = [
            lines_in_words(change) + (", outside its areas" if change["path"] in outside else "")
            for change in moment.files[:most]
        ]
        inner = len(indent) + 4
        names = widest((change["path"] for change in moment.files[:most]), room - inner)
        beside = fits_beside(names, inner + widest(lines, room), room)
        for change, told_of in zip(moment.files, lines, strict=False):
            lead = f"{indent}  {LETTERS[change['change']]} "
            if beside:
                yield f"{lead}{pad(change['path'], min(names, room - inner - 2 - widest(lines, room)))}  {dim(told_of)}"
            else:
                yield f"{lead}{fit(change['path'], names)}"
                yield from (dim(line) for line in wrapped(told_of, room, " " * inner))
        if len(moment.files) > most:
            yield f"{indent}  and {len(moment.files) - most} more"
    if whole:
        for title, name in (("achieved", "achievements"), ("limitation", "limitations"), ("next", "next_steps")):
            for text in moment.detail.get(name) or () if moment.kind == "ended" else ():
                yield from wrapped(f"{title}: {text}", room, indent)
    for warning in moment.warnings:
        areas = areas_warned_of(warning)
        if areas is None:
            yield from wrapped(warning, room, indent)
        elif not _all_marked(moment, whole=whole):
            count = counted(len(moment.unexpected), "file lies", "files lie")
            yield from wrapped(f"⚠️ {count} outside its areas ({areas})", room, indent)


def _all_marked(moment: TimelineMoment, *, whole: bool) -> bool:
    """Whether every file outside the areas is already listed above, with a remark."""
    most = MANY_FILES if whole else FEW_FILES
    return set(moment.unexpected) <= {change["path"] for change in moment.files[:most]}

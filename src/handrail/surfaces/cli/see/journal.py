"""`handrail journal`: what happened in a workflow or a task, in order.

How moments are drawn as lines of text comes first, and reads and prints nothing; then what is gathered for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from handrail.domain.journal.entry import LETTERS, lines_in_words, totals, totals_in_words
from handrail.domain.journal.scope import areas_warned_of
from handrail.domain.journal.timeline import TimelineMoment, task_timeline, workflow_timeline
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import OPEN, Workflow
from handrail.kernel.clock import iso_time, spoken_time
from handrail.kernel.errors import NothingOpen
from handrail.kernel.records import Query
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, thing_meant
from handrail.surfaces.cli.columns import (
    as_words,
    bold,
    columns,
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
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines

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


@click.command()
@click.argument("thing", metavar="[TASK|WORKFLOW]", required=False, shell_complete=completions.things)
@click.option(
    "--limit",
    type=click.IntRange(1, 10_000),
    metavar="N",
    default=100,
    show_default=True,
    help="Show the newest N entries.",
)
@common_options
def journal(thing: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what happened, in order: starts and ends, progress, decisions, issues, changed files, warnings.

    Name a task or workflow by id, the beginning of an id, or name; open ones are preferred. Without one, the workflow
    that changed last is shown. Newest last; times are UTC.
    """
    found = in_one_look(root, options, lambda call: read_journal(call, thing, limit))
    if as_json:
        echo_json(_document(found))
        return
    echo_lines(journal_lines(found, columns()))


def read_journal(call: Call, thing: str | None, limit: int) -> Journal:
    """The journal of the task or workflow that is meant."""
    meant = thing_meant(call, thing) if thing is not None else _last_moved(call)
    if isinstance(meant, Task):
        timeline = task_timeline(call.work, meant, limit)
        return Journal(workflow_of(call.work, meant), meant, timeline.moments, timeline.earlier)
    timeline = workflow_timeline(call.work, meant, limit)
    others = 0 if thing is not None else _open_here(call) - (meant.status in OPEN)
    return Journal(meant, None, timeline.moments, timeline.earlier, others)


def _here(call: Call) -> tuple[tuple[str, Any], ...]:
    return (("repository_path", call.here.repository),) if call.here.shared else ()


def _last_moved(call: Call) -> Workflow:
    newest = call.work.select(Workflow, Query(_here(call), ("-updated_at", "-id"), 1))
    if not newest:
        raise NothingOpen("nothing was journalled here yet", hint="an agent begins with start_workflow")
    return newest[0]


def _open_here(call: Call) -> int:
    return call.work.count(Workflow, Query((("status", OPEN), *_here(call))))


def _document(found: Journal) -> dict[str, Any]:
    workflow, task = found.workflow, found.task
    document: dict[str, Any] = {
        "workflow_id": workflow.id,
        "workflow_name": workflow.name,
        "workflow_status": workflow.status,
    }
    if task is not None:
        document |= {"task_id": task.id, "task_name": task.name, "task_status": task.shown_status}
    return {**document, "moments": [_moment(moment) for moment in found.moments], "earlier": found.earlier}


def _moment(moment: TimelineMoment) -> dict[str, Any]:
    shown: dict[str, Any] = msgspec.to_builtins(moment)
    return {**shown, "at": iso_time(moment.at)}

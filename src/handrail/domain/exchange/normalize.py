"""Makes a document storable: within all limits, without times in the future, and each task with the texts its state
requires. Every change is reported in a remark; what cannot be changed is refused.

Does not check whether the tasks can ever end (`validate.py`) and does not create rows (`importer.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain, count
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_tasks import NAME_MAX, TEXT_MAX, plain_title, several
from handrail.domain.exchange.plan_document import (
    PlanDocument,
    PlannedTask,
    PlanNote,
    TaskOrigin,
    attempts_assumed,
    context_beside,
    origin_in,
)
from handrail.domain.work.checkpoint import CHECKPOINT_TYPES
from handrail.domain.work.plan import PlanTask, Strings, Text
from handrail.domain.work.task import FINISHED, TASK_MACHINE
from handrail.domain.work.workflow import SOURCE_TYPES, WORKFLOW_MACHINE
from handrail.kernel.errors import InvalidPlan

DONE = "imported as done"
"""The outcome of a task that its source reports as done without saying more."""
FAILED = "imported as failed"
SUMMARY_MAX = 4000
"""Characters of a checkpoint's summary (`checkpoint_add`)."""
REF_MAX = 2000
AT_ONCE_MAX = 100
MOST_NOTES = 10_000
"""Notes of one task: beyond this they are not notes."""
MOST_ATTEMPTS = 1_000_000
_NAME_CUT = "the name of the whole, kept in its description"
_BEFORE_WORK = ("planning", "ready")
_UNTOUCHED = ("pending", "skipped")
"""Task states a workflow may contain while no work has begun."""


class _WholePlan(msgspec.Struct):
    """What readers of a workflow's plan rely on. It may contain more."""

    summary: Text = ""
    approach: Text = ""
    risks: Strings = []
    assumptions: Strings = []
    steps: list[Any] = []


class _TaskPlan(msgspec.Struct):
    """What readers of a task's own plan rely on. It may contain more."""

    approach: Text = ""
    steps: Strings = []
    files_to_modify: Strings = []
    files_to_create: Strings = []
    context_needed: Strings = []


def fitted(document: PlanDocument, now: int) -> PlanDocument:
    """The document as it will be stored. Applying this again changes nothing."""
    fitting = _Fitting(now)
    if (wrong := _shape_problem(document.plan, _WholePlan)) is not None:
        raise InvalidPlan(f"the plan of the whole: {wrong}", hint="fix it in the file")
    tasks = [fitting.task(task) for task in document.tasks]
    status = _status(document, tasks, fitting)
    created = fitting.past(document.created_at, "the whole")
    at_once = min(max(document.max_parallel_tasks or 1, 1), AT_ONCE_MAX)
    if document.max_parallel_tasks not in (None, at_once):
        fitting.say(f"{document.max_parallel_tasks:,} tasks at once is not possible: {at_once} may run at once")
    if document.source_type not in SOURCE_TYPES:
        fitting.say(f"unknown kind of source {plain_title(document.source_type)[:50]}: imported as custom")
    reference = _storable(document.source_ref) if document.source_ref is not None else None
    return msgspec.structs.replace(
        document,
        name=fitting.cut(_storable(document.name), _NAME_CUT, NAME_MAX) or "Imported plan",
        source_type=document.source_type if document.source_type in SOURCE_TYPES else "custom",
        source_ref=fitting.cut(reference, "the reference to the source", REF_MAX) if reference is not None else None,
        description=fitting.cut(_description(document), "the description of the whole, which is kept nowhere else"),
        status=status,
        max_parallel_tasks=at_once,
        created_at=created if created is not None else now,
        tasks=tasks,
        remarks=[*document.remarks, *fitting.remarks()],
    )


def _description(document: PlanDocument) -> str:
    """What the whole is about, after its full name if that has to be cut."""
    texts = [document.name] if len(document.name) > NAME_MAX else []
    return _storable("\n\n".join(text for text in [*texts, document.description] if text))


def by_its_tasks(tasks: list[PlannedTask]) -> str:
    """The status of a workflow, judged only by its tasks."""
    if not tasks:
        return WORKFLOW_MACHINE.initial
    if all(task.status in FINISHED for task in tasks):
        return "completed"
    return "ready" if all(task.status == "pending" for task in tasks) else "in_progress"


def _status(document: PlanDocument, tasks: list[PlannedTask], fitting: _Fitting) -> str:
    told = document.status
    if told is None:
        return by_its_tasks(tasks)
    if told not in WORKFLOW_MACHINE.states:
        raise InvalidPlan(
            f"a workflow cannot be {plain_title(told)[:50]}", hint=f"states: {', '.join(WORKFLOW_MACHINE.states)}"
        )
    if told == "completed" and any(task.status not in FINISHED for task in tasks):
        fitting.say("the plan says it is completed, but tasks are open: it is imported as in progress")
        return "in_progress"
    if told in _BEFORE_WORK and any(task.status not in _UNTOUCHED for task in tasks):
        fitting.say(f"the plan says it is {told}, but tasks are begun or done: it is imported as in progress")
        return "in_progress"
    return told


class _Fitting:
    """The conversion of one document, and what was changed in it."""

    def __init__(self, now: int) -> None:
        self._now = now
        self._said: list[str] = []
        self._cut: list[str] = []
        self._future: list[str] = []
        self._ancient: list[str] = []

    def say(self, remark: str) -> None:
        self._said.append(remark)

    def remarks(self) -> list[str]:
        found = list(self._said)
        if self._cut:
            found.append(f"texts that are too long were cut: {several(self._cut)}")
        if self._future:
            found.append(f"times in the future were left out: {several(self._future)}")
        if self._ancient:
            found.append(f"times before 1970 were left out: {several(self._ancient)}")
        return found

    def cut(self, text: str, what: str, room: int = TEXT_MAX) -> str:
        if len(text) <= room:
            return text
        self._cut.append(what)
        return text[: room - 1] + "…"

    def past(self, at: int | None, what: str) -> int | None:
        """A plausible time; None for one in the future or before 1970."""
        if at is None or 0 <= at <= self._now:
            return at
        (self._future if at > 0 else self._ancient).append(what)
        return None

    def task(self, task: PlannedTask) -> PlannedTask:
        text = _storable(task.description)
        _check(msgspec.structs.replace(task, description=text[:TEXT_MAX]))
        started = self.past(task.started_at, task.name)
        if started is None and attempts_assumed(task.status, None):
            started = self._now  # known to us only from now on
        finished = self.past(task.finished_at, task.name) if task.status in FINISHED else None
        created = self.past(task.created_at, task.name)
        known = [at for at in (started, finished) if at is not None]
        notes = [self._note(note, task.name) for note in task.notes]
        origin = self._origin(task)
        return msgspec.structs.replace(
            task,
            description=self.cut(text, f'the description of "{task.name}"'),
            depends_on=list(dict.fromkeys(task.depends_on)),
            outcome=self._text(task.outcome, task.name, DONE if task.status == "completed" else None),
            error=self._text(task.error, task.name, FAILED if task.status == "failed" else None),
            context=context_beside(task.context, origin),
            attempts=_attempts(task, started),
            created_at=created if created is not None else min([self._now, *known]),
            started_at=started,
            finished_at=finished,
            notes=notes,
            origin=origin,
        )

    def _text(self, text: str | None, name: str, otherwise: str | None) -> str | None:
        """The text, or the default if it is missing but required."""
        if text is None or (not text and otherwise is not None):
            return otherwise
        return self.cut(_storable(text), f'what came of "{name}"')

    def _note(self, note: PlanNote, name: str) -> PlanNote:
        summary = _storable(note.summary) or "(nothing was written)"
        detail = note.detail
        if len(summary) > SUMMARY_MAX:
            free = next(key for key in _whole_text_keys() if detail.get(key, summary) == summary)
            detail = {**detail, free: summary}  # the full text, since the summary is cut
            summary = self.cut(summary, f'a note on "{name}", kept whole in its detail', SUMMARY_MAX)
        at = self.past(note.at, name)
        return msgspec.structs.replace(note, summary=summary, detail=detail, at=at if at is not None else self._now)

    def _origin(self, task: PlannedTask) -> TaskOrigin | None:
        """What is kept of the source, including the full texts of those that have to be cut."""
        found = task.origin or origin_in(task.context)
        texts = {"description": task.description, "outcome": task.outcome, "error": task.error}
        long = {key: text for key, text in texts.items() if text is not None and len(text) > TEXT_MAX}
        if not long:
            return found
        origin = found or TaskOrigin(system="handrail")
        fields = dict(origin.fields)
        for key, text in long.items():
            if text not in fields.values():
                fields[next(free for free in chain([key], _whole_text_keys()) if free not in fields)] = text
        return msgspec.structs.replace(origin, fields=fields)


def _whole_text_keys() -> Iterator[str]:
    """Keys under which a note's full text may be stored; those already used in its detail are left alone."""
    yield "text"
    for number in count(1):
        yield f"whole_text_{number}"


def _attempts(task: PlannedTask, started: int | None) -> int | None:
    """How often work on it began, if that is not the number one would assume."""
    assumed = attempts_assumed(task.status, started)
    told = min(max(task.attempts, 0), MOST_ATTEMPTS) if task.attempts is not None else assumed
    return told if told != assumed else None


def _shape_problem(plan: dict[str, Any] | None, shape: type[msgspec.Struct]) -> str | None:
    """What is wrong with a plan that does not have the shape its readers expect."""
    try:
        msgspec.convert(plan or {}, shape)
    except msgspec.ValidationError as problem:
        return str(problem)
    return None


def _storable(text: str) -> str:
    """The text without NUL, which no database can store."""
    return text.replace("\0", "\ufffd")


def _check(task: PlannedTask) -> None:
    """Raises InvalidPlan if a plan could not contain this task."""
    shown = plain_title(task.name)[:NAME_MAX]
    try:
        msgspec.convert({name: getattr(task, name) for name in PlanTask.__struct_fields__}, PlanTask)
    except msgspec.ValidationError as problem:
        raise _invalid_task(shown, f"{problem}", "fix it in the file") from None
    checks: tuple[tuple[Callable[[], bool], str, str], ...] = (
        (lambda: task.name == task.name.strip(), "its name begins or ends with a blank", "leave the blank out"),
        (lambda: "\0" not in _texts(task), "a text of it holds a NUL character", "leave it out"),
        (
            lambda: task.status in TASK_MACHINE.states,
            f"it cannot be {plain_title(task.status)[:50]}",
            f"states: {', '.join(TASK_MACHINE.states)}",
        ),
        (lambda: len(task.notes) <= MOST_NOTES, f"it has more than {MOST_NOTES:,} notes", "leave some out"),
    )
    for holds, wrong, hint in checks:
        if not holds():
            raise _invalid_task(shown, wrong, hint)
    if (unlike := _shape_problem(task.plan, _TaskPlan)) is not None:
        raise _invalid_task(shown, f"its plan: {unlike}", "fix it in the file")
    for note in task.notes:
        if note.type not in CHECKPOINT_TYPES:
            raise _invalid_task(
                shown, f"no note is a {plain_title(note.type)[:50]}", f"types: {', '.join(CHECKPOINT_TYPES)}"
            )


def _texts(task: PlannedTask) -> str:
    return "".join((task.name, task.description, task.parallel_group or ""))


def _invalid_task(name: str, what: str, hint: str, **details: Any) -> InvalidPlan:
    return InvalidPlan(f'task "{name}": {what}', hint=hint, task=name, **details)

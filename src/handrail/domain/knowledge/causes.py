"""What led to an outcome: events in the ledger, each with the earlier ones that made it possible. Reads only.

A task's event follows from its previous turning point, its first start from what it waited for, a retry from the
failure, an answer from its question, a new plan from what had failed, the end of a workflow from what ended in it.
Notes of mere progress are skipped. Only what the ledger says counts: nothing is guessed from times or wording.

An event in one sentence, as part of explaining an outcome. Pure.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from handrail.domain.gates.gate import Gate
from handrail.domain.registry.envelopes import line_of, task_of
from handrail.domain.registry.event_kinds import KINDS
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import needed_tasks
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import ResourceNotFound
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import on_one_line, shortened

LOOKED_AT = 10_000
"""How many events of a workflow are examined; the last ones before its outcome."""
MESSAGES = 500
"""How many of the newest messages are searched for those about its tasks."""
PAGE = 1_000
SIDE = 6
"""How many direct causes of one event are named: a plan may have thousands of tasks that ended before it did."""
MOST = 60
"""The most events in one answer."""
PARTS = 200

FINISHING = ("task.completed", "task.skipped")
STARTING = ("task.planning", "task.in_progress", "task.claimed")
LAYING = ("workflow.planned", "workflow.imported", "workflow.extended", "workflow.replanned")
_PASSED_OVER = ("task.claim_resumed", "task.placed", "task.claim_ended", "message.read", "message.acknowledged")
_TELLING = ("decision", "error", "recovery", "replan")
"""Types of notes that change the course of the work; the others only report progress."""


class Link(NamedTuple):
    """One event made another possible."""

    cause: Event
    effect: Event
    why: str


class Ancestor(NamedTuple):
    """An event that led to the outcome, and how many steps back it is."""

    event: Event
    task_id: str | None
    depth: int


class Trace(NamedTuple):
    """What led to an outcome."""

    outcome: Event
    task_id: str | None
    ancestors: list[Ancestor]
    """In the order they happened."""
    links: list[Link]
    is_whole: bool
    """False if there is more: deeper, or further back than was examined."""


def trace(unit: UnitOfWork, outcome_id: str, max_depth: int) -> Trace:
    """The outcome with that id, and what led to it, at most `max_depth` steps back."""
    outcome = find_outcome(unit, outcome_id)
    past = _Past(unit, outcome)
    depth_of = {outcome.position: 0}
    ancestors: list[Ancestor] = []
    links: list[Link] = []
    level, is_whole = [outcome], past.is_whole
    for depth in range(1, max_depth + 2):
        reached: list[Event] = []
        for effect in level:
            for cause, why in past.causes(effect):
                if depth > max_depth or (cause.position not in depth_of and len(ancestors) == MOST):
                    is_whole = False
                    continue
                links.append(Link(cause, effect, why))
                if cause.position not in depth_of:
                    depth_of[cause.position] = depth
                    ancestors.append(Ancestor(cause, past.task_of(cause), depth))
                    reached.append(cause)
        level = reached
    ancestors.sort(key=lambda one: one.event.position)
    links.sort(key=lambda one: (one.effect.position, one.cause.position))
    return Trace(outcome, past.task_of(outcome), ancestors, links, is_whole)


# -- which event is meant ---------------------------------------------------------------------------------------------


def find_outcome(unit: UnitOfWork, outcome_id: str) -> Event:
    """The event that put a task, workflow or gate into its current state; or the event at a position in the ledger."""
    if (workflow := unit.get(Workflow, outcome_id)) is not None:
        return _newest(unit, workflow.stream, lambda event: event.kind.startswith(("workflow.", "pipeline.")))
    if (task := unit.get(Task, outcome_id)) is not None:
        return _newest(unit, task.stream, lambda event: _is_turn_of(event, task.id))
    if (gate := unit.get(Gate, outcome_id)) is not None:
        return _newest(unit, gate.stream, lambda event: _touches(event, "gate", gate.id))
    if outcome_id.isdecimal() and len(outcome_id) < 16:
        for event in unit.feed(int(outcome_id) - 1, 1):
            if event.position == int(outcome_id):
                return event
    raise ResourceNotFound(
        f"nothing here has the id {outcome_id}",
        hint="give the id of a task, a workflow or a gate, or the seq of an event as events_subscribe tells it",
        id=outcome_id,
    )


def _newest(unit: UnitOfWork, stream: str, fits: Callable[[Event], bool]) -> Event:
    """The newest matching event of a stream; if none matches, the first, which created it."""
    for event in _newest_events_first(unit, stream, unit.head_seq(stream)):
        if fits(event):
            return event
    return unit.events(stream, 0, 1)[0]


def _newest_events_first(unit: UnitOfWork, stream: str, upto: int) -> Iterator[Event]:
    """The events of a stream up to a number, newest first, at most `LOOKED_AT` of them."""
    lowest = max(0, upto - LOOKED_AT)
    while upto > lowest:
        after = max(lowest, upto - PAGE)
        yield from reversed(unit.events(stream, after, upto - after))
        upto = after


def _is_turn_of(event: Event, task_id: str) -> bool:
    return event.kind.startswith("task.") and event.kind not in _PASSED_OVER and task_of(event) == task_id


def _touches(event: Event, table: str, key: str) -> bool:
    return any(change.table == table and change.key == key for change in event.changes)


# -- what came before it ----------------------------------------------------------------------------------------------


class _Past:
    """The turning points before an outcome, indexed by what they are about."""

    def __init__(self, unit: UnitOfWork, outcome: Event) -> None:
        self._unit = unit
        events = [event for event in _newest_events_first(unit, outcome.stream, outcome.seq) if _is_turn(event)]
        self.is_whole = outcome.seq <= LOOKED_AT
        messages = unit.newest(MESSAGES, Only(kinds=("message.sent",)))
        events += [one for one in messages if one.position < outcome.position and one.stream != outcome.stream]
        events.sort(key=lambda event: event.position)
        self._events = events
        self._tasks: dict[int, str | None] = {}
        self._about: dict[str, list[Event]] = {}
        self._level: list[Event] = []
        """What happened to the workflow itself."""
        self._laid: dict[str, Event] = {}
        for event in events:
            self._sort_in(event)

    def _sort_in(self, event: Event) -> None:
        task = task_of(event)
        self._tasks[event.position] = task
        if task is not None:
            self._about.setdefault(task, []).append(event)
        elif event.kind.startswith(("workflow.", "pipeline.", "gate.")):
            self._level.append(event)
        if event.kind in LAYING:
            for change in event.changes:
                if change.table == "task" and change.before is None:
                    self._laid[change.key] = event
                elif change.table == "task" and "status" in (change.after or {}):  # reopened by the new plan
                    self._about.setdefault(change.key, []).append(event)

    def task_of(self, event: Event) -> str | None:
        return self._tasks[event.position] if event.position in self._tasks else task_of(event)

    def causes(self, effect: Event) -> list[tuple[Event, str]]:
        """What made an event possible, nearest first, each once."""
        task = self.task_of(effect)
        found = self._of_task(effect, task) if task is not None else self._of_workflow(effect)
        once: dict[int, tuple[Event, str]] = {}
        for cause, why in found:
            once.setdefault(cause.position, (cause, why))
        return sorted(once.values(), key=lambda pair: -pair[0].position)

    def _of_task(self, effect: Event, task_id: str) -> Iterator[tuple[Event, str]]:
        before = _before(self._about.get(task_id, ()), effect)
        if effect.kind.startswith("gate.") and effect.kind != "gate.opened":
            yield from ((one, "was asked") for one in self._questions(effect))
        if before:
            yield before[-1], _why(before[-1], effect)
        if effect.kind in STARTING and not any(one.kind in STARTING for one in before):
            yield from self._ends_of_needs(effect, task_id)
            if (laid := self._laid.get(task_id)) is not None and laid.position < effect.position:
                yield laid, "planned it"
        if effect.kind in FINISHING:
            parts = self._unit.select(Task, Query((("parent_task_id", task_id),), ("sequence",), PARTS))
            ended = (self._end_of(part.id, effect) for part in parts)
            yield from ((one, "is a part of it") for one in _nearest([one for one in ended if one is not None]))
        if not before and effect.kind not in STARTING and (laid := self._laid.get(task_id)) is not None:
            yield laid, "planned it"

    def _ends_of_needs(self, effect: Event, task_id: str) -> Iterator[tuple[Event, str]]:
        """The events that ended what a task waited for."""
        task = self._unit.get(Task, task_id)
        needs = needed_tasks(self._unit, task) if task is not None else ()
        ended = [one for need in needs if (one := self._end_of(need.id, effect)) is not None]
        yield from ((one, "made it ready") for one in _nearest(ended))

    def _end_of(self, task_id: str, effect: Event) -> Event | None:
        ends = [one for one in _before(self._about.get(task_id, ()), effect) if one.kind in FINISHING]
        return ends[-1] if ends else None

    def _of_workflow(self, effect: Event) -> Iterator[tuple[Event, str]]:
        level = _before(self._level, effect)
        if effect.kind.startswith("gate.") and effect.kind != "gate.opened":
            yield from ((one, "was asked") for one in self._questions(effect))
        if level:
            yield level[-1], _why(level[-1], effect)
        if effect.kind == "workflow.completed":
            yield from ((one, "ended in it") for one in _nearest(self._last_turns(effect, FINISHING)))
        if effect.kind in ("workflow.failed", "workflow.abandoned", "workflow.paused"):
            yield from ((one, "had failed in it") for one in _nearest(self._last_turns(effect, ("task.failed",))))
        if effect.kind == "workflow.replanned":
            since = max((one.position for one in level if one.kind in LAYING), default=0)
            failed = [one for one in self._events if one.kind == "task.failed" and since < one.position]
            yield from ((one, "had failed before it") for one in _nearest(_before(failed, effect)))
        if not level and not effect.kind.startswith(("workflow.", "pipeline.", "gate.")):
            yield from self._of_rows(effect)

    def _of_rows(self, effect: Event) -> Iterator[tuple[Event, str]]:
        """For an event outside any workflow: the last change to the same rows."""
        rows = {(change.table, change.key) for change in effect.changes}
        for event in reversed(_before(self._events, effect)):
            if event.stream == effect.stream and rows & {(change.table, change.key) for change in event.changes}:
                yield event, "changed the same before"
                return

    def _last_turns(self, effect: Event, kinds: Sequence[str]) -> list[Event]:
        """Each task's last turning point before an event, if it is of one of these kinds."""
        last = (_before(events, effect)[-1:] for events in self._about.values())
        return [event for found in last for event in found if event.kind in kinds]

    def _questions(self, effect: Event) -> Iterator[Event]:
        keys = [change.key for change in effect.changes if change.table == "gate"]
        for event in _before(self._events, effect):
            if event.kind == "gate.opened" and any(_touches(event, "gate", key) for key in keys):
                yield event


def _is_turn(event: Event) -> bool:
    if event.kind in _PASSED_OVER:
        return False
    if event.kind != "checkpoint.added":
        return True
    return any(row.get("type") in _TELLING for row in event.rows("checkpoint"))


def _before(events: Sequence[Event], effect: Event) -> Sequence[Event]:
    return events[: bisect_left(events, effect.position, key=lambda event: event.position)]


def _nearest(events: Sequence[Event]) -> list[Event]:
    return sorted(events, key=lambda event: -event.position)[:SIDE]


def _why(cause: Event, effect: Event) -> str:
    """How a turning point relates to the next one of the same thing."""
    if cause.kind == "task.failed" and effect.kind in ("task.pending", "task.in_progress", "task.replanned"):
        return "failed, and was taken up again"
    if cause.kind in LAYING and effect.kind.startswith("task."):
        return "planned it anew"
    if cause.kind == "gate.answered":
        return "answered what it waited for"
    if cause.kind == "checkpoint.added":
        return "was noted before it"
    return "came before it"


SENTENCE = 200
QUOTED = 90
NAME = 60

Named = Callable[[str], str]
"""Gives the name of the task with an id."""


def sentence_of(event: Event, task_id: str | None, named: Named) -> str:
    """What happened, who did it, and what they said about it."""
    kind = KINDS.get(event.kind)
    passive = kind.passive if kind is not None else ""
    if passive and event.kind.startswith("task."):
        said = f'"{_cut(named(task_id or ""), NAME)}" {passive}'
    elif passive:
        said = passive
    elif event.kind == "checkpoint.added":
        row = next(event.rows("checkpoint"), {})
        about = f' on "{_cut(named(task_id), NAME)}"' if task_id else ""
        said = f"{str(row.get('type', 'note')).capitalize()} noted{about}"
    elif event.kind in ("gate.opened", "gate.answered"):
        row = next(event.rows("gate"), {})
        said = "A person was asked" if event.kind == "gate.opened" else f"The answer was {row.get('answer')!r}"
    else:
        return _cut(line_of(event), SENTENCE)
    words = _words(event)
    return _cut(f"{said} by {event.actor}{f': {words}' if words else ''}", SENTENCE)


def summary_of(trace: Trace, sentence: str, named: Named) -> str:
    """The outcome and what led to it, in one sentence."""
    if not trace.ancestors:
        return f"{sentence}; nothing came before it."
    kinds = Counter(_cause_kind(one.event) for one in trace.ancestors)
    told = [f"{kinds[sort]} {sort if kinds[sort] == 1 else plural}" for sort, plural in _SORTS.items() if kinds[sort]]
    first = trace.ancestors[0]
    begun = sentence_of(first.event, first.task_id, named)
    more = "" if trace.is_whole else " at least"
    count = len(trace.ancestors)
    counted = f"{count} event{'' if count == 1 else 's'} led to it{more}"
    of_them = f" ({', '.join(told)})" if told else ""
    return f"{sentence}; {counted}{of_them}, the first of them: {begun}."


_SORTS = {
    "failure": "failures",
    "error": "errors",
    "decision": "decisions",
    "answer": "answers",
    "change of plan": "changes of plan",
    "message": "messages",
}
"""What a summary counts."""


def _cause_kind(event: Event) -> str:
    if event.kind in ("task.failed", "workflow.failed"):
        return "failure"
    if event.kind == "checkpoint.added":
        kind = str(next(event.rows("checkpoint"), {}).get("type"))
        return kind if kind in ("error", "decision") else "note"
    if event.kind == "gate.answered":
        return "answer"
    if event.kind in LAYING[1:] or event.kind == "task.replanned":
        return "change of plan"
    return "message" if event.kind.startswith("message.") else "other"


def _words(event: Event) -> str:
    """What the actor said about it."""
    if isinstance(reason := event.data.get("reason"), str) and reason:
        return _cut(reason, QUOTED)
    names = {
        "task": ("error", "outcome"),
        "checkpoint": ("summary",),
        "gate": ("feedback", "question") if event.kind == "gate.answered" else ("question",),
    }
    for table, columns in names.items():
        for row in event.rows(table):
            for column in columns:
                if isinstance(text := row.get(column), str) and text:
                    return _cut(text, QUOTED)
    return ""


def _cut(text: str, most: int) -> str:
    return shortened(on_one_line(text), most)

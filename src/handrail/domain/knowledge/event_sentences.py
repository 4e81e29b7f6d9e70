"""An event in one sentence, as part of explaining an outcome. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from handrail.domain.knowledge.causes import LAYING, Trace
from handrail.domain.registry.envelopes import line_of
from handrail.domain.registry.event_kinds import KINDS
from handrail.kernel.ledger import Event
from handrail.kernel.shorten import on_one_line, shortened

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

"""What waits for the person: decisions that hold up work, reviews that somebody asked for, messages to acknowledge.
Oldest first, because those have waited longest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from handrail.domain.crew.message import Message
from handrail.domain.crew.outbox import HUMAN, unread
from handrail.domain.gates.gate import GATE_MACHINE, REVIEW, Gate
from handrail.domain.overview.gates import material_of
from handrail.domain.overview.messages import people
from handrail.domain.overview.rows import cut, task_names
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import Query, UnitOfWork, found_by
from handrail.kernel.wording import shortened

SHOWN = 100
"""How many of each kind are shown."""
LOOKED_AT = 500
"""How many unread messages are searched for those to acknowledge."""
QUESTION = 1000
"""The most characters of a question or message in the list; opening it shows all."""
HEADLINE = 160


class NeedItem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that waits for the person."""

    id: str
    """The id of the question or the message."""
    kind: str
    """decision, review or message."""
    workflow_id: str | None
    workflow_name: str | None
    task_id: str | None
    task_name: str | None
    question: str
    title: str
    phase: str | None = None
    why: str | None = None
    options: list[str] = []
    path: str | None = None
    content_hash: str = ""
    created_at: int
    sender: str | None = None
    subject: str | None = None
    """The subject of a message."""
    headline: str = ""
    """One line to recognise it by: a message's subject, or else its beginning; for anything else, the question."""
    count: int = 1
    """How many messages of one sender in one thread this stands for."""
    ids: list[str] = []
    """Their ids, oldest first; `id` is the newest."""


class Needs(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions, then reviews, then messages."""

    items: list[NeedItem]
    more: int


def needs(unit: UnitOfWork) -> Needs:
    asked: list[Gate] = []
    more = 0
    for kind in (DECISION, REVIEW):
        query = Query((("kind", kind), ("status", GATE_MACHINE.initial)), ("created_at",), SHOWN)
        found = unit.select(Gate, query)
        asked += found
        more += unit.count(Gate, query._replace(limit=None)) - len(found) if len(found) == SHOWN else 0
    waiting = unit.select(Message, unread(HUMAN, unit.now_ms())._replace(limit=LOOKED_AT))
    letters = [message for message in waiting if message.ack_required]
    letters.sort(key=lambda message: (message.created_at, message.id))
    threads: dict[tuple[str, str], list[Message]] = {}
    for letter in letters:
        threads.setdefault((letter.sender_id, letter.thread_id), []).append(letter)
    shown = list(threads.values())[:SHOWN]
    more += len(threads) - len(shown)
    return Needs(items=_items(unit, asked, shown), more=more)


def _items(unit: UnitOfWork, asked: Sequence[Gate], threads: Sequence[Sequence[Message]]) -> list[NeedItem]:
    letters = [thread[-1] for thread in threads]
    about = {gate.id: material_of(unit, gate) for gate in asked}
    tasks = {gate.id: gate.task_id or about[gate.id].task_id for gate in asked}
    tasks |= {letter.id: letter.task_id for letter in letters}
    of_tasks = task_names(unit, tasks.values())
    workflows = [*(gate.workflow_id for gate in asked), *(letter.workflow_id for letter in letters)]
    names = {workflow.id: workflow.name for workflow in found_by(unit, Workflow, "id", filter(None, workflows))}
    senders = people(unit, (letter.sender_id for letter in letters))
    items = [
        NeedItem(
            id=gate.id,
            kind=gate.kind,
            workflow_id=gate.workflow_id,
            workflow_name=names.get(gate.workflow_id),
            task_id=tasks[gate.id],
            task_name=of_tasks.get(tasks[gate.id] or ""),
            question=shortened(gate.question, QUESTION),
            title=about[gate.id].title,
            phase=about[gate.id].phase,
            why=cut(about[gate.id].why, QUESTION),
            options=gate.options,
            path=about[gate.id].path,
            content_hash=gate.content_hash,
            created_at=gate.created_at,
            headline=_line(gate.question if gate.kind == REVIEW else about[gate.id].phase or gate.question),
        )
        for gate in asked
    ]
    for thread, letter in zip(threads, letters, strict=True):
        subject = next((one.subject for one in reversed(thread) if one.subject), None)
        items.append(
            NeedItem(
                id=letter.id,
                kind="message",
                workflow_id=letter.workflow_id,
                workflow_name=names.get(letter.workflow_id or ""),
                task_id=letter.task_id,
                task_name=of_tasks.get(letter.task_id or ""),
                question=shortened(_text(letter.body), QUESTION),
                title=subject or "Message",
                created_at=thread[0].created_at,
                sender=senders[letter.sender_id],
                subject=subject,
                headline=_line(subject or _text(letter.body)),
                count=len(thread),
                ids=[one.id for one in thread],
            )
        )
    return items


def _line(text: str) -> str:
    """The first non-blank line of a text."""
    return shortened(next((line.strip() for line in text.splitlines() if line.strip()), ""), HEADLINE)


def _text(body: Any) -> str:
    return body if isinstance(body, str) else msgspec.json.encode(body).decode()

"""What agents and the person write to each other, as threads and as messages. Reads only; the toolset sends messages
and marks them as read.

The newest threads are found through the messages sent last, and the person's own through their inbox, so the cost does
not depend on how much was ever written. Texts are shown as the agents wrote them and never interpreted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.crew.message import NEVER, Message
from handrail.domain.crew.outbox import HUMAN, SYSTEM, unread
from handrail.domain.overview.rows import agent_names
from handrail.kernel.errors import MessageNotFound
from handrail.kernel.ledger import Only
from handrail.kernel.records import Query, UnitOfWork, found_by
from handrail.kernel.wording import on_one_line, shortened

THREADS = 100
"""How many threads a list shows."""
SENT = 1000
"""How many of the newest messages have their threads listed."""
OWN = 500
"""How many of the newest messages to and from the person have their threads listed."""
PAGE = 200
"""How many messages of a thread are shown at once."""
PAGE_CHARS = 1_000_000
"""The most characters of their bodies in total."""
PREVIEW = 400
"""The most characters of a body in a list of threads."""
NAMED = 8
"""How many correspondents of a thread are named."""
YOU = "you"
"""What the person is called by default."""


class MessageRow(msgspec.Struct, frozen=True, kw_only=True):
    """One message."""

    id: str
    thread_id: str
    sender_id: str
    sender: str
    recipient_id: str
    recipient: str
    subject: str | None
    body: str
    """A text; an object that was sent is shown as JSON."""
    type: str
    priority: str
    status: str
    requires_ack: bool
    acked_at: int | None
    read_at: int | None
    created_at: int
    expires_at: int | None
    reply_to_id: str | None
    task_id: str | None
    workflow_id: str | None


class ThreadRow(msgspec.Struct, frozen=True, kw_only=True, rename={"correspondents": "with"}):
    """One thread, with its last message."""

    id: str
    subject: str
    correspondents: list[str]
    """Names, without the person's own unless nobody else takes part."""
    last: MessageRow
    unread: int
    """How many messages the person has not read or not acknowledged."""
    count: int
    own: bool
    """True if the person takes part."""


class Threads(msgspec.Struct, frozen=True, kw_only=True):
    """The person's own threads first, then those between agents; newest first in each group."""

    threads: list[ThreadRow]
    more: int
    """How many more threads were found than are shown; older ones are not counted."""


class ThreadPage(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of one thread, in the order they were written."""

    thread_id: str
    messages: list[MessageRow]
    more: int
    """How many earlier ones there are."""


def message_rows(
    unit: UnitOfWork, messages: Sequence[Message], *, most: int | None = None, person: str = YOU
) -> list[MessageRow]:
    """A row for each message, in the same order; `most` limits bodies, `person` is what the person is called."""
    names = people(unit, (key for message in messages for key in (message.sender_id, message.recipient_id)), person)
    return [
        MessageRow(
            id=message.id,
            thread_id=message.thread_id,
            sender_id=message.sender_id,
            sender=names[message.sender_id],
            recipient_id=message.recipient_id,
            recipient=names[message.recipient_id],
            subject=message.subject,
            body=_body(message.body, most),
            type=message.message_type,
            priority=message.priority,
            status=message.status,
            requires_ack=message.ack_required,
            acked_at=message.acked_at,
            read_at=message.read_at,
            created_at=message.created_at,
            expires_at=message.expires_at if message.expires_at != NEVER else None,
            reply_to_id=message.reply_to_id,
            task_id=message.task_id,
            workflow_id=message.workflow_id,
        )
        for message in messages
    ]


def people(unit: UnitOfWork, keys: Iterable[str | None], person: str = YOU) -> dict[str, str]:
    """The display names of correspondents: agents by their names."""
    known = {HUMAN: person, SYSTEM: "Handrail"}
    return {**agent_names(unit, (key for key in keys if key not in known)), **known}


def _body(body: Any, most: int | None) -> str:
    text = body if isinstance(body, str) else msgspec.json.format(msgspec.json.encode(body), indent=2).decode()
    return text if most is None else shortened(text, most)


# -- threads ----------------------------------------------------------------------------------------------------------


def threads(unit: UnitOfWork, workflow_id: str | None = None, person: str = YOU) -> Threads:
    """The newest threads; with a workflow, only those with a message about it."""
    found: dict[str, list[Message]] = {}
    for message in sorted(_newest(unit), key=lambda one: (one.created_at, one.id), reverse=True):
        found.setdefault(message.thread_id, []).append(message)
    if workflow_id is not None:
        found = {key: held for key, held in found.items() if any(one.workflow_id == workflow_id for one in held)}
    ordered = sorted(found.values(), key=lambda held: (not _is_own(held), -held[0].created_at, held[0].id))
    shown = ordered[:THREADS]
    return Threads(threads=_thread_rows(unit, shown, person), more=len(ordered) - len(shown))


def _newest(unit: UnitOfWork) -> Iterable[Message]:
    """The messages sent last, and those to and from the person. Read from rows, because events also list messages that
    are gone."""
    sent = unit.newest(SENT, Only(kinds=("message.sent",)))
    keys = [change.key for event in sent for change in event.changes if change.table == "message"]
    found = {message.id: message for message in found_by(unit, Message, "id", keys)}
    to_person = Query((("recipient_id", HUMAN),), ("-sequence",), OWN)
    by_person = Query((("sender_id", HUMAN),), ("-created_at", "-id"), OWN)
    for query in (to_person, by_person):
        found |= {message.id: message for message in unit.select(Message, query)}
    return found.values()


def _thread_rows(unit: UnitOfWork, shown: Sequence[Sequence[Message]], person: str) -> list[ThreadRow]:
    keys = tuple(held[0].thread_id for held in shown)
    in_them = (("thread_id", keys),)
    counts = unit.count_by(Message, Query(in_them), ("thread_id",)) if keys else {}
    mine = unread(HUMAN, unit.now_ms())
    waiting = unit.count_by(Message, mine._replace(where=(*mine.where, *in_them)), ("thread_id",)) if keys else {}
    last = message_rows(unit, [held[0] for held in shown], most=PREVIEW, person=person)
    names = people(unit, (key for held in shown for one in held for key in (one.sender_id, one.recipient_id)), person)
    return [
        ThreadRow(
            id=row.thread_id,
            subject=_subject(held),
            correspondents=_correspondents(held, names),
            last=row,
            unread=waiting.get((row.thread_id,), 0),
            count=counts.get((row.thread_id,), len(held)),
            own=_is_own(held),
        )
        for row, held in zip(last, shown, strict=True)
    ]


def _is_own(held: Sequence[Message]) -> bool:
    return any(HUMAN in (message.sender_id, message.recipient_id) for message in held)


def _subject(held: Sequence[Message]) -> str:
    """The first known subject in a thread; else the beginning of its first known message."""
    headline = next((message.subject for message in reversed(held) if message.subject), None)
    first = on_one_line(_body(held[-1].body, PREVIEW))
    return headline or shortened(first, 100)


def _correspondents(held: Sequence[Message], names: dict[str, str]) -> list[str]:
    keys = dict.fromkeys(key for message in held for key in (message.sender_id, message.recipient_id))
    others = [names[key] for key in keys if key != HUMAN]
    return list(dict.fromkeys(others))[:NAMED] or [names[HUMAN]]


# -- one thread -------------------------------------------------------------------------------------------------------


def thread_page(unit: UnitOfWork, thread_id: str, before: int | None = None, person: str = YOU) -> ThreadPage:
    """The newest messages of a thread, or the newest before a point in time."""
    whole = (("thread_id", thread_id),)
    conditions = whole if before is None else (*whole, ("created_at <", before))
    newest = unit.select(Message, Query(conditions, ("-created_at", "-id"), PAGE))
    if not newest and not unit.count(Message, Query(whole)):
        raise MessageNotFound(
            f"there is no thread {thread_id}", hint="/api/messages lists the newest threads", id=thread_id
        )
    rows: list[MessageRow] = []
    room = PAGE_CHARS
    for row in message_rows(unit, newest, person=person):
        room -= len(row.body)
        if room < 0 and rows:
            break
        rows.append(row)
    total = unit.count(Message, Query(conditions))
    return ThreadPage(thread_id=thread_id, messages=rows[::-1], more=total - len(rows))

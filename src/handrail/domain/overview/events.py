"""The ledger as a list for people: the newest page first, further back by position, only some by what they are about.
Reads only.

Nothing secret is in it: of a secret the ledger has a hash, and that is left out here, as is what messages say, which is
between the two who write. Long values are cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from handrail.domain.overview.deeds import told
from handrail.domain.overview.rows import agent_names
from handrail.domain.registry.envelopes import ABOUT_TASKS, KINDS, bounded, category_of, level_of, task_of
from handrail.domain.work.task import Task
from handrail.kernel.errors import InvalidParams
from handrail.kernel.ledger import Change, Event, Only
from handrail.kernel.records import UnitOfWork

SHOWN = 100
MOST = 500
CHANGES = 50
"""Changes of rows that one event is shown with."""
PAGE = 500
GROWS = 8
"""How much further back is looked each time too little was found."""
OF_TASK = 5000
"""The newest events of a workflow that are looked through for those about one of its tasks."""
_LEFT_OUT = {"agent": ("secret_hash",), "token": ("secret_hash",), "message": ("subject", "body")}


class Wanted(NamedTuple):
    """Which events."""

    only: Only = Only()
    before: int | None = None
    """Those at an earlier position."""
    after: int | None = None
    """Those at a later position: the first of them."""
    limit: int = SHOWN
    changes: bool = False
    """True to see what each did to rows."""
    task: Task | None = None
    """Only what is about this one, as its workflow tells it."""


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """What an event made of one row: the columns that changed. Null for a row that is gone."""

    table: str
    key: str
    after: dict[str, Any] | None


class EventRow(msgspec.Struct, frozen=True, kw_only=True):
    """One event."""

    position: int
    stream: str
    seq: int
    kind: str
    category: str
    level: str
    actor: str
    actor_name: str
    channel: str
    at: int
    text: str
    """What was done, to what, in one line that names things; who did it is `actor_name`."""
    data: dict[str, Any]
    changes: list[RowChange] | UnsetType = UNSET
    changed: int | UnsetType = UNSET
    """How many rows it changed."""


class Events(msgspec.Struct, frozen=True, kw_only=True):
    """Events, the newest first."""

    events: list[EventRow]
    oldest: int | None
    """Of the oldest event here: what is asked for next comes before it."""
    newest: int | None
    more: int
    """1 where there are more: older ones, or, of those after a position, later ones."""
    position: int
    """Of the newest event there is, whether it fits or not."""


def events(unit: UnitOfWork, wanted: Wanted) -> Events:
    limit = min(max(1, wanted.limit), MOST)
    if wanted.task is not None:
        found = _of_task(unit, wanted, wanted.task)
    elif wanted.after is not None:
        found = unit.feed(wanted.after, limit + 1, wanted.only)
    elif wanted.before is not None or wanted.only.kinds:
        before = wanted.before if wanted.before is not None else unit.position() + 1
        found = _before(unit, before, limit + 1, wanted.only)
    else:
        found = unit.newest(limit + 1, wanted.only)
    shown = found[:limit] if wanted.after is not None else found[-limit:]
    return Events(
        events=_rows(unit, shown[::-1], changes=wanted.changes),
        oldest=shown[0].position if shown else None,
        newest=shown[-1].position if shown else None,
        more=int(len(found) > limit),
        position=unit.position(),
    )


def kinds_meant(given: Sequence[str]) -> tuple[str, ...]:
    """How the kinds begin that somebody means who may have typed only a part: `task` or `tas` means `task.`. What no
    event is called is refused: the whole ledger would be searched for it in vain."""
    meant: list[str] = []
    for part in given:
        word = part.casefold()
        fitting = [kind for kind in KINDS if kind.startswith(word)]
        if not fitting:
            families = dict.fromkeys(kind.partition(".")[0] for kind in KINDS)
            raise InvalidParams(f"no event is called {part[:100]}", hint=f"kinds begin with {', '.join(families)}")
        meant += [word] if "." in word else dict.fromkeys(f"{kind.partition('.')[0]}." for kind in fitting)
    return tuple(dict.fromkeys(meant))


def _of_task(unit: UnitOfWork, wanted: Wanted, task: Task) -> list[Event]:
    """What the newest events of its workflow say about a task, the oldest first."""
    only = Only((task.workflow_id,), wanted.only.actors, wanted.only.kinds or ABOUT_TASKS)
    before = wanted.before if wanted.before is not None else unit.position() + 1
    after = wanted.after or 0
    newest = unit.newest(OF_TASK, only)
    return [event for event in newest if after < event.position < before and task_of(event) == task.id]


def _before(unit: UnitOfWork, position: int, count: int, only: Only) -> list[Event]:
    """The newest so many before a position. The ledger is read forwards, so ever larger stretches before it are looked
    through until one holds enough. There is no end to it but the ledger's: how far apart positions lie is the
    engine's, and kinds are whole families, which have an index."""
    span, position = count, min(position, unit.position() + 1)
    while True:
        low = max(0, position - 1 - span)
        found: list[Event] = []
        last = low
        while last < position - 1:
            page = unit.feed(last, PAGE, only)
            fitting = [event for event in page if event.position < position]
            found = [*found, *fitting][-count:]
            if len(fitting) < PAGE:
                break
            last = page[-1].position
        if len(found) >= count or low == 0:
            return found
        span *= GROWS


def _rows(unit: UnitOfWork, shown: Sequence[Event], *, changes: bool) -> list[EventRow]:
    names = agent_names(unit, (event.actor for event in shown))
    texts = told(unit, shown)
    return [
        EventRow(
            position=event.position,
            stream=event.stream,
            seq=event.seq,
            kind=event.kind,
            category=category_of(event),
            level=level_of(event),
            actor=event.actor,
            actor_name=names[event.actor],
            channel=event.channel,
            at=event.at_ms,
            text=texts[event.position],
            data=bounded(event.data),
            changes=[_change(change) for change in list(event.changes)[:CHANGES]] if changes else UNSET,
            changed=len(event.changes) if changes else UNSET,
        )
        for event in shown
    ]


def _change(change: Change) -> RowChange:
    hidden = _LEFT_OUT.get(change.table, ())
    after = change.after
    shown = bounded({name: after[name] for name in after if name not in hidden}) if after is not None else None
    return RowChange(table=change.table, key=change.key, after=shown)

"""Watching a board: what happened on it after a version, from its events alone, each once and in order.

Watching also removes expired entries, so that their expiry is among what is reported. What a retention hides is
mentioned, never silently skipped. No store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET

from handrail.domain.board.board import DELETED, EXPIRED, SAME, SET, Board
from handrail.domain.board.entry import BoardChange, BoardEntry, board_stream, brief, snapshot
from handrail.kernel.ledger import Change, Event
from handrail.kernel.records import UnitOfWork

_TABLE = "board"
_KINDS: dict[str, Literal["set", "delete", "expire"]] = {SET: "set", DELETED: "delete", EXPIRED: "expire"}


class BoardChanges(NamedTuple):
    """What happened, as far as was asked for."""

    changes: list[BoardChange]
    version: int
    """The number of the board's newest event."""
    truncated_before: int
    """The first event still shown, if older ones were asked for but are hidden; else 0."""


def watch(unit: UnitOfWork, name: str, after: int, limit: int, *, history: int = 0) -> BoardChanges:
    """What happened on a board after that version, at most `limit` changes. Only the newest `history` events are shown;
    0 shows all."""
    board = Board(unit, name)
    stood = board.version
    swept = board.sweep()
    first = max(1, board.version - history + 1) if history else 1
    hidden, after = after < first - 1, max(after, first - 1)
    changes = [change_of(unit, event) for event in unit.events(board_stream(name), after, limit) if event.seq <= stood]
    for version, entry in enumerate(swept, stood + 1):  # recorded by this unit, so not among the events yet
        if version > after and len(changes) < limit:
            changes.append(_expiry(version, entry, unit.now_ms()))
    return BoardChanges(changes, board.version, first if hidden else 0)


def change_of(unit: UnitOfWork, event: Event) -> BoardChange:
    """What an event of a board's stream did."""
    change = next(change for change in event.changes if change.table == _TABLE)
    undone = event.kind not in _KINDS
    same = _event_undone_by(unit, event).data.get(SAME, {}) if undone else event.data.get(SAME, {})
    old, new = _entry(change, change.before, same), _entry(change, change.after, same)
    if event.kind == EXPIRED and old is not None:
        return _expiry(event.seq, old, event.at_ms)
    return BoardChange(
        version=event.seq,
        kind=_KINDS.get(event.kind) or ("set" if new is not None else "delete"),
        key=change.key,
        entry=snapshot(new) if new is not None else UNSET,
        previous=brief(old) if old is not None else UNSET,
        reason="undo" if undone else UNSET,
        by=event.actor,
        ts=event.at_ms,
    )


def _event_undone_by(unit: UnitOfWork, event: Event) -> Event:
    """The event that was undone. The undo has what it changed back; the undone event has what stayed the same."""
    (undone,) = unit.events(event.stream, event.data["undone"] - 1, 1)
    return undone


def _entry(change: Change, part: Mapping[str, Any] | None, same: Mapping[str, Any]) -> BoardEntry | None:
    return None if part is None else msgspec.convert({**same, **part, "id": change.key}, BoardEntry)


def _expiry(version: int, entry: BoardEntry, at_ms: int) -> BoardChange:
    return BoardChange(version=version, kind="expire", key=entry.id, previous=brief(entry), reason="ttl", ts=at_ms)

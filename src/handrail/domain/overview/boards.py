"""What is on the boards, board by board in order of key, without expired entries. Reads only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from handrail.domain.board.entry import BoardEntry
from handrail.domain.board.queries import EntryQuery, search
from handrail.domain.overview.rows import agent_names
from handrail.kernel.records import UnitOfWork
from handrail.kernel.wording import shortened

SHOWN = 500
VALUE_CHARS = 4000
"""The most characters of one value in a list, as JSON."""


class EntryRow(msgspec.Struct, frozen=True, kw_only=True):
    """One entry."""

    key: str
    """Within its board."""
    id: str
    """The full key, including its board."""
    value: Any
    """Any JSON; if it is too long for a list, its beginning as a text."""
    cut: bool
    tags: list[str]
    version: int
    set_by: str
    set_by_id: str
    updated_at: int
    expires_at: int | None


class BoardRow(msgspec.Struct, frozen=True, kw_only=True):
    """One board, with the entries shown."""

    name: str
    entries: list[EntryRow]


class Boards(msgspec.Struct, frozen=True, kw_only=True):
    """Boards by name."""

    boards: list[BoardRow]
    more: int
    """How many entries are not shown."""
    next: str | None
    """The key to continue after; null at the end."""


def boards(unit: UnitOfWork, sought: EntryQuery) -> Boards:
    """The first matching entries. One that is asked for by key is shown in full."""
    found = search(unit, sought, SHOWN)
    names = agent_names(unit, (entry.set_by for entry in found.entries))
    by_board: dict[str, list[BoardEntry]] = {}
    for entry in found.entries:
        by_board.setdefault(entry.namespace, []).append(entry)
    rows = [
        BoardRow(name=name, entries=_rows(entries, names, whole=bool(sought.keys)))
        for name, entries in sorted(by_board.items())
    ]
    more = found.total - len(found.entries) if found.total is not None else int(found.next is not None)
    return Boards(boards=rows, more=more, next=found.next)


def _rows(entries: Sequence[BoardEntry], names: dict[str, str], *, whole: bool) -> list[EntryRow]:
    rows = []
    for entry in entries:
        value = entry.value.get("value")
        text = msgspec.json.encode(value).decode()
        is_cut = not whole and len(text) > VALUE_CHARS
        rows.append(
            EntryRow(
                key=entry.id.removeprefix(f"{entry.namespace}:"),
                id=entry.id,
                value=shortened(text, VALUE_CHARS) if is_cut else value,
                cut=is_cut,
                tags=entry.tags,
                version=entry.version,
                set_by=names[entry.set_by],
                set_by_id=entry.set_by,
                updated_at=entry.updated_at,
                expires_at=entry.expires_at,
            )
        )
    return rows

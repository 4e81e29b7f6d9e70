"""The ledger's vocabulary: what an event is, and what it did to rows. Pure records; the store stores them.

Every change of state is an event in one stream, the stream of the thing it belongs to. An event says what happened
(`kind`, `data`) and who did it through which channel, and carries every row it changed, before and after. So state can
be rebuilt from events alone, and the last event of a stream can be undone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Actor(NamedTuple):
    """Who acts, and through which channel: mcp, cli, page, auto."""

    name: str
    channel: str


HANDRAIL = Actor("handrail", "auto")
"""Handrail itself, acting unasked: a timeout passes, a gate opens automatically, something is only read."""


class Change(NamedTuple):
    """One row's change: the columns that differ, after and before. `after` None: deleted; `before` None: created."""

    table: str
    key: str
    after: Mapping[str, Any] | None
    before: Mapping[str, Any] | None


class NewEvent(NamedTuple):
    """An event that is about to be appended."""

    kind: str
    actor: str
    channel: str
    at_ms: int
    data: Mapping[str, Any]
    changes: tuple[Change, ...]


class Event(NamedTuple):
    """An event in the ledger. `seq` counts without gaps within its stream; `position` orders events across streams."""

    stream: str
    seq: int
    position: int
    kind: str
    actor: str
    channel: str
    at_ms: int
    data: Mapping[str, Any]
    changes: Sequence[Change]
    """The rows it changed. Events read from a ledger decode them on first access: most readers never look."""
    hash: str

    def rows(self, table: str) -> Iterator[Mapping[str, Any]]:
        """The values it wrote to rows of one table."""
        return (change.after for change in self.changes if change.table == table and change.after is not None)


class Only(NamedTuple):
    """A filter on events: those that match all three. An empty field matches everything."""

    streams: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """Prefixes of kinds, such as `task.`. A whole word with its dot is the fastest to look up."""

    def fits(self, event: Event) -> bool:
        return (
            (not self.streams or event.stream in self.streams)
            and (not self.actors or event.actor in self.actors)
            and (not self.kinds or event.kind.startswith(self.kinds))
        )


EVERYTHING = Only()

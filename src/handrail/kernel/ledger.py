"""The ledger's vocabulary: what an event is, and what it did to rows. Pure records; storing them is the store's.

Every change of state is an event in one stream, the stream of the thing it belongs to. An event says what happened
(`kind`, `data`), who did it through which channel, and carries the change of every row it caused, before and after:
so state can be rebuilt from events alone, and the last one of a stream can be taken back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Actor(NamedTuple):
    """Who acts, and through which door: mcp, cli, page, auto."""

    name: str
    channel: str


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
    """An event as it stands in the ledger. `seq` counts within its stream without gaps; `position` orders all
    streams."""

    stream: str
    seq: int
    position: int
    kind: str
    actor: str
    channel: str
    at_ms: int
    data: Mapping[str, Any]
    changes: Sequence[Change]
    """What it did to rows. Read from a ledger, they are taken apart when somebody looks: who follows many events seldom
    does."""
    hash: str


class Only(NamedTuple):
    """Which events are wanted: those that fit all three. What is left empty leaves nothing out."""

    streams: tuple[str, ...] = ()
    actors: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    """How their kinds begin, such as `task.`: the whole word before the dot is found fastest."""

    def fits(self, event: Event) -> bool:
        return (
            (not self.streams or event.stream in self.streams)
            and (not self.actors or event.actor in self.actors)
            and (not self.kinds or event.kind.startswith(self.kinds))
        )


EVERYTHING = Only()

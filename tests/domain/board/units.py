"""A store in memory with a clock that stands still, and units of work on it by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store

ResultT = TypeVar("ResultT")


class Room:
    """Where boards hang."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())

    def do(self, work: Callable[[UnitOfWork], ResultT], who: str = "ada") -> ResultT:
        """What somebody does in one unit of work."""
        return self.store.run(Actor(who, "test"), work)

    def kinds(self, board: str) -> list[str]:
        """What happened on a board."""
        return [event.kind for event in self.store.events(f"bb:{board}")]

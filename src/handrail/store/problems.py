"""What is wrong with a store, by the part it is in; and from that what is lost and how to get it back. Finds nothing
itself: `verification.py` and the engines do."""

from __future__ import annotations

from collections.abc import Sequence

LEDGER = "ledger"
"""An event, or the head of a stream: what everything else could be made from again."""
ROWS = "rows"
"""A row of a table, an index, a counter: made from the ledger."""
KEYS = "keys"
"""An answer kept for a repeated call. It is in no event."""
SCHEMA = "schema"
"""Something that is not part of a store."""
FILE = "file"
"""What the engine itself finds; whether the ledger is hit, only reading it tells."""


class Problem(str):
    """One thing that is wrong, in a sentence, and the part it is in."""

    __slots__ = ("part",)
    part: str

    def __new__(cls, part: str, text: str) -> Problem:
        made = super().__new__(cls, text)
        made.part = part
        return made


def parts_of(problems: Sequence[str]) -> set[str]:
    return {problem.part if isinstance(problem, Problem) else FILE for problem in problems}


def advice(problems: Sequence[str], *, whole: bool) -> list[str]:
    """What is lost and how to get it back; empty if nothing is wrong. `whole`: the whole ledger was read, so what was
    not found there is not there."""
    parts = parts_of(problems)
    if not parts:
        return []
    if LEDGER in parts:
        count = sum(isinstance(problem, Problem) and problem.part == LEDGER for problem in problems)
        lost = "part of the ledger is damaged" if count > 1 else "one place of the ledger is damaged"
        return [
            f"lost: {lost}, and what it says cannot be made again from the rest",
            "to get it back: handrail db restore BACKUP (the store as it is now is kept beside it)",
        ]
    if not whole:
        return [
            "to learn what is lost: handrail db verify (it reads the whole ledger, and says how to get things back)"
        ]
    if parts == {KEYS}:
        return [
            "lost: answers kept for repeated calls; the ledger and every row are whole",
            "to go on without them: handrail db rebuild (the store as it is now is kept beside it)",
        ]
    if KEYS in parts:
        lost = "lost: answers kept for repeated calls; everything else is in the ledger, which is whole"
    else:
        lost = "lost: nothing; the ledger is whole, and everything else is made from it"
    return [lost, "to get it back: handrail db rebuild (the store as it is now is kept beside it)"]

"""What became of acknowledged writes: which are missing, and which stand before one that was there first. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from bench.crew.burst import Written


def lost(acknowledged: Iterable[str], kept: Iterable[str]) -> list[str]:
    """What was acknowledged and is not kept."""
    there = set(kept)
    return sorted(mark for mark in acknowledged if mark not in there)


def doubled(kept: Iterable[str]) -> list[str]:
    """What is kept more than once."""
    return sorted(mark for mark, count in Counter(kept).items() if count > 1)


def out_of_order(kept: Sequence[str], written: Mapping[str, Written]) -> list[str]:
    """What stands before something that had been acknowledged before it was even asked for. Of two that were under way
    together either may be first."""
    wrong = []
    earliest_done_ns = None
    for mark in reversed(kept):
        known = written.get(mark)
        if known is None:
            continue
        if earliest_done_ns is not None and earliest_done_ns < known.began_ns:
            wrong.append(mark)
        if earliest_done_ns is None or known.done_ns < earliest_done_ns:
            earliest_done_ns = known.done_ns
    return wrong[::-1]

"""What a worker does, whichever store it works on: appends or pages, through units or as plain rows. Opens nothing."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from bench.registry.ledger import FOLLOWED, PAGE, RARE, RARELY, READS, Appends, Watch, fill
from bench.store.slices import Prepare, serve
from handrail.domain.board.entry import board_stream
from handrail.store.store import Store

Rows = Callable[[str, tuple[object, ...]], Sequence[Sequence[Any]]]
"""What a statement finds."""


class Raw(NamedTuple):
    """One connection without anything of ours."""

    rows: Rows
    appends: Callable[[int], Prepare]
    feed: str
    stream: str
    filled: Callable[[], object] = lambda: None
    """What the connection does once there is something to read."""


def serve_kind(kind: str, size: int, store: Store, raw: Raw) -> None:
    """Works until it is told to stop."""
    if kind == "append":
        appends = Appends(store, "ours", size)
        serve(lambda lane, count: appends)
        return
    if kind == "raw-append":
        serve(raw.appends(size))
        return
    fill(store)
    raw.filled()
    if kind in ("raw-feed", "raw-decoded"):
        serve(raw_pages(raw.rows, raw.feed, (), 2, decoded=kind == "raw-decoded"))
    elif kind == "raw-stream":
        serve(raw_pages(raw.rows, raw.stream, (board_stream(FOLLOWED),), 1))
    else:
        if kind.endswith(RARE):
            gc.set_threshold(RARELY)
        watch = Watch(store, READS[kind.removesuffix(RARE)])
        serve(lambda lane, count: watch)


def raw_pages(rows: Rows, text: str, given: tuple[object, ...], column: int, *, decoded: bool = False) -> Prepare:
    """Page after page, the rows as they come; `column` is what to go on after. `decoded` reads the JSON in them
    too, and makes nothing of it."""
    after, decode = 0, msgspec.json.Decoder().decode

    def step() -> None:
        nonlocal after
        page = rows(text, (*given, after))
        if decoded:
            for row in page:
                decode(row[7])
        after = page[-1][column] if len(page) == PAGE else 0

    return lambda lane, count: step

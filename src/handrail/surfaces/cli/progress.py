"""The progress of long work, on standard error if that is a terminal; nowhere else, so that programs never see it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from handrail.surfaces.cli.columns import bar, columns, fit
from handrail.surfaces.cli.terminal import colour_wanted, steer

CLEAR = "\r\x1b[K"
"""Goes to the beginning of the line and empties it."""
OFTEN_S = 0.1
"""Seconds between two updates: more often only costs time."""


@contextmanager
def progress(label: str, total: int | None = None, *, quiet: bool = False) -> Iterator[Callable[[int], None]]:
    """Yields a function to call with how much is done; it draws a line that disappears when the work ends."""
    if quiet or not sys.stderr.isatty() or colour_wanted(os.environ) is False:  # no colour, no cursor tricks
        yield lambda _: None
        return
    drawn = 0.0

    def draw(done: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= OFTEN_S:
            drawn = now
            steer(sys.stderr, CLEAR)
            click.echo(line(label, done, total), nl=False, file=sys.stderr)

    try:
        yield draw
    finally:
        if drawn:
            steer(sys.stderr, CLEAR)
            sys.stderr.flush()


def line(label: str, done: int, total: int | None) -> str:
    """One update: `copying events [#####---------------] 2,500 of 10,000`."""
    counted = f"{done:,}" if total is None else f"{bar(min(done, total), total)} {done:,} of {total:,}"
    return fit(f"{label} {counted}", columns() - 1)

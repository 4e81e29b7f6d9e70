"""`handrail watch`: what is open, in progress and waiting for you, in a terminal, as it changes.

It waits for the ledger's next event and then reads; from time to time it reads anyway, because an agent that falls
silent leaves no event. `watch_frame.py` decides what it shows.
"""

from __future__ import annotations

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.kernel.errors import StoreAway
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, looking_call
from handrail.surfaces.cli.columns import MOST_COLUMNS, fit
from handrail.surfaces.cli.options import common_options, person, place_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.screen import Screen, own_screen
from handrail.surfaces.cli.see.watch_frame import FrameSize, WatchReading, frame, read_frame
from handrail.surfaces.cli.terminal import steer

BETWEEN_S = 0.2
"""The least time between frames: five a second are enough to follow, and calm."""
LOOK_ANYWAY_S = 15.0
"""After this long without an event it reads anyway: silence makes agents late, and elapsed times grow."""
LOOK_AGAIN_S = 1.0
"""The pause while the store is away."""
ONCE_ROWS, ONCE_EVENTS = 1000, 10
"""For a frame that is only printed: nothing is cut, and the newest events are enough."""


@click.command()
@click.argument("workflow", required=False, shell_complete=completions.workflows)
@click.option("--once", is_flag=True, help="Print it once and exit; the default when the output is not a terminal.")
@common_options
def watch(workflow: str | None, once: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Watch what happens: what waits for you, workflows, running tasks, agents, the latest events.

    WORKFLOW is an id, the beginning of one, or a name; without it, everything open here is shown. Press q or Ctrl-C to
    quit.
    """
    place = place_of(root)
    title = place.project.name
    if once or as_json or not sys.stdout.isatty():
        found = in_one_look(root, options, lambda call: read_frame(call, workflow, title))
        if as_json:
            echo_json(found)
            return
        newest = msgspec.structs.replace(found, events=found.events[:ONCE_EVENTS])
        echo_lines(frame(newest, FrameSize(_columns(), ONCE_ROWS)))
        return
    call = looking_call(place, options)
    looked(call, workflow, title)  # refuses before the screen is taken
    try:
        with own_screen(_write) as screen:
            _follow(call, screen, workflow, title)
    except KeyboardInterrupt:
        pass


def _follow(call: Call, screen: Screen, workflow: str | None, title: str) -> None:
    """Reads and draws until the person leaves."""
    shown: list[str] = []
    while not screen.left.is_set():
        screen.stirred.clear()
        began_s = time.monotonic()
        try:
            found = looked(call, workflow, title)
            shown = frame(found, _size())
            screen.draw(shown)
            screen.left.wait(max(0.0, BETWEEN_S - (time.monotonic() - began_s)))
            call.ledger.wait(found.position, LOOK_ANYWAY_S, screen.stirred.is_set)
        except StoreAway as away:  # what was seen last stays on the screen
            size = _size()
            screen.draw([fit(f"{away.message}; looking again", size.columns), *shown][: size.rows])
            screen.left.wait(LOOK_AGAIN_S)


def looked(call: Call, workflow: str | None, title: str) -> WatchReading:
    return call.ledger.run(person(), lambda unit: read_frame(msgspec.structs.replace(call, unit=unit), workflow, title))


def _size() -> FrameSize:
    """The terminal's current size; its last column stays empty, so that no line ever wraps."""
    found = os.get_terminal_size(sys.stdout.fileno())
    return FrameSize(max(20, min(found.columns, MOST_COLUMNS) - 1), max(2, found.lines))


def _columns() -> int:
    return min(shutil.get_terminal_size().columns, MOST_COLUMNS)


def _write(text: str) -> None:
    """Written as it is: colours were decided when the lines were made, and the screen has checked them."""
    steer(sys.stdout, text)
    sys.stdout.flush()

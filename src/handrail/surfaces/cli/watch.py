"""`handrail watch`: what is open, under way and waiting for you, in a terminal, as it changes.

It waits for the ledger's next event and looks then; now and then it looks anyway, because an agent that falls silent
leaves no event. What it shows is `watch_frame.py`'s.
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

from handrail.operation import Call
from handrail.surfaces.cli.columns import MOST_COLUMNS
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.plan import in_one_look
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.cli.screen import Screen, own_screen
from handrail.surfaces.cli.watch_frame import Look, Size, frame, look
from handrail.wiring import Place, assemble, looking_ledger

BETWEEN_S = 0.2
"""Frames are at least so far apart: five a second are enough to see, and calm."""
LOOK_ANYWAY_S = 15.0
"""Without any event for so long it looks again: silence makes agents late, and times grow."""
ONCE_ROWS, ONCE_EVENTS = 1000, 10
"""Of a frame that is only printed: nothing is cut, and of the events the newest are enough."""


@click.command()
@click.argument("workflow", required=False)
@click.option("--once", is_flag=True, help="Print it once and end; so it is where the output is no terminal.")
@common_options
def watch(workflow: str | None, once: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Watch what happens: what waits for you, workflows, tasks under way, agents, the newest events.

    WORKFLOW is an id, the beginning of one, or a name; without it everything open here is shown. q or Ctrl-C ends it.
    """
    place = place_of(root)
    title = place.project.name
    if once or as_json or not sys.stdout.isatty():
        found = in_one_look(root, options, lambda call: look(call, workflow, title))
        if as_json:
            echo_json(found)
            return
        newest = msgspec.structs.replace(found, events=found.events[:ONCE_EVENTS])
        for line in frame(newest, Size(_columns(), ONCE_ROWS)):
            click.echo(line)
        return
    call = looking_call(place, options)
    looked(call, workflow, title)  # what cannot be shown is refused before the screen is taken
    try:
        with own_screen(_write) as screen:
            _follow(call, screen, workflow, title)
    except KeyboardInterrupt:
        pass


def looking_call(place: Place, options: dict[str, Any]) -> Call:
    """A call for who only looks: where nothing is stored yet, that makes no store."""
    settings = settings_of(place, options)
    return assemble(place, settings, ledger=looking_ledger(place, settings)).call


def _follow(call: Call, screen: Screen, workflow: str | None, title: str) -> None:
    """Looks and draws until the person leaves."""
    while not screen.left.is_set():
        screen.stirred.clear()
        began_s = time.monotonic()
        found = looked(call, workflow, title)
        screen.draw(frame(found, _size()))
        screen.left.wait(max(0.0, BETWEEN_S - (time.monotonic() - began_s)))
        call.ledger.wait(found.position, LOOK_ANYWAY_S, screen.stirred.is_set)


def looked(call: Call, workflow: str | None, title: str) -> Look:
    return call.ledger.run(person(), lambda unit: look(msgspec.structs.replace(call, unit=unit), workflow, title))


def _size() -> Size:
    """The terminal as it is now; its last column stays empty, so that no line ever wraps."""
    found = os.get_terminal_size(sys.stdout.fileno())
    return Size(max(20, min(found.columns, MOST_COLUMNS) - 1), max(2, found.lines))


def _columns() -> int:
    return min(shutil.get_terminal_size().columns, MOST_COLUMNS)


def _write(text: str) -> None:
    """As it is: whether there are colours was settled when the lines were made."""
    sys.stdout.write(text)
    sys.stdout.flush()

"""`handrail watch`: what is open, in progress and waiting for you, in a terminal, as it changes.

It waits for the ledger's next event and then reads; from time to time it reads anyway, because an agent that falls
silent leaves no event. `watch_frame.py` decides what it shows.

Takes over a terminal's screen: draws lines in place, and restores the terminal however it ends.

Only POSIX terminals are told not to echo what is typed; others keep their setting.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import click
import msgspec

from handrail.kernel.errors import StoreAway
from handrail.kernel.late import late_module
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, looking_call
from handrail.surfaces.cli.columns import MOST_COLUMNS, fit
from handrail.surfaces.cli.options import common_options, person, place_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.see.watch_frame import FrameSize, WatchReading, frame, read_frame
from handrail.surfaces.cli.terminal import shown, steer

if TYPE_CHECKING:
    import termios
else:
    termios = late_module("termios")

_ENTER = "\x1b[?1049h\x1b[?25l"
"""Switches to the alternate screen and hides the cursor."""
_LEAVE = "\x1b[?25h\x1b[?1049l"
_BEGIN, _END = "\x1b[?2026h\x1b[H", "\x1b[J\x1b[?2026l"
"""Shows a frame at once if the terminal can; draws from the top, and clears what is left below."""
_CLEAR_REST = "\x1b[0m\x1b[K"
QUIT_KEYS = b"qQ\x03\x04"


class Screen:
    """The screen while it is ours. `stirred` is set by anything that needs a look at once: a resize, a key."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self.stirred = threading.Event()
        self.left = threading.Event()
        """Set once the person wants to quit."""

    def draw(self, lines: Sequence[str]) -> None:
        """Draws a frame over the previous one."""
        self._write(_BEGIN + "\r\n".join(shown(line) + _CLEAR_REST for line in lines) + _END)

    def show_again(self, *_: Any) -> None:
        """Called after a resize, or when the person resumes a stopped process."""
        self.stirred.set()

    def leave(self) -> None:
        self.left.set()
        self.stirred.set()


@contextlib.contextmanager
def own_screen(write: Callable[[str], None]) -> Iterator[Screen]:
    """The terminal's alternate screen, until the block ends."""
    screen = Screen(write)
    with contextlib.ExitStack() as back:
        back.enter_context(_signals(screen))
        back.enter_context(_quiet_keys(screen))
        write(_ENTER)
        back.callback(write, _LEAVE)
        yield screen


@contextlib.contextmanager
def _signals(screen: Screen) -> Iterator[None]:
    """Tells the screen about a resize; a signal to end leaves the block in order."""

    def end(number: int, _: FrameType | None) -> None:
        sys.exit(128 + number)

    handlers: dict[str, Callable[..., Any]] = {"SIGWINCH": screen.show_again, "SIGTERM": end, "SIGHUP": end}
    known = {getattr(signal, name): handler for name, handler in handlers.items() if hasattr(signal, name)}
    before = {number: signal.signal(number, handler) for number, handler in known.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _quiet_keys(screen: Screen) -> Iterator[None]:
    """Hides what is typed, and lets q quit. If standard input is not a terminal, nobody types."""
    if sys.platform == "win32":
        yield
        return
    try:
        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (OSError, ValueError, AttributeError, termios.error):
        yield
        return
    quiet = [*before]
    quiet[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(descriptor, termios.TCSANOW, quiet)
    threading.Thread(target=_read_keys, args=(descriptor, screen), daemon=True).start()
    try:
        yield
    finally:
        termios.tcsetattr(descriptor, termios.TCSAFLUSH, before)


def _read_keys(descriptor: int, screen: Screen) -> None:
    with contextlib.suppress(OSError):
        while typed := os.read(descriptor, 64):
            if any(key in QUIT_KEYS for key in typed):
                break
    screen.leave()


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

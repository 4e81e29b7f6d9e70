"""Takes over a terminal's screen: draws lines in place, and restores the terminal however it ends.

Only POSIX terminals are told not to echo what is typed; others keep their setting.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from handrail.kernel.late import late_module
from handrail.surfaces.cli.terminal import shown

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

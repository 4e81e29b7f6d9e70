"""`handrail watch` on a real terminal: it shows what another process writes, follows the size, and gives the terminal
back however it ends."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.outside.world import SystemClock
from handrail.surfaces.cli.see.watch import own_screen
from tests.surfaces.cli.journalled import Project

PATIENCE_S = 60
ENTER, LEAVE = b"\x1b[?1049h", b"\x1b[?25h\x1b[?1049l"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", now_ms=SystemClock().now_ms())
    project.task(project.workflow())
    return project


class Terminal:
    """A terminal with `handrail watch` in it."""

    def __init__(self, descriptor: int, process: subprocess.Popen[bytes]) -> None:
        self.descriptor = descriptor
        self.process = process
        self.shown = b""

    def until(self, text: bytes) -> bytes:
        """What is shown from here until this is; then it begins anew."""
        with contextlib.suppress(OSError):  # the other side is closed
            while text not in self.shown:
                assert select.select([self.descriptor], [], [], PATIENCE_S)[0], f"no {text!r} after {self.shown!r}"
                self.shown += os.read(self.descriptor, 65536)
        assert text in self.shown, self.shown
        before, _, self.shown = self.shown.partition(text)
        return before + text

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)

    def echoes(self) -> bool:
        return bool(termios.tcgetattr(self.descriptor)[3] & termios.ECHO)


@contextlib.contextmanager
def watching(project: Project) -> Iterator[Terminal]:
    ours, theirs = pty.openpty()
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 90, 0, 0))
    environment = {**os.environ, "HOME": str(project.top.parent / "home"), "TERM": "xterm"}
    words = [sys.executable, "-m", "handrail", "watch", "--root", str(project.top)]
    with subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        try:
            yield Terminal(ours, process)
        finally:
            process.kill()
            os.close(ours)


def write_elsewhere(project: Project, name: str) -> None:
    """Another process writes."""
    words = [sys.executable, "-m", "handrail", "call", "workflow_create", "--root", str(project.top)]
    given = f'{{"name": "{name}", "source_type": "prompt", "source_content": "x"}}'
    subprocess.run(
        [*words, given, "--profile", "all"],
        check=True,
        capture_output=True,
        env={**os.environ, "HOME": str(project.top.parent / "home")},
        timeout=PATIENCE_S,
    )


def test_it_shows_what_another_process_writes_and_follows_the_size(project: Project) -> None:
    with watching(project) as terminal:
        terminal.until(ENTER)
        terminal.until(b"Newest")
        write_elsewhere(project, "Came from elsewhere")
        terminal.until(b"Came from elsewhere")
        terminal.until(b"\x1b[?2026l")  # the end of that frame
        terminal.resize(4, 40)
        small = terminal.until(b"\x1b[?2026l")
        while b"Newest" in small:  # one that was on its way
            small = terminal.until(b"\x1b[?2026l")
        assert small.count(b"\r\n") < 4
        os.write(terminal.descriptor, b"q")
        terminal.until(LEAVE)
        assert terminal.process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_the_terminal_is_given_back(project: Project, number: signal.Signals, code: int) -> None:
    with watching(project) as terminal:
        assert terminal.echoes()
        terminal.until(b"Newest")
        assert not terminal.echoes()
        terminal.process.send_signal(number)
        rest = terminal.until(LEAVE)
        assert terminal.process.wait(PATIENCE_S) == code, rest
        assert terminal.echoes()
        assert b"Traceback" not in rest + terminal.shown


def test_it_is_given_back_when_something_breaks() -> None:
    written: list[str] = []
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(ValueError, match="broken"), own_screen(written.append):
        raise ValueError("broken")
    assert "".join(written).encode().endswith(LEAVE)
    assert signal.getsignal(signal.SIGTERM) is before

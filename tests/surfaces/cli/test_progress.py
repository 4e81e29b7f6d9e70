"""How far long work is: drawn on a terminal's standard error, gone when the work is, and nowhere else."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from handrail.surfaces.cli import progress as module
from handrail.surfaces.cli.progress import line, progress


class Terminal:
    """What was written to a terminal."""

    def __init__(self) -> None:
        self.written = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.written += text
        return len(text)

    def flush(self) -> None:
        pass


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    seen = Terminal()
    monkeypatch.setattr(module, "sys", SimpleNamespace(stderr=seen))  # pytest has the real one
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    moments = iter(range(1000))
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: float(next(moments) + 1)))
    return seen


def test_a_terminal_sees_it_and_then_an_empty_line(terminal: Terminal) -> None:
    with progress("copying", 4) as done:
        done(1)
        done(4)
    drawn = terminal.written.split("\r\x1b[K")
    assert drawn == ["", "copying [#####---------------] 1 of 4", "copying [####################] 4 of 4", ""]


def test_work_that_fails_leaves_an_empty_line_too(terminal: Terminal) -> None:
    with pytest.raises(OSError, match="full"), progress("copying") as done:
        done(1500)
        raise OSError("full")
    assert terminal.written.endswith("copying 1,500\r\x1b[K")


def test_it_draws_only_now_and_then(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 1.0))
    with progress("copying", 9) as done:
        for number in range(9):
            done(number)
    assert terminal.written.count("copying") == 1


@pytest.mark.parametrize("variable", ["NO_COLOR", "TERM"])
def test_who_wants_no_colour_gets_no_tricks(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "dumb")
    with progress("copying", 4) as done:
        done(1)
    assert terminal.written == ""


def test_a_file_or_a_program_sees_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with progress("copying", 4) as done:
        done(1)
    assert capsys.readouterr() == ("", "")


def test_quiet_is_quiet(terminal: Terminal) -> None:
    with progress("copying", 4, quiet=True) as done:
        done(1)
    assert terminal.written == ""


def test_a_narrow_terminal_gets_a_line_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    assert len(line("copying what agents have said", 1, 4)) <= 29

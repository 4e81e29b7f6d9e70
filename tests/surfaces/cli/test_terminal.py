"""What a terminal gets: text and our own colours. And that nothing is written past it."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

import handrail
from handrail.surfaces.cli.terminal import TerminalStream, guard_terminals, shown, steer

SOURCE = Path(handrail.__file__).parent


class Device(io.BytesIO):
    """A terminal's bytes."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("naïve 日本語\u3000⚠\ufe0f ✓\n", "naïve 日本語\u3000⚠\ufe0f ✓\n"),
        ("\u009b31m", "\\u009b31m"),
        ("\u202egpj.\u2066", "\\u202egpj.\\u2066"),
        ("a\u200b\ufeff\u00ad\u2028b", "a\\u200b\\ufeff\\u00ad\\u2028b"),
        ("\U000e0041\U000e0100\u3164", "\\udb40\\udc41\\udb40\\udd00\\u3164"),
        ("safe\rEVIL\x08\x7f\x00", "safe\\u000dEVIL\\u0008\\u007f\\u0000"),
        ("\x1b[32mgreen\x1b[0m", "\x1b[32mgreen\x1b[0m"),
        ("\x1b[8mhidden\x1b[2J\x1b]0;t\x07", "\\u001b[8mhidden\\u001b[2J\\u001b]0;t\\u0007"),
        ("\x1b[30m\x1b[1;8m\x1b[38;5;0m", "\\u001b[30m\\u001b[1;8m\\u001b[38;5;0m"),
    ],
)
def test_only_text_and_our_colours_get_through(text: str, seen: str) -> None:
    assert shown(text) == seen


@given(st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_stays_the_same_json(value: object) -> None:
    written = json.dumps(value, ensure_ascii=False)
    assert json.loads(shown(written)) == value
    assert all(letter.isprintable() or letter.isspace() for letter in shown(written))


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
def test_whatever_prints_on_a_terminal_goes_through(monkeypatch: pytest.MonkeyPatch, encoding: str) -> None:
    devices = {name: Device() for name in ("stdout", "stderr")}
    for name, device in devices.items():
        monkeypatch.setattr(sys, name, io.TextIOWrapper(device, encoding=encoding))
    guard_terminals()
    guard_terminals()
    click.echo("one \u009b\u202e")
    click.echo("two \u009b\u202e", err=True)
    print("three \u009b", file=sys.stderr)
    assert devices["stdout"].getvalue() == b"one \\u009b\\u202e\n"
    assert devices["stderr"].getvalue() == b"two \\u009b\\u202e\nthree \\u009b\n"


def test_a_pipe_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    piped = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", piped)
    guard_terminals()
    assert sys.stdout is piped


def test_what_is_meant_to_steer_does() -> None:
    device = Device()
    stream = TerminalStream(device, encoding="utf-8")
    steer(stream, "\x1b[?1049h")
    stream.flush()
    plain = io.StringIO()
    steer(plain, "\x1b[K")
    assert (device.getvalue(), plain.getvalue()) == (b"\x1b[?1049h", "\x1b[K")


PAST = re.compile(
    r"sys\.std(?:out|err)\.(?:write|buffer)|sys\.__std|get_binary_stream|/dev/tty|os\.write\([12],|\bsteer\("
    r"|click\.(?:clear|secho|echo_via_pager|edit|pause)\("
)
MAY = {
    "hooks/__main__.py": "it checks for itself: it has the standard library alone",
    "surfaces/cli/terminal.py": "it is the way",
    "surfaces/cli/see/watch.py": "the screen checks each line",
    "surfaces/cli/progress.py": "it empties its line",
}


def test_nothing_is_written_past_it() -> None:
    found = {
        str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if PAST.search(file.read_text(encoding="utf-8"))
    }
    assert found == set(MAY)


def test_bytes_are_printed_only_where_there_is_no_terminal() -> None:
    """Click writes bytes past a text stream."""
    printed = re.compile(r"click\.echo\((?:chunk|[^\n]*\.encode\([^()\n]*\)\)$)", re.MULTILINE)
    found = {str(file.relative_to(SOURCE)) for file in SOURCE.rglob("*.py") if printed.search(file.read_text())}
    assert found == {"surfaces/cli/see/diff.py"}

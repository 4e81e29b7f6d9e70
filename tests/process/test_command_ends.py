"""How a command ends whose reader has left: quietly, and with its work done.

Ctrl-C is in tests/surfaces/cli/together/test_message.py.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.surfaces.cli.keep.test_db import create, workflows

PRESSES, PRESS_AGAIN_S = 6, 10
HANDRAIL = [sys.executable, "-m", "handrail"]


def run_unread(project: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    """Runs a command whose reader has left before anything is written."""
    reading, writing = os.pipe()
    os.close(reading)
    environment = {**os.environ, "HOME": str(project.parent / "home"), "NO_COLOR": "1"}
    asked = [*HANDRAIL, *words, "--root", str(project)]
    try:
        return subprocess.run(asked, stdout=writing, stderr=subprocess.PIPE, env=environment, check=False, timeout=60)
    finally:
        os.close(writing)


@pytest.mark.parametrize("words", [("tools", "--profile", "all"), ("guide", "show", "bug-hunt"), ("settings",)])
def test_a_reader_that_leaves_early_is_no_trouble(tmp_path: Path, words: tuple[str, ...]) -> None:
    done = run_unread(tmp_path, *words)
    assert (done.returncode, done.stderr) == (141, b"")


def press_ctrl_c(command: subprocess.Popen[bytes]) -> None:
    """Again where it does not end: a signal in the instant before Python begins to read a line is not seen until the
    next one. Its input stays open, for the end of that is another answer."""
    for _ in range(PRESSES):
        command.send_signal(signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            command.wait(PRESS_AGAIN_S)
            return
    command.kill()


def test_who_stops_at_a_question_has_stopped_the_command(tmp_path: Path) -> None:
    create(tmp_path)
    asked = [*HANDRAIL, "db", "move", str(tmp_path / "new.db"), "--root", str(tmp_path)]
    with subprocess.Popen(
        asked,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOME": str(tmp_path.parent / "home")},
    ) as command:
        assert command.stdout is not None
        question = b""
        while not question.endswith(b"[y/N]: "):
            question += os.read(command.stdout.fileno(), 1000)
        press_ctrl_c(command)
        assert command.stderr is not None
        told = command.stderr.read()
    assert (command.returncode, told) == (130, b"\nStopped.\n")
    assert not (tmp_path / "new.db").exists()


@pytest.mark.parametrize(("answer", "told"), [(b"n\n", b"Nothing was done."), (b"", b"Nobody answered")])
def test_who_does_not_say_yes_is_told_that_nothing_was_done(tmp_path: Path, answer: bytes, told: bytes) -> None:
    create(tmp_path)
    asked = [*HANDRAIL, "db", "move", str(tmp_path / "new.db"), "--root", str(tmp_path)]
    done = subprocess.run(
        asked,
        input=answer,
        capture_output=True,
        env={**os.environ, "HOME": str(tmp_path.parent / "home")},
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert told in done.stderr
    assert not (tmp_path / "new.db").exists()


def test_a_move_is_whole_before_it_is_told(tmp_path: Path) -> None:
    create(tmp_path)
    config = tmp_path / ".handrail" / "config.toml"
    assert run_unread(tmp_path, "db", "move", str(tmp_path / "new.db"), "--yes").returncode == 141
    assert 'db = "new.db"' in config.read_text(encoding="utf-8")
    assert workflows(tmp_path) == ["Import"]
    assert run_unread(tmp_path, "db", "release", "--yes", "--db", ".handrail/handrail.db").returncode == 141
    assert "db =" not in config.read_text(encoding="utf-8")
    assert workflows(tmp_path) == ["Import"]

"""`handrail diff` as a real process: raw bytes in a pipe, and colours on a real terminal that no patch can command."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.outside.world import SystemClock
from tests.process.terminal import printed_on_a_terminal
from tests.surfaces.cli.journalled import Project

CONTENT = b"caf\xe9 \x1b]0;owned\x07\r\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project", now_ms=SystemClock().now_ms())
    task = project.task(project.workflow())
    project.write("new.txt", CONTENT)
    project.complete(task)
    return project


def command(project: Project, *argv: str) -> tuple[list[str], dict[str, str]]:
    environment = {**os.environ, "HOME": str(project.top.parent / "home"), "TERM": "xterm", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    return [sys.executable, "-m", "handrail", *argv, "--root", str(project.top)], environment


def on_a_terminal(project: Project, *argv: str) -> bytes:
    """What a process prints that believes it has a terminal."""
    words, environment = command(project, *argv)
    code, found = printed_on_a_terminal(words, environment)
    assert code == 0, found
    return found


def test_in_a_pipe_a_patch_is_byte_for_byte(project: Project) -> None:
    words, environment = command(project, "diff", "task_1")
    done = subprocess.run(words, capture_output=True, check=True, env=environment)
    assert done.stderr == b""
    assert done.stdout.endswith(b"@@ -0,0 +1 @@\n+" + CONTENT)


def test_on_a_terminal_a_patch_is_coloured_and_harmless(project: Project) -> None:
    shown = on_a_terminal(project, "diff", "task_1")
    assert b"\x1b[32m+caf" in shown
    assert b"\x1b]0;" not in shown
    assert b"\x07" not in shown
    assert b"\xe9" not in shown


def test_a_reader_that_leaves_early_is_no_bug(project: Project) -> None:
    task = project.task("wf_1", "Many")
    project.write("many.txt", "".join(f"line {n}\n" for n in range(200_000)))
    project.complete(task)
    words, environment = command(project, "diff", task)
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        complaint = process.stderr.read()
        assert process.wait(60) == 1
    assert b"Traceback" not in complaint

"""Checks of a project: each ends within its time, whatever it prints or leaves running, and is told how it went."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from handrail.outside.check_runner import NOT_STARTED, OUTPUT, TIMED_OUT, CheckRunner

PLENTY_S = 60.0
"""Never waited for: a test that takes as long has failed."""


def check(folder: Path, *words: str, timeout_s: float = PLENTY_S) -> dict[str, Any]:
    (told,) = CheckRunner({"one": words}, timeout_s=timeout_s).run(str(folder))
    return told


def python(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


@pytest.mark.parametrize("code", [0, 3])
def test_the_exit_code_and_both_outputs_are_told(tmp_path: Path, code: int) -> None:
    told = check(tmp_path, *python(f"import os, sys; os.write(1, b'out '); os.write(2, b'err'); sys.exit({code})"))
    assert (told["exit_code"], told["output"], told["ran_by"]) == (code, "out err", "handrail")


def test_of_a_long_output_the_end_is_kept(tmp_path: Path) -> None:
    told = check(tmp_path, *python("print('x' * 5_000_000); print('the verdict')"))
    assert len(told["output"]) == OUTPUT
    assert told["output"].endswith("the verdict\n")


def test_it_has_no_input_to_wait_for(tmp_path: Path) -> None:
    assert check(tmp_path, *python("print(repr(input.__name__), open(0).read())"))["exit_code"] == 0


@pytest.mark.parametrize("words", [("./no-such-check",), ("echo", "a\0b")])
def test_what_cannot_be_started_is_told(tmp_path: Path, words: tuple[str, ...]) -> None:
    told = check(tmp_path, *words)
    assert told["exit_code"] == NOT_STARTED
    assert "could not be started" in told["output"]


LEAVES = """
import os, sys, time
if os.fork():
    print("done", flush=True)
    os._exit(0)
os.setsid()
with open("pid", "w") as file:
    file.write(str(os.getpid()))
{then}
"""
"""A check that ends at once and leaves a process behind, in a session of its own, that keeps its output open."""


@pytest.mark.parametrize("then", ["time.sleep(600)", "while True: print('still here', flush=True)"])
def test_what_a_check_leaves_running_is_not_waited_for(tmp_path: Path, then: str) -> None:
    began = time.monotonic()
    told = check(tmp_path, *python(LEAVES.format(then=then)))
    try:
        assert (told["exit_code"], time.monotonic() - began < PLENTY_S / 2) == (0, True)
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def ended_within(seconds: float, pid: int) -> bool:
    """Whether a process that is no child of ours ends: it is gone, or waits for its parent to look."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
    return False


def test_one_that_takes_too_long_ends_with_all_that_it_started(tmp_path: Path) -> None:
    told = check(tmp_path, "sh", "-c", "sleep 600 & echo $$ $!; sleep 600", timeout_s=3.0)
    assert told["exit_code"] == TIMED_OUT
    first, second, *last = told["output"].split()
    assert last == ["stopped", "after", "3", "s"]
    assert ended_within(PLENTY_S / 2, int(first))
    assert ended_within(PLENTY_S / 2, int(second))


def test_one_that_escapes_its_session_does_not_hold_us_up(tmp_path: Path) -> None:
    told = check(tmp_path, "sh", "-c", "setsid sh -c 'echo $$; exec sleep 600' & sleep 600", timeout_s=3.0)
    os.kill(int(told["output"].split()[0]), signal.SIGKILL)
    assert told["exit_code"] == TIMED_OUT

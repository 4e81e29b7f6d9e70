"""The gate: one process at a time, as often as one thread likes, and no longer than the limit."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.kernel.errors import StoreBusy, StoreUnusable
from handrail.store.gate import Gate

HOLD = """
import sys
from pathlib import Path
from handrail.store.gate import Gate
with Gate(Path(sys.argv[1]), 5).held():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "handrail.db.gate"


@pytest.fixture
def gate(path: Path) -> Iterator[Gate]:
    gate = Gate(path, 30)
    yield gate
    gate.close()


@contextlib.contextmanager
def held_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the gate."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def is_shut(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def test_the_gate_is_shut_while_it_is_held_and_open_afterwards(gate: Gate, path: Path) -> None:
    with gate.held():
        assert is_shut(path)
    assert not is_shut(path)


def test_a_thread_may_hold_it_again(gate: Gate, path: Path) -> None:
    with gate.held():
        with gate.held():
            assert is_shut(path)
        assert is_shut(path)
    assert not is_shut(path)


def test_an_error_inside_opens_it_too(gate: Gate, path: Path) -> None:
    with pytest.raises(ZeroDivisionError), gate.held():
        raise ZeroDivisionError
    assert not is_shut(path)


def test_nobody_who_only_looks_leaves_a_file(gate: Gate, path: Path) -> None:
    assert not path.exists()
    with gate.held():
        assert path.exists()
    assert path.stat().st_mode & 0o777 == 0o600


def test_threads_pass_one_by_one(gate: Gate) -> None:
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            with gate.held():
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1


def test_who_waits_gets_in_when_the_other_process_leaves(gate: Gate, path: Path) -> None:
    entered = threading.Event()

    def enter() -> None:
        with gate.held():
            entered.set()

    with held_elsewhere(path) as other:
        waiting = threading.Thread(target=enter)
        waiting.start()
        assert not entered.wait(0.1)
        other.communicate("let go\n")
        assert entered.wait(30)
        waiting.join()


def test_a_holder_that_dies_opens_the_gate(gate: Gate, path: Path) -> None:
    with held_elsewhere(path) as other:
        other.kill()
        other.wait()
        with gate.held():
            assert is_shut(path)


def test_waiting_has_a_limit_and_names_who_is_in_the_way(path: Path) -> None:
    gate = Gate(path, 0.05)
    with held_elsewhere(path) as other:
        with pytest.raises(StoreBusy) as refused, gate.held():
            pytest.fail("it is held elsewhere")
        if Path("/proc/locks").exists():
            assert refused.value.details == {"holder": other.pid}
        assert "nothing was written" in refused.value.hint
        other.communicate("let go\n")
    with gate.held():
        assert is_shut(path)
    gate.close()


def test_a_gate_that_cannot_be_made_is_a_refusal(tmp_path: Path) -> None:
    gate = Gate(tmp_path / "nowhere" / "handrail.db.gate", 1)
    with pytest.raises(StoreUnusable, match="cannot be opened"), gate.held():
        pytest.fail("there is no gate")
    gate.close()

"""The gate: one process at a time, as often as one thread likes, and no longer than the limit."""

from __future__ import annotations

import _thread
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.kernel.errors import StoreAway, StoreBusy
from handrail.store.write_lock import WriteLock

HOLD = """
import sys
from pathlib import Path
from handrail.store.write_lock import WriteLock as Gate
with Gate(Path(sys.argv[1]), 5).held():
    print("held", flush=True)
    sys.stdin.readline()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "handrail.db.gate"


@pytest.fixture
def gate(path: Path) -> Iterator[WriteLock]:
    gate = WriteLock(path, 30)
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


def test_the_gate_is_shut_while_it_is_held_and_open_afterwards(gate: WriteLock, path: Path) -> None:
    with gate.held():
        assert is_shut(path)
    assert not is_shut(path)


def test_a_thread_may_hold_it_again(gate: WriteLock, path: Path) -> None:
    with gate.held():
        with gate.held():
            assert is_shut(path)
        assert is_shut(path)
    assert not is_shut(path)


def test_an_error_inside_opens_it_too(gate: WriteLock, path: Path) -> None:
    with pytest.raises(ZeroDivisionError), gate.held():
        raise ZeroDivisionError
    assert not is_shut(path)


def test_nobody_who_only_looks_leaves_a_file(gate: WriteLock, path: Path) -> None:
    assert not path.exists()
    with gate.held():
        assert path.exists()
    assert path.stat().st_mode & 0o777 == 0o600


def test_who_waits_gets_in_when_the_other_process_leaves(gate: WriteLock, path: Path) -> None:
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


def test_a_holder_that_dies_opens_the_gate(gate: WriteLock, path: Path) -> None:
    with held_elsewhere(path) as other:
        other.kill()
        other.wait()
        with gate.held():
            assert is_shut(path)


def test_waiting_has_a_limit_and_names_who_is_in_the_way(path: Path) -> None:
    gate = WriteLock(path, 0.05)
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
    gate = WriteLock(tmp_path / "nowhere" / "handrail.db.gate", 1)
    with pytest.raises(StoreAway, match="cannot be opened"), gate.held():
        pytest.fail("there is no gate")
    gate.close()


def test_a_link_in_place_of_a_gate_leads_nowhere(gate: WriteLock, path: Path, tmp_path: Path) -> None:
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreAway) as refused, gate.held():
        pytest.fail("it was held")
    assert "symbolic link" in refused.value.hint
    assert not (tmp_path / "elsewhere").exists()


def test_a_gate_that_cannot_be_locked_is_a_refusal_and_leaves_nothing_behind(
    gate: WriteLock, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(descriptor: int, operation: int) -> None:
        if operation & fcntl.LOCK_EX:
            raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with monkeypatch.context() as patched:
        patched.setattr(fcntl, "flock", no_locks)
        with pytest.raises(StoreAway, match="cannot be locked: No locks available") as refused, gate.held():
            pytest.fail("there is no lock")
        assert "--db" in refused.value.hint
    with gate.held():
        assert is_shut(path)
    assert not is_shut(path)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Tests that were started in the background of a shell ignore interrupts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_is_noticed_also_when_it_did_not_wake_the_one_who_waits(path: Path) -> None:
    """Nobody sends a signal here, there is only the note that one has come: as when it comes a moment too early."""
    gate = WriteLock(path, 600)

    def interrupt() -> None:
        while gate._line.is_free:
            os.sched_yield()
        _thread.interrupt_main()

    with held_elsewhere(path):
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt), gate.held():
            pytest.fail("it is held elsewhere")
        interrupting.join()
    with gate.held():
        assert is_shut(path)
    assert not is_shut(path)
    gate.close()


def test_waits_that_were_given_up_leave_a_gate_that_works(path: Path) -> None:
    """Who waits again while the thread of an earlier wait is still on its way sends it once too often."""
    gate = WriteLock(path, 0.05)
    with held_elsewhere(path) as other:
        for _ in range(3):
            with pytest.raises(StoreBusy), gate.held():
                pytest.fail("it is held elsewhere")
        other.communicate("let go\n")
    for _ in range(50):
        with gate.held():
            assert is_shut(path)
    with held_elsewhere(path):
        for _ in range(3):
            with pytest.raises(StoreBusy), gate.held():
                pytest.fail("it is held elsewhere")
    gate.close()

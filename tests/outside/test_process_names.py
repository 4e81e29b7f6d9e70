"""Whether the process behind a session still runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.outside import process_names
from handrail.outside.process_names import is_alive, new_session

needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the kernel shows no starts here")


def test_every_connection_has_a_name_of_its_own() -> None:
    assert new_session() != new_session()


def test_a_process_that_runs_is_alive() -> None:
    assert is_alive(new_session()) is True


def test_of_a_guest_nothing_is_known_while_its_server_runs() -> None:
    assert is_alive(new_session(guest=True)) is None


def session_of(command: str) -> tuple[subprocess.Popen[bytes], str]:
    """A process of its own and the session it says it has."""
    code = f"from handrail.outside.process_names import new_session; print({command}, flush=True); input()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    return process, process.stdout.readline().decode().strip()


@pytest.mark.parametrize("command", ["new_session()", "new_session(guest=True)"])
def test_a_process_that_was_killed_is_not_alive(command: str) -> None:
    process, session = session_of(command)
    with process:
        assert is_alive(session) is (True if "guest" not in command else None)
        process.kill()
        process.wait()
        assert is_alive(session) is False


@needs_proc
def test_a_process_that_has_ended_and_nobody_has_looked_after_is_not_alive() -> None:
    process, session = session_of("new_session()")
    with process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it is over, and still has its number
        assert Path(f"/proc/{process.pid}/stat").exists()
        assert is_alive(session) is False


@needs_proc
def test_another_process_with_the_same_number_is_another() -> None:
    host, pid, started, number = new_session().rsplit("/", 3)
    assert is_alive(f"{host}/{pid}/{int(started) + 1}/{number}") is False


def test_on_another_machine_nobody_can_look() -> None:
    _, pid, started, number = new_session().rsplit("/", 3)
    assert is_alive(f"elsewhere/{pid}/{started}/{number}") is None


@pytest.mark.parametrize("session", ["", "/", "nonsense", "host/abc/1/1", "{host}/x/1/1", "{host}/99999999999/1/1"])
def test_what_is_no_session_is_nobody(session: str) -> None:
    host = new_session().rsplit("/", 3)[0]
    assert is_alive(session.replace("{host}", host)) is None


def test_where_no_start_is_shown_the_number_must_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_names, "_started", lambda _: None)
    session = new_session()
    assert session.split("/")[-2] == "0"
    assert is_alive(session) is True
    process, gone = session_of("new_session()")
    with process:
        process.kill()
        process.wait()
    host, pid, _, number = gone.rsplit("/", 3)
    assert is_alive(f"{host}/{pid}/0/{number}") is False


def test_a_process_that_hides_is_not_called_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(_pid: int, _signal: int) -> None:
        raise PermissionError

    session = new_session()
    monkeypatch.setattr(process_names, "_started", lambda _: None)
    monkeypatch.setattr(os, "kill", hidden)
    assert is_alive(session) is None

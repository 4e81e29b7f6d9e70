"""Commands and servers as child processes. Each is ended by its own id, whatever happens. Knows no protocol."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

HOST = "127.0.0.1"
START_DEADLINE_S = 20.0
END_DEADLINE_S = 10.0


class CannotRun(Exception):  # noqa: N818 - says in one line what is missing
    """Something outside keeps the run from meaning anything."""


class Finished(msgspec.Struct, frozen=True):
    """What a command left behind. `code` is None when it had to be ended."""

    code: int | None
    output: str
    errors: str


def run(
    command: Sequence[str], *, cwd: Path, deadline_s: float, extra_env: Mapping[str, str] | None = None
) -> Finished:
    """Runs a command to its end, or ends it and all it started at the deadline."""
    child = subprocess.Popen(  # noqa: S603 - an argument list of our own making
        command,
        cwd=cwd,
        env={**os.environ, **(extra_env or {})},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    code: int | None = None
    try:
        output, errors = child.communicate(timeout=deadline_s)
        code = child.returncode
    except subprocess.TimeoutExpired:
        _end_group(child)
        output, errors = child.communicate()
    finally:
        _end_group(child)
    return Finished(code, output, errors)


def _end_group(child: subprocess.Popen[str]) -> None:
    """The command's own process group, which has its id."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


class ServerProcess:
    """An HTTP server on a port of its own."""

    def __init__(self, child: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self._child = child
        self.port = port
        self._log = log
        self.url = f"http://{HOST}:{port}/mcp"

    def complaints(self) -> str:
        """What it wrote on standard error."""
        return self._log.read_text(errors="replace").strip()

    def end(self) -> int | None:
        """Asks it to leave; its exit code, or None when it had to be ended."""
        self._child.terminate()
        try:
            return self._child.wait(END_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
            return None


@contextlib.contextmanager
def serving(
    command: Sequence[str], port: int, *, cwd: Path, log: Path, extra_env: Mapping[str, str] | None = None
) -> Iterator[ServerProcess]:
    """The server, once it takes connections. Its standard error goes to `log`."""
    with log.open("wb") as errors:
        child = subprocess.Popen(  # noqa: S603 - an argument list of our own making
            command,
            cwd=cwd,
            env={**os.environ, **(extra_env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    server = ServerProcess(child, port, log)
    try:
        _wait_for_connections(child, server)
        yield server
    finally:
        if child.poll() is None:
            server.end()


def _wait_for_connections(child: subprocess.Popen[bytes], server: ServerProcess) -> None:
    never = threading.Event()
    until = time.monotonic() + START_DEADLINE_S
    while time.monotonic() < until:
        if child.poll() is not None:
            raise CannotRun(f"the server ended with {child.returncode}: {server.complaints()}")
        with contextlib.suppress(OSError), socket.create_connection((HOST, server.port), timeout=1.0):
            return
        never.wait(0.05)
    raise CannotRun(f"the server took no connections within {START_DEADLINE_S:.0f} s")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port

"""A client for a server process: sends lines, reads replies within a deadline, and never hangs a test."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from tests.process.child import Child

DEADLINE_S = 30.0
"""Far beyond any honest answer; reached only when something is stuck."""

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "init",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


class ServerProcess(Child):
    """A started server and its pipes."""

    def __init__(self, command: Sequence[str], *, cwd: Path, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self._stdin = self.process.stdin
        self._out = self.process.stdout.fileno()
        self._pending = b""
        self._reader: threading.Thread | None = None

    def send(self, message: dict[str, Any] | bytes) -> None:
        self._stdin.write((message if isinstance(message, bytes) else msgspec.json.encode(message)) + b"\n")
        self._stdin.flush()

    def send_soon(self, lines: bytes) -> None:
        """Sends from a thread: more than the pipes hold, while the caller reads."""
        threading.Thread(target=self.send, args=(lines,), daemon=True).start()

    def read_beside(self, target: Callable[[], None]) -> None:
        """Reads in a thread from now on."""
        self._reader = threading.Thread(target=target, daemon=True)
        self._reader.start()

    def close(self) -> None:
        if self._reader is not None:  # it would read on from whoever gets the same descriptor next
            self._reader.join(DEADLINE_S)
        super().close()

    def line(self, within_s: float | None = DEADLINE_S) -> bytes | None:
        """The next line of output; None at its end."""
        while b"\n" not in self._pending:
            ready, _, _ = select.select([self._out], [], [], within_s)
            assert ready, f"no answer within {within_s} s"
            chunk = os.read(self._out, 1 << 16)
            if not chunk:
                assert self._pending == b"", "output ended in the middle of a line"
                return None
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        return line

    def reply(self) -> dict[str, Any]:
        line = self.line()
        assert line is not None, f"the server ended: {self.errors()}"
        decoded = msgspec.json.decode(line)
        assert isinstance(decoded, dict)
        return decoded

    def ask(self, method: str, params: dict[str, Any] | None = None, request_id: int | str = 1) -> dict[str, Any]:
        self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}})
        return self.reply()

    def initialize(self) -> dict[str, Any]:
        self.send(INITIALIZE)
        return self.reply()

    def end_input(self) -> None:
        self._stdin.close()

    def wait(self) -> int:
        return self.process.wait(DEADLINE_S)

    def errors(self) -> str:
        assert self.process.stderr is not None
        return str(self.process.stderr.read(), "utf-8")


def handrail_serve(cwd: Path, *options: str, env: dict[str, str] | None = None) -> ServerProcess:
    return ServerProcess([sys.executable, "-m", "handrail", "serve", *options], cwd=cwd, env=env)


def toy_serve(cwd: Path) -> ServerProcess:
    """The protocol's toy server, without a Handrail word in it."""
    root = Path(__file__).parent.parent.parent
    return ServerProcess([sys.executable, "-m", "tests.process.toy_server"], cwd=cwd, env={"PYTHONPATH": str(root)})

"""One client at work in one project: a home of its own, a scripted model, and what Handrail's store then says.

The project is set up by `handrail init`, as a user would; a client's own settings (where its model is, which folders it
trusts) come from `clients.py`. The environment is made from nothing, so that no account or proxy of whoever runs the
tests is seen.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tests.clients.real.scripted_model import ScriptedModel

if TYPE_CHECKING:
    from tests.clients.real.clients import Client

DEADLINE_S = 90.0
"""How long one run of a client may take. They end within ten seconds; two cores may be busy."""


@dataclass(frozen=True)
class Ended:
    """A run of a client: its exit code and what it printed."""

    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class Seat:
    """A client, its home, its model and its project."""

    client: Client
    installed: Path
    home: Path
    project: Path
    model: ScriptedModel

    def environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "NO_PROXY": "127.0.0.1",
            **self.client.environment(self),
        }

    def handrail(self, *words: str) -> str:
        """What Handrail's own command line says about this project."""
        done = subprocess.run(
            [sys.executable, "-m", "handrail", *words],
            cwd=self.project,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def told(self, *words: str) -> Any:
        return msgspec.json.decode(self.handrail(*words, "--json"))

    def call(self, tool: str, **arguments: object) -> Any:
        """Calls a tool from the command line: another hand on the same store."""
        return msgspec.json.decode(self.handrail("call", tool, msgspec.json.encode(arguments).decode()))

    def settle(self, *, allowed: bool = True) -> None:
        """Sets up the project with `handrail init`, and the client's own home."""
        permission = "--allow-tools" if allowed else "--no-allow-tools"
        self.handrail("init", "--yes", permission, "--client", self.client.name)
        self.client.settle(self)

    @contextlib.contextmanager
    def started(self, prompt: str, *, again: bool = False) -> Iterator[subprocess.Popen[str]]:
        """The client at work; nothing of it is left when the block ends."""
        process = subprocess.Popen(
            self.client.command(self, prompt, again=again),
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def run(self, prompt: str, *, again: bool = False) -> Ended:
        """Runs the client to its end; `again` goes on with the last conversation."""
        with self.started(prompt, again=again) as process:
            output, errors = process.communicate(timeout=DEADLINE_S)
        return Ended(process.returncode, output, errors)


def run_together(seats: list[Seat], prompt: str) -> list[Ended]:
    """Several clients at once, each to its end."""
    ended: dict[int, Ended] = {}

    def one(position: int, seat: Seat) -> None:
        ended[position] = seat.run(prompt)

    threads = [threading.Thread(target=one, args=place, daemon=True) for place in enumerate(seats)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_S)
    return [ended[position] for position in range(len(seats))]

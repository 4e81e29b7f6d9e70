"""Writer processes and what is done to them: started, listened to, killed at random moments, started again."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.process.store_audit import Ack, audit

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 60.0
"""Far beyond any honest wait; reached only when something is stuck."""
WITHOUT_END = 10**9


def child_environment() -> dict[str, str]:
    """The environment of a process that runs a module of the tests."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


class Writer:
    """One writer process and everything it has said."""

    def __init__(
        self,
        path: Path,
        name: str,
        seed: int,
        *,
        first: int = 1,
        last: int = WITHOUT_END,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.acks: list[Ack] = []
        self.other: list[dict[str, Any]] = []
        self._pending = b""
        self.ended = False
        command = [
            sys.executable,
            "-m",
            "tests.process.store_writer",
            str(path),
            name,
            str(seed),
            str(first),
            str(last),
        ]
        self.process = subprocess.Popen(
            command,
            cwd=path.parent,
            env={**child_environment(), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdout is not None
        self._out = self.process.stdout
        self.next = first

    def fileno(self) -> int:
        return self._out.fileno()

    def listen(self) -> None:
        """Takes in what is there; call it when there is something."""
        chunk = os.read(self._out.fileno(), 1 << 16)
        self.ended = not chunk
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        for line in lines:
            said = msgspec.json.decode(line)
            if "n" in said:
                self.acks.append(said)
                self.next = said["n"] + 1
            else:
                self.other.append(said)

    def finish(self) -> None:
        """Hears the rest of a process that has ended or is about to."""
        if self._out.closed:
            return
        deadline = time.monotonic() + DEADLINE_S
        while not self.ended:
            assert select.select([self], [], [], max(0.0, deadline - time.monotonic()))[0], f"{self.name} is stuck"
            self.listen()
        self.process.wait(DEADLINE_S)
        self._out.close()

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)

    def said(self, key: str) -> Any:
        return next((line[key] for line in self.other if key in line), None)


def listen(writers: Iterable[Writer], timeout_s: float) -> None:
    """Takes in what anybody says within the time; returns at the first word."""
    ready, _, _ = select.select([writer for writer in writers if not writer.ended], [], [], timeout_s)
    for writer in ready:
        writer.listen()


class Outcome(NamedTuple):
    """What a run of kills came to."""

    kills: int
    rounds: int
    acks: list[Ack]
    problems: list[str]

    @property
    def lost(self) -> list[str]:
        return [problem for problem in self.problems if problem.startswith("lost")]


class Crew:
    """Writers on one file under a seeded killer."""

    def __init__(self, path: Path, seed: int, size: int, env: Mapping[str, str] | None = None) -> None:
        self._path = path
        self._seed = seed
        self._env = env
        self._chance = random.Random(seed)
        self._acks: list[Ack] = []
        self._problems: list[str] = []
        self.kills = 0
        self._writers = [self._start(f"w{number}", 1) for number in range(size)]

    def _start(self, name: str, first: int) -> Writer:
        return Writer(self._path, name, self._seed, first=first, env=self._env)

    def run(self, rounds: int, all_every: int) -> Outcome:
        """Kills one writer a round, and all of them every so many; stops at the first thing that is wrong."""
        done = 0
        try:
            while done < rounds and not self._problems:
                done += 1
                everybody = done % all_every == 0 or done == rounds
                self._kill(self._writers if everybody else [self._chance.choice(self._writers)])
                self._bury()
                if everybody:
                    self._problems += audit(self._path, self._acks)
                self._writers = [
                    self._start(writer.name, writer.next) if writer.ended else writer for writer in self._writers
                ]
        finally:
            for writer in self._writers:
                writer.kill()
                writer.finish()
        return Outcome(self.kills, done, self._acks, self._problems)

    def _kill(self, chosen: list[Writer]) -> None:
        """At a moment that is a number of acknowledgements away, or, now and then, while the victim is starting."""
        if self._chance.random() < 0.8:
            self._listen_until(chosen[0], len(chosen[0].acks) + self._chance.randint(1, 30))
        until = time.monotonic() + self._chance.random() * 0.01
        while (left := until - time.monotonic()) > 0:
            listen(self._writers, left)
        for writer in chosen:
            writer.kill()
            self.kills += 1
        for writer in chosen:
            writer.finish()

    def _listen_until(self, writer: Writer, acks: int) -> None:
        deadline = time.monotonic() + DEADLINE_S
        while len(writer.acks) < acks and not writer.ended:
            assert time.monotonic() < deadline, f"{writer.name} is stuck"
            listen(self._writers, 1.0)

    def _bury(self) -> None:
        """Keeps what the dead have said. Nobody dies by himself."""
        for writer in self._writers:
            if writer.ended:
                writer.finish()
                self._acks += writer.acks
                if writer.process.returncode != -signal.SIGKILL:
                    self._problems.append(f"{writer.name} ended by itself: {writer.other}")

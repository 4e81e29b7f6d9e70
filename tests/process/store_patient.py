"""A process that does to a store what it is told, one step at a time: `python -m tests.process.store_patient`.

Told by lines of JSON on stdin, answers each with one on stdout. Where its engine refuses, the refusal is the answer.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from handrail.store.unit import Unit
from tests.process.child import Child
from tests.process.store_crew import DEADLINE_S, child_environment
from tests.process.store_units import CHANNEL, WallClock, message
from tests.process.store_writer import LifeIds

NOBODY = 65534


def open_files() -> int:
    return len(os.listdir("/dev/fd")) - 1  # noqa: PTH208 - the one it was listed through is closed again


def note(store: Store, tag: str, size: int = 1000) -> dict[str, Any]:
    """Writes one event; what it returns is an acknowledgement."""

    def work(unit: Unit) -> None:
        sent = message(tag, tag.partition("-")[0], "x" * size, unit.now_ms())
        unit.expect(sent.stream)
        unit.record("message.sent", sent, data={"unit": tag})

    store.run(Actor("patient", CHANNEL), work)
    return {"tag": tag, "events": 1}


# -- in the child ---------------------------------------------------------------------------------------------------


class Steps:
    """What can be asked for. Names start with the process, so that no two processes write the same."""

    def __init__(self) -> None:
        self._engine: SqliteEngine
        self._store: Store
        self._holding = contextlib.ExitStack()
        self._count = 0
        self._counting = threading.Lock()

    def _tag(self) -> str:
        with self._counting:
            self._count += 1
            return f"p{os.getpid()}-{self._count}"

    def open(self, path: str, busy_ms: int) -> None:
        self._engine = SqliteEngine(Path(path), version="0", busy_ms=busy_ms)
        self._store = Store(self._engine, clock=WallClock(), ids=LifeIds())

    def close(self) -> None:
        self._engine.close()

    def write(self, count: int) -> dict[str, Any]:
        """Writes until it is refused: what was acknowledged, and the refusal."""
        acks: list[dict[str, Any]] = []
        try:
            for _ in range(count):
                acks.append(note(self._store, self._tag()))
        except Refusal as refusal:
            return {"acks": acks, "refused": refusal.as_dict()}
        return {"acks": acks}

    def write_in_threads(self, threads: int, count: int) -> list[dict[str, Any]]:
        outcomes: list[dict[str, Any]] = []
        running = [threading.Thread(target=lambda: outcomes.append(self.write(count))) for _ in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
        return outcomes

    def events(self) -> int:
        with self._engine.reading() as reader:
            return reader.position()

    def look_twice(self) -> int:
        """Two looks at once, the second through another connection."""
        with self._engine.reading() as first, self._engine.reading() as second:
            return first.position() + second.position()

    def hold(self) -> None:
        """Stays alone in the store until told to let go."""
        self._holding.enter_context(self._engine.alone())

    def write_half(self) -> None:
        """Stays in the middle of a unit: an event is there, its row is not, nothing is committed."""
        self._holding.enter_context(self._engine._gate.held())
        self._engine._writer.execute("BEGIN IMMEDIATE")
        self._engine._writer.execute(
            "INSERT INTO event VALUES ('half', 1, 1000000, 'half', 'x', 'x', 0, X'5b7b7d2c5b5d5d', 'x')"
        )
        self._holding.callback(self._engine._roll_back)

    def let_go(self) -> None:
        self._holding.close()

    def room(self, size: int | None) -> None:
        """How large a file may get."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if size is None else size, -1))

    def files(self, more: int | None) -> None:
        """How many more files this process may open."""
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard if more is None else open_files() + more, hard))

    def become_nobody(self) -> None:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    def fork(self) -> dict[str, Any]:
        """What a fork of this process is told when it uses the parent's engine."""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            told = [attempted(step) for step in (self.events, lambda: note(self._store, self._tag()))]
            self._engine.close()
            os.write(writing, msgspec.json.encode(told))
            os._exit(0)
        os.close(writing)
        told = msgspec.json.decode(os.read(reading, 1 << 16))
        os.close(reading)
        os.waitpid(child, 0)
        return {"told": told}

    def write_behind_an_interrupted_thread(self) -> dict[str, Any]:
        """This thread writes for another one too, and is interrupted while it waits at the gate."""
        engine, told, interrupted = self._engine, [], False

        def write() -> None:
            told.append(attempted(lambda: note(self._store, self._tag())))

        def interrupt() -> None:
            while engine._gate._line.is_free:
                os.sched_yield()
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        threads = [threading.Thread(target=write), threading.Thread(target=interrupt)]
        with engine._leader:
            threads[0].start()
            while not engine._queue:
                os.sched_yield()
            try:
                threads[1].start()
                note(self._store, self._tag())
            except KeyboardInterrupt:
                interrupted = True
        for thread in threads:
            thread.join()
        return {"interrupted": interrupted, "other": told[0]}


def attempted(step: Callable[[], Any]) -> dict[str, Any]:
    try:
        return {"answer": step()}
    except Refusal as refusal:
        return {"refused": refusal.as_dict()}


def say(line: dict[str, Any]) -> None:
    os.write(1, msgspec.json.encode(line) + b"\n")


def main() -> None:
    steps = Steps()
    for line in sys.stdin.buffer:
        name, *arguments = msgspec.json.decode(line)
        say(attempted(lambda name=name, arguments=arguments: getattr(steps, name)(*arguments)))  # type: ignore[misc]


# -- in the test ----------------------------------------------------------------------------------------------------


class Patient(Child):
    """Such a process, from outside."""

    def __init__(self, path: Path | str | None = None, *, cwd: Path | None = None, busy_ms: int = 10_000) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.store_patient"],
            cwd=cwd,
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin, self.process.stdout
        self._pending = b""
        if path is not None:
            self.do("open", str(path), busy_ms)

    def ask(self, name: str, *arguments: Any) -> None:
        self._in.write(msgspec.json.encode([name, *arguments]) + b"\n")
        self._in.flush()

    def told(self) -> dict[str, Any]:
        """The next answer: `answer` or `refused`."""
        deadline = time.monotonic() + DEADLINE_S
        while b"\n" not in self._pending:
            assert select.select([self._out], [], [], max(0.0, deadline - time.monotonic()))[0], "stuck"
            chunk = os.read(self._out.fileno(), 1 << 16)
            assert chunk, f"ended: {self.process.wait(DEADLINE_S)}"
            self._pending += chunk
        line, _, self._pending = self._pending.partition(b"\n")
        decoded: dict[str, Any] = msgspec.json.decode(line)
        return decoded

    def do(self, name: str, *arguments: Any) -> Any:
        """One step that is not refused."""
        self.ask(name, *arguments)
        told = self.told()
        assert "refused" not in told, told
        return told["answer"]

    def refused(self, name: str, *arguments: Any) -> dict[str, Any]:
        """One step that is."""
        self.ask(name, *arguments)
        told = self.told()
        assert "refused" in told, told
        refusal: dict[str, Any] = told["refused"]
        return refusal

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what a shell starts in its background
    main()

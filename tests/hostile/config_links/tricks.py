"""What can be put in place of a file, and the real program run where it was put, with a bound on time and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

WITHIN_S = 30.0
"""Far beyond any honest answer; reached only by a process that hangs."""
MOST_MB = 200
"""The most memory a process may take. A server has forty; a device without an end gives gigabytes in that time."""
SECRET = "kept-outside"
DEEP = 5000
LAUNCHER = """import os, sys
told = int(sys.argv[1])
os.set_inheritable(told, False)
_, status, used = os.wait4(os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ), 0)
os.write(told, b"%d %d" % (os.waitstatus_to_exitcode(status), used.ru_maxrss))"""
"""Starts a process and tells how it ended. It is small: a process counts the memory of who started it as its own."""


class Ended(NamedTuple):
    """How a process ended, and what it took."""

    code: int
    said: str
    megabytes: int


class Ground:
    """A repository with one commit, a home beside it, and what lies outside of both."""

    def __init__(self, folder: Path) -> None:
        self.home, self.repo, self.outside = folder / "home", folder / "repo", folder / "outside"
        for each in (self.home, self.repo, self.outside):
            each.mkdir()
        (self.repo / "a.py").write_text("a = 1\n", encoding="utf-8")
        self.git("init", "-q", "-b", "main")
        self.git("add", ".")
        self.git("commit", "-qm", "begin")

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL_", "CLAUDE_"))}
        return {**kept, "HOME": str(self.home), "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "200"}

    def git(self, *words: str) -> None:
        command = ["git", "-c", "user.name=t", "-c", "user.email=t@example.com", *words]
        subprocess.run(command, cwd=self.repo, env=self.environment, check=True, capture_output=True)

    def handrail(self, *words: str, at: Path | None = None) -> Ended:
        """A command of Handrail whose standard input stays open and never says anything."""
        return self._ended(["handrail", *words], at)

    def hook(self, event: str) -> Ended:
        return self._ended(["handrail.hooks", event], None, given=b"{}")

    def _ended(self, words: list[str], at: Path | None, given: bytes | None = None) -> Ended:
        reading, writing = os.pipe()
        told, telling = os.pipe()
        with tempfile.TemporaryFile() as output:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", LAUNCHER, str(telling), sys.executable, "-m", *words],
                cwd=at or self.repo,
                env=self.environment,
                stdin=reading,
                stdout=output,
                stderr=output,
                pass_fds=(telling,),
                start_new_session=True,
            )
            os.close(reading)
            os.close(telling)
            if given is not None:
                os.write(writing, given)
                os.close(writing)
            late = threading.Timer(WITHIN_S, os.killpg, (process.pid, signal.SIGKILL))
            late.start()
            process.wait()
            late.cancel()
            if given is None:
                os.close(writing)
            code, kilobytes = (os.read(told, 100) or b"-9 0").split()
            os.close(told)
            output.seek(0)
            said = " ".join(output.read().decode("utf-8", "replace").split())
        return Ended(int(code), said, int(kilobytes) // 1024)


def _outside(ground: Ground, path: Path) -> Path:
    """A file that nobody asked to be read, of the same kind."""
    told = {".toml": f'"{SECRET}" = 1\n', ".json": f'{{"{SECRET}": 1}}\n', ".yaml": f"{SECRET}: 1\n"}
    file = ground.outside / path.name
    file.write_text(told.get(path.suffix, f"# {SECRET}\n"), encoding="utf-8")
    return file


def _linked(target: str) -> Callable[[Ground, Path], None]:
    return lambda _, path: path.symlink_to(target)


def _leading_out(ground: Ground, path: Path) -> None:
    path.symlink_to(_outside(ground, path))


def _folder_leading_out(ground: Ground, path: Path) -> None:
    """The folder is the link, and what it leads to has a file of that name."""
    _outside(ground, path)
    path.parent.rename(ground.outside.parent / "before")
    path.parent.symlink_to(ground.outside)


def _huge(_: Ground, path: Path) -> None:
    with path.open("wb") as file:
        file.write(b"#")
        file.truncate(50_000_000)


def _deep(_: Ground, path: Path) -> None:
    written = {".toml": "a = {}", ".yaml": "a: {}", ".json": '{{"a": {}}}'}[path.suffix]
    path.write_text(written.format("[" * DEEP + "]" * DEEP), encoding="utf-8")


def _digits(_: Ground, path: Path) -> None:
    written = {".toml": "a = {}", ".yaml": "a: {}", ".json": "[{}]"}[path.suffix]
    path.write_text(written.format("1" * DEEP), encoding="utf-8")


class Trick(NamedTuple):
    """What is put in a file's place, and what is said of it, as a pattern."""

    put: Callable[[Ground, Path], None]
    says: str
    only: tuple[str, ...] = ()
    """The endings of names it makes sense for; empty for any."""


OUT = "leads out of the project|not a regular file"
PARSED = (".toml", ".yaml", ".json")
TRICKS: Mapping[str, Trick] = {
    "endless": Trick(_linked("/dev/zero"), OUT),
    "stdin": Trick(_linked("/dev/stdin"), OUT),
    "pipe": Trick(lambda _, path: os.mkfifo(path), "not a regular file"),
    "folder": Trick(lambda _, path: path.mkdir(), ""),
    "out": Trick(_leading_out, "leads out of the project"),
    "folder-out": Trick(_folder_leading_out, "leads out of the project"),
    "circle": Trick(lambda _, path: path.symlink_to(path.name), "in a circle|back to itself"),
    "huge": Trick(_huge, "larger than|too large"),
    "deep": Trick(_deep, "nested|not valid", PARSED),
    "digits": Trick(_digits, "out of range|not valid", PARSED),
}


def put(ground: Ground, trick: str, path: Path) -> None:
    """Puts a trick in a file's place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    TRICKS[trick].put(ground, path)


def check_bounds(ended: Ended) -> None:
    """It answered: neither killed for being late, nor a bug, nor at the cost of the machine's memory, and told nothing
    of what lies outside."""
    assert ended.code in (0, 1, 2), ended
    assert "Traceback" not in ended.said
    assert SECRET not in ended.said
    assert ended.megabytes < MOST_MB, ended

"""Where the demo takes place: a folder of its own with a repository and an empty home, and git as its agents use it.

Nothing outside the folder is written to. During the demo, git finds the empty home instead of the user's, so that none
of their settings changes what is shown.

What every step of the demo uses: agents that call the real tools, lines that report the answers, and pauses.

The stage stands for the audience: it prints a line, waits a moment, and gets the person's answer to a gate. Ids are
never printed, so that every run of the demo reads the same.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import msgspec

from handrail.demo.texts import START
from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.operation import Call
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import Handrail, LazyLedger, WorkPlace, assemble, settings_at

PREFIX = "handrail-demo-"
GIT_TIMEOUT_S = 60


class Ground(msgspec.Struct, frozen=True):
    """A throw-away folder."""

    folder: Path

    @property
    def project(self) -> Path:
        return self.folder / "words"

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def write(self, where: Path, files: Mapping[str, str]) -> None:
        """Writes files as an agent does."""
        for name, text in files.items():
            path = where / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8", newline="\n")

    def git(self, where: Path, *words: str, who: str = "Handrail") -> None:
        """Runs git as an agent does, in its own name and with no user's settings."""
        program = shutil.which("git")
        assert program is not None, "looked for before the demo begins"
        kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR", "TEMP") if name in os.environ}
        named = {
            f"GIT_{role}_{what}": value
            for role in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", who), ("EMAIL", f"{who.lower()}@localhost"))
        }
        nobodys = {"HOME": str(self.home), "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(  # noqa: S603 - an argument list, and git by its path
            [program, *words],
            cwd=where,
            env={**kept, **named, **nobodys},
            check=True,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=GIT_TIMEOUT_S,
        )


def has_git() -> bool:
    return shutil.which("git") is not None


@contextlib.contextmanager
def prepared() -> Iterator[Ground]:
    """A folder with a home in it. It stays: the caller deletes it with `clear`."""
    ground = Ground(Path(tempfile.mkdtemp(prefix=PREFIX)).resolve())
    with _at_home_in(ground.folder / "home"):
        yield ground


def lay_out(ground: Ground) -> None:
    """Creates the repository as the agents find it."""
    ground.project.mkdir()
    ground.git(ground.project, "init", "-q", "-b", "main")
    ground.write(ground.project, START)
    ground.git(ground.project, "add", "-A")
    ground.git(ground.project, "commit", "-qm", "A place to begin")


def clear(ground: Ground) -> bool:
    """Deletes the folder; false if some of it could not be deleted."""
    shutil.rmtree(ground.folder, ignore_errors=True)
    return not ground.folder.exists()


@contextlib.contextmanager
def _at_home_in(home: Path) -> Iterator[None]:
    """While this lasts, every git that Handrail starts has this home, and none of the user's settings."""
    home.mkdir()
    before = {name: os.environ.pop(name, None) for name in ("HOME", "XDG_CONFIG_HOME")}
    os.environ["HOME"] = str(home)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


CHANNEL = "demo"


class Stage(Protocol):
    """Where the play is shown, and who watches it."""

    def title(self, text: str) -> None:
        """A new act."""

    def line(self, who: str, what: str) -> None:
        """One thing that happened."""

    def patch(self, text: str) -> None:
        """One line of a patch."""

    def beat(self) -> None:
        """A moment to read it."""

    def decide(self, call: Call) -> tuple[str, str]:
        """Shows the waiting gate, has it answered, and returns the answer and its comment."""


class DemoAgent:
    """One agent of the play, with its own connection."""

    def __init__(self, play: Play, name: str) -> None:
        self._play = play
        self._client = CallingClient()
        self.name = name
        self.id = ""

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool once, as a client would. Raises Refusal."""
        operation = self._play.handrail.switch.find(tool)
        assert operation is not None, tool
        answer: dict[str, Any] = invoke(
            operation, self._play.handrail.call, arguments, actor=Actor(self.name, CHANNEL), client=self._client
        )
        return answer

    def refused(self, tool: str, **arguments: Any) -> Refusal:
        """Makes a call that must be refused, and returns the refusal. If it succeeds, the script is wrong."""
        try:
            answer = self.call(tool, **arguments)
        except Refusal as refusal:
            return refusal
        raise AssertionError(f"{tool} was to be refused, and answered {answer}")

    def says(self, what: str) -> None:
        self._play.tell(self.name, what)


class Play:
    """The play in progress: the ground, the tools over it, and the agents."""

    def __init__(self, ground: Ground, stage: Stage, ledger: LazyLedger | None = None) -> None:
        place = WorkPlace(project=ground.project, home=ground.home, environ={})
        self.ground = ground
        self.stage = stage
        self.handrail: Handrail = assemble(place, settings_at(place, {"profile": "all"}), ledger=ledger)
        self.ada, self.ben, self.cleo = (DemoAgent(self, name) for name in ("Ada", "Ben", "Cleo"))
        self.workflow = ""
        self.tasks: dict[str, str] = {}
        """Ids by name."""
        self.spaces: dict[str, dict[str, Any]] = {}
        """Worktrees by the name of their task, as `workspace_create` returned them."""

    @property
    def agents(self) -> tuple[DemoAgent, ...]:
        return (self.ada, self.ben, self.cleo)

    def tell(self, who: str, what: str) -> None:
        self.stage.line(who, what)
        self.stage.beat()

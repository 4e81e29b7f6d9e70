"""Processes killed in the middle of each operation: nothing is lost at that moment, and the same call goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.outside.tracking.playground import Playground, environment
from tests.outside.worktrees.conftest import copied_base
from tests.outside.worktrees.grove import Grove

MANY = 400


class Killer:
    """The process that starts others and lets them die."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.outside.worktrees.crashing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**environment(), "PYTHONPATH": "src"},
            cwd=Path(__file__).parents[3],
        )

    def run(self, top: Path, order: dict[str, Any], step: int, inside_ms: float | None, *, git_survives: bool) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        how = {"step": step, "inside_ms": inside_ms, "git_survives": git_survives}
        told = json.dumps({"top": str(top), **how, **order})
        self._process.stdin.write(told + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def killer(_empty_home: Path) -> Iterator[Killer]:
    found = Killer()
    yield found
    found.end()


class Scene(NamedTuple):
    """Something to be done, with all that must be there at every moment."""

    grove: Grove
    order: dict[str, Any]
    commits: set[str]
    contents: set[bytes]
    goes_on: Callable[[], None]
    """Does it again, and looks whether it came to its end."""


def order(operation: str, *arguments: Any, checked: bool = False, **named: Any) -> dict[str, Any]:
    return {"operation": operation, "arguments": arguments, "named": named, "checked": checked}


def making(grove: Grove) -> Scene:
    grove.repo.write("mine.txt", "not committed\n")

    def goes_on() -> None:
        made = grove.made("one")
        tree = Playground(Path(made.path))
        assert tree.git("status", "--porcelain") == ""
        assert tree.git("rev-parse", "HEAD") == made.base_commit == grove.git("rev-parse", "main")
        assert len(grove.git("worktree", "list").splitlines()) == 2
        assert "locked" not in grove.git("worktree", "list", "--porcelain")

    asked = order("make", grove.path("one"), "work/one", "main")
    return Scene(grove, asked, grove.commits(), {b"not committed\n"}, goes_on)


def merging(grove: Grove, *, checked: bool = False) -> Scene:
    tree = grove.make("one")
    tree.append("a.txt", "by the branch\n")
    tree.remove("docs")
    tree.write("deep/new.txt", "new\n")
    tree.write("docs", "a file where a folder was\n")
    tree.write("big.txt", "line of a larger file\n" * 20000)
    tree.commit()
    grove.repo.append("b.txt", "mine, changed\n")
    grove.repo.write("staged.txt", "mine, staged\n")
    grove.git("add", "staged.txt")
    grove.repo.write("untracked.txt", "mine, untracked\n")
    mine = {grove.repo.read(name) for name in ("b.txt", "staged.txt", "untracked.txt")}

    def goes_on() -> None:
        done = grove.merge("one")
        assert grove.git("rev-parse", "main") == done.commit
        assert len(grove.git("show", "-s", "--format=%P", done.commit).split()) == 2
        assert grove.git("status", "--porcelain").split("\n") == ["M b.txt", "A  staged.txt", "?? untracked.txt"]
        assert grove.repo.read("a.txt").endswith(b"by the branch\n")
        assert grove.repo.path("docs").is_file()
        assert len(grove.git("worktree", "list").splitlines()) == 2
        assert [path.name for path in (grove.top / ".handrail/worktrees").glob(".[cs]*-*")] == []
        assert list((grove.top / ".git").glob("index.*")) == []

    asked = order("merge", "work/one", "main", message="m", checked=checked, **({} if checked else {"checks": None}))
    return Scene(grove, asked, grove.commits(), mine, goes_on)


def checked_merging(grove: Grove) -> Scene:
    return merging(grove, checked=True)


def removing(grove: Grove, again: Callable[[Grove], None] | None = None) -> Scene:
    tree = grove.make("one")
    tree.write("committed.txt", "committed\n")
    tree.commit()
    tree.git("checkout", "-q", "--detach")
    tree.write("loose.txt", "loose\n")
    tree.commit()
    tree.git("checkout", "-q", "work/one")
    tree.write("a.txt", "staged\n")
    tree.git("add", "a.txt")
    tree.write("a.txt", "changed\n")
    tree.write("deep/untracked.txt", "untracked\n")
    contents = {b"committed\n", b"staged\n", b"changed\n", b"untracked\n", b"loose\n"}

    def goes_on() -> None:
        removed = grove.remove("one")
        assert removed.removed, removed
        assert not Path(grove.path("one")).exists()
        assert list(Path(grove.path("one")).parent.iterdir()) == []
        assert len(grove.git("worktree", "list").splitlines()) == 1
        assert grove.git("show", "work/one:a.txt") == "changed"
        assert int(grove.git("rev-list", "--count", "main..work/one")) <= 3

    def made_again() -> None:
        assert grove.made("one").existed
        assert tree.path("committed.txt").exists()

    asked = order("remove", grove.path("one"), base="main", delete_branch=True, ignored=False, dry_run=False)
    return Scene(grove, asked, grove.commits(), contents, made_again if again else goes_on)


def removing_and_making_again(grove: Grove) -> Scene:
    return removing(grove, lambda _: None)


def removing_merged(grove: Grove) -> Scene:
    tree = grove.make("one")
    tree.write("new.txt", "new\n")
    tree.commit()
    grove.merge("one")

    def goes_on() -> None:
        assert grove.remove("one").removed
        assert grove.branches() == {"main"}
        assert len(grove.git("worktree", "list").splitlines()) == 1

    asked = order("remove", grove.path("one"), base="main", delete_branch=True, ignored=False, dry_run=False)
    return Scene(grove, asked, grove.commits(), {b"new\n"}, goes_on)


SCENES = (making, merging, checked_merging, removing, removing_merged, removing_and_making_again)


Try = tuple[float | None, bool]
"""How long the git of a step is let to work, if it begins at all, and whether it outlives its process."""
BEFORE: list[Try] = [(None, False)]
ALONE: list[Try] = [(0, True)]


def killed_at(killer: Killer, scene: Callable[[Grove], Scene], folder: Path, factory: Any, step: int, how: Try) -> bool:
    """One try; False when the operation came to its end before that step."""
    grove = Grove(copied_base(folder / "repo", factory))
    staged = scene(grove)
    told = killer.run(grove.top, staged.order, step, how[0], git_survives=how[1])
    assert told in ("killed", "done"), (told, step)
    if not how[1]:  # a git that goes on may be changing things while they are counted
        assert staged.contents <= grove.contents(logged=True), step
    staged.goes_on()
    assert not grove.git("fsck", "--connectivity-only", "--no-dangling"), step
    assert staged.contents <= grove.contents(logged=Path(grove.path("one")).exists()), step
    assert staged.commits <= grove.commits(), step
    return told == "killed"


def every(
    killer: Killer, scene: Callable[[Grove], Scene], tmp_path: Path, factory: Any, steps: range, tries: list[Try]
) -> int:
    """All of these steps; returns how many the operation has."""
    for step in steps:
        for number, how in enumerate(tries):
            if not killed_at(killer, scene, tmp_path / f"{step}-{number}", factory, step, how):
                return step
    return steps.stop


@pytest.mark.parametrize("scene", SCENES)
def test_killed_between_steps(
    killer: Killer, scene: Callable[[Grove], Scene], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    first = SCENES.index(scene) % 4
    assert every(killer, scene, tmp_path, tmp_path_factory, range(2 + first, MANY, 6), BEFORE) > 5


@pytest.mark.parametrize("scene", [making, merging, removing])
def test_killed_while_its_git_goes_on_alone(
    killer: Killer, scene: Callable[[Grove], Scene], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert every(killer, scene, tmp_path, tmp_path_factory, range(4, MANY, 7), ALONE) > 5


@pytest.mark.torture
@pytest.mark.parametrize("scene", SCENES)
def test_killed_before_every_step(
    killer: Killer, scene: Callable[[Grove], Scene], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    every(killer, scene, tmp_path, tmp_path_factory, range(1, MANY), [*BEFORE, *ALONE])


@pytest.mark.torture
@pytest.mark.parametrize("scene", SCENES)
def test_killed_while_git_is_at_work(
    killer: Killer, scene: Callable[[Grove], Scene], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    every(killer, scene, tmp_path, tmp_path_factory, range(1, MANY), [(1, False), (2, False), (4, False), (7, False)])

"""Hostile repositories: making, looking, foreseeing, merging and removing never run a program that one names. Every
trap is first shown to work: plain git springs it."""

from __future__ import annotations

import contextlib
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from handrail.kernel.errors import Refusal
from tests.outside.tracking.playground import Playground, environment
from tests.outside.worktrees.grove import Grove

HOOKS = (
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "reference-transaction",
)


class Trap(NamedTuple):
    """Where a program is named, and the plain commands that step on it."""

    plant: Callable[[Playground, str], None]
    plain: list[list[str]]


def hook(name: str) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, program: str) -> None:
        repo.write(f".git/hooks/{name}", f"#!/bin/sh\nexec '{program}'\n")
        repo.path(f".git/hooks/{name}").chmod(0o755)

    return plant


def attribute(key: str, text: str) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, program: str) -> None:
        repo.write(".git/info/attributes", f"*.txt {text}\n")
        repo.git("config", key, f"{program} %O %A %B" if "merge" in key else program)

    return plant


def setting(key: str) -> Callable[[Playground, str], None]:
    def plant(repo: Playground, program: str) -> None:
        repo.git("config", key, program)

    return plant


def merge_strategy(repo: Playground, program: str) -> None:
    repo.git("config", "branch.main.mergeOptions", "--no-ff --no-commit -s ours")
    repo.git("config", "core.editor", program)


ADD = [["worktree", "add", "-q", "../plain", "-b", "plain", "main~1"]]
COMMIT = [["commit", "-q", "--allow-empty", "-m", "x"]]
MERGE = [["merge", "-q", "--no-edit", "side"]]

TRAPS = {
    **{name: Trap(hook(name), [*ADD, *COMMIT, *MERGE]) for name in HOOKS},
    "clean filter": Trap(attribute("filter.evil.clean", "filter=evil"), [["add", "--renormalize", "."]]),
    "smudge filter": Trap(attribute("filter.evil.smudge", "filter=evil"), ADD),
    "filter process": Trap(attribute("filter.evil.process", "filter=evil"), ADD),
    "merge driver": Trap(attribute("merge.evil.driver", "merge=evil"), MERGE),
    "fsmonitor": Trap(setting("core.fsmonitor"), [["status"]]),
    "signing": Trap(setting("gpg.program"), [["commit", "-q", "-S", "--allow-empty", "-m", "x"]]),
    "merge options": Trap(merge_strategy, [["merge", "side"], ["commit"]]),
}


def trap(tmp_path: Path) -> tuple[str, Path]:
    mark, script = tmp_path / "mark", tmp_path / "trap.sh"
    script.write_text(f"#!/bin/sh\necho sprung >> '{mark}'\ntimeout 1 cat\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script), mark


def prepared(grove: Grove) -> None:
    """A branch `side` that changes what main changes too, so that a merge has to look inside."""
    grove.git("checkout", "-q", "-b", "side", "main~1")
    grove.repo.write("a.txt", "ONE\ntwo\nthree\n")
    grove.repo.commit()
    grove.git("checkout", "-q", "main")
    grove.repo.append("a.txt", "four\n")
    grove.repo.commit()


@pytest.mark.parametrize("name", TRAPS)
def test_no_program_of_the_repository_runs(grove: Grove, tmp_path: Path, name: str) -> None:
    prepared(grove)
    program, mark = trap(tmp_path)
    TRAPS[name].plant(grove.repo, program)
    mark.unlink(missing_ok=True)

    def check(folder: str) -> list[dict[str, object]]:
        return [{"name": "there", "passed": Path(folder, "a.txt").exists()}]

    for branch in ("one", "two"):
        tree = grove.made(branch)
        Path(tree.path, "a.txt").write_text(f"{branch}\ntwo\nthree\nfour\n")
        Path(tree.path, "new.txt").write_text(branch)
    grove.trees.look({grove.path("one"): "main"})
    grove.trees.foresee({"one": grove.path("one"), "two": grove.path("two")}, "main")
    may_refuse = name == "merge driver" or "filter" in name
    with contextlib.suppress(*((Refusal,) if may_refuse else ())):
        grove.trees.merge("side", "main", message="m", checks=check)
    grove.remove("one", dry_run=True)
    removed = grove.remove("one", ignored=True)
    assert removed.removed or "filter" in str(removed.kept_because), removed
    assert not mark.exists(), mark.read_text()


@pytest.mark.parametrize("name", TRAPS)
def test_plain_git_springs_the_trap(grove: Grove, tmp_path: Path, name: str) -> None:
    """Without this, a trap that cannot spring would prove nothing."""
    prepared(grove)
    program, mark = trap(tmp_path)
    TRAPS[name].plant(grove.repo, program)
    mark.unlink(missing_ok=True)
    for command in TRAPS[name].plain:
        subprocess.run(
            ["git", *command], cwd=grove.top, env=environment(), capture_output=True, check=False, timeout=60
        )
    assert mark.exists()


def test_a_filter_of_the_repository_in_the_bases_copy_is_not_half_applied(grove: Grove) -> None:
    prepared(grove)
    grove.repo.write(".git/info/attributes", "*.txt filter=case\n")
    grove.git("config", "filter.case.smudge", "tr a-z A-Z")
    before = grove.git("for-each-ref"), grove.repo.read("a.txt")
    with pytest.raises(Refusal, match="content filter"):
        grove.trees.merge("side", "main", message="m", checks=None)
    assert (grove.git("for-each-ref"), grove.repo.read("a.txt")) == before


def test_no_refusal_shows_a_command_that_destroys(grove: Grove) -> None:
    """Hints are read by agents that may run them."""
    source = Path(__file__).parents[3] / "src/handrail/outside/worktrees"
    texts = "".join(file.read_text(encoding="utf-8") for file in source.glob("*.py"))
    hints = [part.split(")")[0] for part in texts.split("hint=")[1:]]
    words = (
        "git reset",
        "git clean",
        "rm -",
        "git checkout",
        "git branch -",
        "worktree remove",
        "git stash",
        "--force",
    )
    assert len(hints) > 20
    assert not [hint for hint in hints for word in words if word in hint]

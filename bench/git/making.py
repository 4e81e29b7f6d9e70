"""Repositories to measure in: text files in folders of fifty, some of them dirty, some untracked, some ignored."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

PER_FOLDER = 50
LINES = 100
DIRTY, UNTRACKED, IGNORED = 20, 10, 200


def git(top: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=top, check=True, capture_output=True).stdout


def name_of(number: int) -> str:
    return f"pkg{number // (PER_FOLDER * 40)}/mod{number // PER_FOLDER}/file{number}.py"


def make(top: Path, files: int) -> None:
    """A repository with one commit of so many files, dirt as a person leaves it, and build output."""
    top.mkdir(parents=True)
    git(top, "init", "-q")
    git(top, "config", "gc.auto", "0")
    git(top, "config", "user.name", "Bench")
    git(top, "config", "user.email", "bench@example.org")
    (top / ".gitignore").write_text("node_modules/\n", encoding="utf-8")
    for number in range(files):
        path = top / name_of(number)
        if number % PER_FOLDER == 0:
            path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"value_{number}_{line} = {line}\n" for line in range(LINES)), encoding="utf-8")
    git(top, "add", "-A")
    git(top, "commit", "-qm", "everything")
    git(top, "repack", "-adq")
    for number in range(IGNORED):
        path = top / "node_modules" / f"dep{number}" / "index.js"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ignored\n", encoding="utf-8")
    edit(top, range(0, files, max(1, files // DIRTY)), "dirty before\n")
    for number in range(UNTRACKED):
        (top / f"untracked{number}.txt").write_text("new\n", encoding="utf-8")
    git(top, "status", "--porcelain")  # as a person's shell would have done


def edit(top: Path, numbers: range, text: str) -> None:
    for number in numbers:
        with (top / name_of(number)).open("a", encoding="utf-8") as file:
            file.write(text)


def work(top: Path, files: int, round_number: int) -> None:
    """What a task does: thirty files edited, five made."""
    first = (round_number * 7) % max(1, files - 31)
    edit(top, range(first, first + 30), f"round {round_number}\n")
    for number in range(5):
        (top / f"made-{round_number}-{number}.txt").write_text("made\n" * 20, encoding="utf-8")


def bytes_below(folder: Path) -> int:
    total = 0
    for path, _, names in os.walk(folder):
        total += sum(os.lstat(os.path.join(path, name)).st_blocks * 512 for name in names)
    return total

"""A repository with worktrees beside it, and an independent account of everything in it that must not be lost.

Nothing here uses the engine that is tested, except through the port. Git is run as a user would run it.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from handrail.domain.workspaces.worktrees import MadeWorktree, MergeDone, Removal
from handrail.outside.worktrees import worktrees_at
from handrail.outside.worktrees.git_worktrees import GitWorktrees
from tests.outside.tracking.playground import Playground, environment


class Grove:
    """The main working copy, and worktrees by name."""

    def __init__(self, repo: Playground) -> None:
        self.repo = repo
        self.top = repo.top

    @property
    def trees(self) -> GitWorktrees:
        return worktrees_at(self.top)

    def path(self, name: str) -> str:
        return str(self.top.parent / "trees" / name)

    def make(self, name: str, *, base: str | None = "main", path: str | None = None) -> Playground:
        made = self.trees.make(path or self.path(name), f"work/{name}", base)
        return Playground(Path(made.path))

    def made(self, name: str, *, base: str | None = "main") -> MadeWorktree:
        return self.trees.make(self.path(name), f"work/{name}", base)

    def merge(self, name: str, base: str = "main") -> MergeDone:
        return self.trees.merge(f"work/{name}", base, message=f"Merge {name}", checks=None)

    def remove(
        self,
        name: str,
        *,
        base: str | None = "main",
        delete_branch: bool = True,
        ignored: bool = False,
        dry_run: bool = False,
    ) -> Removal:
        return self.trees.remove(
            self.path(name), base=base, delete_branch=delete_branch, ignored=ignored, dry_run=dry_run
        )

    def git(self, *arguments: str) -> str:
        return self.repo.git(*arguments)

    def branches(self) -> set[str]:
        return set(self.git("for-each-ref", "--format=%(refname:short)", "refs/heads/").split())

    def commits(self) -> set[str]:
        """Every commit that some ref holds."""
        return set(self.git("rev-list", "--glob=refs/*").split())

    def contents(self, *, logged: bool = False) -> set[bytes]:
        """Every content that a ref holds, or a log if that counts, or that lies in a file below the folder of the
        repository."""
        found = set()
        logs = ["--reflog", "--indexed-objects"] if logged else []
        objects = self.git("rev-list", "--glob=refs/*", *logs, "--objects", "--no-object-names").split()
        batch = git_bytes(self.top, "cat-file", "--batch", given="".join(f"{oid}\n" for oid in objects).encode())
        while batch:
            head, _, batch = batch.partition(b"\n")
            _, kind, size = head.split()
            if kind == b"blob":
                found.add(batch[: int(size)])
            batch = batch[int(size) + 1 :]
        for above, folders, files in os.walk(self.top.parent):
            folders[:] = [name for name in folders if name != ".git"]
            for name in files:
                file = Path(above, name)
                if file.is_file() and not file.is_symlink():
                    found.add(file.read_bytes())
        return found


def git_bytes(top: Path, *arguments: str, given: bytes = b"") -> bytes:
    return subprocess.run(
        ["git", *arguments], cwd=top, input=given, capture_output=True, check=True, env=environment()
    ).stdout

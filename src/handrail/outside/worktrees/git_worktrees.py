"""The worktrees of one repository: implements `handrail.domain.workspaces.worktrees.Worktrees` with git.

Every writer holds the lock of the place, and first cleans up what a dead process left half done. What git refuses
becomes a refusal with git's words; nothing that could lose work is ever forced. LFS files come as pointers, submodules
stay empty, and no filter or merge driver of the repository is run.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from handrail.domain.workspaces.worktrees import (
    CheckRun,
    ForeseenConflicts,
    MadeWorktree,
    MergeDone,
    Removal,
    WorktreeState,
)
from handrail.kernel.errors import WorktreeRefused
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import Deadline, GitFailed, GitTimedOut, git_program
from handrail.outside.worktrees.base_update import settle
from handrail.outside.worktrees.conflicts import foresee
from handrail.outside.worktrees.create import make
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.inspect import read_worktrees
from handrail.outside.worktrees.merge import Merging, clear_checks
from handrail.outside.worktrees.place import REPOSITORY_NOTE, WorktreeFolder
from handrail.outside.worktrees.remove import Removing
from handrail.outside.worktrees.worktree_list import registered

WRITING_S = 600.0
LOOKING_S = 60.0
AT_ONCE = 4
"""How many worktrees are examined side by side."""


class GitWorktrees:
    """The worktrees of the repository that contains a project."""

    def __init__(self, project: Path, *, writing_s: float = WRITING_S, looking_s: float = LOOKING_S) -> None:
        self._place = WorktreeFolder(project)
        self._place.check()
        self._writing_s = writing_s
        self._looking_s = looking_s

    def make(self, path: str, branch: str, base: str | None) -> MadeWorktree:
        with self._writing() as git:
            return make(git, self._place, path, branch, base)

    def look(self, paths: Mapping[str, str | None]) -> dict[str, WorktreeState]:
        with self._reading() as git:
            entries = registered(git)
            with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="handrail-look") as pool:
                started = {path: pool.submit(read_worktrees, git, path, base, entries) for path, base in paths.items()}
                return {path: future.result() for path, future in started.items()}

    def foresee(self, worktrees: Mapping[str, str], base: str) -> ForeseenConflicts:
        with self._reading() as git, self._place.scratch() as scratch, self._place.in_memory() as merges:
            return foresee(git, scratch, merges, worktrees, base)

    def merge(self, branch: str, base: str, *, message: str, checks: CheckRun | None) -> MergeDone:
        return Merging(self._place, branch, base, message, checks).merge(self._writing)

    def remove(self, path: str, *, base: str | None, delete_branch: bool, ignored: bool, dry_run: bool) -> Removal:
        with self._reading() if dry_run else self._writing() as git:
            removing = Removing(git, self._place, path, base, is_trial=dry_run)
            return removing.remove(delete_branch=delete_branch, ignored=ignored)

    @contextlib.contextmanager
    def _reading(self) -> Iterator[Git]:
        with _errors_as_refusals():
            deadline = Deadline(self._looking_s)
            yield Git(self._repository(deadline), deadline)

    @contextlib.contextmanager
    def _writing(self) -> Iterator[Git]:
        with _errors_as_refusals():
            deadline = Deadline(self._writing_s)
            repository = self._repository(deadline)
            with self._place.locked(repository.common_dir, deadline) as held:
                git = Git(repository, deadline, held=held, note=f"{repository.common_dir}/{REPOSITORY_NOTE}")
                git.settle_locks()
                clear_checks(git, self._place)
                settle(git)
                yield git

    def _repository(self, deadline: Deadline) -> GitRepository:
        if git_program() is None:
            raise WorktreeRefused("there is no git on this machine", hint="install git, or record worktrees only")
        found = discover(self._place.project, deadline)
        if found is None:
            raise WorktreeRefused(
                f"{self._place.project} is in no git repository that can be used",
                hint="a bare repository, another owner's, or a home folder will not do; record worktrees only",
            )
        return found


@contextlib.contextmanager
def _errors_as_refusals() -> Iterator[None]:
    """Turns errors of git or the disk into refusals."""
    try:
        yield
    except GitTimedOut as late:
        raise WorktreeRefused(f"git took too long: {late}", hint="the same call again goes on where it ended") from late
    except (GitFailed, OSError) as problem:
        raise WorktreeRefused(str(problem), hint="what git says names the cause; the same call again goes on") from (
            problem
        )

"""Moves a base to a merge commit, along with its working copy if it is checked out.

In a working copy, git's own lock on the index is taken, and the step being done is written into it. So no other git
sees a half-changed copy, and if the process dies, the lock tells what it was doing: if the branch had not moved yet,
the files are put back; if it had, the index follows. Local changes elsewhere stay as they are; if they are in the way,
nothing is changed.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.journal.paths import path_text
from handrail.kernel.errors import WorktreeRefused, WouldLoseWork
from handrail.outside.atomic_files import drop_file
from handrail.outside.record_files import record_in
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import copy_index, joined, names
from handrail.outside.worktrees.create import is_beginning
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.inspect import worktree_at
from handrail.outside.worktrees.uncommitted import ref_of, under_way
from handrail.outside.worktrees.worktree_list import WorktreeRecord, entry_on, registered
from handrail.regular_files import read_beginning

MARK = b"handrail\n"
LINK = 0o120000
SUBMODULE = 0o160000
SHOWN = 10


class BaseMovedError(Exception):
    """The base is no longer where it was."""


class LockedStep(msgspec.Struct, frozen=True):
    """The step that a lock on an index says is being done."""

    ref: str
    old: str
    new: str


class PathChange(NamedTuple):
    """A path that differs between two commits; mode 0 means the file does not exist."""

    path: bytes
    old_mode: int
    new_mode: int
    new: str


def advance(git: Git, base: str, old: str, new: str, words: str) -> None:
    """Moves the branch from one commit to another. The place must be locked."""
    entry = entry_on(registered(git), base)
    if entry is None:
        _move(git, base, old, new, words)
        return
    repository = worktree_at(git, entry) if entry.exists else None
    if repository is None or entry.branch != base:
        raise WorktreeRefused(
            f"{base} is in use at {entry.path}, where it cannot be moved",
            hint="wait until the work there is finished, then try again",
        )
    here = git.at(repository)
    changes = _changes(here, old, new)
    _check_not_in_the_way(here, entry, changes)
    step = LockedStep(ref_of(base), old, new)
    _take_lock(repository, step)
    if here.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1)) != step.ref or here.branch_tip(base) != old:
        drop_file(f"{repository.git_dir}/index.lock")
        raise BaseMovedError
    try:
        _update_files(here, step)
        _move(here, base, old, new, words)
    finally:
        _finish_step(here)


def settle(git: Git) -> None:
    """Finishes what a dead process had begun in any working copy. The place must be locked."""
    common = git.repository.common_dir
    try:
        linked = [entry.path for entry in os.scandir(f"{common}/worktrees")]
    except OSError:
        linked = []
    if not any(_step_in(folder) for folder in (common, *linked)):
        return
    for entry in registered(git):
        repository = worktree_at(git, entry)
        if repository is not None:
            _finish_step(git.at(repository))


def _move(git: Git, base: str, old: str, new: str, words: str) -> None:
    try:
        git.move_ref(ref_of(base), new, old, words)
    except GitTimedOut:
        raise
    except GitFailed:
        if git.branch_tip(base) != old:
            raise BaseMovedError from None
        raise


def _check_not_in_the_way(git: Git, entry: WorktreeRecord, changes: Sequence[PathChange]) -> None:
    busy = under_way(git.repository)
    if busy is not None:
        raise WouldLoseWork(f"{busy}: {entry.path}", hint="wait until the work there is finished")
    dirty = set(names(git.run("diff-index", "--name-only", "-z", "--no-renames", "--ignore-submodules=dirty", "HEAD")))
    dirty |= set(names(git.run("diff-files", "--name-only", "-z", "--ignore-submodules=dirty")))
    dirty -= _same_after_all(git, dirty)
    touched = [change.path for change in changes]
    found = {path for path in touched if path in dirty}
    found |= {path for path in dirty if any(path.startswith(other + b"/") for other in touched)}
    added = [change for change in changes if change.old_mode == 0]
    tracked = set(names(git.run("ls-files", "-z")))
    top = os.fsencode(git.repository.top)
    for change in added:
        blocking = _blocking(top, change.path)
        if blocking is not None and blocking not in tracked and not _only_tracked_below(top, blocking, tracked):
            found.add(blocking)
    if found:
        shown = sorted(map(path_text, found))
        raise WouldLoseWork(
            f"in {entry.path} these are in the way and not committed: {', '.join(shown[:SHOWN])}",
            hint="commit them there, or stash them there, then merge again",
            paths=shown[:SHOWN],
        )
    _check_filters(git, entry, changes)


def _same_after_all(git: Git, dirty: set[bytes]) -> set[bytes]:
    """Files that only seem changed: git compares times first, and may not record here what it finds."""
    if not dirty:
        return set()
    copied = f"{git.repository.git_dir}/index.handrail"
    try:
        copy_index(git.repository, copied)
        private = {"GIT_INDEX_FILE": copied}
        git.run("update-index", "-q", "--refresh", allowed=(0, 1), environment=private)
        asked = ("--name-only", "-z", "--ignore-submodules=dirty")
        still = set(names(git.run("diff-files", *asked, environment=private)))
        still |= set(names(git.run("diff-index", "--cached", *asked, "--no-renames", "HEAD", environment=private)))
    finally:
        drop_file(copied)
    return dirty - still


def _blocking(top: bytes, path: bytes) -> bytes | None:
    """What is in the way of a new file: something at its path, or a file where it needs a folder."""
    parts = path.split(b"/")
    for end in range(1, len(parts) + 1):
        part = b"/".join(parts[:end])
        full = top + b"/" + part
        if not os.path.lexists(full):
            return None
        if end < len(parts) and os.path.isdir(full) and not os.path.islink(full):  # noqa: PTH112, PTH114
            continue
        return part
    return None


def _only_tracked_below(top: bytes, folder: bytes, tracked: set[bytes]) -> bool:
    """True for a folder that contains only files git has, so that a file may take its place."""
    full = top + b"/" + folder
    if os.path.islink(full) or not os.path.isdir(full):  # noqa: PTH112, PTH114
        return False
    for above, folders, files in os.walk(full):
        here = above[len(top) + 1 :]
        linked = [name for name in folders if os.path.islink(above + b"/" + name)]  # noqa: PTH114
        if any(here + b"/" + name not in tracked for name in (*files, *linked)):
            return False
    return True


def _check_filters(git: Git, entry: WorktreeRecord, changes: Sequence[PathChange]) -> None:
    """Refuses paths under a filter: since it is not run, stored content would end up in somebody's working copy."""
    drivers = {os.fsencode(name) for name in git.repository.filters - {"lfs"}}
    paths = [change.path for change in changes if change.new_mode]
    if not drivers or not paths:
        return
    words = git.run("check-attr", "-z", "--stdin", "filter", given=joined(paths)).split(b"\0")
    found = [path_text(path) for path, value in zip(words[0::3], words[2::3], strict=False) if value in drivers]
    if found:
        raise WorktreeRefused(
            f"{entry.path} has {found[0]} under a content filter of the repository, which is not run here",
            hint="merge there by hand, then record the merge",
            paths=found[:SHOWN],
        )


def _changes(git: Git, old: str, new: str) -> list[PathChange]:
    words = git.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", old, new).split(b"\0")
    found = []
    for facts, path in zip(words[0::2], words[1::2], strict=False):
        old_mode, new_mode, _, oid, _ = facts.removeprefix(b":").split(b" ")
        found.append(PathChange(path, int(old_mode, 8), int(new_mode, 8), oid.decode()))
    return found


def _take_lock(repository: GitRepository, step: LockedStep) -> None:
    """Takes git's lock on the index with the step already in it: written beside it, then linked into place."""
    lock, beside = f"{repository.git_dir}/index.lock", f"{repository.git_dir}/index.handrail-step"
    with open(beside, "wb") as file:  # noqa: PTH123
        file.write(MARK + msgspec.json.encode(step))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(beside, lock)
    except FileExistsError:
        raise WorktreeRefused(
            f"another git is at work in {repository.top}, or was killed there: {lock} exists",
            hint="try again when it is done; if none runs, let a person look at that file",
        ) from None
    finally:
        drop_file(beside)


def _step_in(git_dir: str) -> LockedStep | None:
    try:
        content = read_beginning(f"{git_dir}/index.lock", 4096)
    except OSError:
        return None
    return record_in(content.removeprefix(MARK), LockedStep) if content.startswith(MARK) else None


def _update_files(git: Git, step: LockedStep) -> None:
    private = _private_index(git)
    git.run("update-index", "-q", "--refresh", allowed=(0, 1), environment=private)
    try:
        git.run("read-tree", "-m", "-u", step.old, step.new, environment=private)
    except GitTimedOut:
        raise
    except GitFailed as failed:
        raise WouldLoseWork(
            f"git will not change the files in {git.repository.top}: {failed.complaint}",
            hint="commit what is in the way there, then merge again",
        ) from failed


def _follow(git: Git, step: LockedStep) -> None:
    """Updates the index to the branch, which has moved; other files that were staged stay staged."""
    index = f"{git.repository.git_dir}/index.handrail"
    private = _private_index(git)
    git.run("read-tree", "-m", "-i", step.old, step.new, environment=private)
    git.run("update-index", "-q", "--refresh", allowed=(0, 1), environment=private)
    os.replace(index, f"{git.repository.git_dir}/index")  # noqa: PTH105


def _finish_step(git: Git) -> None:
    """Finishes a step, forwards or backwards, and releases the index."""
    step = _step_in(git.repository.git_dir)
    if step is None:
        return
    if git.branch_tip(step.ref.removeprefix(ref_of(""))) == step.new:
        _follow(git, step)
    else:
        _go_back(git, step)
    for name in ("index.handrail", "index.handrail.lock", "index.lock"):
        drop_file(f"{git.repository.git_dir}/{name}")


def _go_back(git: Git, step: LockedStep) -> None:
    """Restores files that were changed or truncated on the way to the new commit. Leaves what anybody wrote since."""
    top = git.repository.top
    ours = []
    for change in _changes(git, step.old, step.new):
        if SUBMODULE in (change.old_mode, change.new_mode):
            continue
        full = f"{top}/{os.fsdecode(change.path)}"
        if change.new_mode == 0:
            if not os.path.lexists(full):
                ours.append(change.path)
        elif not os.path.lexists(full):
            if change.old_mode:
                ours.append(change.path)
        elif _is_content_of(git, full, change):
            os.unlink(full)  # noqa: PTH108
            _drop_empty_above(top, full)
            if change.old_mode:
                ours.append(change.path)
    free = [path for path in ours if _blocking(os.fsencode(top), path) is None]
    git.run("checkout-index", "--force", "--quiet", "-z", "--stdin", given=joined(free), allowed=(0, 1, 128))


def _is_content_of(git: Git, full: str, change: PathChange) -> bool:
    if change.new_mode == LINK:
        linked = os.fsencode(os.readlink(full)) if os.path.islink(full) else None  # noqa: PTH114, PTH115
        return linked == git.run("cat-file", "blob", change.new)
    if not stat.S_ISREG(os.lstat(full).st_mode):
        return False
    return is_beginning(git, os.fsdecode(change.path), change.new)


def _drop_empty_above(top: str, full: str) -> None:
    folder = os.path.dirname(full)  # noqa: PTH120
    with contextlib.suppress(OSError):
        while folder != top:
            os.rmdir(folder)  # noqa: PTH106
            folder = os.path.dirname(folder)  # noqa: PTH120


def _private_index(git: Git) -> dict[str, str]:
    index = f"{git.repository.git_dir}/index.handrail"
    drop_file(f"{index}.lock")
    copy_index(git.repository, index)
    return {"GIT_INDEX_FILE": index}

"""What a worktree holds that no commit does, and how it becomes one. Nothing is taken from the worktree by that.

The whole working copy counts: changed, staged and untracked files, also those whose changes git was told to overlook.
Ignored files do not. What is staged otherwise than it lies in the folder becomes a commit of its own below.
"""

from __future__ import annotations

import os
import shutil
from typing import NamedTuple

from handrail.domain.journal.paths import path_text
from handrail.outside.tracking.difference import EMPTY_TREE
from handrail.outside.tracking.discovery import Repository, discover
from handrail.outside.tracking.git_process import Deadline, GitFailed, GitTimedOut
from handrail.outside.tracking.large import Limits
from handrail.outside.tracking.private_index import PrivateIndex, names
from handrail.outside.tracking.snapshot import UNDER_WAY, take
from handrail.outside.tracking.state import TreeState
from handrail.outside.worktrees.registered import HEADS
from handrail.outside.worktrees.writing_git import Git

EVERYTHING = Limits(seconds=3600, file_bytes=1 << 62, total_bytes=1 << 62, files=1 << 62)
STEPS_BACK = 2
"""How far behind HEAD the staged tree may already be kept: a try that was cut short made both commits."""
OURS = (".handrail/handrail.db", ".handrail/snapshots")


class Uncommitted(NamedTuple):
    """What lies in a worktree beside its last commit."""

    head: str | None
    branch: str | None
    tree: str
    """The working copy as a tree."""
    staged: str | None
    """The index as a tree, where it has something that neither the working copy nor a commit just below has."""
    files: list[str]
    """Paths that differ from HEAD, in the folder or in the index."""
    stuck: str | None
    """Why it cannot be committed as it is."""


def uncommitted(git: Git, scratch: str, name: str = "tree") -> Uncommitted:
    """Reads a worktree. Objects go where this git writes them; the worktree and its index stay as they are."""
    repository = git.repository
    state = TreeState(f"{scratch}/{name}")
    state.objects = git.objects
    os.makedirs(state.folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    private = PrivateIndex(repository._replace(overrides=git.settings), state, git.deadline)
    private.begin()
    taken = take(private, EVERYTHING)
    head = taken.commit
    last = git.tree_of(head) if head is not None else EMPTY_TREE[repository.algorithm]
    files = {path_text(path) for path in _between(git, last, taken.tree)}
    stuck = under_way(repository)
    if taken.notes.large:
        shown = ", ".join(sorted(taken.notes.large)[:3])
        stuck = stuck or f"files under a content filter that is not run here have changed: {shown}"
    unreadable = [flag.partition(":")[2] for flag in taken.flags if flag.startswith("unreadable:")]
    if unreadable:
        stuck = stuck or f"{unreadable[0]} cannot be read"
    staged = None
    try:
        staged = staged_tree(git, scratch, name)
    except GitTimedOut:
        raise
    except GitFailed:
        stuck = stuck or "its index has conflicts that are not resolved, or cannot be read"
    if staged is not None:
        alone = {*_between(git, last, staged, "--diff-filter=d")} & {*_between(git, taken.tree, staged)}
        if not alone or _is_kept(git, head, staged):
            staged = None
        files |= {path_text(path) for path in alone} if staged is not None else set()
    return Uncommitted(head, taken.branch, taken.tree, staged, sorted(files), stuck)


def staged_tree(git: Git, scratch: str, name: str = "tree") -> str | None:
    """The index as a tree; None where nothing was ever staged."""
    copied = f"{scratch}/{name}.staged"
    try:
        shutil.copyfile(f"{git.repository.git_dir}/index", copied)
    except FileNotFoundError:
        return None
    return git.run("write-tree", "--missing-ok", environment={"GIT_INDEX_FILE": copied}).decode().strip()


def keep(git: Git, found: Uncommitted, ref: str, message: str) -> str:
    """Commits what was found and moves the ref there, if it still is where it was. Returns the commit."""
    tip = found.head
    if found.staged is not None:
        tip = git.commit(found.staged, [tip] if tip else [], f"{message}\n\nWhat was staged.\n")
    if tip is None or git.tree_of(tip) != found.tree:
        tip = git.commit(found.tree, [tip] if tip else [], f"{message}\n")
    old = found.head or "0" * (64 if git.repository.algorithm == "sha256" else 40)
    git.run("update-ref", "-m", f"handrail: {message}", ref, tip, old)
    return tip


def keep_staged(git: Git, head: str | None, ref: str, scratch: str) -> str | None:
    """For a worktree whose folder is gone: commits what its index alone still has."""
    try:
        staged = staged_tree(git, scratch)
    except GitTimedOut:
        raise
    except GitFailed:
        return None
    last = git.tree_of(head) if head is not None else EMPTY_TREE[git.repository.algorithm]
    if staged is None or staged == last or _is_kept(git, head, staged):
        return None
    found = Uncommitted(head, None, staged, None, [], None)
    return keep(git, found, ref, "What was staged in a worktree whose folder is gone")


def under_way(repository: Repository) -> str | None:
    """An operation of git that somebody began there and has not ended."""
    for name in (*UNDER_WAY, "sequencer"):
        if os.path.exists(f"{repository.git_dir}/{name}"):  # noqa: PTH110
            words = name.removesuffix("_HEAD").removesuffix("_LOG").replace("_", "-").lower()
            return f"a {words.removesuffix('-merge').removesuffix('-apply')} is under way there"
    return None


def ref_of(branch: str) -> str:
    return f"{HEADS}{branch}"


def own_files(top: str) -> int:
    """Handrail's own files in a worktree: git's view of it leaves them out."""
    return sum(os.path.lexists(f"{top}/{name}") for name in OURS)


def holds_work(folder: str, deadline: Deadline) -> bool:
    """True unless a repository inside a worktree is clean and its remotes have all its commits."""
    repository = discover(folder, deadline)
    if repository is None or repository.top != os.path.realpath(folder):
        return True
    try:
        if repository.run("status", "--porcelain", "-unormal", "--ignore-submodules=dirty", deadline=deadline):
            return True
        if repository.run("for-each-ref", "refs/stash", deadline=deadline):
            return True
        heads = ("--branches", "--tags", "HEAD", "--not", "--remotes")
        return bool(repository.run("rev-list", "--max-count=1", *heads, deadline=deadline))
    except (GitFailed, OSError):
        return True


def _is_kept(git: Git, head: str | None, tree: str) -> bool:
    if head is None:
        return False
    listed = git.run("log", "--first-parent", f"--max-count={STEPS_BACK + 1}", "--format=%T", head)
    return tree.encode() in listed.split()


def _between(git: Git, one: str, other: str, *options: str) -> list[bytes]:
    return names(git.run("diff-tree", "-r", "-z", "--name-only", "--no-renames", *options, one, other))

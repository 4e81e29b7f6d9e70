"""What a worktree holds that no commit does, and how it becomes one. This removes nothing from the worktree.

The whole working copy counts: changed, staged and untracked files, including those whose changes git was told to
overlook. Ignored files do not. What is staged but differs from the folder becomes a commit of its own below.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from handrail.domain.journal.paths import path_text
from handrail.kernel.limits import INDEX_FILE_BYTES
from handrail.outside.tracking.difference import EMPTY_TREE
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import Deadline, GitFailed, GitTimedOut
from handrail.outside.tracking.large_files import Limits
from handrail.outside.tracking.own_files import is_ours
from handrail.outside.tracking.private_index import PrivateIndex, copy_index, names
from handrail.outside.tracking.snapshot import UNDER_WAY, take
from handrail.outside.tracking.state import TreeState
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.worktree_list import HEADS
from handrail.regular_files import copy_regular

EVERYTHING = Limits(seconds=3600, file_bytes=1 << 62, total_bytes=1 << 62, files=1 << 62)
STEPS_BACK = 2
"""How far behind HEAD the staged tree may already be kept: an interrupted attempt may have made both commits."""
OURS = (".handrail/handrail.db", ".handrail/snapshots")


class Working(NamedTuple):
    """A working copy as a tree."""

    head: str | None
    branch: str | None
    tree: str | None
    """None if it is exactly what HEAD has."""
    stuck: str | None
    """Why it is incomplete, or cannot be committed as it is."""


class Uncommitted(NamedTuple):
    """What a worktree contains besides its last commit."""

    head: str | None
    branch: str | None
    tree: str
    """The working copy as a tree."""
    staged: str | None
    """The index as a tree, if it has something that neither the working copy nor a commit just below has."""
    files: list[str]
    """Paths that differ from HEAD, in the folder or in the index."""
    stuck: str | None
    """Why it cannot be committed as it is."""


def working(git: Git, scratch: str, name: str) -> Working:
    """Reads a working copy. Objects go where this git writes them; the worktree and its index stay as they are."""
    repository = git.repository
    state = TreeState(f"{scratch}/{name}")
    state.objects = git.objects
    os.makedirs(state.folder, mode=0o700, exist_ok=True)  # noqa: PTH103
    private = PrivateIndex(repository._replace(overrides=git.settings), state, git.deadline)
    _begin(private)
    if repository.filters:
        return _beside_filters(private)
    scan = private.scan()
    changed = [path for path in scan.changed if not is_ours(path)]
    gone = [path for path in scan.gone if not is_ours(path)]
    if not (changed or gone or scan.differing) and scan.commit is not None:
        return Working(scan.commit, scan.branch, None, under_way(repository))
    private.drop(gone)
    unreadable = private.take_up(changed)
    folders = [path for path in gone if os.path.isdir(os.fsencode(repository.top) + b"/" + path)]  # noqa: PTH112
    if folders:  # what is below was hidden by the file's own entry
        below = private.untracked(folders)
        unreadable += private.take_up([path for path in below if not path.endswith(b"/") and not is_ours(path)])
    stuck = under_way(repository) or (f"{path_text(unreadable[0])} cannot be read" if unreadable else None)
    return Working(scan.commit, scan.branch, private.tree(), stuck)


def _begin(private: PrivateIndex) -> None:
    """Copies the user's index, clearing marks that hide changes. The copy serves one query, so it needs no cache of
    untracked files."""
    try:
        copy_index(private.repository, private.state.index)
    except FileNotFoundError:
        return
    private.show_hidden_edits()


def _beside_filters(private: PrivateIndex) -> Working:
    """For repositories with content filters that are not run: a file under one cannot be compared with its blob."""
    taken = take(private, EVERYTHING)
    stuck = under_way(private.repository)
    if taken.notes.large:
        shown = ", ".join(sorted(taken.notes.large)[:3])
        stuck = stuck or f"files under a content filter that is not run here have changed: {shown}"
    unreadable = [flag.partition(":")[2] for flag in taken.flags if flag.startswith("unreadable:")]
    if unreadable:
        stuck = stuck or f"{unreadable[0]} cannot be read"
    return Working(taken.commit, taken.branch, taken.tree, stuck)


def uncommitted(git: Git, scratch: str, name: str) -> Uncommitted:
    """What a worktree holds that its HEAD does not."""
    found = working(git, scratch, name)
    head, stuck = found.head, found.stuck
    last = git.tree_of(head) if head is not None else EMPTY_TREE[git.repository.algorithm]
    tree = found.tree or last
    files = {path_text(path) for path in _between(git, last, tree)} if tree != last else set()
    staged = None
    try:
        staged = staged_tree(git, scratch, name)
    except GitTimedOut:
        raise
    except GitFailed:
        stuck = stuck or "its index has conflicts that are not resolved, or cannot be read"
    if staged in (last, tree):
        staged = None
    if staged is not None:
        alone = {*_between(git, last, staged, "--diff-filter=d")} & {*_between(git, tree, staged)}
        if not alone or _is_kept(git, head, staged):
            staged = None
        files |= {path_text(path) for path in alone} if staged is not None else set()
    return Uncommitted(head, found.branch, tree, staged, sorted(files), stuck)


def staged_tree(git: Git, scratch: str, name: str) -> str | None:
    """The index as a tree; None if nothing was ever staged."""
    copied = f"{scratch}/{name}.staged"
    try:
        copy_regular(f"{git.repository.git_dir}/index", copied, INDEX_FILE_BYTES)
    except FileNotFoundError:
        return None
    return git.run("write-tree", "--missing-ok", environment={"GIT_INDEX_FILE": copied}).decode().strip()


def keep(git: Git, found: Uncommitted, ref: str, message: str) -> str:
    """Commits what was found and moves the ref there, if it is still where it was. Returns the commit."""
    tip = found.head
    if found.staged is not None:
        tip = git.commit(found.staged, [tip] if tip else [], f"{message}\n\nWhat was staged.\n")
    if tip is None or git.tree_of(tip) != found.tree:
        tip = git.commit(found.tree, [tip] if tip else [], f"{message}\n")
    git.move_ref(ref, tip, found.head, f"handrail: {message}")
    return tip


def has_staged(git: Git, head: str | None, scratch: str) -> str | None:
    """For a worktree whose folder is gone: what only its index still has, as a tree."""
    try:
        staged = staged_tree(git, scratch, "gone")
    except GitTimedOut:
        raise
    except GitFailed:
        return None
    last = git.tree_of(head) if head is not None else EMPTY_TREE[git.repository.algorithm]
    return None if staged is None or staged == last or _is_kept(git, head, staged) else staged


def keep_staged(git: Git, head: str | None, ref: str, scratch: str) -> str | None:
    """Commits what only the index still has."""
    staged = has_staged(git, head, scratch)
    if staged is None:
        return None
    found = Uncommitted(head, None, staged, None, [], None)
    return keep(git, found, ref, "What was staged in a worktree whose folder is gone")


def under_way(repository: GitRepository) -> str | None:
    """A git operation that somebody began there and has not finished."""
    for name in (*UNDER_WAY, "sequencer"):
        if os.path.exists(f"{repository.git_dir}/{name}"):  # noqa: PTH110
            words = name.removesuffix("_HEAD").removesuffix("_LOG").replace("_", "-").lower()
            return f"a {words.removesuffix('-merge').removesuffix('-apply')} is under way there"
    return None


def ref_of(branch: str) -> str:
    return f"{HEADS}{branch}"


def own_files(top: str) -> int:
    """How many of Handrail's own files are in a worktree: git's view of it leaves them out."""
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

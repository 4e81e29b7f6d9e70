"""Repositories inside a working tree: submodules and embedded clones. Each is examined on its own, with its own private
state and its own configuration disarmed; its paths are then reported relative to the outer tree."""

from __future__ import annotations

import os
from collections.abc import Sequence

from handrail.domain.journal.changes import Changes, FileChange
from handrail.domain.journal.paths import path_bytes, path_text
from handrail.domain.journal.tracking import Snapshot
from handrail.outside.tracking.difference import in_index, in_tree, is_same
from handrail.outside.tracking.discovery import Repository, discover
from handrail.outside.tracking.git_process import Deadline
from handrail.outside.tracking.private_index import PrivateIndex
from handrail.outside.tracking.state import TreeState


def prefixed(outer: str, inner: str) -> str:
    """The text of an inner repository's path, relative to the outer tree."""
    return path_text(path_bytes(outer) + b"/" + path_bytes(inner))


def repositories(
    outer: Repository, paths: Sequence[bytes], deadline: Deadline, *, limit: int
) -> dict[bytes, Repository]:
    """The repositories at some paths of a tree. A path that is a link, or has no repository of its own (a submodule
    that was never fetched), is skipped."""
    found = {}
    for path in paths[:limit]:
        full = f"{outer.top}/{os.fsdecode(path)}"
        if os.path.realpath(full) == full and os.path.lexists(f"{full}/.git"):
            repository = discover(full, deadline)
            if repository is not None and repository.top == full:
                found[path] = repository
    return found


def appeared_or_gone(
    private: PrivateIndex, state: TreeState, only: Snapshot, path: bytes, outer: tuple[str, str], *, is_new: bool
) -> tuple[Changes, set[str]]:
    """The files of a repository that exists on one side only, and the names of all of them. They may have been, or have
    become, plain files of the outer tree: those are compared with what they are there. Paths are relative to the inner
    repository."""
    index = state.kept_index(only.id)
    if not os.path.exists(index):  # noqa: PTH110
        warning = "a repository inside the tree came or went, and its files are no longer known"
        return Changes(own=[], warnings=[warning], partial=True), set()
    inner = in_index(private, index)
    others = in_tree(private, outer[0] if is_new else outer[1], [path + b"/" + name for name in sorted(inner)])
    own = []
    for name, entry in sorted(inner.items()):
        other = others[path + b"/" + name]
        if is_same(entry, other):
            continue
        change = FileChange(
            path=path_text(name),
            change="modified" if other is not None else ("added" if is_new else "deleted"),
            origin="untracked" if is_new else "working_tree",
        )
        own.append(change)
    return Changes(own=own), {path_text(name) for name in inner}

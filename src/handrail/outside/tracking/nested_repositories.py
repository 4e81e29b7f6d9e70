"""Repositories inside a working tree: submodules and embedded clones. Each is examined on its own, with its own private
state and its own configuration disarmed; its paths are then reported relative to the outer tree."""

from __future__ import annotations

import os
from collections.abc import Container, Sequence

import msgspec

from handrail.domain.journal.entry import Changes, FileChange
from handrail.domain.journal.paths import path_bytes, path_text
from handrail.domain.journal.ports import Snapshot
from handrail.known_types import make_known
from handrail.outside.tracking.difference import Entries, TreeEntry, in_index, in_tree, is_same
from handrail.outside.tracking.discovery import GitRepository, discover
from handrail.outside.tracking.git_process import Deadline
from handrail.outside.tracking.private_index import PrivateIndex
from handrail.outside.tracking.state import StateFolder


def prefixed(outer: str, inner: str) -> str:
    """The text of an inner repository's path, relative to the outer tree."""
    return path_text(path_bytes(outer) + b"/" + path_bytes(inner))


def repositories(
    outer: GitRepository, paths: Sequence[bytes], deadline: Deadline, *, limit: int
) -> dict[bytes, GitRepository]:
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


def snapshots_inside(snapshot: Snapshot) -> dict[str, Snapshot]:
    """The snapshots of the repositories inside a tree, by their paths."""
    make_known(Snapshot)
    return msgspec.convert(snapshot.data.get("nested", {}), dict[str, Snapshot])


def unusable(outer: GitRepository, paths: Sequence[bytes], found: Container[bytes]) -> list[bytes]:
    """Folders that git takes for repositories of their own, and refuses to look into: a format it does not know, a
    working tree elsewhere, another owner. What is in them is not seen."""
    missing = [path for path in paths if path not in found]
    return [path for path in missing if os.path.lexists(f"{outer.top}/{os.fsdecode(path)}/.git")]


def files_of(private: PrivateIndex, states: StateFolder, only: Snapshot) -> Entries | None:
    """All files of a snapshot and of the repositories inside it; None if they are no longer known."""
    state = states.named(only.data["state"])
    index, notes = state.kept_index(only.id), state.notes(only.id)
    if notes is None or not os.path.exists(index):  # noqa: PTH110
        return None
    found: Entries = {path: entry for path, entry in in_index(private, index).items() if not _is_link_to_commit(entry)}
    found |= {path_bytes(text): TreeEntry.of_large(large) for text, large in notes.large.items()}
    for text, inner in snapshots_inside(only).items():
        below = files_of(private, states, inner)
        if below is None:
            return None
        found |= {path_bytes(text) + b"/" + path: entry for path, entry in below.items()}
    return found


def _is_link_to_commit(entry: TreeEntry | None) -> bool:
    return entry is not None and entry.mode == "160000"


def appeared_or_gone(
    private: PrivateIndex, inner: Entries | None, path: bytes, outer: tuple[str, str], *, is_new: bool
) -> tuple[Changes, set[str]]:
    """The files of a repository that exists on one side only, and the names of all of them. They may have been, or have
    become, plain files of the outer tree: those are compared with what they are there. Paths are relative to the inner
    repository."""
    if inner is None:
        warning = "a repository inside the tree came or went, and its files are no longer known"
        return Changes(own=[], warnings=[warning], partial=True), set()
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

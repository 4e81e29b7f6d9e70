"""Frees space: forgets old snapshots, and removes the private objects that no kept snapshot needs. The user's
repository is not touched, and git's own garbage collection is never run: if interrupted, it leaves more than it
removes."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Collection
from pathlib import Path

from handrail.kernel.limits import GIT_FILE_BYTES
from handrail.outside.tracking.difference import in_index
from handrail.outside.tracking.discovery import discover
from handrail.outside.tracking.git_process import Deadline, GitFailed
from handrail.outside.tracking.private_index import PrivateIndex, names
from handrail.outside.tracking.state import Busy, StateFolder, TreeState, disk_use
from handrail.regular_files import read_regular


def prune(folder: StateFolder, older_than_ms: int, keep: Collection[str], seconds: float) -> int:
    """Forgets every snapshot written before that time unless it is in `keep`, and returns the bytes freed. A tree
    without any snapshot left loses its whole folder."""
    freed = 0
    for state in folder.all():
        before = disk_use(state.folder)
        deadline = Deadline(seconds)
        with contextlib.suppress(Busy, OSError, GitFailed), state.locked(deadline):
            old = [name for name, written in state.kept().items() if name not in keep and written < older_than_ms]
            for name in old:
                state.forget(name)
            if not state.kept():
                if Path(state.folder, "tree").is_file():  # only delete what we created ourselves
                    shutil.rmtree(state.folder, ignore_errors=True)
            else:
                _sweep(state, deadline)  # also after snapshots were forgotten one by one
        freed += max(0, before - disk_use(state.folder))
    return freed


def _sweep(state: TreeState, deadline: Deadline) -> None:
    """Removes objects that are in no kept snapshot and not in the last one."""
    top = os.fsdecode(read_regular(Path(state.folder, "tree"), GIT_FILE_BYTES))
    repository = discover(top, deadline)
    if repository is None:
        return
    private = PrivateIndex(repository, state, deadline)
    last = state.last()
    trees = {last.tree} if last is not None else set()
    indexes = [state.index]
    for name in state.kept():
        notes = state.notes(name)
        if notes is not None and notes.tree:
            trees.add(notes.tree)
        indexes.append(state.kept_index(name))
    needed = set(trees)
    for index in indexes:
        if os.path.exists(index):  # noqa: PTH110
            needed |= {entry.oid for entry in in_index(private, index).values() if entry is not None and entry.oid}
    for tree in trees:
        needed |= {line.split(b" ")[2].split(b"\t")[0].decode() for line in _trees_below(private, tree)}
    for path in Path(state.objects).glob("??/*"):
        if path.parent.name + path.name not in needed:
            path.unlink()


def _trees_below(private: PrivateIndex, tree: str) -> list[bytes]:
    return names(private.git("ls-tree", "-r", "-t", "-d", "-z", tree))

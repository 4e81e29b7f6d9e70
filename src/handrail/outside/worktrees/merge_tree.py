"""Merges commits without a working tree, many pairs in one process, and reads git's result for each."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from handrail.domain.journal.paths import path_text
from handrail.outside.worktrees.git import MERGE_TREE, Git, git_version

COMMAND = ("merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages", "-z")
_SIDE = re.compile(rb"~[0-9a-f]{40,64}(_[0-9]+)?$")
"""What git appends to the name of a file that is displaced by a folder of the same name: the side it comes from."""


class Merged(NamedTuple):
    """The merge of one pair."""

    tree: str
    conflicts: tuple[str, ...] | None
    """Paths that conflict; None if the merge is clean."""


def can_merge() -> bool:
    """Whether this machine's git is new enough."""
    return git_version() >= MERGE_TREE


def merge_trees(git: Git, pairs: Sequence[tuple[str, str]], *, unrelated: bool = False) -> Iterator[Merged]:
    """One merge for each pair of commits, in order, as they complete. Objects go where this git writes them."""
    if not pairs:
        return
    given = "".join(f"{one} {other}\n" for one, other in pairs).encode()
    call = git.start(*COMMAND, *(("--allow-unrelated-histories",) if unrelated else ()), given=given)
    pending = b""
    words: list[bytes] = []
    try:
        for chunk in call.chunks():
            *whole, pending = (pending + chunk).split(b"\0")
            for word in whole:
                if word or len(words) < 2:
                    words.append(word)
                else:
                    yield _merged(words)
                    words = []
    finally:
        call.stop()


def _merged(words: list[bytes]) -> Merged:
    paths = sorted({path_text(_SIDE.sub(b"", path)) for path in words[2:]})
    return Merged(os.fsdecode(words[1]), None if words[0] == b"1" else tuple(paths))

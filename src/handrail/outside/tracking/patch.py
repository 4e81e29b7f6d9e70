"""The exact patch of a task's own part, for people and for `git apply`. Files whose content is not kept are named in
lines that `git apply` skips."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence

from handrail.domain.journal.paths import path_text
from handrail.outside.tracking.comparison import Compared
from handrail.outside.tracking.difference import RENAMES_TRIED, SIMILAR, TREES
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import ARGUMENTS, PrivateIndex


def patch_of(
    private: PrivateIndex, compared: Compared, tree: str, own: Collection[bytes], prefix: bytes
) -> Iterator[bytes]:
    """The patch of some of the task's own paths, piece by piece. `prefix` is the path of their repository."""
    stored = [path for path in sorted(own) if all(entry is None or entry.is_stored for entry in compared.own[path])]
    yield from named_only(prefix + path for path in sorted(set(own) - set(stored)))
    yield from patch_between(private, (compared.basis, tree), stored, prefix)


def named_only(paths: Iterable[bytes]) -> Iterator[bytes]:
    """Lines for files whose content is not kept."""
    for path in paths:
        yield f"# {path_text(path)}: changed, content not kept\n".encode()


def patch_between(
    private: PrivateIndex, trees: tuple[str, str], paths: Sequence[bytes], prefix: bytes
) -> Iterator[bytes]:
    """The patch from one tree to another, of some paths."""
    outer = os.fsdecode(prefix)
    arguments = (*TREES, "-p", "--binary", "--full-index", SIMILAR, RENAMES_TRIED, "--ignore-submodules=none")
    for start in range(0, len(paths), ARGUMENTS):
        chosen = [os.fsdecode(path) for path in paths[start : start + ARGUMENTS]]
        prefixes = (f"--src-prefix=a/{outer}", f"--dst-prefix=b/{outer}")
        plain = [argument for argument in arguments if argument != "-z"]
        try:
            yield from private.start(*plain, *prefixes, *trees, "--", *chosen).chunks()
        except GitTimedOut:
            yield b"# the rest is left out: it took too long\n"
            return
        except GitFailed:
            yield b"# the contents the task began with were pruned from the repository: no patch can be made\n"
            return

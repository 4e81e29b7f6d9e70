"""Settings under which git sees every change. Some are configured to make it faster, or to spare a file system that
cannot do something: they make it blind. What a configuration claims about the file system is not believed but tried
out, in the folder where snapshots are kept.
"""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Mapping

SEES_EVERYTHING = {
    "core.bigFileThreshold": "512m",  # a small value turns every text into binary
    "core.protectHFS": "false",  # these refuse names; nothing is ever checked out from the private index
    "core.protectNTFS": "false",
    "core.safecrlf": "false",  # refuses files whose line ends are mixed
    "index.sparse": "false",
    "merge.conflictStyle": "merge",
    "sparse.expectFilesOutsideOfPatterns": "false",  # would leave files outside of the patterns unread
}


def clear_sight(top: str, private: str) -> Mapping[str, str]:
    """The settings for looking at a tree. `private` is a folder of ours, for trying things out."""
    try:
        is_beside = os.stat(top).st_dev == os.stat(private).st_dev  # noqa: PTH116 - names need not be UTF-8
    except OSError:
        is_beside = False
    return _tried(private) if is_beside else _assumed(folds_case=_finds_git_in_capitals(top))


@functools.cache
def _tried(private: str) -> Mapping[str, str]:
    """What the file system of a folder can do. Each process tries once."""
    try:
        with tempfile.TemporaryDirectory(prefix="probe-", dir=private) as folder:
            file = f"{folder}/probe"
            with open(file, "xb"):  # noqa: PTH123
                pass
            return _settings(
                folds_case=os.path.lexists(f"{folder}/PROBE"),
                has_modes=_can_be_executable(file),
                has_links=_can_be_link(f"{folder}/link"),
            )
    except OSError:
        return _assumed(folds_case=False)


def _assumed(*, folds_case: bool) -> Mapping[str, str]:
    """If a file system cannot keep modes or links, believing that it can is harmless: nothing ever changes there."""
    return _settings(folds_case=folds_case, has_modes=True, has_links=True)


def _settings(*, folds_case: bool, has_modes: bool, has_links: bool) -> Mapping[str, str]:
    found = {"core.ignoreCase": folds_case, "core.fileMode": has_modes, "core.symlinks": has_links}
    return SEES_EVERYTHING | {key: str(value).lower() for key, value in found.items()}


def _can_be_executable(file: str) -> bool:
    mode = os.lstat(file).st_mode
    os.chmod(file, mode ^ 0o100)  # noqa: PTH101
    return os.lstat(file).st_mode & 0o100 != mode & 0o100


def _can_be_link(path: str) -> bool:
    with contextlib.suppress(OSError, NotImplementedError):
        os.symlink("target", path)  # noqa: PTH211
        return os.path.islink(path)  # noqa: PTH114
    return False


def _finds_git_in_capitals(top: str) -> bool:
    """On a file system of its own, where nothing may be written: whether `.git` answers to another spelling."""
    try:
        return os.path.samefile(f"{top}/.git", f"{top}/.GIT") and ".GIT" not in os.listdir(top)  # noqa: PTH121, PTH208
    except OSError:
        return False

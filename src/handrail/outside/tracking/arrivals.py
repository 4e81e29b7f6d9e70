"""Where commits came from: those that a fetch, a pull, a push or another worktree brought into the repository. What
nobody brought was made here, whatever command made it.

Logs can be forged by whoever may write to the repository; a commit that is taken for somebody else's is still reported,
as external.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from handrail.outside.tracking.private_index import PrivateIndex
from handrail.regular_files import open_regular

LOG_BYTES = 1 << 20
"""How much of the end of a log is read."""
FILES = 2000
"""How many logs are read."""
RANGES = 50
"""How many fetches are followed; the commits of further ones count as made here."""
_LINE = re.compile(rb"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}(?:\t(.*))?")
_FETCHED = re.compile(rb"fetch|push|clone|remote|(?:pull\b.*: Fast-forward$)")
_COMMITTED = re.compile(rb"commit|cherry-pick|revert|am\b|rebase")


class Arrivals(NamedTuple):
    """What came from elsewhere."""

    ranges: list[tuple[str, str]]
    """The newest of some commits, and what was known of them before; empty if nothing was."""
    commits: set[str]
    """Single commits, of other worktrees."""


def arrivals(private: PrivateIndex, began_s: int) -> Arrivals:
    """What came in since then."""
    repository = private.repository
    form = "--format=%(objectname) %(refname)"
    listed = private.git("for-each-ref", form, "refs/remotes").decode("utf-8", "surrogateescape").split("\n")[:-1]
    logs = f"{repository.common_dir}/logs"
    tracked = {line.partition(" ")[2]: line.partition(" ")[0] for line in listed}
    # A branch of a remote that has a log also moves when something is pushed there, which is no arrival.
    unlogged = [oid for name, oid in tracked.items() if not os.path.exists(f"{logs}/{name}")]  # noqa: PTH110
    named = {*tracked.values()}
    ranges = [(oid, "") for oid in {*unlogged, *(oid for oid in _fetched(repository.git_dir) if oid not in named)}]
    for file in _recent(f"{logs}/refs", began_s):
        is_remote = file.startswith(f"{logs}/refs/remotes/")
        for old, new, message in _lines(file, began_s):
            if not message.startswith(b"update by push") if is_remote else _FETCHED.match(message):
                ranges.append((new, old if old.strip("0") else ""))
    own = f"{repository.git_dir}/logs/HEAD"
    commits: set[str] = set()
    for file in [file for file in (f"{logs}/HEAD", *_worktrees(repository.common_dir)) if file != own]:
        commits |= {new for _, new, message in _lines(file, began_s) if _COMMITTED.match(message)}
    return Arrivals(ranges[:RANGES], commits)


def _fetched(git_dir: str) -> Iterator[str]:
    for line in _end_of(f"{git_dir}/FETCH_HEAD").split(b"\n"):
        oid = line.partition(b"\t")[0]
        if re.fullmatch(rb"[0-9a-f]{40,64}", oid):
            yield oid.decode()


def _worktrees(common_dir: str) -> list[str]:
    try:
        return [f"{entry.path}/logs/HEAD" for entry in os.scandir(f"{common_dir}/worktrees")]
    except OSError:
        return []


def _recent(folder: str, began_s: int) -> Iterable[str]:
    """The logs written since then."""
    left = FILES
    for path, _, files in os.walk(folder):
        for name in files:
            try:
                is_recent = os.stat(f"{path}/{name}").st_mtime >= began_s  # noqa: PTH116
            except OSError:
                continue
            if is_recent and left > 0:
                left -= 1
                yield f"{path}/{name}"


def _lines(file: str, began_s: int) -> Iterator[tuple[str, str, bytes]]:
    for line in _end_of(file).split(b"\n"):
        found = _LINE.fullmatch(line)
        if found is not None and int(found[3]) >= began_s:
            yield found[1].decode(), found[2].decode(), found[4] or b""


def _end_of(file: str) -> bytes:
    try:
        with os.fdopen(open_regular(file), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_BYTES))
            return log.read(LOG_BYTES)
    except OSError:  # also for a pipe, which cannot be sought
        return b""

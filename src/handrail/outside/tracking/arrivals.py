"""Where commits came from: those that a fetch, a pull, a push or another worktree brought into the repository. What
nobody brought was made here, whatever command made it.

Logs can be forged by whoever may write to the repository; a commit that is taken for somebody else's is still reported,
as external.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from handrail.outside.tracking.private_index import PrivateIndex

LOG_BYTES = 1 << 20
"""How much of the end of a log is read."""
FILES = 2000
"""How many logs are read."""
_LINE = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*> (\d+) [+-]\d{4}(?:\t(.*))?")
_BROUGHT = (b"fetch", b"pull", b"push", b"clone", b"remote")


def brought(private: PrivateIndex, began_s: int) -> set[str]:
    """The newest commits that came from elsewhere since then. Their ancestors did, too."""
    repository = private.repository
    listed = private.git("for-each-ref", "--format=%(objectname)", "refs/remotes").decode().split()
    found = {*listed, *_fetched(repository.git_dir)}
    own = f"{repository.git_dir}/logs/HEAD"
    others = [f"{repository.common_dir}/logs/HEAD", *_worktrees(repository.common_dir)]
    for file in [file for file in others if file != own]:
        found |= {oid for oid, message in _lines(file, began_s) if not message.startswith(b"checkout")}
    for file in _recent(f"{repository.common_dir}/logs/refs", began_s):
        found |= {oid for oid, message in _lines(file, began_s) if message.startswith(_BROUGHT)}
    return found


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


def _lines(file: str, began_s: int) -> Iterator[tuple[str, bytes]]:
    for line in _end_of(file).split(b"\n"):
        found = _LINE.fullmatch(line)
        if found is not None and int(found[2]) >= began_s:
            yield found[1].decode(), found[3] or b""


def _end_of(file: str) -> bytes:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NONBLOCK), "rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_BYTES))
            return log.read(LOG_BYTES)
    except OSError:  # also for a pipe, which cannot be sought
        return b""

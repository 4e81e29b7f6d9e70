"""Whether a store may be read to an agent: made on this machine, and showing no sign of having come with a repository.

Gives the same answers as `outside/store_files.py` and `outside/machine_key.py`, which load too much; the rules
themselves are in `kernel/provenance.py`, and tests compare the two. Whatever a person has to be told, servers and
commands tell; here a store that is not believed is no store.
"""

from __future__ import annotations

import os

from handrail.kernel.late import late_module
from handrail.kernel.limits import GIT_FILE_BYTES, INDEX_FILE_BYTES, RECORD_FILE_BYTES
from handrail.kernel.provenance import (
    FILE_TYPE,
    HEADER,
    ORDINARY,
    SIDE_FILES,
    FileFacts,
    MachineKey,
    key_of,
    signs,
    tracked_in,
)
from handrail.regular_files import read_beginning, read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib
else:
    hashlib = late_module("hashlib")  # only for a store that is not plainly this machine's

_STATE = ".handrail"


def own_key(home: str) -> MachineKey | None:
    """This machine's key; None if it has none, or others could have written it."""
    content = private_text(os.path.join(home, _STATE, "machine-key"))  # noqa: PTH118 - pathlib is heavy
    return key_of(content) if content is not None else None


def private_text(path: str) -> bytes | None:
    """What a file holds that only this user may write; None if there is none such."""
    try:
        found = os.lstat(path)
        if found.st_mode & FILE_TYPE != ORDINARY:
            return None
        if os.name == "posix":
            folder = os.stat(os.path.dirname(path))  # noqa: PTH116, PTH120 - as above
            if found.st_uid != os.geteuid() or (found.st_mode & 0o022 and folder.st_mode & 0o011):
                return None
        return read_regular(path, RECORD_FILE_BYTES, links=False)
    except OSError:
        return None


def is_believed(store: str, home: str) -> bool:
    """Whether nothing speaks against a store's files, or its user has agreed to what does."""
    real = os.path.realpath(store)
    found = []
    for ending in SIDE_FILES:
        try:
            facts = os.lstat(real + ending)
        except OSError:
            continue
        found.append(FileFacts(real, ending, uid=facts.st_uid, mode=facts.st_mode, size=facts.st_size))
    uid = os.geteuid() if hasattr(os, "geteuid") else None
    against = list(signs(found, uid=uid, header=_header(real), tracked=_tracked(real)))
    return not against or all(sign.may_be_trusted and _is_agreed(real, sign.kind, home) for sign in against)


def is_agreed(what: str, home: str) -> bool:
    """Whether the user has agreed to something about stores."""
    word = hashlib.sha256(what.encode(errors="surrogateescape")).hexdigest()
    kept = private_text(os.path.join(home, _STATE, "trusted-stores"))  # noqa: PTH118 - as above
    return word.encode() in (kept or b"").split()


def _is_agreed(real: str, kind: str, home: str) -> bool:
    return is_agreed(f"{real}\0store file\0{kind}", home)


def _header(real: str) -> bytes:
    return read_beginning(real, HEADER)


def _tracked(real: str) -> str | None:
    folder = os.path.dirname(real)  # noqa: PTH120 - as above
    while True:
        git_dir = _git_dir(folder)
        if git_dir is not None:
            path = os.fsencode(os.path.relpath(real, folder).replace(os.sep, "/"))
            for index in _indexes(git_dir):
                if (name := tracked_in(index, path)) is not None:
                    return name
            return None
        above = os.path.dirname(folder)  # noqa: PTH120 - as above
        if above == folder:
            return None
        folder = above


def _git_dir(folder: str) -> str | None:
    marker = os.path.join(folder, ".git")  # noqa: PTH118 - as above
    if os.path.isdir(marker):  # noqa: PTH112 - as above
        return marker
    if not os.path.isfile(marker):  # noqa: PTH113 - as above
        return None
    said = read_regular(marker, GIT_FILE_BYTES).decode(errors="replace").removeprefix("gitdir:").strip()
    return os.path.join(folder, said)  # noqa: PTH118 - as above


def _indexes(git_dir: str) -> list[bytes]:
    found = []
    try:
        names = os.listdir(git_dir)  # noqa: PTH208 - as above
    except OSError:
        return []
    for name in names:
        if name == "index" or name.startswith("sharedindex."):
            path = os.path.join(git_dir, name)  # noqa: PTH118 - as above
            if os.path.isfile(path):  # noqa: PTH113 - as above
                found.append(read_regular(path, INDEX_FILE_BYTES))
    return found

"""A store's files before anything opens them: whose they are, who may read them, whether git brought them along.

SQLite writes a journal or a log that lies beside a database into it as soon as it is opened, so all of this is asked
first. The rules are in `kernel/provenance.py`; hooks ask the same questions in `hooks/provenance.py`.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from handrail.kernel.errors import StoreNotTrusted
from handrail.kernel.limits import GIT_FILE_BYTES, INDEX_FILE_BYTES
from handrail.kernel.provenance import HEADER, SIDE_FILES, FileFacts, Sign, signs, tracked_in
from handrail.outside.trusted_stores import about_file, is_agreed
from handrail.regular_files import read_beginning, read_regular


def foreign_signs(file: Path) -> list[Sign]:
    """What a store of this user, made on this machine, would not show. Nothing for a file that is not there."""
    real = Path(os.path.realpath(file))  # Path.resolve would fail on circular links
    found = list(_facts(real))
    if not found:
        return []
    uid = os.geteuid() if hasattr(os, "geteuid") else None
    return list(signs(found, uid=uid, header=_header(real), tracked=_tracked(real)))


def open_signs(file: Path, home: Path) -> list[Sign]:
    """Those that nobody has agreed to."""
    return [
        sign
        for sign in foreign_signs(file)
        if not sign.may_be_trusted or not is_agreed(about_file(file, sign.kind), home)
    ]


def check_store_files(file: Path, home: Path) -> None:
    """Raises StoreNotTrusted for a store whose files may be somebody else's work. Opens nothing."""
    if found := open_signs(file, home):
        raise StoreNotTrusted("; ".join(sign.what for sign in found), hint=way_on(found), path=str(file))


def way_on(found: Iterable[Sign]) -> str:
    """What a person can do about these signs."""
    kinds = {sign.kind for sign in found}
    if kinds & {"link", "journal"}:
        return "Handrail does not leave that there, so look who did, and remove it"
    if kinds == {"mode"}:
        return "`handrail db trust` closes it to them, and so does chmod 600"
    if "tracked" in kinds:
        return (
            "if it should not be in git: git rm --cached, and keep it out; if you trust everybody who can push, "
            "run `handrail db trust` once. To begin without it, move it away"
        )
    return "if you know whose it is, run `handrail db trust` once; to begin without it, move it away"


def close_to_others(file: Path) -> None:
    """Makes a store and the files beside it readable by their owner only. Raises OSError."""
    real = os.path.realpath(file)
    for ending in (*SIDE_FILES, ".gate", ".hooks", "-search"):
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISREG(os.lstat(real + ending).st_mode):
                Path(real + ending).chmod(0o600)


def _facts(real: Path) -> Iterator[FileFacts]:
    for ending in SIDE_FILES:
        with contextlib.suppress(OSError):
            found = os.lstat(f"{real}{ending}")
            yield FileFacts(str(real), ending, uid=found.st_uid, mode=found.st_mode, size=found.st_size)


def _header(real: Path) -> bytes:
    if not real.is_file():  # whoever opens a pipe waits
        return b""
    try:
        return read_beginning(real, HEADER)
    except OSError:
        return b""


def _tracked(real: Path) -> str | None:
    """The name under which the repository that a file lies in tracks it, or a file beside it."""
    for folder in real.parents:
        if (git_dir := _git_dir(folder / ".git")) is not None:
            path = os.fsencode(real.relative_to(folder).as_posix())
            return next((name for index in _indexes(git_dir) if (name := tracked_in(index, path))), None)
    return None


def _git_dir(marker: Path) -> Path | None:
    if marker.is_dir():
        return marker
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if marker.is_file():
            return marker.parent / read_regular(marker, GIT_FILE_BYTES).decode().removeprefix("gitdir:").strip()
    return None


def _indexes(git_dir: Path) -> Iterator[bytes]:
    """The index, and what it may share with another: such a split index lists only its own changes."""
    for name in ("index", *(file.name for file in git_dir.glob("sharedindex.*"))):
        with contextlib.suppress(OSError):
            yield read_regular(git_dir / name, INDEX_FILE_BYTES)

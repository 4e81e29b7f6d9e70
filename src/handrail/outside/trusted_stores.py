"""Which stores outside a project its own config file may name, on this machine: those a person has trusted.

A config file comes with its repository. Work must not go to somebody's database just because a folder was opened, so a
store elsewhere is used only after its user has agreed once; the agreement is kept in the user's folder, as a hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.limits import RECORD_FILE_BYTES
from handrail.regular_files import read_regular

FILE = Path(".handrail") / "trusted-stores"
POSTGRES = ("postgresql://", "postgres://")


def lies_outside(db: str, project: Path) -> bool:
    """Whether a store is anywhere but in the project's own folder, following links."""
    if not db:
        return False
    return db.startswith(POSTGRES) or not Path(os.path.realpath(project / db)).is_relative_to(os.path.realpath(project))


def is_trusted(db: str, *, project: Path, home: Path) -> bool:
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return _mark(db, project) in read_regular(home / FILE, RECORD_FILE_BYTES).decode("ascii").split()
    return False


def trust(db: str, *, project: Path, home: Path) -> None:
    """Records the user's agreement. Others who could write to the file could forge it, so it is private to its
    owner."""
    if is_trusted(db, project=project, home=home):
        return
    file = home / FILE
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        with os.fdopen(written, "w", encoding="ascii") as lines:
            lines.write(_mark(db, project) + "\n")
    except OSError as problem:
        raise PlaceUnusable(
            f"{file} cannot be written: {problem.strerror}", hint="name the store with HANDRAIL_DB instead"
        ) from None


def _mark(db: str, project: Path) -> str:
    """A hash of both: the address may contain a password."""
    return hashlib.sha256(f"{os.path.realpath(project)}\0{db}".encode(errors="surrogateescape")).hexdigest()

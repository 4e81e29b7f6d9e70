"""What a person has agreed to about stores, on this machine: a store outside a project that its config file names, and
a store file that git tracks, that belongs to somebody else or that others may read.

A config file, and a store in the project, come with a repository. Nobody's work goes to a database, and nothing in one
is believed, just because a folder was opened; an agreement is kept in the user's folder, as a hash. Whether a file was
made on this machine needs none: it is written in the file (`store/origin.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.atomic_files import write_whole
from handrail.outside.private_files import NotPrivate, make_private_folder, read_private

FILE = Path(".handrail") / "trusted-stores"
AGREED_KINDS = ("mode", "owner", "tracked")
"""The signs of a stranger's store that a person can agree to (`kernel/provenance.py`)."""
POSTGRES = ("postgresql://", "postgres://")


class Agreement(NamedTuple):
    """One agreement, as it is kept."""

    digest: str
    shown: str
    """For people: what it is about, without secrets. Empty for one that an older Handrail kept."""


def lies_outside(db: str, project: Path) -> bool:
    """Whether a store is anywhere but in the project's own folder, following links."""
    if not db:
        return False
    return db.startswith(POSTGRES) or not Path(os.path.realpath(project / db)).is_relative_to(os.path.realpath(project))


def about_address(db: str, project: Path) -> str:
    """What is agreed to when a project's records may go to an address."""
    return f"{os.path.realpath(project)}\0{db}"


def about_file(file: Path, kind: str) -> str:
    """What is agreed to when a store is used although it shows a sign of this kind."""
    return f"{os.path.realpath(file)}\0store file\0{kind}"


def agreements(home: Path) -> list[Agreement]:
    """All of them, oldest first. None if others could have written the file."""
    with contextlib.suppress(OSError, NotPrivate, UnicodeDecodeError):
        lines = (read_private(home / FILE) or b"").decode("ascii").splitlines()
        return [Agreement(digest, unquote(shown)) for digest, _, shown in (line.partition(" ") for line in lines)]
    return []


def agreed_in(project: Path, home: Path, db: str) -> list[Agreement]:
    """Those about one project's store, which is at `db`; empty for its own file."""
    file = project / (db or Path(".handrail", "handrail.db"))
    wanted = {_digest(about_file(file, kind)) for kind in AGREED_KINDS} | {_digest(about_address(db, project))}
    return [known for known in agreements(home) if known.digest in wanted]


def is_agreed(what: str, home: Path) -> bool:
    digest = _digest(what)
    return any(known.digest == digest for known in agreements(home))


def agree(what: str, home: Path, shown: str = "") -> None:
    """Keeps an agreement. Raises PlaceUnusable."""
    if is_agreed(what, home):
        return
    file = home / FILE
    with _writing(file):
        read_private(file)  # refuses one that is not the user's own
        make_private_folder(file.parent)
        written = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0), 0o600)
        with os.fdopen(written, "w", encoding="ascii") as lines:
            lines.write(_line(Agreement(_digest(what), shown)))


def withdraw(agreement: Agreement, home: Path) -> bool:
    """Ends an agreement; False if there was none."""
    kept = agreements(home)
    left = [known for known in kept if known.digest != agreement.digest]
    if len(left) == len(kept):
        return False
    with _writing(home / FILE):
        write_whole(home / FILE, "".join(map(_line, left)).encode("ascii"))
    return True


def is_trusted(db: str, *, project: Path, home: Path) -> bool:
    return is_agreed(about_address(db, project), home)


def trust(db: str, *, project: Path, home: Path, shown: str = "") -> None:
    """Records the user's agreement that a project's records may go to an address. `shown` has no password."""
    agree(about_address(db, project), home, f"{project} in {shown}" if shown else "")


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, NotPrivate) as problem:
        why = problem.strerror if isinstance(problem, OSError) else problem
        raise PlaceUnusable(
            f"{file} cannot be written: {why}", hint="name the store with HANDRAIL_DB instead, or fix that file"
        ) from None


def _line(agreement: Agreement) -> str:
    """Hooks look for the hash among the words of the file, so what is shown must be one word that is no hash."""
    shown = quote(agreement.shown, safe="/:@,=()", errors="replace")
    return f"{agreement.digest} {shown}".rstrip() + "\n"


def _digest(what: str) -> str:
    """A hash: an address may contain a password."""
    return hashlib.sha256(what.encode(errors="surrogateescape")).hexdigest()

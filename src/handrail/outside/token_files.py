"""The bearer token of agents' HTTP calls: created once per user, readable by nobody else. Never the page's sign-in.

How this user's servers on this machine learn at once that a token was revoked: a file that grows by a line each time.
Servers elsewhere find out from the store. Not a record of anything: nothing reads the lines.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.atomic_files import PRIVATE, write_new
from handrail.outside.private_files import NotPrivate, make_private_folder, read_private

TOKEN_FILE = Path(".handrail") / "token"


def agent_token(home: Path) -> str:
    """The user's token, created on first use. Two processes that start at once agree on one."""
    file = home / TOKEN_FILE
    try:
        return _read_or_create(file)
    except (OSError, UnicodeDecodeError, NotPrivate) as problem:
        why = "it is not text" if isinstance(problem, UnicodeDecodeError) else getattr(problem, "strerror", problem)
        raise PlaceUnusable(
            f"the token cannot be kept in {file}: {why}", hint="give one with --token, or fix the file or its folder"
        ) from None


def _read_or_create(file: Path) -> str:
    if (known := _read(file)) is not None:
        if known:
            return known
        file.unlink(missing_ok=True)  # an empty file would be a token that everybody knows
    make_private_folder(file.parent)
    fresh = secrets.token_urlsafe(32)
    try:
        write_new(file, f"{fresh}\n".encode(), rights=PRIVATE)
    except FileExistsError:  # another process was first, and theirs is the token
        return _read(file) or ""
    return fresh


def _read(file: Path) -> str | None:
    content = read_private(file)
    return None if content is None else content.decode().strip()


REVOCATIONS = Path(".handrail") / "revocations"


def note_revocation(home: Path, token_id: str) -> bool:
    """Adds a line; False if that fails. Appending is atomic, so no revocation hides another."""
    file = home / REVOCATIONS
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(descriptor, f"{token_id}\n".encode())
        finally:
            os.close(descriptor)
    except OSError:
        return False
    return True


def revocation_mark(file: str) -> int:
    """A number that changes with each revocation noted in `home / REVOCATIONS`, which is given as text: servers ask on
    every call, and a path object would cost more than the query."""
    try:
        return os.stat(file).st_size  # noqa: PTH116 - as above
    except OSError:
        return 0

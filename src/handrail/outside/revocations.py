"""How this user's servers on this machine learn at once that a token was revoked: a file that grows by a line each
time. Servers elsewhere find out from the store. Not a record of anything: nothing reads the lines."""

from __future__ import annotations

import os
from pathlib import Path

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

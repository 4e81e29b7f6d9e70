"""The bearer token of agents' HTTP calls: created once per user, readable by nobody else. Never the page's sign-in."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.whole_files import PRIVATE, write_new
from handrail.regular_files import read_regular

TOKEN_FILE = Path(".handrail") / "token"
TOKEN_BYTES = 4096


def agent_token(home: Path) -> str:
    """The user's token, created on first use. Two processes that start at once agree on one."""
    file = home / TOKEN_FILE
    try:
        return _read_or_create(file)
    except (OSError, UnicodeDecodeError) as problem:
        why = "it is not text" if isinstance(problem, UnicodeDecodeError) else problem.strerror
        raise PlaceUnusable(
            f"the token cannot be kept in {file}: {why}", hint="give one with --token, or fix the file or its folder"
        ) from None


def _read_or_create(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        if known := _read(file):
            return known
        file.unlink()  # an empty file would be a token that everybody knows
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = secrets.token_urlsafe(32)
    try:
        write_new(file, f"{fresh}\n".encode(), rights=PRIVATE)
    except FileExistsError:  # another process was first, and theirs is the token
        return _read(file)
    return fresh


def _read(file: Path) -> str:
    if os.name == "posix" and file.stat().st_mode & 0o077:
        file.chmod(PRIVATE)
    return read_regular(file, TOKEN_BYTES).decode().strip()

"""The bearer token that agents' HTTP calls carry: made once per user, readable by nobody else. Never the page's
sign-in."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from handrail.kernel.errors import PlaceUnusable

TOKEN_FILE = Path(".handrail") / "token"


def agent_token(home: Path) -> str:
    """The user's token, made on first use. Two processes that start at once agree on one."""
    file = home / TOKEN_FILE
    try:
        return _kept(file)
    except (OSError, UnicodeDecodeError) as problem:
        why = "it is not text" if isinstance(problem, UnicodeDecodeError) else problem.strerror
        raise PlaceUnusable(
            f"the token cannot be kept in {file}: {why}", hint="give one with --token, or mend the file or its folder"
        ) from None


def _kept(file: Path) -> str:
    with contextlib.suppress(FileNotFoundError):
        if known := _read(file):
            return known
        file.unlink()  # an empty file would be a token that anybody has
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = secrets.token_urlsafe(32)
    draft = file.with_name(f"token.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as written:
        written.write(fresh + "\n")
    try:
        os.link(draft, file)  # fails where another process was first, and then theirs is the token
    except FileExistsError:
        return _read(file)
    else:
        return fresh
    finally:
        draft.unlink()


def _read(file: Path) -> str:
    if os.name == "posix" and file.stat().st_mode & 0o077:
        file.chmod(0o600)
    return file.read_text(encoding="utf-8").strip()

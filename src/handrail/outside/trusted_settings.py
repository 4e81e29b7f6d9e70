"""What this person has agreed to, for each project on this machine, of what projects' own config files say.

Kept in the user's folder: for a value that would run or reach something its full hash, for one that can be stricter or
weaker the value. A file that others could have written, or that cannot be understood, agrees to nothing. Stores
elsewhere have a list of their own (`trusted_stores.py`).
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.late import late_module
from handrail.strictness import CAUTIONS, Agreed, Obeyed, mark_of

if TYPE_CHECKING:
    from handrail.outside import atomic_files, file_lock
else:
    atomic_files = late_module("handrail.outside.atomic_files")
    file_lock = late_module("handrail.outside.file_lock")

FILE = Path(".handrail") / "trusted-settings.json"
LOCK = Path(".handrail") / "trusted-settings.lock"
MOST_BYTES = 16 * 1024 * 1024
LOCK_S = 10.0


class KeptAgreement(msgspec.Struct, frozen=True):
    """What is kept about one project."""

    marks: dict[str, str] = {}
    limits: dict[str, Any] = {}
    at: int = 0
    """When it was agreed to last, in milliseconds."""


_KEPT = msgspec.json.Decoder(dict[str, KeptAgreement])


def key_of(project: Path) -> str:
    """The name of a project: its real path. Bytes that are not text are written out."""
    return os.fsencode(os.path.realpath(project)).decode(errors="backslashreplace")


def agreed_for(project: Path, home: Path) -> Agreed:
    """What was agreed to for this project."""
    kept = all_agreed(home).get(key_of(project), KeptAgreement())
    return Agreed(project=os.path.realpath(project), marks=kept.marks, limits=kept.limits)


def all_agreed(home: Path) -> dict[str, KeptAgreement]:
    """By project. Empty if there is no such file, or none to be believed."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return _KEPT.decode(_private_bytes(home / FILE))
    return {}


def agree(project: Path, home: Path, values: Mapping[str, Any], *, now_ms: int) -> None:
    """Records that these values, as the project's file has them, may be followed. Earlier agreements to other settings
    stay."""
    root = os.path.realpath(project)
    trusted = [name for name in values if CAUTIONS[name].obeyed is Obeyed.TRUSTED]
    marks = {name: mark_of(root, name, values[name]) for name in trusted}
    limits = {name: value for name, value in values.items() if CAUTIONS[name].obeyed is Obeyed.STRICTER}

    def changed(kept: KeptAgreement) -> KeptAgreement:
        return KeptAgreement({**kept.marks, **marks}, {**kept.limits, **limits}, now_ms)

    _change(project, home, changed)


def forget(project: Path, home: Path, names: Iterable[str] | None = None) -> bool:
    """Takes agreements back: to these settings, or to all. False if there were none."""
    if key_of(project) not in all_agreed(home):
        return False
    gone = set(CAUTIONS) if names is None else set(names)

    def changed(kept: KeptAgreement) -> KeptAgreement:
        return KeptAgreement(_without(kept.marks, gone), _without(kept.limits, gone), kept.at)

    _change(project, home, changed)
    return True


def _without(values: Mapping[str, Any], names: set[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _change(project: Path, home: Path, change: Callable[[KeptAgreement], KeptAgreement]) -> None:
    """Changes what is kept about one project. Others who could write to the file could forge it, so it is private to
    its owner."""
    file = home / FILE
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = file_lock.FileLock(str(home / LOCK))
        try:
            if not lock.taken_within(LOCK_S):
                raise PlaceUnusable(f"{home / LOCK} is held by another process", hint="try again soon")
            known = all_agreed(home)
            kept = change(known.pop(key_of(project), KeptAgreement()))
            if kept.marks or kept.limits:
                known[key_of(project)] = kept
            if known:
                _write_private(file, msgspec.json.encode(known))
            else:
                _leave_nothing(home)
        finally:
            lock.leave()
    except OSError as problem:
        raise PlaceUnusable(
            f"{file} cannot be written: {problem.strerror}", hint="make it writable; nothing was agreed to"
        ) from None


def _leave_nothing(home: Path) -> None:
    """Removes what is kept for nobody any more: whoever waits for the lock then writes at worst beside another, and an
    agreement that is lost is asked for again."""
    (home / FILE).unlink(missing_ok=True)
    (home / LOCK).unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # it holds something else
        (home / FILE).parent.rmdir()


def _write_private(file: Path, content: bytes) -> None:
    try:
        atomic_files.write_new(file, content, rights=atomic_files.PRIVATE)
    except FileExistsError:
        if not file.is_symlink():
            file.chmod(atomic_files.PRIVATE)
        atomic_files.write_whole(file, content)


def _private_bytes(file: Path) -> bytes:
    """The content of a file that nobody else can have written. Raises OSError for any other."""
    opened = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(opened, "rb") as read:
        found = os.fstat(opened)
        if not stat.S_ISREG(found.st_mode) or (os.name == "posix" and not _is_private(found)):
            raise PermissionError(f"{file} is not this user's alone")
        return read.read(MOST_BYTES)


def _is_private(found: os.stat_result) -> bool:
    return found.st_uid == os.geteuid() and not found.st_mode & 0o022

"""The documents of a workspace: their texts as people and agents are shown them, and the bytes that stand for them
wherever two documents are compared. Pure.

The port to a run's documents: the Markdown files of one folder below `.specs/`. No I/O here.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Protocol

ABSENT = "absent"
"""The fingerprint of a document that does not exist."""
UNREAD = "unread"
"""The fingerprint of a document that could not be read whole: nobody knows what it says."""
SHORT = 16
"""Digits of a fingerprint that an older Handrail kept."""
_BOX = re.compile(rb"([ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]+)\[[ xX]\](.*)", re.DOTALL)
_MARKS = (b"[x]", b"[X]", "✅".encode(), "✓".encode(), "✔".encode(), "✔\ufe0f".encode())
_DONE = (b"", b"done", b"complete", b"completed", b"finished", b"implemented")


class WorkspaceTexts(dict[str, str]):
    """The texts of documents by name. One that is not UTF-8 says so in its first line and shows the other bytes as
    escapes; one that could not be read whole is empty."""

    def __init__(self, read: Mapping[str, bytes | None]) -> None:
        super().__init__({name: shown_text(data) if data is not None else "" for name, data in read.items()})
        self.not_text = {name: data for name, data in read.items() if data is not None and not _is_text(data)}
        self.unread = frozenset(name for name, data in read.items() if data is None)


def document_bytes(files: Mapping[str, str], name: str) -> bytes:
    """What the file of a document contains, byte for byte."""
    if isinstance(files, WorkspaceTexts) and name in files.not_text:
        return files.not_text[name]
    return files[name].encode("utf-8", "surrogatepass")


def fingerprint(files: Mapping[str, str], name: str) -> str:
    """The SHA-256 of a document's bytes, in full; or ABSENT, or UNREAD."""
    if name not in files:
        return ABSENT
    if isinstance(files, WorkspaceTexts) and name in files.unread:
        return UNREAD
    return hashlib.sha256(document_bytes(files, name)).hexdigest()


def unticked(files: Mapping[str, str], name: str) -> str:
    """Like `fingerprint`, for a list in which agents tick off what they have done: the same with or without ticks."""
    if (found := fingerprint(files, name)) in (ABSENT, UNREAD):
        return found
    lines = [_without_tick(line) for line in document_bytes(files, name).split(b"\n")]
    return hashlib.sha256(b"\n".join(line for line in lines if line is not None).rstrip()).hexdigest()


def _without_tick(line: bytes) -> bytes | None:
    """A line with its box empty and without a mark at its end; None for one that says that a task is done, and nothing
    else."""
    if (found := _BOX.fullmatch(line)) is not None:
        if found[2].strip(b" \t\r.!").lower() in _DONE:
            return None
        return found[1] + b"[ ]" + found[2]
    bare = line.rstrip()
    mark = next((mark for mark in _MARKS if bare.endswith(mark)), None)
    return bare[: -len(mark)].rstrip() if mark is not None else line


def is_accepted(known: str | None, found: str) -> bool:
    """Whether a document is the one whose fingerprint was kept. One that could not be read is never, and neither is one
    kept by an older Handrail, which kept 64 bits: it counts as unknown."""
    return known == found != UNREAD


def was_there(known: Iterable[str], found: str) -> bool:
    """Whether a document is one of those that were there before. Here the 64 bits of an older Handrail suffice: to
    mistake a new document for an old one only has it written again."""
    return any(found.startswith(one) for one in known if one)


def is_short(known: str) -> bool:
    """Whether a fingerprint is one of an older Handrail."""
    return len(known) == SHORT


def shown_text(data: bytes) -> str:
    """What a document says. Bytes that are not UTF-8 are counted in a first line of its own, and escaped."""
    if _is_text(data):
        return data.decode()
    count = sum(0xDC80 <= ord(char) <= 0xDCFF for char in data.decode("utf-8", "surrogateescape"))
    stray = f"{count} byte{'s' if count > 1 else ''}"
    return f"[not UTF-8: {stray}, shown here as \\xNN]\n\n{data.decode('utf-8', 'backslashreplace')}"


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Specs(Protocol):
    """The folders of all runs of one repository. Paths are relative to it and stay below `.specs/`."""

    def texts(self, workspace: str) -> WorkspaceTexts:
        """Every Markdown file of a workspace by name; empty if the folder does not exist."""
        ...

    def write(self, workspace: str, name: str, text: str | bytes) -> None:
        """Writes one file, completely or not at all."""
        ...

    def exists(self, workspace: str) -> bool: ...

    def state(self, workspace: str) -> str | None:
        """The workspace's `state.json`; None if there is none that can be read."""
        ...

    def index(self) -> str | None:
        """`.specs/index.json`; None if there is none that can be read."""
        ...

    def write_index(self, text: str) -> None: ...

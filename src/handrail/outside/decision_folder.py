"""A folder of decision records: numbered Markdown files, one per decision, that a team keeps with its code.

Each file ends with a mark: the decision's id, and a hash of what was written. The id lets a decision keep its number
and name for good; the hash shows whether somebody has changed the file since. A file that somebody changed, or that was
never ours, is left alone. What a page says is up to `domain/journal/decision_log.py`.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from handrail.kernel.errors import PlaceUnusable
from handrail.outside.atomic_files import write_new, write_whole
from handrail.regular_files import FileRefused, read_regular

SLUG = 50
"""The longest part of a file's name after its number, in characters."""
READ_BYTES = 1024 * 1024
_NUMBERED = re.compile(r"(\d{1,9})[-_.].*\.md", re.IGNORECASE)
_MARK = re.compile(rb"<!-- handrail decision (\S+) sha256:([0-9a-f]{64}) -->\s*\Z")

Fate = Literal["written", "updated", "unchanged", "left alone"]
"""`left alone`: somebody has changed it since it was written."""


class DecisionFile(NamedTuple):
    """A decision that is to have a file. Its text depends on the number it gets and on the names of all files by id."""

    id: str
    title: str
    text: Callable[[int, Mapping[str, str]], str]


class WrittenDecision(NamedTuple):
    """What became of a page."""

    id: str
    file: Path
    fate: Fate


class _There(NamedTuple):
    """A file that an earlier export made."""

    file: Path
    number: int
    content: bytes
    is_ours: bool
    """Whether it is unchanged since it was written."""


def write_decisions(folder: Path, pages: Sequence[DecisionFile]) -> list[WrittenDecision]:
    """Writes a file for every page."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _write_all(folder, pages)
    except FileExistsError as problem:
        raise PlaceUnusable(
            f"{problem.filename or folder} is in the way", hint="look at what it is; then export again"
        ) from None
    except OSError as problem:
        raise PlaceUnusable(
            f"{problem.filename or folder} cannot be written: {problem.strerror}", hint="choose another folder"
        ) from None


def _write_all(folder: Path, pages: Sequence[DecisionFile]) -> list[WrittenDecision]:
    there, highest = _earlier_exports(folder)
    places: dict[str, tuple[int, str]] = {}
    for page in pages:
        if page.id in there:
            places[page.id] = there[page.id].number, there[page.id].file.name
        else:
            highest += 1
            places[page.id] = highest, f"{highest:04d}-{slug(page.title)}.md"
    names = {key: name for key, (_, name) in places.items()}
    found = []
    for page in pages:
        number, name = places[page.id]
        content = _with_mark(page.id, page.text(number, names))
        found.append(WrittenDecision(page.id, folder / name, _write_page(folder / name, content, there.get(page.id))))
    return found


def slug(title: str) -> str:
    """A title as part of a file's name: lower-case ASCII words."""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    found = ""
    for word in words:
        longer = f"{found}-{word}" if found else word[:SLUG]
        if len(longer) > SLUG:
            break
        found = longer
    return found or "decision"


def _earlier_exports(folder: Path) -> tuple[dict[str, _There], int]:
    """The files of earlier exports by decision, and the highest number any file has."""
    found: dict[str, _There] = {}
    highest = 0
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        numbered = _NUMBERED.fullmatch(entry.name)
        if numbered is None:
            continue
        highest = max(highest, int(numbered[1]))
        try:
            content = read_regular(entry.path, READ_BYTES, links=False).replace(b"\r\n", b"\n")
        except FileRefused:
            continue
        marked = _MARK.search(content)
        if marked is not None:
            is_ours = hashlib.sha256(content[: marked.start()]).hexdigest().encode() == marked[2]
            there = _There(Path(entry.path), int(numbered[1]), content, is_ours)
            found.setdefault(marked[1].decode(errors="replace"), there)
    return found, highest


def _write_page(file: Path, content: bytes, there: _There | None) -> Fate:
    if there is None:
        write_new(file, content)
        return "written"
    if there.content == content:
        return "unchanged"
    if not there.is_ours:
        return "left alone"
    write_whole(file, content)
    return "updated"


def _with_mark(key: str, text: str) -> bytes:
    body = text.rstrip().encode(errors="replace") + b"\n\n"
    return body + f"<!-- handrail decision {key} sha256:{hashlib.sha256(body).hexdigest()} -->\n".encode()

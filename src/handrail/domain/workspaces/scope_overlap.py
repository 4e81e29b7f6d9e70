"""Where two declared scopes overlap: the journal's `overlap`, called only for areas that could overlap at all.

A plan declares mostly plain paths and file names, and those can overlap in few ways. So many scopes can be compared
with many others without examining every pair of areas. The result is exactly that of `overlap`; a test compares the
two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from handrail.domain.journal.areas import Area
from handrail.domain.journal.paths import WILDCARDS
from handrail.domain.journal.scope import AreaOverlap, overlap

Kind = Literal["path", "glob", "name", "loose", "back"]


class _Read(NamedTuple):
    """Just enough about one area to rule out what it can never overlap."""

    area: str
    kind: Kind
    """A plain path from the root, a glob below one, a file name, anything else (`loose`), or one that takes back."""
    start: str = ""
    """The prefix of every path in it; for a name, the name."""


class Near(NamedTuple):
    """Areas of two scopes that may overlap."""

    mine: Sequence[str]
    theirs: Sequence[str]

    @property
    def pairs(self) -> int:
        return len(self.mine) * len(self.theirs)

    def meetings(self) -> list[AreaOverlap]:
        """Every pair of them that covers a common path."""
        return overlap(self.mine, self.theirs) if self.pairs else []


NOTHING = Near((), ())


class Reach:
    """A scope's areas, parsed once, to be compared with many others."""

    def __init__(self, areas: Iterable[str]) -> None:
        self._read = [_parsed_area(area) for area in areas if area.strip()]
        self.claims = any(one.kind != "back" for one in self._read)
        """False if nothing is declared, or areas are only taken back."""
        self._kinds = {one.kind for one in self._read}
        self._starts = {one.start for one in self._read if one.kind in ("path", "glob")}
        self._above = {above for start in self._starts for above in _beginnings(start)}
        self._names = {one.start for one in self._read if one.kind == "name"}
        plain = (one.start for one in self._read if one.kind == "path")
        self._segments = {segment for start in plain for segment in start.split("/")}

    def near(self, other: Reach) -> Near:
        """The areas of two scopes that must be compared closely to tell whether they overlap."""
        if self._is_apart(other):
            return NOTHING
        return Near(self._areas_near(other), other._areas_near(self))

    def meets(self, other: Reach) -> AreaOverlap | None:
        """Two areas that cover a common path, this scope's first; None if no such path is found."""
        return next(iter(self.near(other).meetings()), None)

    def _is_apart(self, other: Reach) -> bool:
        """True if no two areas of these scopes can overlap. Cheap to tell, and true of most pairs of scopes."""
        if "loose" in self._kinds or "loose" in other._kinds:
            return not (self.claims and other.claims)
        if (self._names and "glob" in other._kinds) or (other._names and "glob" in self._kinds):
            return False
        return (
            self._starts.isdisjoint(other._above)
            and other._starts.isdisjoint(self._above)
            and self._names.isdisjoint(other._names)
            and self._names.isdisjoint(other._segments)
            and other._names.isdisjoint(self._segments)
        )

    def _areas_near(self, other: Reach) -> Sequence[str]:
        """The areas that could overlap one of the other's, plus all that take back. Empty if nothing could."""
        near = [one for one in self._read if one.kind == "back" or other._may_meet(one)]
        return [one.area for one in near] if any(one.kind != "back" for one in near) else ()

    def _may_meet(self, theirs: _Read) -> bool:
        if theirs.kind == "loose":
            return self.claims
        if "loose" in self._kinds:
            return True
        if theirs.kind == "name":
            return "glob" in self._kinds or theirs.start in self._names or theirs.start in self._segments
        if theirs.kind == "glob" and self._names:
            return True
        if theirs.kind == "path" and not self._names.isdisjoint(theirs.start.split("/")):
            return True
        return theirs.start in self._above or not self._starts.isdisjoint(_beginnings(theirs.start))


def _parsed_area(area: str) -> _Read:
    """Any area that is not certainly of a simple kind is `loose`, which costs time but is always correct."""
    text = area.strip()
    if text.startswith("!"):
        return _Read(area, "back")
    while text.startswith("./"):
        text = text[2:].lstrip("/")
    if "\\" in text or "//" in text or not text.isascii():
        return _Read(area, "loose")
    if "/" in text.rstrip("/"):
        plain = text.strip("/").split("/")
        wild = next((at for at, segment in enumerate(plain) if not WILDCARDS.isdisjoint(segment)), None)
        if wild == 0:
            return _Read(area, "loose")
        return _Read(area, "path" if wild is None else "glob", "/".join(plain[:wild]))
    if WILDCARDS.isdisjoint(text) and Area(text).rule == "name":
        return _Read(area, "name", text)
    return _Read(area, "loose")


def _beginnings(path: str) -> list[str]:
    """A path and every directory above it."""
    segments = path.split("/")
    return ["/".join(segments[:end]) for end in range(1, len(segments) + 1)]

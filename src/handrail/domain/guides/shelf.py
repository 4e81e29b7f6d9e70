"""The port through which guides reach the tools, and the entries on that shelf. Reads no files:
`outside/guide_files.py` is the shelf used in practice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from handrail.domain.guides.definition import Guide, Matcher


class Position(msgspec.Struct, frozen=True):
    """A place in a text; both numbers count from 1."""

    line: int
    column: int


class LoadedGuide(msgspec.Struct, frozen=True):
    """A usable guide, its file, and the files from other sources that it replaces."""

    guide: Guide
    file: Path
    source: str
    shadows: tuple[Path, ...] = ()


class BrokenGuide(msgspec.Struct, frozen=True):
    """A guide file that cannot be followed. `path` is the place in the document (`steps[2].prompt`), "" for all of
    it."""

    id: str
    file: Path
    source: str
    position: Position | None
    path: str
    reason: str

    @property
    def where(self) -> str:
        return str(self.file) if self.position is None else f"{self.file}:{self.position.line}:{self.position.column}"


class GuideShelf(Protocol):
    """All guides currently available."""

    @property
    def matcher(self) -> Matcher: ...

    def guides(self) -> Sequence[LoadedGuide]: ...

    def problems(self) -> Sequence[BrokenGuide]: ...

    def find(self, guide_id: str) -> LoadedGuide | BrokenGuide | None: ...

"""The port through which guides reach the tools, and what comes off the shelf. No files are read here:
`outside/guide_files.py` is the shelf people use."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import msgspec

from handrail.domain.guides.definition import Guide
from handrail.domain.guides.matching import Matcher


class Position(msgspec.Struct, frozen=True):
    """A place in a text, both counted from 1."""

    line: int
    column: int


class LoadedGuide(msgspec.Struct, frozen=True):
    """A guide that can be followed, the file it came from, and the files of earlier sources it replaces."""

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
    """All guides there are right now."""

    @property
    def matcher(self) -> Matcher: ...

    def guides(self) -> Sequence[LoadedGuide]: ...

    def problems(self) -> Sequence[BrokenGuide]: ...

    def find(self, guide_id: str) -> LoadedGuide | BrokenGuide | None: ...

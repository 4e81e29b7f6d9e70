"""The port through which templates in files reach the tools, and the entries on that shelf. Reads no files:
`outside/template_files.py` is the shelf used in practice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from handrail.domain.work.render_template import Blueprint

FILE_PREFIX = "file:"
"""Ids of templates in files start with this, followed by the file's stem."""


class FileTemplate(msgspec.Struct, frozen=True):
    """A usable template, and where it comes from: project, user or bundled."""

    stem: str
    source: str
    file: str
    created_at: int
    """When the file was last changed."""
    blueprint: Blueprint

    @property
    def id(self) -> str:
        return FILE_PREFIX + self.stem

    def answers_to(self, key: str) -> bool:
        return key in (self.id, self.stem, self.blueprint.name)


class BrokenTemplate(msgspec.Struct, frozen=True):
    """A file, or a folder of files, that cannot be used. Its stem is empty if it cannot stand for any one template."""

    stem: str
    source: str
    where: str
    reason: str

    @property
    def id(self) -> str:
        return FILE_PREFIX + self.stem if self.stem else ""

    def answers_to(self, key: str) -> bool:
        return bool(self.stem) and key in (self.id, self.stem)


class TemplateShelf(Protocol):
    """All templates currently available in files."""

    def entries(self) -> Sequence[FileTemplate | BrokenTemplate]:
        """Nearest first: project, user, bundled. Of files with the same stem only the nearest counts, broken or not."""
        ...

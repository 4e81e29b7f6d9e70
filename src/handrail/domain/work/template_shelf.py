"""The port through which templates in files reach the tools, and what comes off the shelf. No files are read here:
`outside/template_files.py` is the shelf people use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from handrail.domain.work.templating import Blueprint

FILE_PREFIX = "file:"
"""Ids of templates in files begin so; the file's stem follows."""


class FileTemplate(msgspec.Struct, frozen=True):
    """A template that can be applied, and where it comes from: project, user or bundled."""

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
    """A file, or a folder of them, that cannot be used. It has no stem where no template could be meant by it."""

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
    """All templates there are in files right now."""

    def entries(self) -> Sequence[FileTemplate | BrokenTemplate]:
        """The nearest first: project, user, bundled. Of files with one stem only the nearest, broken or not."""
        ...

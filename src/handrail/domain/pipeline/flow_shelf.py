"""The port through which flows reach the tools, and the entries on that shelf. Reads no files:
`outside/flow_files.py` is the shelf used in practice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from handrail.domain.pipeline.flow import Flow


class LoadedFlow(msgspec.Struct, frozen=True):
    """A usable flow, its source (project, user or bundled), and the files it replaces."""

    flow: Flow
    source: str
    file: str
    shadows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.flow.name


class BrokenFlow(msgspec.Struct, frozen=True):
    """A file, or a folder of files, that cannot be used. Its name is empty if it cannot stand for any one flow."""

    name: str
    source: str
    where: str
    """The file, with `:line:column` if known."""
    reason: str
    phase: str | None = None
    """The phase that has the mistake."""


class FlowShelf(Protocol):
    """All flows currently available."""

    def names(self) -> Sequence[str]:
        """The usable ones, in alphabetical order."""
        ...

    def find(self, name: str) -> Flow:
        """The flow. Raises InvalidFlow if its file has a mistake, NotFound if there is none."""
        ...

    def bundled(self, name: str) -> Flow | None:
        """The flow as shipped with Handrail, whatever a project has in its place."""
        ...

"""The port through which flows reach the tools, and what comes off the shelf. No files are read here:
`outside/flow_files.py` is the shelf people use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from handrail.domain.pipeline.flow import Flow


class LoadedFlow(msgspec.Struct, frozen=True):
    """A flow that can be followed, where it comes from (project, user or bundled), and the files it replaces."""

    flow: Flow
    source: str
    file: str
    shadows: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.flow.name


class BrokenFlow(msgspec.Struct, frozen=True):
    """A file, or a folder of them, that cannot be used. It has no name where no flow could be meant by it."""

    name: str
    source: str
    where: str
    """The file, with `:line:column` where that is known."""
    reason: str
    phase: str | None = None
    """The phase that has the mistake."""


class FlowShelf(Protocol):
    """All flows there are right now."""

    def names(self) -> Sequence[str]:
        """Those that can be followed, in order of the alphabet."""
        ...

    def find(self, name: str) -> Flow:
        """The flow; raises InvalidFlow where its file has a mistake, NotFound where there is none."""
        ...

    def bundled(self, name: str) -> Flow | None:
        """The flow as it comes with Handrail, whatever a project has in its place."""
        ...

"""The port to a run's documents: the Markdown files of one folder below `.specs/`. No I/O here."""

from __future__ import annotations

from typing import Protocol

from handrail.domain.pipeline.workspace_texts import WorkspaceTexts


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

"""The port to a project's own checks: commands that say whether work is sound. No I/O here."""

from __future__ import annotations

from typing import Any, Protocol


class Checks(Protocol):
    """The checks of one project, run where the work was done."""

    def run(self, directory: str) -> list[dict[str, Any]]:
        """Runs each configured check: its name, command, exit code and the end of its output."""
        ...

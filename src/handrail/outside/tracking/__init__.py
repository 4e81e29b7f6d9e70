"""Tracking: exact snapshots of working copies and the changes between them, with git if there is a repository.

`tracker_at` is the way in. Nothing here is imported before the first task is journalled.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from handrail.kernel.errors import PlaceUnusable

if TYPE_CHECKING:
    from handrail.outside.tracking.working_copies import WorkingCopies


def tracker_at(project: Path) -> WorkingCopies:
    """The tracker that keeps its state in the project's `.handrail/snapshots/`."""
    from handrail.outside.tracking.working_copies import WorkingCopies  # noqa: PLC0415 - it needs subprocess
    from handrail.outside.world import RandomIds, SystemClock  # noqa: PLC0415

    for folder in (project / ".handrail", project / ".handrail" / "snapshots"):
        if folder.is_symlink():  # it may have come with the repository, and lead anywhere
            raise PlaceUnusable(f"{folder} is a symbolic link", hint="remove it; what is kept there must lie there")
    clock = SystemClock()
    return WorkingCopies(project / ".handrail" / "snapshots", clock=clock, ids=RandomIds(clock))

"""Tracking: exact snapshots of working copies and the changes between them, with git if there is a repository.

`tracker_at` is the way in. Nothing here is imported before the first task is journalled.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.late import late_module
from handrail.outside.world import RandomIds, SystemClock

if TYPE_CHECKING:
    from handrail.outside.tracking import working_copies
else:
    working_copies = late_module("handrail.outside.tracking.working_copies")


def tracker_at(project: Path) -> working_copies.WorkingCopies:
    """The tracker that keeps its state in the project's `.handrail/snapshots/`."""
    for folder in (project / ".handrail", project / ".handrail" / "snapshots"):
        if folder.is_symlink():  # it may have come with the repository, and lead anywhere
            raise PlaceUnusable(f"{folder} is a symbolic link", hint="remove it; what is kept there must lie there")
    clock = SystemClock()
    return working_copies.WorkingCopies(project / ".handrail" / "snapshots", clock=clock, ids=RandomIds(clock))

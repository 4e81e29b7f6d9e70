"""What can be asked of a recovery: what to include, and what it may cost. Nothing else, so that it loads quickly."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

LEAST_TOKENS = 256
"""The smallest budget. Ids, states and the next move always fit it."""
MOST_TOKENS = 200_000
ALL_CHECKPOINTS = 500
"""The most checkpoints that one call shows."""


class Include(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What belongs into a bundle."""

    workflow_plan: bool = True
    workflow_summary: bool = True
    prior_task_outcomes: bool = True
    prior_task_full: bool = False
    sibling_status: bool = True
    dependency_outcomes: bool = True
    all_checkpoints: bool = False
    recent_checkpoints: Annotated[int, Meta(ge=0, le=ALL_CHECKPOINTS)] = 5


class RecoveryOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, which the calls suggested for what is missing repeat."""

    include: Include
    max_tokens: int
    task_id: str | None
    """As the caller gave it."""

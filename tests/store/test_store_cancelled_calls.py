"""A call and its cancellation at the same time, on every store: one of them is first, and both know which."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from handrail.kernel.errors import Cancelled, OperationNotFound
from tests.store.ground import Ground
from tests.surfaces.keyed import workflows
from tests.toolsets.registry.registry_desk import Beginning, RegistryDesk

TIMES = 25
NEW: dict[str, Any] = {"name": "Work", "source_type": "prompt", "source_content": "Do it."}


def cancelled(desk: RegistryDesk, op_id: str) -> str:
    """The outcome of cancelling a call as soon as it is there."""
    while True:
        position = desk.store.position()
        try:
            return str(desk.call("op_cancel", op_id=op_id)["outcome"])
        except OperationNotFound:
            desk.store.wait(position, 5)


def test_what_was_cancelled_in_time_has_written_nothing_and_all_else_has(tmp_path: Path, ground: Ground) -> None:
    desk = RegistryDesk(tmp_path / "one", "cancellation", store=ground.store)
    other = RegistryDesk(tmp_path / "two", "cancellation", store=ground.another())
    made = 0
    for number in range(TIMES):
        op_id = f"op {number}"
        cancelling = Beginning(partial(cancelled, other, op_id))
        try:
            desk.call("workflow_create", **NEW, op_id=op_id)
            was_made = True
        except Cancelled:
            was_made = False
        assert cancelling.result() == ("already_done" if was_made else "requested")
        made += was_made
        assert workflows(desk) == made
        assert cancelled(desk, op_id) == ("already_done" if was_made else "already_cancelled")

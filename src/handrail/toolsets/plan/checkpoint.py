"""Toolset `checkpoint`: plan.md's progress records on a task. Each is an event; recovery reads all of them."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.work.checkpoint import Checkpoint, CheckpointType, next_checkpoint
from handrail.domain.work.lookup import find_task
from handrail.kernel.errors import ClaimHeld, TaskNotFound
from handrail.kernel.records import Query
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import task_to_write
from handrail.toolsets.plan.workflow import HELD, PLANNED
from handrail.toolsets.shown import shown_checkpoint
from handrail.toolsets.vocabulary import CHECKPOINT


class AddCheckpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happened on a task."""

    task_id: str
    type: CheckpointType
    summary: Annotated[str, Meta(min_length=1, max_length=4000)]
    detail: dict[str, Any] = {}
    files_changed: list[str] = []


class AddedCheckpoint(msgspec.Struct, frozen=True):
    """The new checkpoint's place."""

    id: str
    sequence: int


class ListCheckpoints(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which checkpoints of a task."""

    task_id: str
    type: list[CheckpointType] | UnsetType = UNSET
    since_sequence: Annotated[int, Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, Meta(ge=1, le=500)] = 10
    full: Annotated[bool, Meta(description="Long texts whole")] = False


class CheckpointPage(msgspec.Struct, frozen=True):
    """Checkpoints in their order, and how many fit in all."""

    checkpoints: tuple[dict[str, Any], ...]
    total: int


def checkpoint_add(call: Call, request: AddCheckpoint) -> AddedCheckpoint:
    task = task_to_write(call, request.task_id)
    checkpoint = next_checkpoint(call.work, task, request.type, request.summary, request.detail, request.files_changed)
    counted = msgspec.structs.replace(task, checkpoints=checkpoint.sequence, updated_at=checkpoint.created_at)
    call.work.record("checkpoint.added", checkpoint, counted)
    return AddedCheckpoint(checkpoint.id, checkpoint.sequence)


def checkpoint_list(call: Call, request: ListCheckpoints) -> CheckpointPage:
    task = find_task(call.work, request.task_id)
    conditions: list[tuple[str, Any]] = [("task_id", task.id)]
    if request.type is not UNSET:
        conditions.append(("type", tuple(request.type)))
    conditions.append(("sequence >", request.since_sequence))
    found = call.work.select(Checkpoint, Query(tuple(conditions), ("sequence",), request.limit))
    total = call.work.count(Checkpoint, Query(tuple(conditions)))
    return CheckpointPage(tuple(shown_checkpoint(checkpoint, full=request.full) for checkpoint in found), total)


_ADDED = (*PLANNED, ("checkpoint_add", {"task_id": "task_1", "type": "decision", "summary": "Retry five times"}))

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="checkpoint_add",
        toolset=CHECKPOINT,
        effect=Effect.WRITE,
        stored=True,
        summary="Records progress, a decision or an error on a task",
        request=AddCheckpoint,
        response=AddedCheckpoint,
        handler=checkpoint_add,
        refusals=(TaskNotFound, ClaimHeld),
        examples=(
            Example(
                title="checkpoints count up",
                given=_ADDED,
                request={"task_id": "task_1", "type": "progress", "summary": "Wrapped", "files_changed": ["fetch.py"]},
                response={"sequence": 2},
            ),
            Example(
                title="an unknown task is refused",
                request={"task_id": "task_9", "type": "progress", "summary": "x"},
                refused=TaskNotFound,
            ),
            Example(
                title="a task that another holds is refused",
                given=HELD,
                request={"task_id": "task_1", "type": "progress", "summary": "x"},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="checkpoint_list",
        toolset=CHECKPOINT,
        effect=Effect.READ,
        stored=True,
        summary="Lists a task's checkpoints in order",
        request=ListCheckpoints,
        response=CheckpointPage,
        handler=checkpoint_list,
        refusals=(TaskNotFound,),
        examples=(
            Example(
                title="decisions alone",
                given=_ADDED,
                request={"task_id": "task_1", "type": ["decision"]},
                response={"checkpoints": [{"sequence": 1, "summary": "Retry five times"}], "total": 1},
            ),
            Example(title="an unknown task is refused", request={"task_id": "task_9"}, refused=TaskNotFound),
        ),
    ),
)

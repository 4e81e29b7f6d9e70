"""Toolset `cancellation`: registry.md's `op_cancel` and `plan_cancel`, the same for everything that is under way.

While it is on, every operation that uses the store takes an `op_id` (`surfaces/arguments.py`) by which it can be
cancelled from any process. For a call that runs as a task of the MCP tasks extension that task's id is one, and for a
workflow its own id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from msgspec import Meta

from handrail.domain.registry.cancellation import (
    ALREADY_CANCELLED,
    ALREADY_DONE,
    REQUESTED,
    Stopped,
    StoppedRun,
    calls_under_way,
    cancel_call,
    cancel_run,
    find_call,
    is_running,
)
from handrail.domain.registry.envelopes import AGENT
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import OperationNotFound, RunNotFound
from handrail.kernel.late import late_module
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import open_workflows
from handrail.toolsets.plan.workflow import HELD, PLANNED, move_workflow
from handrail.toolsets.vocabulary import CANCELLATION

if TYPE_CHECKING:
    from handrail.domain.pipeline import controls, ownership
else:
    controls = late_module("handrail.domain.pipeline.controls")
    ownership = late_module("handrail.domain.pipeline.ownership")

Reason = Annotated[str, Meta(max_length=200)]
OpId = Annotated[str, Meta(min_length=1, max_length=200)]
SHOWN = 5


class CancelOp(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is to end, and why."""

    op_id: Annotated[OpId, Meta(description="As the call gave it, or a run's id")]
    reason: Reason | None = None


class CancelledOp(msgspec.Struct, frozen=True, omit_defaults=True):
    """What became of it. `requested`: it ends as soon as it wakes."""

    ok: bool
    op_id: str
    outcome: str
    reason: str | None
    run_id: str | None
    task_id: str | None
    job_id: str | None
    graph_id: str | None
    node_id: str | None
    child_id: str | None
    operations: tuple[dict[str, str], ...] = ()
    """Of a run, the calls that were about it."""


class CancelPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which run is given up, and why."""

    run_id: str
    reason: Reason | None = None


class CancelledPlan(msgspec.Struct, frozen=True):
    """The run is abandoned; its claims are free, the calls about it are cancelled."""

    run_id: str
    outcome: str
    reason: str | None
    operations: tuple[dict[str, str], ...]


def op_cancel(call: Call, request: CancelOp) -> CancelledOp:
    if call.work.get(Workflow, request.op_id) is not None:
        stopped = _cancel_run(call, request.op_id, request.reason)
        run = Stopped(request.op_id, stopped.outcome, stopped.reason, request.op_id)
        return msgspec.structs.replace(_shown(run), operations=_operations(stopped))
    found = find_call(call.work, request.op_id)
    if found is not None:
        return _shown(cancel_call(call.work, found, request.reason, call.world.is_alive))
    raise _nothing_there(call, request.op_id)


def plan_cancel(call: Call, request: CancelPlan) -> CancelledPlan:
    stopped = _cancel_run(call, request.run_id, request.reason)
    return CancelledPlan(request.run_id, stopped.outcome, stopped.reason, _operations(stopped))


def _cancel_run(call: Call, run_id: str, reason: str | None) -> StoppedRun:
    workflow = find_workflow(call.work, run_id)
    return cancel_run(call.work, workflow, reason, call.world.is_alive, lambda current: _abandon(call, current, reason))


def _abandon(call: Call, workflow: Workflow, reason: str | None) -> None:
    """Abandons a plan; a pipeline run through its own steering, which withdraws the question it waits for."""
    run = ownership.run_under_way(call.work, workflow.id)
    if run is None:
        move_workflow(call.work, workflow, "abandoned", reason)
        return
    controls.abandon_run(call.work, run)
    over = call.work.get(Workflow, workflow.id)
    assert over is not None, "a run is a workflow"
    call.work.record("workflow.abandoned", over, data={"reason": reason} if reason else None)


def _shown(stopped: Stopped) -> CancelledOp:
    agent = stopped.agent if stopped.agent is not None and stopped.agent.startswith(AGENT) else None
    return CancelledOp(
        ok=True,
        op_id=stopped.op_id,
        outcome=stopped.outcome,
        reason=stopped.reason,
        run_id=stopped.run_id,
        task_id=stopped.task_id,
        job_id=stopped.task_id,
        graph_id=stopped.run_id,
        node_id=stopped.task_id,
        child_id=agent,
    )


def _operations(stopped: StoppedRun) -> tuple[dict[str, str], ...]:
    return tuple({"op_id": one.op_id, "outcome": one.outcome} for one in stopped.calls)


def _nothing_there(call: Call, op_id: str) -> OperationNotFound:
    calls = [row for row in calls_under_way(call.work) if is_running(row, call.world.is_alive)][:SHOWN]
    under_way = [f"{row.id} ({row.tool})" for row in calls]
    under_way += [f"{workflow.id} ({workflow.name})" for workflow in open_workflows(call, SHOWN)]
    known = ", ".join(under_way) or "nothing"
    return OperationNotFound(
        f"nothing has the op_id {op_id}",
        hint=f"pass the op_id a call was given, or the id of a run; running now: {known}",
        op_id=op_id,
    )


_ABANDONED = (*PLANNED, ("plan_cancel", {"run_id": "wf_1"}))
_DONE = (*PLANNED[:1], ("workflow_update_status", {"id": "wf_1", "status": "abandoned"}))

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="op_cancel",
        toolset=CANCELLATION,
        effect=Effect.DESTRUCTIVE,
        idempotent=True,
        stored=True,
        summary="Cancels a call by its op_id, in any process, or a run",
        request=CancelOp,
        response=CancelledOp,
        handler=op_cancel,
        refusals=(OperationNotFound,),
        examples=(
            Example(
                title="a run is given up",
                given=PLANNED,
                request={"op_id": "wf_1", "reason": "not needed"},
                response={
                    "ok": True,
                    "op_id": "wf_1",
                    "outcome": REQUESTED,
                    "reason": "not needed",
                    "run_id": "wf_1",
                    "child_id": None,
                },
            ),
            Example(
                title="a second time changes nothing",
                given=_ABANDONED,
                request={"op_id": "wf_1"},
                response={"ok": True, "outcome": ALREADY_CANCELLED},
            ),
            Example(
                title="a call that has ended",
                given=(*PLANNED, ("task_get", {"id": "task_1", "op_id": "look"})),
                request={"op_id": "look"},
                response={"outcome": ALREADY_DONE, "run_id": "wf_1", "task_id": "task_1"},
            ),
            Example(title="an unknown op_id is refused", request={"op_id": "nobody"}, refused=OperationNotFound),
        ),
    ),
    Operation(
        name="plan_cancel",
        toolset=CANCELLATION,
        effect=Effect.DESTRUCTIVE,
        idempotent=True,
        stored=True,
        summary="Abandons a run, frees its claims and cancels the calls about it",
        request=CancelPlan,
        response=CancelledPlan,
        handler=plan_cancel,
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="a run whose task somebody holds",
                given=HELD,
                request={"run_id": "wf_1", "reason": "not needed"},
                response={"run_id": "wf_1", "outcome": REQUESTED, "reason": "not needed", "operations": []},
            ),
            Example(
                title="a run that was given up before",
                given=_DONE,
                request={"run_id": "wf_1"},
                response={"outcome": ALREADY_CANCELLED},
            ),
            Example(title="an unknown run is refused", request={"run_id": "wf_9"}, refused=RunNotFound),
        ),
    ),
)

"""Cancelling what is under way: calls that gave an `op_id`, and workflows. One unit of work each.

A call under way is a row in a stream of its own. Cancelling it changes the row's status, which the call checks whenever
it wakes and before it writes: a call cancelled in time has written nothing. Cancelling twice changes nothing. The row
goes when the call ends; after that, its events say what became of it.

A call that is under way and can be cancelled, from this process or another. The record as it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from handrail.domain.claims.claim import give_up
from handrail.domain.crew.outbox import post_released
from handrail.domain.registry.addresses import parse
from handrail.domain.work.lease import claim_of
from handrail.domain.work.task import UNFINISHED, Task
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import Cancelled, InvalidParams, ResourceNotFound
from handrail.kernel.ledger import Only
from handrail.kernel.records import Query, UnitOfWork


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """One call that gave an `op_id`. Its row exists while it is under way; the ledger keeps its history."""

    id: str
    tool: str
    run_id: str | None
    task_id: str | None
    agent: str
    session: str | None
    """The connection it came through: once that connection's process has ended, so has the call."""
    status: str
    """`running`, or `cancelling` once somebody has cancelled it; for a call that is over, `done` or `cancelled`."""
    reason: str | None
    started_at: int
    ended_at: int | None

    @property
    def stream(self) -> str:
        return call_stream(self.id)


def call_stream(op_id: str) -> str:
    return f"op:{op_id}"


CANCELLED = "op.cancelled"
REQUESTED, ALREADY_CANCELLED, ALREADY_DONE = "requested", "already_cancelled", "already_done"
SHOWN = 10
"""How many calls a refusal names."""
CALLS = 200
"""How many calls of one run are cancelled at once."""
NAMES_RUN = ("run_id", "workflow_id", "graph_id", "id")
NAMES_TASK = ("task_id", "job_id", "node_id", "id")
"""Arguments that say which task a call is about."""
OF_RUNS = ("graph", "graph_version", "snapshot", "run_events")
"""Kinds of addresses that are about a workflow."""
CANCELS = ("op_cancel", "plan_cancel")
"""Tools whose own call is not cancelled by what they do."""

IsAlive = Callable[[str], bool | None]
"""Whether the process behind a session is still running; None if that cannot be determined."""


class Stopped(NamedTuple):
    """The outcome of asking to cancel something."""

    op_id: str
    outcome: str
    reason: str | None = None
    """Why it was cancelled, in the words of the first to cancel it."""
    run_id: str | None = None
    task_id: str | None = None
    agent: str | None = None


# -- calls ------------------------------------------------------------------------------------------------------------


class CancellingCaller(NamedTuple):
    """Who makes a call, and through which connection."""

    name: str
    session: str | None = None


def begin_call(
    unit: UnitOfWork, op_id: str, tool: str, caller: CancellingCaller, arguments: Mapping[str, Any], is_alive: IsAlive
) -> RunningCall:
    """Records that a call is under way. An id can be reused once its call is over."""
    if unit.get(Workflow, op_id) is not None or unit.get(Task, op_id) is not None:
        raise InvalidParams(
            f"op_id {op_id} is the id of a workflow or a task",
            hint="choose a text that is no id; op_cancel with a workflow's id abandons the workflow",
        )
    there = unit.get(RunningCall, op_id)
    if there is not None and is_running(there, is_alive):
        raise InvalidParams(
            f"op_id {op_id} is a call of {there.tool} that is still under way",
            hint="give each call an op_id of its own; op_cancel ends that one",
        )
    run_id, task_id = _run_and_task_named(unit, arguments)
    begun = RunningCall(
        id=op_id,
        tool=tool,
        run_id=run_id,
        task_id=task_id,
        agent=caller.name,
        session=caller.session,
        status="running",
        reason=None,
        started_at=unit.now_ms(),
        ended_at=None,
    )
    unit.record("op.started", begun)
    return begun


def is_running(row: RunningCall, is_alive: IsAlive) -> bool:
    """Whether a call is still under way. It is not if its process has ended."""
    return row.ended_at is None and (row.session is None or is_alive(row.session) is not False)


def check_wanted(unit: UnitOfWork, op_id: str) -> None:
    """Raises Cancelled if somebody has cancelled the call."""
    row = unit.get(RunningCall, op_id)
    if row is not None and row.status == "cancelling":
        why = f": {row.reason}" if row.reason else ""
        raise Cancelled(
            f"{row.tool} ({op_id}) was cancelled{why}",
            hint="nothing was written; call again with another op_id if you still need it",
            op_id=op_id,
            reason=row.reason,
        )


def end_call(unit: UnitOfWork, op_id: str, status: str, **told: Any) -> None:
    """Records the end of a call: done or cancelled. One that has already ended is left as it is."""
    row = unit.get(RunningCall, op_id)
    if row is None or row.ended_at is not None:
        return
    data = {"elapsed_ms": unit.now_ms() - row.started_at, **told}
    if row.reason is not None:
        data["reason"] = row.reason
    if status == "cancelled":
        unit.record(CANCELLED, removes=(row,), data=data)
    else:
        unit.record("op.done", removes=(row,), data=data)


def find_call(unit: UnitOfWork, op_id: str) -> RunningCall | None:
    """The call with this id, or else the last one that had it and is over; None if there never was one."""
    row = unit.get(RunningCall, op_id)
    if row is not None:
        return row
    stream = call_stream(op_id)
    head = unit.head_seq(stream)
    for event in unit.events(stream, head - 1, 1) if head else ():
        for change in event.changes:
            if change.before is not None and change.after is None:
                was = msgspec.convert({**change.before, "id": change.key}, RunningCall)
                status = "cancelled" if event.kind == CANCELLED else "done"
                return msgspec.structs.replace(was, status=status, ended_at=event.at_ms)
    return None


def cancel_call(unit: UnitOfWork, row: RunningCall, reason: str | None, is_alive: IsAlive) -> Stopped:
    """Asks a call to end. It does so as soon as it wakes, whichever process it runs in."""
    if row.status in ("cancelling", "cancelled"):
        return _stopped(row, ALREADY_CANCELLED)
    if not is_running(row, is_alive):
        if row.ended_at is None:
            end_call(unit, row.id, "done", lost=True)
        return _stopped(row, ALREADY_DONE)
    asked = msgspec.structs.replace(row, status="cancelling", reason=reason)
    unit.record("op.cancel_requested", asked, data={"reason": reason} if reason else None)
    return _stopped(asked, REQUESTED)


def calls_under_way(unit: UnitOfWork, limit: int = SHOWN) -> list[RunningCall]:
    """Calls that have not ended, to suggest when somebody asks for one that does not exist."""
    return unit.select(RunningCall, Query((("status", "running"),), ("-started_at", "-id"), limit))


def _stopped(row: RunningCall, outcome: str) -> Stopped:
    return Stopped(row.id, outcome, row.reason, row.run_id, row.task_id, row.agent)


def _run_and_task_named(unit: UnitOfWork, arguments: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The workflow and the task that a call names, if it names one that exists."""
    for name in NAMES_TASK:
        if isinstance(given := arguments.get(name), str) and (task := unit.get(Task, given)) is not None:
            return task.workflow_id, task.id
    for given in (*(arguments.get(name) for name in NAMES_RUN), _run_at(arguments.get("uri"))):
        if isinstance(given, str) and unit.get(Workflow, given) is not None:
            return given, None
    return None, None


def _run_at(uri: Any) -> str | None:
    """The workflow that an address is about, if there is one."""
    if not isinstance(uri, str):
        return None
    try:
        address = parse(uri)
    except ResourceNotFound:
        return None
    return address.id if address.kind in OF_RUNS else None


# -- workflows --------------------------------------------------------------------------------------------------------


class StoppedRun(NamedTuple):
    """The outcome of cancelling a workflow and the calls about it."""

    outcome: str
    reason: str | None = None
    """Why it was abandoned, in the words of the first to cancel it."""
    calls: tuple[Stopped, ...] = ()


def cancel_run(
    unit: UnitOfWork, workflow: Workflow, reason: str | None, is_alive: IsAlive, abandon: Callable[[Workflow], None]
) -> StoppedRun:
    """Abandons a workflow and cancels everything under way in it. `abandon` is how its plan does that."""
    if workflow.status == "abandoned":
        return StoppedRun(ALREADY_CANCELLED, _first_reason(unit, workflow))
    if workflow.status in CLOSED:
        return StoppedRun(ALREADY_DONE)
    _free_claims(unit, workflow, reason)
    current = unit.get(Workflow, workflow.id)
    assert current is not None, "it was there a moment ago"
    abandon(current)
    about_it = Query((("run_id", workflow.id), ("status", "running")), ("started_at",), CALLS)
    rows = [row for row in unit.select(RunningCall, about_it) if row.tool not in CANCELS]
    return StoppedRun(REQUESTED, reason, tuple(cancel_call(unit, row, reason, is_alive) for row in rows))


def _first_reason(unit: UnitOfWork, workflow: Workflow) -> str | None:
    for event in unit.newest(1, Only(streams=(workflow.stream,), kinds=(f"workflow.{workflow.status}",))):
        reason = event.data.get("reason")
        return reason if isinstance(reason, str) else None
    return None


def _free_claims(unit: UnitOfWork, workflow: Workflow, reason: str | None) -> None:
    """Releases every claimed task, and notifies its holder."""
    conditions = (("workflow_id", workflow.id), ("status", UNFINISHED), ("assigned_agent_id >", ""))
    why = f"its workflow was cancelled{f': {reason}' if reason else ''}"
    for task in unit.select(Task, Query(conditions, ("sequence",))):
        lease = claim_of(unit, task)
        if lease.holder is None:
            continue
        give_up(unit, task, lease, why)
        if lease.holder != unit.actor.name:
            post_released(unit, unit.actor.name, lease.holder, task, why)

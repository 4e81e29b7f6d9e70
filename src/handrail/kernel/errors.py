"""Every refusal Handrail can give, as one tree.

* Refusal
  + InvalidParams        INVALID_PARAMS
  + SettingInvalid       SETTING_INVALID
  + SettingNotTrusted    SETTING_NOT_TRUSTED
  + ToolsetUnknown       TOOLSET_UNKNOWN
  + PlaceUnusable        PLACE_UNUSABLE
  + NotFound
    - WorkflowNotFound   WORKFLOW_NOT_FOUND   (-32001 in guide.md)
    - StepNotFound       STEP_NOT_FOUND       (-32003 in guide.md)
    - TaskNotFound       TASK_NOT_FOUND
    - RunNotFound        RUN_NOT_FOUND
    - ResourceNotFound   RESOURCE_NOT_FOUND
    - OperationNotFound  OPERATION_NOT_FOUND
    - TemplateNotFound   TEMPLATE_NOT_FOUND
    - AgentNotFound      AGENT_NOT_FOUND
    - MessageNotFound    MESSAGE_NOT_FOUND
    - WorkspaceNotFound  WORKSPACE_NOT_FOUND
    - GraphNotFound      GRAPH_NOT_FOUND
    - TxNotFound         TX_NOT_FOUND
    - NothingOpen        NOTHING_OPEN
  + SeveralOpen          SEVERAL_OPEN
  + InvalidPlan          INVALID_PLAN
  + InvalidFlow          INVALID_FLOW
  + ArtefactMissing      ARTEFACT_MISSING
  + InvalidWorkflow      INVALID_WORKFLOW     (-32002 in guide.md)
  + IllegalTransition    ILLEGAL_TRANSITION
    - TaskBlocked        TASK_BLOCKED
    - TasksOpen          TASKS_OPEN
    - WorkflowClosed     WORKFLOW_CLOSED
  + ClaimHeld            CLAIM_HELD
  + WorkspaceHeld        WORKSPACE_HELD
  + IdentityUnproven     IDENTITY_UNPROVEN
  + NotAllowed           NOT_ALLOWED
  + WorktreeRefused      WORKTREE_REFUSED
    - WouldLoseWork      WOULD_LOSE_WORK
    - MergeConflict      MERGE_CONFLICT
    - ChecksFailed       CHECKS_FAILED
    - MergeOrder         MERGE_ORDER
  + PathsReserved        PATHS_RESERVED
  + MissingOutcome       MISSING_OUTCOME
  + MissingError         MISSING_ERROR
  + InvalidTemplate      INVALID_TEMPLATE
  + DuplicateTemplate    DUPLICATE_TEMPLATE
  + MissingVariables     MISSING_VARIABLES
  + StoreRefused
    - StoreUnusable      STORE_UNUSABLE
    - StoreTooNew        STORE_TOO_NEW
    - StoreNotTrusted    STORE_NOT_TRUSTED
    - StoreAway          STORE_AWAY
    - StoreBusy          STORE_BUSY
    - StoreFull          STORE_FULL
  + NothingToUndo        NOTHING_TO_UNDO
  + KeyReused            IDEMPOTENCY_CONFLICT
  + BoardConflict        BOARD_CONFLICT
  + GraphInvalid         GRAPH_INVALID
  + PatchFailed          PATCH_FAILED
  + TxConflict           TX_CONFLICT
  + TxEnded              TX_ENDED
  + LockHeld             LOCK_HELD
  + BulkRefused          BULK_REFUSED
  + Cancelled            CANCELLED

A refusal is an answer, not a crash: the call was understood and declined. It carries a stable code, what was wrong,
and a hint that names the next legal move. Anything else that escapes a handler is a bug. This module knows no wire
format: `surfaces/refusals.py` is the only map from here to JSON-RPC, results and exit codes.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Refusal(Exception):  # noqa: N818 - it is an answer, not an error
    """The call was understood and declined."""

    code: ClassVar[str] = "REFUSED"
    number: ClassVar[int | None] = None
    """The JSON-RPC code a source document gives this refusal, where one does."""
    headline: ClassVar[str | None] = None
    """The fixed message that goes with `number` in that document."""

    def __init__(self, message: str = "", *, hint: str = "", **details: Any) -> None:
        self.message = message or (type(self).__doc__ or "").strip()
        self.hint = hint
        self.details = details
        super().__init__(self.message)

    def as_dict(self) -> dict[str, Any]:
        """The error object every surface shows: code, message, hint, details."""
        return {"code": self.code, "message": self.message, "hint": self.hint, "details": self.details}


class InvalidParams(Refusal):
    """The arguments do not fit the operation."""

    code = "INVALID_PARAMS"
    number = -32602
    headline = "Invalid params"


class SettingInvalid(Refusal):
    """A setting has an unknown name, or a value it cannot have."""

    code = "SETTING_INVALID"


class SettingNotTrusted(Refusal):
    """The project's own file would run or reach something, and nobody here has trusted it: `handrail trust`."""

    code = "SETTING_NOT_TRUSTED"


class ToolsetUnknown(Refusal):
    """No toolset has that name."""

    code = "TOOLSET_UNKNOWN"


class PlaceUnusable(Refusal):
    """A folder or file that is needed cannot be read or written."""

    code = "PLACE_UNUSABLE"


class NotFound(Refusal):
    """Nothing has that id."""

    code = "NOT_FOUND"


class WorkflowNotFound(NotFound):
    """No guide has that id."""

    code = "WORKFLOW_NOT_FOUND"
    number = -32001
    headline = "Workflow not found"


class StepNotFound(NotFound):
    """The guide has no step with that id."""

    code = "STEP_NOT_FOUND"
    number = -32003
    headline = "Step not found"


class TaskNotFound(NotFound):
    """No task has that id."""

    code = "TASK_NOT_FOUND"


class RunNotFound(NotFound):
    """No workflow has that id."""

    code = "RUN_NOT_FOUND"


class ResourceNotFound(NotFound):
    """Nothing has that address."""

    code = "RESOURCE_NOT_FOUND"


class OperationNotFound(NotFound):
    """No running call, run or task has that id."""

    code = "OPERATION_NOT_FOUND"


class TemplateNotFound(NotFound):
    """No template has that id or name."""

    code = "TEMPLATE_NOT_FOUND"


class AgentNotFound(NotFound):
    """No agent has that id."""

    code = "AGENT_NOT_FOUND"


class MessageNotFound(NotFound):
    """No message has that id."""

    code = "MESSAGE_NOT_FOUND"


class WorkspaceNotFound(NotFound):
    """No workspace has that id."""

    code = "WORKSPACE_NOT_FOUND"


class GraphNotFound(NotFound):
    """No graph has that id."""

    code = "GRAPH_NOT_FOUND"


class TxNotFound(NotFound):
    """No transaction has that id."""

    code = "TX_NOT_FOUND"


class NothingOpen(NotFound):
    """No id was given, and nothing is open that it could mean."""

    code = "NOTHING_OPEN"


class SeveralOpen(Refusal):
    """No id was given, and it could mean more than one thing."""

    code = "SEVERAL_OPEN"


class InvalidPlan(Refusal):
    """The plan has a mistake; none of it was stored."""

    code = "INVALID_PLAN"


class InvalidFlow(Refusal):
    """The flow has a mistake and cannot be followed."""

    code = "INVALID_FLOW"


class ArtefactMissing(Refusal):
    """A phase was reported, but its file is missing or is not what it must be."""

    code = "ARTEFACT_MISSING"


class InvalidWorkflow(Refusal):
    """The guide's file is malformed or breaks a rule of the format."""

    code = "INVALID_WORKFLOW"
    number = -32002
    headline = "Invalid workflow"


class IllegalTransition(Refusal):
    """It cannot move from its present state to that one."""

    code = "ILLEGAL_TRANSITION"


class TaskBlocked(IllegalTransition):
    """The task waits for others that are not finished."""

    code = "TASK_BLOCKED"


class TasksOpen(IllegalTransition):
    """It cannot end while some of its tasks are open."""

    code = "TASKS_OPEN"


class WorkflowClosed(IllegalTransition):
    """The workflow has ended or is paused; its tasks cannot move."""

    code = "WORKFLOW_CLOSED"


class ClaimHeld(Refusal):
    """Another agent holds the task, or has held it since."""

    code = "CLAIM_HELD"


class WorkspaceHeld(Refusal):
    """Another orchestrator drives the run."""

    code = "WORKSPACE_HELD"


class IdentityUnproven(Refusal):
    """The call names an agent without proving that it comes from that agent."""

    code = "IDENTITY_UNPROVEN"


class NotAllowed(Refusal):
    """The caller has no right to do this."""

    code = "NOT_ALLOWED"


class WorktreeRefused(Refusal):
    """Git could not do this with a worktree; nothing was changed."""

    code = "WORKTREE_REFUSED"


class WouldLoseWork(WorktreeRefused):
    """It would lose work that is not committed, or that no other branch has."""

    code = "WOULD_LOSE_WORK"


class MergeConflict(WorktreeRefused):
    """The branches change the same places."""

    code = "MERGE_CONFLICT"


class ChecksFailed(WorktreeRefused):
    """The project's checks fail on the merged result."""

    code = "CHECKS_FAILED"


class MergeOrder(WorktreeRefused):
    """Another workspace comes first: tasks here depend on tasks there."""

    code = "MERGE_ORDER"


class PathsReserved(Refusal):
    """Another agent has reserved these paths."""

    code = "PATHS_RESERVED"


class MissingOutcome(Refusal):
    """A task cannot be completed without an outcome."""

    code = "MISSING_OUTCOME"


class MissingError(Refusal):
    """A task cannot fail without an error."""

    code = "MISSING_ERROR"


class InvalidTemplate(Refusal):
    """The template has a mistake and cannot be used."""

    code = "INVALID_TEMPLATE"


class DuplicateTemplate(Refusal):
    """A template with that name already exists."""

    code = "DUPLICATE_TEMPLATE"


class MissingVariables(Refusal):
    """The template needs values for some of its variables."""

    code = "MISSING_VARIABLES"


class StoreRefused(Refusal):
    """The store could not do it; nothing was written."""

    code = "STORE_REFUSED"


class StoreUnusable(StoreRefused):
    """The store cannot be opened or read."""

    code = "STORE_UNUSABLE"


class StoreTooNew(StoreRefused):
    """The store was written by a newer Handrail."""

    code = "STORE_TOO_NEW"


class StoreNotTrusted(StoreRefused):
    """The store may be a stranger's doing: not made on this machine, tracked by git, open to others, or elsewhere."""

    code = "STORE_NOT_TRUSTED"


class StoreAway(StoreRefused):
    """The store cannot be used now and may come back; `outcome` says what became of a write: nothing, or unknown."""

    code = "STORE_AWAY"

    def __init__(self, message: str = "", *, hint: str = "", outcome: str = "nothing", **details: Any) -> None:
        super().__init__(message, hint=hint, outcome=outcome, **details)


class StoreBusy(StoreRefused):
    """Another process has held the store for too long."""

    code = "STORE_BUSY"


class StoreFull(StoreRefused):
    """There is no room left to write."""

    code = "STORE_FULL"


class NothingToUndo(Refusal):
    """This actor has no write that could be undone."""

    code = "NOTHING_TO_UNDO"


class KeyReused(Refusal):
    """This idempotency key was used with other arguments."""

    code = "IDEMPOTENCY_CONFLICT"


class BoardConflict(Refusal):
    """The entry is not at the version the caller expected."""

    code = "BOARD_CONFLICT"


class GraphInvalid(Refusal):
    """The graph would break one of its rules."""

    code = "GRAPH_INVALID"


class PatchFailed(Refusal):
    """The patch does not fit what it should change; nothing was changed."""

    code = "PATCH_FAILED"


class TxConflict(Refusal):
    """The graph is not at the version the caller expected."""

    code = "TX_CONFLICT"


class TxEnded(Refusal):
    """The transaction is over: committed, rolled back or expired."""

    code = "TX_ENDED"


class LockHeld(Refusal):
    """Somebody else holds the lock on this graph."""

    code = "LOCK_HELD"


class BulkRefused(Refusal):
    """One of several changes cannot be made, so none was."""

    code = "BULK_REFUSED"


class Cancelled(Refusal):
    """The call was cancelled."""

    code = "CANCELLED"


def refusal_types() -> tuple[type[Refusal], ...]:
    """Every concrete refusal, in the order of the tree above: the one catalogue of codes."""
    found: list[type[Refusal]] = []
    pending: list[type[Refusal]] = [Refusal]
    while pending:
        current = pending.pop(0)
        found.append(current)
        pending = [*current.__subclasses__(), *pending]
    return tuple(found)

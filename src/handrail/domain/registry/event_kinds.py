"""Every kind of event there is, with what is known about it: one table, for whoever tells, filters or undoes events.

A test compares it with what the code records. How much one event of a kind matters in the end, and the lines about it,
are made in `envelopes.py` and in the slices above.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from handrail.kernel.errors import NothingToUndo
from handrail.kernel.ledger import Event

Undo = Literal["back", "never", "passed over"]
"""What undoing does with an event: takes it back, refuses, or looks for an earlier one. Decisions, fences and rights
are not reversed behind anybody's back, and a released task was taken from an agent that has been told so. Nobody who
undoes a write means an event that only records that a call came and went, or that somebody read."""
NEVER: Undo = "never"
PASSED_OVER: Undo = "passed over"


class EventKind(NamedTuple):
    """One kind of event."""

    name: str
    verb: str
    """What its actor did, in words that come before the thing: `completed`."""
    passive: str = ""
    """What was done: to a task, in words that come after its name; otherwise in words that need no other. Empty if the
    event is not told that way."""
    of_another: str = ""
    """The verb if it was not the agent itself that did it."""
    level: str = "info"
    may_warn: bool = False
    """Whether what is in the event can raise its level."""
    undo: Undo = "back"


EVENT_KINDS = (
    EventKind("agent.registered", "joined", of_another="registered"),
    EventKind("agent.returned", "came back", of_another="registered again"),
    EventKind("agent.updated", "updated its details", of_another="updated the details of"),
    EventKind("agent.left", "left", of_another="signed off"),
    EventKind("agent.unproven", "was used without its secret", of_another="acted without its secret as", level="warn"),
    EventKind("agent.trusted", "was trusted again", of_another="trusted the secret of"),
    EventKind("message.sent", "wrote to", may_warn=True),
    EventKind("message.read", "read a message", undo=PASSED_OVER),
    EventKind("message.acknowledged", "acknowledged a message", undo=PASSED_OVER),
    EventKind("message.archived", "archived a message"),
    EventKind("task.pending", "reopened", "was set back"),
    EventKind("task.planning", "started planning", "was planned"),
    EventKind("task.in_progress", "started", "was begun"),
    EventKind("task.paused", "paused", "was paused"),
    EventKind("task.completed", "completed", "was completed"),
    EventKind("task.failed", "failed at", "was reported failed", level="error"),
    EventKind("task.skipped", "skipped", "was skipped"),
    EventKind("task.planned", "planned", "was planned"),
    EventKind("task.replanned", "replanned", "was planned anew"),
    EventKind("task.removed", "removed", "was taken out of the plan"),
    EventKind("task.placed", "gave a workspace to"),
    EventKind("task.claimed", "claimed", "was claimed", may_warn=True, undo=NEVER),
    EventKind("task.claim_resumed", "resumed the claim on", undo=NEVER),
    EventKind("task.claim_ended", "ended the claim on", undo=NEVER),
    EventKind("task.released", "released", "was given back", may_warn=True, undo=NEVER),
    EventKind("workflow.created", "created", "The workflow was created"),
    EventKind("workflow.imported", "imported", "The plan was imported"),
    EventKind("workflow.planning", "started planning"),
    EventKind("workflow.ready", "made ready"),
    EventKind("workflow.in_progress", "started", "The workflow went on"),
    EventKind("workflow.paused", "paused", "The workflow was paused"),
    EventKind("workflow.completed", "completed", "The workflow was completed"),
    EventKind("workflow.failed", "marked as failed", "The workflow was reported failed", level="error"),
    EventKind("workflow.abandoned", "abandoned", "The workflow was given up", level="warn"),
    EventKind("workflow.planned", "planned", "The plan was laid"),
    EventKind("workflow.replanned", "replanned", "The plan was changed"),
    EventKind("workflow.extended", "added tasks to", "Tasks were added to the plan"),
    EventKind("workflow.parallelism", "set how many tasks run at once in"),
    EventKind("template.created", "created the template"),
    EventKind("graph.created", "created the graph"),
    EventKind("graph.committed", "changed the graph"),
    EventKind("graph.locked", "locked the graph", undo=NEVER),
    EventKind("graph.unlocked", "unlocked the graph", undo=NEVER),
    EventKind("tx.begun", "started a transaction", undo=NEVER),
    EventKind("tx.applied", "tried a change", undo=NEVER),
    EventKind("tx.committed", "committed a transaction", undo=NEVER),
    EventKind("tx.rolled_back", "rolled a transaction back", undo=NEVER),
    EventKind("bb.set", "set on the board"),
    EventKind("bb.deleted", "removed from the board"),
    EventKind("bb.expired", "expired on the board"),
    EventKind("op.started", "started a call", undo=PASSED_OVER),
    EventKind("op.done", "finished a call", undo=PASSED_OVER),
    EventKind("op.cancel_requested", "asked for a call to be cancelled", level="warn", undo=PASSED_OVER),
    EventKind("op.cancelled", "cancelled a call", level="warn", undo=PASSED_OVER),
    EventKind("checkpoint.added", "wrote a note on", may_warn=True),
    EventKind("gate.opened", "asked in", undo=NEVER),
    EventKind("gate.answered", "answered in", undo=NEVER),
    EventKind("gate.withdrawn", "withdrew a question in", undo=NEVER),
    EventKind("review.closed", "closed a review in"),
    EventKind("pipeline.begun", "started the run", undo=NEVER),
    EventKind("pipeline.moved", "advanced", may_warn=True, undo=NEVER),
    EventKind("pipeline.paused", "paused the run", undo=NEVER),
    EventKind("pipeline.imported", "imported the run", undo=NEVER),
    EventKind("workspace.created", "created a workspace"),
    EventKind("workspace.active", "reactivated a workspace"),
    EventKind("workspace.merged", "merged a workspace"),
    EventKind("workspace.abandoned", "abandoned a workspace"),
    EventKind("paths.reserved", "reserved paths", may_warn=True),
    EventKind("paths.renewed", "renewed a reservation", may_warn=True),
    EventKind("paths.released", "released paths"),
    EventKind("repository.registered", "registered the repository"),
    EventKind("repository.renamed", "renamed the repository"),
    EventKind("values.set", "set values"),
    EventKind("facts.inserted", "recorded facts"),
    EventKind("ledger.undo", "", level="warn"),
    EventKind("token.created", "created a token", undo=NEVER),
    EventKind("token.trusted", "trusted a token", undo=NEVER),
    EventKind("token.revoked", "revoked a token", undo=NEVER),
)
KINDS = {kind.name: kind for kind in EVENT_KINDS}


def is_write(event: Event) -> bool:
    """Whether somebody who undoes their last write can mean this event; raises NothingToUndo if it is never undone."""
    undo = _undo_of(event.kind)
    if undo == NEVER:
        raise NothingToUndo(
            f"{event.kind} is not taken back: decisions, claims and rights only move forward",
            hint="answer the gate that waits, let the task be claimed again, or make what is missing anew",
            position=event.position,
        )
    return undo != PASSED_OVER


def _undo_of(name: str) -> Undo:
    """A kind that only a newer Handrail knows is undone like its family, if that is all alike."""
    if name in KINDS:
        return KINDS[name].undo
    family = {kind.undo for kind in EVENT_KINDS if kind.name.partition(".")[0] == name.partition(".")[0]}
    return family.pop() if len(family) == 1 else "back"

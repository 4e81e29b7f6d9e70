"""The page's routes about the crew: agents, messages, decisions, pipeline runs, events. Thin: they parse the request
and call a read model. Only people change anything here."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from handrail.catalog import operation_named
from handrail.domain.board.queries import EntryQuery
from handrail.domain.claims.claim import give_up
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import Message, Priority
from handrail.domain.crew.outbox import HUMAN, Letter, post, post_released
from handrail.domain.overview.agents import Agents, agents
from handrail.domain.overview.boards import Boards, boards
from handrail.domain.overview.decisions import Decisions, decisions
from handrail.domain.overview.events import MOST, SHOWN, EventQuery, Events, events, kinds_meant
from handrail.domain.overview.gates import Reviews, reviews
from handrail.domain.overview.messages import MessageRow, ThreadPage, Threads, message_rows, thread_page, threads
from handrail.domain.overview.milestones import Milestones, milestones
from handrail.domain.overview.pipeline import PipelineView, pipeline_view
from handrail.domain.overview.timeline import WorkflowTimeline, timeline
from handrail.domain.overview.versions import Versions, versions
from handrail.domain.pipeline.controls import Going, pause_run
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.lease import claim_of
from handrail.kernel.errors import ClaimHeld, IllegalTransition, InvalidParams, NotAllowed, RunNotFound
from handrail.kernel.ledger import Only
from handrail.kernel.records import Query, UnitOfWork
from handrail.known_types import make_known
from handrail.operation import Call
from handrail.surfaces.gate_answers import documents_of
from handrail.surfaces.invocation import invoke
from handrail.surfaces.runs import know_runs, resumed
from handrail.surfaces.web.documents import DocumentText, document_text, listed
from handrail.surfaces.web.route import PageRequest, PageRoute, read, task_asked, workflow_asked, write
from handrail.toolsets.pipeline.turns import rules_of
from handrail.toolsets.plan.message_shapes import Id, Subject

SEARCH = 200
"""The longest search text, in characters."""
FILTERS = 20
"""How many values one filter of events takes."""
FILTER = 200
NAMESAKES = 50
"""How many agents with the same name are searched for events."""
Reason = Annotated[str, Meta(max_length=2000)]
Body = Annotated[str, Meta(min_length=1, max_length=30_000)]
KindT = TypeVar("KindT", bound=msgspec.Struct)


class Posted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a person writes to an agent."""

    body: Body
    recipient_id: Id | None = None
    """If left out: the sender of the message being answered."""
    subject: Subject | None = None
    reply_to: Id | None = None
    priority: Priority = "normal"
    requires_ack: bool = False
    task_id: Id | None = None


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """The message after it was sent."""

    id: str
    thread_id: str
    message: MessageRow


class Reading(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Whether reading also acknowledges."""

    ack: bool = False


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a task is taken from its agent."""

    reason: Reason | None = None
    agent_id: Id | None = None
    """The agent that the person means: if another holds the task by now, it keeps it."""


class Freed(msgspec.Struct, frozen=True, kw_only=True):
    """A task that is available again, and who had it."""

    task_id: str
    status: str
    agent_id: str
    agent: str


class Pause(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Why a run should pause."""

    reason: Reason | None = None


class Nothing(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A body without members."""


class Steered(msgspec.Struct, frozen=True, kw_only=True):
    """What happened to a run."""

    workflow_id: str
    status: str
    next: str
    told: str | None = None
    """The agent that was told the reason."""


# -- looking ----------------------------------------------------------------------------------------------------------


def _timeline(call: Call, asked: PageRequest) -> WorkflowTimeline:
    know_runs()
    return timeline(call.work, workflow_asked(call.work, asked.path["workflow"]))


def _decisions(call: Call, asked: PageRequest) -> Decisions:
    search = asked.query.get("search", "")
    if len(search) > SEARCH:
        raise InvalidParams(f"{len(search)} characters are searched for, and {SEARCH} is the most", hint="say less")
    return decisions(call.work, workflow_asked(call.work, asked.path["workflow"]), search)


def _milestones(call: Call, asked: PageRequest) -> Milestones:
    return milestones(call.work, workflow_asked(call.work, asked.path["workflow"]))


def _reviews(call: Call, asked: PageRequest) -> Reviews:
    return reviews(call.work, workflow_asked(call.work, asked.path["workflow"]))


def _versions(call: Call, asked: PageRequest) -> Versions:
    return versions(call.work, workflow_asked(call.work, asked.path["workflow"]))


def _agents(call: Call, asked: PageRequest) -> Agents:
    workflow_id = asked.query.get("workflow") or None
    if workflow_id is not None:
        workflow_asked(call.work, workflow_id)
    return agents(call.work, call.crew, workflow_id)


def _messages(call: Call, asked: PageRequest) -> Threads | ThreadPage:
    if call.crew.strict and not asked.visitor.decides:
        raise NotAllowed(
            "messages are only shown to the person they are for", hint="sign in to see yours; agents use message_list"
        )
    name = asked.visitor.name
    if thread := asked.query.get("thread"):
        return thread_page(call.work, thread, _number(asked, "before"), name)
    return threads(call.work, asked.query.get("workflow") or None, name)


def _pipeline(call: Call, asked: PageRequest) -> PipelineView:
    """The run, with the documents now in its workspace, which are read while no unit of work is open."""
    run = _run_looked_at(call, asked)
    documents = listed(call, run)
    found = call.ledger.run(asked.visitor.actor, lambda unit: pipeline_view(unit, run.id, rules_of(call)))
    if found is None:
        raise _no_run(run.id, run.title)
    return msgspec.structs.replace(found, documents=documents)


def _document(call: Call, asked: PageRequest) -> DocumentText:
    return document_text(call, _run_looked_at(call, asked), asked.path["name"])


def _run_looked_at(call: Call, asked: PageRequest) -> PipelineRun:
    know_runs()
    return call.ledger.run(asked.visitor.actor, lambda unit: _run_meant(unit, asked))


def _events(call: Call, asked: PageRequest) -> Events:
    actors = _filter_values(asked, "actor")
    streams = (*_filter_values(asked, "workflow"), *_filter_values(asked, "stream"))
    only = Only(streams, _with_namesakes(call.work, actors), kinds_meant(_filter_values(asked, "kind")))
    task = asked.query.get("task")
    limit = _number(asked, "limit")
    if limit is not None and not 1 <= limit <= MOST:
        raise InvalidParams(f"limit is 1 to {MOST}", hint=f"{SHOWN} where it is left out")
    wanted = EventQuery(
        only,
        before=_number(asked, "before"),
        after=_number(asked, "after"),
        limit=limit or SHOWN,
        changes=asked.query.get("changes") == "1",
        task=task_asked(call.work, task) if task else None,
    )
    if wanted.before is not None and wanted.after is not None:
        raise InvalidParams("before and after are two questions", hint="give one of them")
    return events(call.work, wanted)


def _with_namesakes(unit: UnitOfWork, actors: tuple[str, ...]) -> tuple[str, ...]:
    """Actors as the ledger knows them: the visitor may know an agent by its name."""
    if not actors:
        return ()
    named = unit.select(Agent, Query((("name", actors),), ("-created_at", "-id"), NAMESAKES))
    return (*actors, *(agent.id for agent in named))


def _boards(call: Call, asked: PageRequest) -> Boards:
    key, board = asked.query.get("key"), asked.query.get("board")
    sought = EntryQuery(board=board or None, keys=(key,) if key else (), after=asked.query.get("after", ""))
    return boards(call.work, sought)


# -- doing ------------------------------------------------------------------------------------------------------------


def _post_message(call: Call, asked: PageRequest) -> Sent:
    asked.visitor.check_decides("writes as the person")
    given = _body_as(asked, Posted)
    recipient_id = given.recipient_id or _other_side(call, asked, given.reply_to)
    if recipient_id is None:
        raise InvalidParams("no recipient is given", hint="recipient_id is an agent's id or name")
    if recipient_id == HUMAN:
        raise InvalidParams("you cannot write to yourself", hint="recipient_id is an agent's id or name")
    message = {
        "sender_id": HUMAN,
        "recipient_id": recipient_id,
        "message_type": "response" if given.reply_to is not None else "notification",
        "body": given.body,
        "subject": given.subject or None,
        "priority": given.priority,
        "task_id": given.task_id,
        "reply_to_id": given.reply_to,
        "requires_ack": given.requires_ack,
    }
    sent = _invoked("message_send", call, message, asked)
    return Sent(id=sent["id"], thread_id=sent["thread_id"], message=_message_row(call, asked, sent["id"]))


def _other_side(call: Call, asked: PageRequest, reply_to: str | None) -> str | None:
    """Who an answer goes to: whoever the message it answers was from or, if that was the person, was to."""
    if reply_to is None:
        return None
    answered = call.ledger.run(asked.visitor.actor, lambda unit: unit.get(Message, reply_to))
    if answered is None:
        return None
    return answered.sender_id if answered.sender_id != HUMAN else answered.recipient_id


def _read_message(call: Call, asked: PageRequest) -> MessageRow:
    asked.visitor.check_decides("reads the person's messages")
    given, key = _body_as(asked, Reading), asked.path["message"]
    message = call.ledger.run(asked.visitor.actor, lambda unit: unit.get(Message, key))
    if message is not None and message.recipient_id != HUMAN:
        raise NotAllowed(
            f"{key} is in an agent's inbox; only that agent marks it as read", hint="here you mark your own messages"
        )
    _invoked("message_mark_read", call, {"message_ids": [key], "ack": given.ack}, asked)
    return _message_row(call, asked, key)


def _invoked(name: str, call: Call, arguments: dict[str, Any], asked: PageRequest) -> Any:
    """The answer to one of the catalog's operations, as the visitor asks it."""
    operation = operation_named(name)
    assert operation is not None, "the catalog has it"
    return invoke(operation, call, arguments, actor=asked.visitor.actor)


def _message_row(call: Call, asked: PageRequest, key: str) -> MessageRow:
    def row(unit: UnitOfWork) -> MessageRow:
        message = unit.get(Message, key)
        assert message is not None, "it was there a moment ago"
        return message_rows(unit, [message], person=asked.visitor.name)[0]

    return call.ledger.run(asked.visitor.actor, row)


def _release(call: Call, asked: PageRequest) -> Freed:
    asked.visitor.check_decides("takes a task from its agent")
    given = _body_as(asked, Release)
    task = task_asked(call.work, asked.path["task"])
    lease = claim_of(call.work, task)
    if lease.holder is None or task.is_finished:
        raise IllegalTransition(
            f'nobody holds task "{task.name}"; it is {task.shown_status}', hint="the Agents tab shows who holds what"
        )
    if given.agent_id not in (None, lease.holder):
        raise ClaimHeld(
            f'task "{task.name}" is held by {lease.holder} now', hint="look again, then release it", task_id=task.id
        )
    reason = (given.reason or "").strip() or None
    freed = give_up(call.work, task, lease, reason)
    post_released(call.work, HUMAN, lease.holder, task, reason)
    holder = call.work.get(Agent, lease.holder)
    name = holder.name if holder is not None else lease.holder
    return Freed(task_id=task.id, status=freed.shown_status, agent_id=lease.holder, agent=name)


def _pause(call: Call, asked: PageRequest) -> Steered:
    asked.visitor.check_decides("stops a run")
    given = _body_as(asked, Pause)
    know_runs()
    run = _run_meant(call.work, asked)
    reason = (given.reason or "").strip()
    pause_run(call.work, run, reason or None)
    told = _tell_driver(call.work, run, reason)
    return Steered(workflow_id=run.id, status="paused", next="It stops at its next turn.", told=told)


def _tell_driver(unit: UnitOfWork, run: PipelineRun, reason: str) -> str | None:
    """Tells the agent that drives a run why it should wait; returns the agent's name if it was told."""
    driver = unit.get(Agent, str((run.holder or {}).get("agent_id") or ""))
    if driver is None or not reason:
        return None
    letter = Letter("notification", reason, f"Paused: {run.title}"[:300], "high", workflow_id=run.id)
    post(unit, HUMAN, driver.id, letter)
    return driver.name


def _resume(call: Call, asked: PageRequest) -> Steered:
    """Lets a run continue. Its documents are read first, because they decide whether it would stop again at once."""
    asked.visitor.check_decides("lets a run go on")
    _body_as(asked, Nothing)
    know_runs()
    actor, rules = asked.visitor.actor, rules_of(call)
    run = call.ledger.run(actor, lambda unit: _run_meant(unit, asked))
    files = documents_of(call, run)
    kept = call.ledger.run(
        actor, lambda unit: resumed(unit, _run_meant(unit, asked), Going(), files, rules), writing=True
    )
    return Steered(workflow_id=kept.id, status="in_progress", next="It continues at its agent's next call.")


def _run_meant(unit: UnitOfWork, asked: PageRequest) -> PipelineRun:
    workflow = workflow_asked(unit, asked.path["workflow"])
    run = unit.get(PipelineRun, workflow.id)
    if run is None:
        raise _no_run(workflow.id, workflow.name)
    return run


# -- what is asked ----------------------------------------------------------------------------------------------------


def _no_run(workflow_id: str, name: str) -> RunNotFound:
    return RunNotFound(
        f'"{name}" is a plan, not a run of a pipeline', hint="an agent begins a run with pipeline_init", id=workflow_id
    )


def _body_as(asked: PageRequest, kind: type[KindT]) -> KindT:
    """The posted body, converted to `kind`."""
    make_known(kind)
    try:
        return msgspec.convert(asked.body if asked.body is not None else {}, kind)
    except msgspec.ValidationError as problem:
        names = ", ".join(field.encode_name for field in msgspec.structs.fields(kind)) or "nothing"
        raise InvalidParams(f"what was posted does not fit: {problem}", hint=f"it takes: {names}") from None


def _number(asked: PageRequest, name: str) -> int | None:
    """A number from the address; None if left out."""
    text = asked.query.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 16:
        raise InvalidParams(f"{name} is a whole number, 0 or more", hint=f"leave {name} out for the newest")
    return int(text)


def _filter_values(asked: PageRequest, name: str) -> tuple[str, ...]:
    """The comma-separated values of a filter."""
    text = asked.query.get(name, "")
    values = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    if len(values) > FILTERS or any(len(value) > FILTER for value in values):
        raise InvalidParams(f"{name} takes {FILTERS} values of {FILTER} characters", hint="ask for fewer at once")
    return values


CREW_ROUTES: tuple[PageRoute, ...] = (
    read("/api/workflows/{workflow}/timeline", _timeline),
    read("/api/workflows/{workflow}/decisions", _decisions),
    read("/api/workflows/{workflow}/milestones", _milestones),
    read("/api/workflows/{workflow}/reviews", _reviews),
    read("/api/workflows/{workflow}/pipeline", _pipeline, stored=False),
    read("/api/workflows/{workflow}/documents/{name}", _document, stored=False),
    read("/api/workflows/{workflow}/versions", _versions),
    read("/api/agents", _agents),
    read("/api/messages", _messages),
    read("/api/events", _events),
    read("/api/board", _boards),
    write("/api/messages", _post_message, stored=False),
    write("/api/messages/{message}/read", _read_message, stored=False),
    write("/api/tasks/{task}/release", _release),
    write("/api/workflows/{workflow}/pause", _pause),
    write("/api/workflows/{workflow}/resume", _resume, stored=False),
)

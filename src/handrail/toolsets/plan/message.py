"""Toolset `message`: plan.md's messages between agents, and between agents and people. No polling is needed: a list may
wait for what arrives.

The domain (`reading_mail.py`) decides who may read an inbox, and what reading does.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET

from handrail.domain.crew.inbox import (
    MailQuery,
    MailReader,
    archive,
    caller_of,
    check_inbox,
    check_sender,
    find_message,
    find_own,
    found,
    mark_read,
    unread_by_priority,
)
from handrail.domain.crew.message import NEVER, PRIORITIES, Message
from handrail.domain.crew.outbox import Audience, Letter, audience, post, recipient, unread_count
from handrail.domain.reply_size import within
from handrail.domain.work.lookup import find_task, find_workflow
from handrail.kernel.errors import (
    AgentNotFound,
    InvalidParams,
    MessageNotFound,
    NotAllowed,
    RunNotFound,
    TaskNotFound,
)
from handrail.operation import Call, Effect, Example, Operation, Wait
from handrail.toolsets.plan.message_shapes import (
    ArchiveMessages,
    BroadcastMessage,
    CountUnread,
    GetMessage,
    ListMessages,
    MarkRead,
    MessagePage,
    SendMessage,
    SentMessage,
    SentMessages,
    UnreadMessages,
)
from handrail.toolsets.plan.workflow import Done
from handrail.toolsets.shown import cut
from handrail.toolsets.vocabulary import MESSAGE

BODY = 32_000
"""The longest body, in bytes: a message is read in one turn; anything longer belongs in a file that it names."""
SHOWN_BODY = 400
"""How many characters of a body a list shows, unless all of it was requested."""
SHOWN = 20
REPLY = 7_500
"""Bytes for messages in a list without a requested limit."""
_INNER = ("sequence", "urgency", "expires_at", "ack_required", "acked_at")


def message_send(call: Call, request: SendMessage) -> SentMessage:
    caller = _caller(call)
    check_sender(caller, request.sender_id)
    to = recipient(call.work, request.recipient_id)
    answers = find_message(call.work, caller, request.reply_to_id) if request.reply_to_id is not None else None
    letter = _letter(call, request)
    if request.task_id is not None:
        task = find_task(call.work, request.task_id)
        if request.workflow_id not in (None, task.workflow_id):
            raise InvalidParams(
                f"task {task.id} belongs to workflow {task.workflow_id}, not {request.workflow_id}",
                hint="leave workflow_id out: the task's own is meant",
            )
        letter = letter._replace(workflow_id=task.workflow_id, task_id=task.id)
    message = post(call.work, request.sender_id, to, letter, answers=answers)
    return SentMessage(message.id, message.thread_id)


def message_broadcast(call: Call, request: BroadcastMessage) -> SentMessages:
    check_sender(_caller(call), request.sender_id)
    wanted = Audience(**msgspec.structs.asdict(request.recipient_filter))
    agents = audience(call.work, wanted, request.sender_id)
    letter = _letter(call, request)
    if not agents:
        return SentMessages(0, ())
    thread_id = call.work.new_id("thr")
    sent = [post(call.work, request.sender_id, agent.id, letter, thread_id=thread_id) for agent in agents]
    return SentMessages(len(sent), tuple(message.id for message in sent), thread_id)


def _letter(call: Call, request: SendMessage | BroadcastMessage) -> Letter:
    size = len(msgspec.json.encode(request.body))
    if size > BODY:
        raise InvalidParams(
            f"the body has {size} bytes, and {BODY} is the most", hint="put the rest in a file and name the file"
        )
    if not request.body:
        raise InvalidParams("the body is empty", hint="put the text in body; subject is only a headline")
    if request.workflow_id is not None:
        find_workflow(call.work, request.workflow_id)
    return Letter(
        request.message_type,
        request.body,
        request.subject,
        request.priority,
        workflow_id=request.workflow_id,
        expires_at=NEVER if request.expires_in_ms is None else call.work.now_ms() + request.expires_in_ms,
        ack_required=request.requires_ack,
    )


def message_list(call: Call, request: ListMessages) -> MessagePage:
    check_inbox(_caller(call), request.agent_id)
    default = None if request.thread_id is not None else "unread"
    sought = MailQuery(
        request.agent_id,
        default if request.status is UNSET else request.status,
        tuple(request.message_type),
        tuple(request.priority),
        request.workflow_id,
        request.thread_id,
        request.since,
    )
    limit = SHOWN if request.limit is UNSET else request.limit
    messages, total = found(call.work, sought, limit, request.offset)
    now = call.work.now_ms()
    shown = [shown_message(message, now, full=request.full) for message in messages]
    if request.limit is UNSET and not request.full:
        shown = within(shown, REPLY)
    return MessagePage(tuple(shown), unread_count(call.work, request.agent_id), total)


def message_get(call: Call, request: GetMessage) -> dict[str, Any]:
    caller = _caller(call)
    if request.ack:
        (message,) = find_own(call.work, caller, [request.id])
    else:
        message = find_message(call.work, caller, request.id)
    if request.ack or (request.mark_read and caller.owns(message.recipient_id)):
        (message,) = mark_read(call.work, [message], ack=request.ack)
    return shown_message(message, call.work.now_ms(), full=True)


def message_mark_read(call: Call, request: MarkRead) -> Done:
    caller = _caller(call)
    mark_read(call.work, find_own(call.work, caller, request.message_ids), ack=request.ack)
    return Done(True)


def message_archive(call: Call, request: ArchiveMessages) -> Done:
    caller = _caller(call)
    archive(call.work, find_own(call.work, caller, request.message_ids))
    return Done(True)


def message_count_unread(call: Call, request: CountUnread) -> UnreadMessages:
    check_inbox(_caller(call), request.agent_id)
    counted = unread_by_priority(call.work, request.agent_id)
    asked = [priority for priority in PRIORITIES if not request.priority or priority in request.priority]
    by_priority = {priority: counted.get(priority, 0) for priority in asked}
    return UnreadMessages(sum(by_priority.values()), by_priority)


def _caller(call: Call) -> MailReader:
    return caller_of(call.work, call.writer.agent_id, strict=call.crew.strict)


def shown_message(message: Message, now_ms: int, *, full: bool) -> dict[str, Any]:
    """A message in the shape of plan.md's type, plus what applies only to some: expiry and acknowledgement."""
    shown: dict[str, Any] = msgspec.to_builtins(message)
    for name in _INNER:
        del shown[name]
    if not full:
        shown["body"] = _cut_body(message.body)
    if message.expires_at != NEVER:
        shown["expires_at"] = message.expires_at
        if message.expires_at <= now_ms:
            shown["expired"] = True
    if message.ack_required or message.acked_at is not None:
        shown |= {"requires_ack": message.ack_required, "acked_at": message.acked_at}
    return shown


def _cut_body(body: Any) -> Any:
    if isinstance(body, str):
        return cut(body, SHOWN_BODY)
    written = msgspec.json.encode(body).decode()
    return body if len(written) <= SHOWN_BODY else {"cut": cut(written, SHOWN_BODY)}


def _agent(name: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "agent_register", {"name": name, "runtime": "codex", **more}


_THREE = (_agent("ada", role="coordinator"), _agent("ben"), _agent("cyd"))
_ASKED = {
    "sender_id": "ag_1",
    "recipient_id": "ag_2",
    "message_type": "query",
    "subject": "The retry",
    "body": "How many times does it try?",
}
_SENT = (*_THREE, ("message_send", _ASKED))
_ANSWER = {
    "sender_id": "ag_2",
    "recipient_id": "ag_1",
    "message_type": "response",
    "body": {"times": 5},
    "reply_to_id": "msg_1",
}
_BOARD = {"sender_id": "ag_1", "message_type": "notification", "body": "main is frozen"}
_UNKNOWN_AGENT = "an unknown agent is refused"
_UNKNOWN_MESSAGE = "an unknown message is refused"
_ANOTHERS = "a message between others is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="message_send",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.WRITE,
        stored=True,
        acts_as="sender_id",
        summary="Sends a message to an agent or the human",
        request=SendMessage,
        response=SentMessage,
        handler=message_send,
        refusals=(AgentNotFound, MessageNotFound, NotAllowed, RunNotFound, TaskNotFound),
        examples=(
            Example(
                title="a reply joins the thread of what it answers",
                given=_SENT,
                request=_ANSWER,
                response={"id": "msg_...", "thread_id": "thr_1"},
            ),
            Example(
                title="an agent is reached by its name too",
                given=_THREE,
                request={**_ASKED, "recipient_id": "ben", "priority": "urgent", "requires_ack": True},
                response={"id": "msg_...", "thread_id": "thr_..."},
            ),
            Example(
                title="an unknown recipient is refused",
                given=_THREE,
                request={**_ASKED, "recipient_id": "ag_9"},
                refused=AgentNotFound,
            ),
            Example(
                title="a reply to nothing is refused",
                given=_THREE,
                request={**_ASKED, "reply_to_id": "msg_9"},
                refused=MessageNotFound,
            ),
            Example(
                title="a reply to a message between others is refused",
                given=_SENT,
                request={**_ANSWER, "sender_id": "ag_3"},
                refused=NotAllowed,
            ),
            Example(
                title="an unknown workflow is refused",
                given=_THREE,
                request={**_ASKED, "workflow_id": "wf_9"},
                refused=RunNotFound,
            ),
            Example(
                title="an unknown task is refused",
                given=_THREE,
                request={**_ASKED, "task_id": "task_9"},
                refused=TaskNotFound,
            ),
        ),
    ),
    Operation(
        name="message_broadcast",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.WRITE,
        stored=True,
        acts_as="sender_id",
        summary="Sends a message to every present agent, or to those that match a filter",
        request=BroadcastMessage,
        response=SentMessages,
        handler=message_broadcast,
        refusals=(AgentNotFound, RunNotFound),
        examples=(
            Example(
                title="everybody but the sender gets it",
                given=_THREE,
                request=_BOARD,
                response={"sent_count": 2, "message_ids": ["msg_...", "msg_..."]},
            ),
            Example(
                title="nobody fits",
                given=_THREE,
                request={**_BOARD, "recipient_filter": {"status": "busy"}},
                response={"sent_count": 0, "message_ids": []},
            ),
            Example(title=_UNKNOWN_AGENT, request=_BOARD, refused=AgentNotFound),
            Example(
                title="an unknown workflow is refused",
                given=_THREE,
                request={**_BOARD, "workflow_id": "wf_9"},
                refused=RunNotFound,
            ),
        ),
    ),
    Operation(
        name="message_list",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.READ,
        stored=True,
        acts_as="agent_id",
        wait=Wait(for_ms=lambda request: request.wait_ms, is_over=lambda answer: bool(answer.messages)),
        summary="Lists an agent's messages, the most urgent first; may wait for one",
        request=ListMessages,
        response=MessagePage,
        handler=message_list,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="what is unread",
                given=_SENT,
                request={"agent_id": "ag_2"},
                response={
                    "messages": [{"sender_id": "ag_1", "subject": "The retry", "status": "unread"}],
                    "unread_count": 1,
                    "total": 1,
                },
            ),
            Example(
                title="a thread in the order of writing, both directions",
                given=(*_SENT, ("message_send", _ANSWER)),
                request={"agent_id": "ag_2", "thread_id": "thr_1"},
                response={"messages": [{"id": "msg_1"}, {"id": "msg_2", "reply_to_id": "msg_1"}], "total": 2},
            ),
            Example(title=_UNKNOWN_AGENT, request={"agent_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
    Operation(
        name="message_get",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Shows a whole message, and marks it read for its recipient",
        request=GetMessage,
        response=dict[str, Any],
        handler=message_get,
        refusals=(MessageNotFound, NotAllowed),
        examples=(
            Example(
                title="whoever gets it has read it",
                given=_SENT,
                request={"id": "msg_1"},
                response={"body": "How many times does it try?", "status": "read"},
            ),
            Example(
                title="its sender sees whether it was read",
                given=_SENT,
                request={"id": "msg_1", "agent_id": "ag_1"},
                response={"status": "unread", "read_at": None},
            ),
            Example(title=_UNKNOWN_MESSAGE, request={"id": "msg_9"}, refused=MessageNotFound),
            Example(title=_ANOTHERS, given=_SENT, request={"id": "msg_1", "agent_id": "ag_3"}, refused=NotAllowed),
        ),
    ),
    Operation(
        name="message_mark_read",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Marks messages read, or acknowledges them",
        request=MarkRead,
        response=Done,
        handler=message_mark_read,
        refusals=(MessageNotFound, NotAllowed),
        examples=(
            Example(
                title="a message is read and acknowledged",
                given=_SENT,
                request={"message_ids": ["msg_1"], "ack": True},
                response={"success": True},
            ),
            Example(title=_UNKNOWN_MESSAGE, request={"message_ids": ["msg_9"]}, refused=MessageNotFound),
            Example(
                title="its sender does not read it for its recipient",
                given=_SENT,
                request={"message_ids": ["msg_1"], "agent_id": "ag_1"},
                refused=NotAllowed,
            ),
        ),
    ),
    Operation(
        name="message_archive",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Archives messages",
        request=ArchiveMessages,
        response=Done,
        handler=message_archive,
        refusals=(MessageNotFound, NotAllowed),
        examples=(
            Example(
                title="an archived message is no longer listed",
                given=_SENT,
                request={"message_ids": ["msg_1"]},
                response={"success": True},
            ),
            Example(title=_UNKNOWN_MESSAGE, request={"message_ids": ["msg_9"]}, refused=MessageNotFound),
            Example(
                title=_ANOTHERS,
                given=_SENT,
                request={"message_ids": ["msg_1"], "agent_id": "ag_3"},
                refused=NotAllowed,
            ),
        ),
    ),
    Operation(
        name="message_count_unread",
        toolset=MESSAGE,
        tells_unread=False,
        effect=Effect.READ,
        stored=True,
        acts_as="agent_id",
        summary="Counts an agent's unread messages",
        request=CountUnread,
        response=UnreadMessages,
        handler=message_count_unread,
        refusals=(AgentNotFound,),
        examples=(
            Example(
                title="counted by priority",
                given=_SENT,
                request={"agent_id": "ag_2"},
                response={"count": 1, "by_priority": {"normal": 1, "urgent": 0}},
            ),
            Example(title=_UNKNOWN_AGENT, request={"agent_id": "ag_9"}, refused=AgentNotFound),
        ),
    ),
)

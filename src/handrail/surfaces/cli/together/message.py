"""`handrail message …`: a person's inbox. Agents write to "human"; a person reads, answers, and waits for more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import PRIORITIES, Message
from handrail.domain.crew.outbox import HUMAN, SYSTEM, recipient
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import AgentNotFound, InvalidParams, MessageNotFound, SeveralOpen
from handrail.kernel.limits import WAIT_MS
from handrail.kernel.records import LAST, Query
from handrail.operation import Call, Operation
from handrail.surfaces.arguments import parse_arguments
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, looking_call, read_once
from handrail.surfaces.cli.columns import bold, columns, dim, fit, one_line, width, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of, typed_text
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.together.agents import unknown_agent
from handrail.surfaces.invocation import invoke
from handrail.toolsets.here import SHOWN
from handrail.toolsets.plan.message import OPERATIONS, message_list, shown_message
from handrail.wiring import assemble

LISTED = 200
_BY_NAME: Mapping[str, Operation[Any, Any]] = {operation.name: operation for operation in OPERATIONS}
_UNREAD = {"agent_id": HUMAN, "limit": LISTED, "full": True}


@click.group(cls=ListFirst)
def message() -> None:
    """Read what agents wrote to you, and write to them. Without a command, list what you have not read."""


@message.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List your unread messages, newest threads first."""
    page, lines = in_one_look(root, options, _inbox)
    _print(page, lines, as_json=as_json)


@message.command()
@click.argument("agent", shell_complete=completions.agents)
@click.argument("text", nargs=-1, required=True)
@click.option("--subject", metavar="TEXT", help="A subject line.")
@click.option(
    "--priority", type=click.Choice(PRIORITIES), default="normal", show_default=True, help="How urgent it is."
)
@click.option(
    "--reply-to",
    metavar="ID",
    shell_complete=completions.messages,
    help="The message this answers; it joins that thread.",
)
@click.option("--ack", is_flag=True, help="Ask for an acknowledgement; the message stays unread until then.")
@common_options
def send(
    agent: str, text: tuple[str, ...], reply_to: str | None, root: Path | None, as_json: bool, **options: Any
) -> None:
    """Send TEXT, one word or many, to AGENT.

    AGENT is an id, the beginning of one, or a name.
    """
    if not " ".join(text).strip():
        command = f'handrail message send {typed_text(agent)} "…"'
        raise InvalidParams("the message is empty", hint=f"write it after the name: {command}")

    def addressed(call: Call) -> tuple[dict[str, Any], str]:
        answered = _message_meant(call, reply_to) if reply_to is not None else None
        given = {
            "sender_id": HUMAN,
            "recipient_id": _agent_meant(call, typed_text(agent)),
            "message_type": "response" if answered is not None else "notification",
            "body": typed_text(" ".join(text)),
            "priority": options["priority"],
            "requires_ack": options["ack"],
        }
        if options["subject"] is not None:
            given["subject"] = typed_text(options["subject"])
        if answered is not None:
            given["reply_to_id"] = answered.id
        return given, _name(call, given["recipient_id"])

    call = looking_call(place_of(root), options)
    given, name = read_once(call, addressed)
    answer = invoke(_BY_NAME["message_send"], call, given, actor=person())
    sent = {"recipient_id": given["recipient_id"], **answer}
    lines = [f"sent to {name}: {sent['id']}", dim(f"its thread: handrail message thread {sent['id']}")]
    _print(sent, lines, as_json=as_json)


@message.command()
@click.argument("message_id", metavar="ID", shell_complete=completions.messages)
@click.option("--ack", is_flag=True, help="Acknowledge it too, if its sender asked for that.")
@common_options
def read(message_id: str, ack: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show a message in full and mark it as read.

    ID may be the beginning of one. Only a message to you is marked as read.
    """

    call = looking_call(place_of(root), options)
    found = read_once(call, lambda looking: _message_meant(looking, message_id))
    given = {"id": found.id, "mark_read": found.recipient_id == HUMAN, "ack": ack}
    shown = invoke(_BY_NAME["message_get"], call, given, actor=person())
    lines = read_once(call, lambda looking: [*_message_lines(looking, shown, columns())])
    if found.recipient_id == HUMAN and shown.get("requires_ack") and shown["acked_at"] is None:
        lines += ["", f"Its sender asks you to acknowledge it: handrail message read {found.id} --ack"]
    if found.recipient_id == HUMAN and found.sender_id != SYSTEM:
        answer = f"Answer: handrail message send {found.sender_id} TEXT --reply-to {found.id}"
        lines += ["", *wrapped(answer, columns())]
    _print(shown, lines, as_json=as_json)


@message.command()
@click.argument("thread_id", metavar="ID", shell_complete=completions.messages)
@common_options
def thread(thread_id: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show a thread, oldest message first.

    ID is the thread's, or that of any message in it.
    """

    def look(call: Call) -> tuple[dict[str, Any], list[str]]:
        unit = call.work
        threaded = (("thread_id", _thread_meant(call, thread_id)),)
        found = unit.select(Message, Query(threaded, ("created_at",), LISTED))
        total = unit.count(Message, Query(threaded))
        shown = [shown_message(one, unit.now_ms(), full=True) for one in found]
        lines = [line for one in shown for line in (*_message_lines(call, one, columns()), "")][:-1]
        if total > len(shown):
            lines += ["", f"{total - len(shown)} later ones are not shown."]
        return {"messages": shown, "total": total}, lines

    found, lines = in_one_look(root, options, look)
    _print(found, lines, as_json=as_json)


@message.command()
@common_options
def wait(root: Path | None, as_json: bool, **options: Any) -> None:
    """Wait for a message, then list it. Press Ctrl-C to stop."""
    place = place_of(root)
    call = assemble(place, settings_of(place, options)).call
    given = {**_UNREAD, "wait_ms": WAIT_MS}
    while not invoke(_BY_NAME["message_list"], call, given, actor=person())["messages"]:
        continue
    page, lines = call.ledger.run(person(), lambda unit: _inbox(msgspec.structs.replace(call, unit=unit)))
    _print(page, lines, as_json=as_json)


def _print(document: Mapping[str, Any], lines: list[str], *, as_json: bool) -> None:
    if as_json:
        echo_json(document)
        return
    echo_lines(lines)


# -- what is shown ----------------------------------------------------------------------------------------------------


def _inbox(call: Call) -> tuple[dict[str, Any], list[str]]:
    """What a person has not read, as a document and as lines."""
    page = message_list(call, parse_arguments(_BY_NAME["message_list"], _UNREAD))
    document: dict[str, Any] = msgspec.to_builtins(page)
    return document, list(_inbox_lines(call, document, columns()))


def _inbox_lines(call: Call, page: Mapping[str, Any], room: int) -> Iterator[str]:
    messages = page["messages"]
    if not messages:
        yield 'Nothing to read. Agents write to you with message_send to "human".'
        return
    threads: dict[str, list[Mapping[str, Any]]] = {}
    for one in sorted(messages, key=lambda one: (-one["created_at"], one["id"])):
        threads.setdefault(one["thread_id"], []).append(one)
    for number, together in enumerate(threads.values()):
        if number:
            yield ""
        for one in reversed(together):
            yield from _brief_lines(call, one, room)
    if page["total"] > len(messages):
        yield f"\n{page['total'] - len(messages)} more are unread."
    yield ""
    yield from wrapped("Read one: handrail message read ID", room)


def _brief_lines(call: Call, one: Mapping[str, Any], room: int) -> Iterator[str]:
    marks = [one["priority"]] if one["priority"] in ("high", "urgent") else []
    marks += ["to be acknowledged"] if one.get("requires_ack") else []
    ago = ", ".join([f"{spoken_time(call.work.now_ms() - one['created_at'])} ago", *marks])
    yield from _heading(_name(call, one["sender_id"]), one["sender_id"], ago, room)
    body = one["body"] if isinstance(one["body"], str) else msgspec.json.encode(one["body"]).decode()
    yield f"  {fit(one['subject'] or body, room - 2)}"
    yield f"  {dim(one['id'])}"


def _message_lines(call: Call, shown: Mapping[str, Any], room: int) -> Iterator[str]:
    """One message with everything known about it."""
    now = call.work.now_ms()
    ago = f"{spoken_time(now - shown['created_at'])} ago"
    pair = f"{_name(call, shown['sender_id'])} to {_name(call, shown['recipient_id'])}"
    yield from _heading(pair, "", ago, room)
    kind = [shown["message_type"].replace("_", " "), shown["priority"], _state(shown)]
    about = [shown[name] for name in ("task_id", "workflow_id") if shown[name]]
    yield from (dim(line) for line in wrapped(", ".join([shown["id"], *kind, *about[:1]]), room))
    if shown["subject"]:
        yield from (bold(line) for line in wrapped(shown["subject"], room))
    if isinstance(shown["body"], str):
        yield from wrapped(shown["body"], room, "  ")
        return
    for line in msgspec.json.format(msgspec.json.encode(shown["body"]), indent=2).decode().split("\n"):
        yield from wrapped(line, room, "  " + " " * (len(line) - len(line.lstrip(" "))))


def _heading(name: str, key: str, ago: str, room: int) -> Iterator[str]:
    """Who wrote, and when: on one line, without the id if only that fits, otherwise on two lines."""
    short = name.removesuffix(f" ({key})")
    for said in (name, short):
        if width(said) + 2 + width(ago) <= room:
            yield f"{bold(said)}{dim(f', {ago}')}"
            return
    yield from (bold(line) for line in wrapped(short, room))
    yield from (dim(line) for line in wrapped(ago, room, "  "))


def _state(shown: Mapping[str, Any]) -> str:
    if shown.get("acked_at") is not None:
        return "acknowledged"
    if shown.get("expired"):
        return "expired"
    if shown.get("requires_ack"):
        return "read, not acknowledged" if shown["read_at"] is not None else "not acknowledged"
    return str(shown["status"])


def _name(call: Call, agent_id: str) -> str:
    if agent_id in (HUMAN, SYSTEM):
        return {HUMAN: "you", SYSTEM: "Handrail"}[agent_id]
    agent = call.work.get(Agent, agent_id)
    return f"{one_line(agent.name)} ({agent.id})" if agent is not None else agent_id


# -- what is meant ----------------------------------------------------------------------------------------------------


def _agent_meant(call: Call, text: str) -> str:
    try:
        return recipient(call.work, text)
    except AgentNotFound as unknown:
        found = call.work.select(Agent, Query((("id >", text), ("id <", text + LAST)), ("id",), 2))
        if len(found) == 1 and text.startswith("ag_"):
            return found[0].id
        if call.work.select(Agent, Query((("name", text),), (), 1)):
            raise  # several have the name, and the refusal says which
        raise unknown_agent(call.work, unknown) from None


def _message_meant(call: Call, text: str) -> Message:
    """The message with this id, or whose id begins with it."""
    text = typed_text(text)
    exact = call.work.get(Message, text)
    if exact is not None:
        return exact
    beginning = Query((("id >", text), ("id <", text + LAST)), ("id",), SHOWN + 1)
    found = call.work.select(Message, beginning) if text.startswith("msg_") else []
    if len(found) > 1:
        raise SeveralOpen(
            f"{one_line(text)} could mean several messages",
            hint=f"say more of its id: {', '.join(one.id for one in found[:SHOWN])}",
        )
    if not found:
        raise MessageNotFound(f"there is no message {one_line(text)}", hint="`handrail message` lists the unread ones")
    return found[0]


def _thread_meant(call: Call, text: str) -> str:
    known = call.work.select(Message, Query((("thread_id", typed_text(text)),), ("created_at",), 1))
    return known[0].thread_id if known else _message_meant(call, text).thread_id

"""`handrail message …`: a person's inbox. Agents write to "human"; a person reads, answers, and waits for more."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.crew.addressing import recipient
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import PRIORITIES, Message
from handrail.domain.crew.posting import HUMAN, SYSTEM
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import AgentNotFound, MessageNotFound, SeveralOpen
from handrail.kernel.limits import WAIT_MS
from handrail.kernel.query import Query
from handrail.operation import Call, Operation
from handrail.surfaces.arguments import parse_arguments
from handrail.surfaces.calling import run
from handrail.surfaces.cli.columns import bold, columns, dim, fit, one_line, width, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of
from handrail.surfaces.cli.plan import in_one_look
from handrail.surfaces.cli.render import echo_json
from handrail.toolsets.here import SHOWN
from handrail.toolsets.message import OPERATIONS, message_get, message_list, message_send, shown_message
from handrail.wiring import assemble

LISTED = 200
INTERRUPTED = 130
"""How a shell says that Ctrl-C ended a command."""
_LAST = "\U0010ffff"
_BY_NAME: Mapping[str, Operation[Any, Any]] = {operation.name: operation for operation in OPERATIONS}
_UNREAD = {"agent_id": HUMAN, "limit": LISTED, "full": True}


@click.group(cls=ListFirst)
def message() -> None:
    """Read what agents wrote to you, and write to them. Without a command, list what you have not read."""


@message.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List your unread messages, the newest threads first."""
    page, lines = in_one_look(root, options, _inbox)
    _print(page, lines, as_json=as_json)


@message.command()
@click.argument("agent")
@click.argument("text")
@click.option("--subject", metavar="TEXT", help="A headline.")
@click.option("--priority", type=click.Choice(PRIORITIES), default="normal", show_default=True)
@click.option("--reply-to", metavar="ID", help="The message this answers; it joins that thread.")
@click.option("--ack", is_flag=True, help="Ask for an acknowledgement; it stays unread until then.")
@common_options
def send(agent: str, text: str, reply_to: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Write TEXT to AGENT: its id, the beginning of one, or its name."""

    def post(call: Call) -> dict[str, Any]:
        answered = _meant(call, reply_to) if reply_to is not None else None
        given = {
            "sender_id": HUMAN,
            "recipient_id": _agent_meant(call, _storable(agent)),
            "message_type": "response" if answered is not None else "notification",
            "body": _storable(text),
            "priority": options["priority"],
            "requires_ack": options["ack"],
        }
        if options["subject"] is not None:
            given["subject"] = _storable(options["subject"])
        if answered is not None:
            given["reply_to_id"] = answered.id
        sent = message_send(call, parse_arguments(_BY_NAME["message_send"], given))
        return {"recipient_id": given["recipient_id"], **msgspec.to_builtins(sent)}

    sent = in_one_look(root, options, post)
    lines = [f"sent to {sent['recipient_id']}: {sent['id']}", dim(f"its thread: handrail message thread {sent['id']}")]
    _print(sent, lines, as_json=as_json)


@message.command()
@click.argument("message_id", metavar="ID")
@click.option("--ack", is_flag=True, help="Acknowledge it too, where its sender asks for that.")
@common_options
def read(message_id: str, ack: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show a message whole; one that was written to you counts as read then.

    ID may be the beginning of one.
    """

    def look(call: Call) -> tuple[dict[str, Any], list[str]]:
        found = _meant(call, message_id)
        given = {"id": found.id, "mark_read": found.recipient_id == HUMAN, "ack": ack}
        shown = message_get(call, parse_arguments(_BY_NAME["message_get"], given))
        lines = [*_whole(call, shown, columns())]
        if found.recipient_id == HUMAN and shown.get("requires_ack") and shown["acked_at"] is None:
            lines += ["", f"Its sender asks you to acknowledge it: handrail message read {found.id} --ack"]
        if found.recipient_id == HUMAN and found.sender_id != SYSTEM:
            answer = f"Answer: handrail message send {found.sender_id} TEXT --reply-to {found.id}"
            lines += ["", *wrapped(answer, columns())]
        return shown, lines

    shown, lines = in_one_look(root, options, look)
    _print(shown, lines, as_json=as_json)


@message.command()
@click.argument("thread_id", metavar="ID")
@common_options
def thread(thread_id: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show a thread in the order it was written. ID is the thread's or that of a message in it."""

    def look(call: Call) -> tuple[dict[str, Any], list[str]]:
        unit = call.work
        threaded = (("thread_id", _thread_meant(call, thread_id)),)
        found = unit.select(Message, Query(threaded, ("created_at",), LISTED))
        total = unit.count(Message, Query(threaded))
        shown = [shown_message(one, unit.now_ms(), full=True) for one in found]
        lines = [line for one in shown for line in (*_whole(call, one, columns()), "")][:-1]
        if total > len(shown):
            lines += ["", f"{total - len(shown)} later ones are not shown."]
        return {"messages": shown, "total": total}, lines

    found, lines = in_one_look(root, options, look)
    _print(found, lines, as_json=as_json)


@message.command()
@common_options
def wait(root: Path | None, as_json: bool, **options: Any) -> None:
    """Wait until there is something to read, then list it. Ctrl-C ends the waiting."""
    place = place_of(root)
    call = assemble(place, settings_of(place, options)).call
    given = {**_UNREAD, "wait_ms": WAIT_MS}
    try:
        while not run(_BY_NAME["message_list"], call, given, actor=person())["messages"]:
            continue
    except KeyboardInterrupt:
        click.echo(err=True)
        sys.exit(INTERRUPTED)
    page, lines = call.ledger.run(person(), lambda unit: _inbox(msgspec.structs.replace(call, unit=unit)))
    _print(page, lines, as_json=as_json)


def _print(document: Mapping[str, Any], lines: list[str], *, as_json: bool) -> None:
    if as_json:
        echo_json(document)
        return
    for line in lines:
        click.echo(line)


# -- what is shown ----------------------------------------------------------------------------------------------------


def _inbox(call: Call) -> tuple[dict[str, Any], list[str]]:
    """What a person has not read: as a document, and as lines."""
    page = message_list(call, parse_arguments(_BY_NAME["message_list"], _UNREAD))
    document: dict[str, Any] = msgspec.to_builtins(page)
    return document, list(_drawn(call, document, columns()))


def _drawn(call: Call, page: Mapping[str, Any], room: int) -> Iterator[str]:
    messages = page["messages"]
    if not messages:
        yield "Nothing to read. Agents write to you with message_send to human."
        return
    threads: dict[str, list[Mapping[str, Any]]] = {}
    for one in sorted(messages, key=lambda one: (-one["created_at"], one["id"])):
        threads.setdefault(one["thread_id"], []).append(one)
    for number, together in enumerate(threads.values()):
        if number:
            yield ""
        for one in reversed(together):
            yield from _line(call, one, room)
    if page["total"] > len(messages):
        yield f"\n{page['total'] - len(messages)} more are unread."
    yield ""
    yield from wrapped("Read one: handrail message read ID", room)


def _line(call: Call, one: Mapping[str, Any], room: int) -> Iterator[str]:
    marks = [one["priority"]] if one["priority"] in ("high", "urgent") else []
    marks += ["to be acknowledged"] if one.get("requires_ack") else []
    ago = f", {spoken_time(call.work.now_ms() - one['created_at'])} ago{''.join(f', {mark}' for mark in marks)}"
    yield f"{bold(fit(_name(call, one['sender_id']), room - width(ago)))}{dim(ago)}"
    body = one["body"] if isinstance(one["body"], str) else msgspec.json.encode(one["body"]).decode()
    yield f"  {fit(one['subject'] or body, room - 2)}"
    yield f"  {dim(one['id'])}"


def _whole(call: Call, shown: Mapping[str, Any], room: int) -> Iterator[str]:
    """One message with everything that is known of it."""
    now = call.work.now_ms()
    ago = f", {spoken_time(now - shown['created_at'])} ago"
    pair = f"{_name(call, shown['sender_id'])} to {_name(call, shown['recipient_id'])}"
    yield f"{bold(fit(pair, room - width(ago)))}{dim(ago)}"
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
    except AgentNotFound:
        found = call.work.select(Agent, Query((("id >", text), ("id <", text + _LAST)), ("id",), 2))
        if len(found) != 1 or not text.startswith("ag_"):
            raise
        return found[0].id


def _meant(call: Call, text: str) -> Message:
    """The message with this id, or whose id begins so."""
    text = _storable(text)
    exact = call.work.get(Message, text)
    if exact is not None:
        return exact
    beginning = Query((("id >", text), ("id <", text + _LAST)), ("id",), SHOWN + 1)
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
    known = call.work.select(Message, Query((("thread_id", _storable(text)),), ("created_at",), 1))
    return known[0].thread_id if known else _meant(call, text).thread_id


def _storable(text: str) -> str:
    """What was typed, without bytes that are no text."""
    return text.encode(errors="replace").decode()

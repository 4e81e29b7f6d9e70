"""Handrail as it takes part: real `handrail serve` processes on one store, agents that write to each other and answer.

Every agent begins threads and answers in those it was written to, so threads go back and forth between two processes.
Afterwards every inbox and every thread is read through a process that had no part in writing most of it.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.crew.burst import Ask, Burst, Script, Written
from bench.crew.checking import doubled, lost, out_of_order
from bench.crew.contestants import BODY, Contestant, Findings, Place, address, lay_out_database
from bench.crew.lines import Line, Reply, ask
from bench.started import Stuck

PAGE = 500
ANSWERS_OF_THREE = 2
"""Of three messages of an agent, so many answer another, where there is one to answer."""


class HandrailCrew(Contestant):
    """`message_send` between registered agents."""

    def __init__(self, engine: str) -> None:
        self.name = f"handrail, {engine}"
        self.floor = f"floor, {engine}"
        self._engine = engine

    def lay_out(self, place: Place) -> None:
        lay_out_database(place, self._engine)

    def command(self, place: Place) -> Sequence[str]:
        store = ["--root", str(place.folder), "--db", address(place, self._engine)]
        return [sys.executable, "-m", "handrail", "serve", "--toolsets", "agent,message", *store]

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        raise NotImplementedError("messages go between agents that have registered; see scripts")

    def scripts(self, place: Place, lines: Sequence[Line], agents: int) -> list[Script]:
        ids = [registered(lines[agent % len(lines)], f"agent {agent}", agent + 1)["id"] for agent in range(agents)]
        inboxes: dict[str, deque[tuple[str, str]]] = {one: deque() for one in ids}
        return [_script(agent, ids, inboxes) for agent in range(agents)]

    def is_acknowledged(self, ask: Ask, reply: Reply) -> bool:
        return not reply.refused and reply.structured is not None and "id" in reply.structured

    def kept(self, place: Place) -> list[str]:
        raise NotImplementedError("read through the tools; see findings")

    def findings(self, place: Place, lines: Sequence[Line], done: Burst) -> Findings:
        by_id = {_structured(written.reply)["id"]: written for written in done.written}
        agents = sorted({str(written.ask.arguments["recipient_id"]) for written in done.written})
        inboxes = [list(_listed(lines[0], {"agent_id": one, "status": "unread"})) for one in agents]
        kept = [message["id"] for inbox in inboxes for message in inbox]
        disordered = sum(len(out_of_order([message["id"] for message in inbox], by_id)) for inbox in inboxes)
        misplaced = [
            message["id"]
            for agent, inbox in zip(agents, inboxes, strict=True)
            for message in inbox
            if message["id"] in by_id and by_id[message["id"]].ask.arguments["recipient_id"] != agent
        ]
        return Findings(
            len(lost(by_id, kept)),
            len(doubled(kept)) + len(misplaced),
            disordered + sum(len(out_of_order(thread, by_id)) for thread in _threads(lines[-1], done.written)),
        )


def registered(line: Line, name: str, number: int) -> Mapping[str, Any]:
    """A new agent on that line."""
    reply = ask(line, number, "agent_register", {"name": name, "runtime": "custom"})
    if reply.refused:
        raise Stuck(f"agent_register: {reply.text}")
    return _structured(reply)


def _script(agent: int, ids: Sequence[str], inboxes: Mapping[str, deque[tuple[str, str]]]) -> Script:
    """What this agent sends: its own threads round the others, and answers to the oldest it has not answered."""
    me, number = ids[agent], 0
    while True:
        number += 1
        mark = f"a{agent:02}-n{number:05}"
        answers = None
        to = ids[(agent + 1 + number % (len(ids) - 1)) % len(ids)]
        if number % 3 < ANSWERS_OF_THREE and inboxes[me]:
            answers, to = inboxes[me].popleft()
        arguments = {"sender_id": me, "recipient_id": to, "message_type": "query", "body": f"{mark} {BODY * 2}"}
        if answers is not None:
            arguments |= {"message_type": "response", "reply_to_id": answers}
        reply = yield Ask(mark, "message_send", arguments)
        if not reply.refused:
            inboxes[to].append((_structured(reply)["id"], me))


def _threads(line: Line, written: Sequence[Written]) -> Iterator[list[str]]:
    """The ids of every thread of more than one message, as one of its two agents reads it."""
    readers: dict[str, list[str]] = {}
    for one in written:
        readers.setdefault(_structured(one.reply)["thread_id"], []).append(str(one.ask.arguments["sender_id"]))
    for thread_id, senders in readers.items():
        if len(senders) > 1:
            yield [message["id"] for message in _listed(line, {"agent_id": senders[0], "thread_id": thread_id})]


def _listed(line: Line, sought: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """All messages that fit, page by page."""
    offset = 0
    while True:
        reply = ask(line, 1, "message_list", {**sought, "limit": PAGE, "offset": offset})
        if reply.refused:
            raise Stuck(f"message_list: {reply.text}")
        page = _structured(reply)["messages"]
        yield from page
        offset += len(page)
        if len(page) < PAGE:
            return


def _structured(reply: Reply) -> dict[str, Any]:
    assert reply.structured is not None
    return reply.structured

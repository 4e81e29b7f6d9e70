"""Inboxes against a simple model: whatever is sent, answered, broadcast, read, acknowledged, archived or outlived,
every list and count says what a look at everything would."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handrail.domain.crew.message import PRIORITIES
from tests.toolsets.plan.correspondents import PostOffice

AGENTS = ("ag_1", "ag_2", "ag_3")
EVERYBODY = (*AGENTS, "human")
correspondents = st.sampled_from(EVERYBODY)
lasting = st.sampled_from([None, 50, 5000])


class Letter:
    """What the model knows of a message."""

    def __init__(self, sender: str, recipient: str, written: int, **more: Any) -> None:
        self.sender, self.recipient, self.written = sender, recipient, written
        self.thread: int = more["thread"]
        self.priority: str = more["priority"]
        self.kind: str = more["kind"]
        self.ends: int | None = more["ends"]
        self.needs_ack: bool = more["needs_ack"]
        self.read = self.acked = self.archived = False

    def status(self) -> str:
        if self.archived:
            return "archived"
        return "read" if self.read and (self.acked or not self.needs_ack) else "unread"


class MailMachine(RuleBasedStateMachine):
    """Three agents and a person write to each other while time passes."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.office = PostOffice(Path(self.folder.name))
        self.office.register("ada", "ben", "cyd")
        self.letters: dict[str, Letter] = {}
        self.threads: dict[int, str] = {}
        self.written = 0
        """How often somebody wrote: copies of one broadcast are written together."""
        self.touched: int | None = None
        """The thread in which something happened last."""

    def teardown(self) -> None:
        if hasattr(self, "office"):
            assert self.office.store.verify() == []
            self.folder.cleanup()

    def asked(self, who: str, tool: str, **arguments: Any) -> Any:
        if who == "human":
            return self.office.as_person(tool, **arguments)
        return self.office.as_agent(who, tool, **arguments)

    def wrote(self, ids: list[str], recipients: list[str], thread_id: str, **known: Any) -> None:
        thread = known.pop("thread", None)
        if thread is None:
            thread = len(self.threads)
            self.threads[thread] = thread_id
        assert self.threads[thread] == thread_id
        for one, recipient in zip(ids, recipients, strict=True):
            self.letters[one] = Letter(known["sender"], recipient, self.written, thread=thread, **_but(known))
        self.written += 1
        self.touched = thread

    @rule(
        sender=correspondents,
        recipient=correspondents,
        priority=st.sampled_from(PRIORITIES),
        kind=st.sampled_from(["task_assignment", "status_update", "query", "response", "notification"]),
        lasts=lasting,
        needs_ack=st.booleans(),
        data=st.data(),
    )
    def send(
        self,
        sender: str,
        recipient: str,
        priority: str,
        kind: str,
        lasts: int | None,
        needs_ack: bool,
        data: st.DataObject,
    ) -> None:
        own = [one for one, letter in self.letters.items() if sender in (letter.sender, letter.recipient)]
        answers = data.draw(st.sampled_from([None, *own[-5:]]))
        arguments: dict[str, Any] = {"sender_id": sender, "recipient_id": recipient, "message_type": kind, "body": "b"}
        arguments |= {"priority": priority, "requires_ack": needs_ack}
        arguments |= {"reply_to_id": answers} if answers is not None else {}
        arguments |= {"expires_in_ms": lasts} if lasts is not None else {}
        answer = self.asked(sender, "message_send", **arguments)
        known = {"sender": sender, "priority": priority, "kind": kind, "needs_ack": needs_ack, "ends": self.end(lasts)}
        thread = self.letters[answers].thread if answers is not None else None
        self.wrote([answer["id"]], [recipient], answer["thread_id"], thread=thread, **known)

    @rule(sender=correspondents, lasts=lasting, needs_ack=st.booleans())
    def broadcast(self, sender: str, lasts: int | None, needs_ack: bool) -> None:
        arguments = {"sender_id": sender, "message_type": "notification", "body": "b", "requires_ack": needs_ack}
        arguments |= {"expires_in_ms": lasts} if lasts is not None else {}
        answer = self.asked(sender, "message_broadcast", **arguments)
        recipients = [agent for agent in AGENTS if agent != sender]
        known = {"sender": sender, "priority": "normal", "kind": "notification", "needs_ack": needs_ack}
        self.wrote(answer["message_ids"], recipients, answer["thread_id"], ends=self.end(lasts), **known)

    @precondition(lambda self: self.letters)
    @rule(ack=st.booleans(), how=st.sampled_from(["get", "mark"]), data=st.data())
    def read(self, ack: bool, how: str, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.letters)))
        letter = self.letters[one]
        if how == "get":
            self.asked(letter.recipient, "message_get", id=one, ack=ack)
        else:
            self.asked(letter.recipient, "message_mark_read", message_ids=[one], ack=ack)
        letter.read, letter.acked = True, letter.acked or ack
        self.touched = letter.thread

    @precondition(lambda self: self.letters)
    @rule(data=st.data())
    def archive(self, data: st.DataObject) -> None:
        one = data.draw(st.sampled_from(sorted(self.letters)))
        self.asked(self.letters[one].recipient, "message_archive", message_ids=[one])
        self.letters[one].archived = True
        self.touched = self.letters[one].thread

    @rule(ms=st.sampled_from([-40, 1, 60, 3000]))
    def time_passes(self, ms: int) -> None:
        self.office.clock.advance(ms)

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def every_inbox_says_what_the_model_says(self) -> None:
        for who in EVERYBODY if hasattr(self, "letters") else ():
            mine = [(one, letter) for one, letter in self.letters.items() if letter.recipient == who]
            unread = [(one, letter) for one, letter in mine if letter.status() == "unread" and self.lasts(letter)]
            unread.sort(key=lambda pair: (-PRIORITIES.index(pair[1].priority), pair[1].written))
            page = self.asked(who, "message_list", agent_id=who, limit=500)
            assert [message["id"] for message in page["messages"]] == [one for one, _ in unread]
            assert page["unread_count"] == page["total"] == len(unread)
            everything = self.asked(who, "message_list", agent_id=who, status="all", limit=500)["messages"]
            assert [message["id"] for message in everything] == [one for one, _ in reversed(mine)]
            assert [message["status"] for message in everything] == [letter.status() for _, letter in reversed(mine)]
            assert all(newer["created_at"] > older["created_at"] for newer, older in itertools.pairwise(everything))
            counted = self.asked(who, "message_count_unread", agent_id=who)["by_priority"]
            priorities = [letter.priority for _, letter in unread]
            assert counted == {priority: priorities.count(priority) for priority in PRIORITIES}

    @invariant()
    def a_thread_reads_in_the_order_of_writing(self) -> None:
        touched: int | None = getattr(self, "touched", None)
        if touched is None:
            return
        together = {one: letter for one, letter in self.letters.items() if letter.thread == touched}
        for who in EVERYBODY:
            page = self.asked(who, "message_list", agent_id=who, thread_id=self.threads[touched], limit=500)
            shown = [message["id"] for message in page["messages"]]
            assert set(shown) == {one for one, letter in together.items() if _shows(letter, who)}
            assert len(shown) == len(set(shown)) == page["total"]
            written = [together[one].written for one in shown]
            assert written == sorted(written)

    def end(self, lasts: int | None) -> int | None:
        return None if lasts is None else self.office.clock.now_ms() + lasts

    def lasts(self, letter: Letter) -> bool:
        return letter.ends is None or letter.ends > self.office.clock.now_ms()


def _shows(letter: Letter, who: str) -> bool:
    return not letter.archived if letter.recipient == who else letter.sender == who


def _but(known: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in known.items() if name != "sender"}


MailMachine.TestCase.settings = settings(stateful_step_count=25)
TestMail = MailMachine.TestCase

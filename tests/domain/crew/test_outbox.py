"""Posting: how messages lie in inboxes, how they are dated, and what an agent that was away is told."""

from __future__ import annotations

import pytest

from handrail.domain.crew.message import NEVER, Message
from handrail.domain.crew.outbox import SYSTEM, Letter, losses, post, unread, unread_count
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store

ADA = Actor("ada", "test")
HELLO = Letter("notification", "hello")


class Office:
    """A store where letters are posted one by one."""

    def __init__(self) -> None:
        self.clock = FixedClock(1_000_000)
        self.store = Store(MemoryEngine(), clock=self.clock, ids=CountingIds())

    def post(self, sender: str, recipient: str, letter: Letter = HELLO, answers: Message | None = None) -> Message:
        return self.store.run(ADA, lambda unit: post(unit, sender, recipient, letter, answers=answers))

    def inbox(self, agent_id: str) -> list[Message]:
        def look(query: Query) -> list[Message]:
            return self.store.run(ADA, lambda unit: unit.select(Message, query))

        return look(unread(agent_id, self.clock.now_ms()))


@pytest.fixture
def office() -> Office:
    return Office()


def test_messages_are_counted_in_each_inbox_by_itself(office: Office) -> None:
    office.post("a", "b")
    office.post("a", "c")
    assert [office.post("c", "b").sequence, office.post("a", "c").sequence] == [2, 2]
    assert [event.kind for event in office.store.events("inbox:b")] == ["message.sent"] * 2


def test_every_message_is_dated_after_the_one_before_it_in_its_inbox(office: Office) -> None:
    dates = []
    for ms in (0, 0, -500, 1, 2000):
        office.clock.advance(ms)
        dates.append(office.post("a", "b").created_at)
    assert dates == [1_000_000, 1_000_001, 1_000_002, 1_000_003, office.clock.now_ms()]


def test_a_reply_is_dated_after_everything_in_its_thread(office: Office) -> None:
    first = office.post("a", "b")
    office.clock.advance(50)
    second = office.post("b", "a", answers=first)
    office.clock.advance(-1000)
    third = office.post("a", "b", answers=first)
    assert third.thread_id == second.thread_id == first.thread_id
    assert (third.created_at, third.reply_to_id) == (second.created_at + 1, first.id)
    assert office.post("a", "c").thread_id != first.thread_id


def test_what_is_unread_comes_by_urgency_and_what_has_expired_does_not_come(office: Office) -> None:
    office.post("a", "b", HELLO._replace(body="low", priority="low"))
    office.post("a", "b", HELLO._replace(body="soon over", expires_at=office.clock.now_ms() + 10))
    office.post("a", "b", HELLO._replace(body="urgent", priority="urgent", expires_at=NEVER))
    assert [message.body for message in office.inbox("b")] == ["urgent", "soon over", "low"]
    office.clock.advance(10)
    assert [message.body for message in office.inbox("b")] == ["urgent", "low"]
    assert office.store.run(ADA, lambda unit: unread_count(unit, "b")) == 2


def test_only_the_systems_own_word_is_a_loss(office: Office) -> None:
    told = {"event": "claim_lost", "task_id": "task_1", "fence": 2}
    office.post("a", "b", HELLO._replace(body=told))
    office.post(SYSTEM, "b", HELLO._replace(body={"event": "other"}))
    office.post(SYSTEM, "b", HELLO._replace(body="claim_lost"))
    assert office.store.run(ADA, lambda unit: losses(unit, "b")) == []
    office.post(SYSTEM, "b", HELLO._replace(body=told))
    assert office.store.run(ADA, lambda unit: losses(unit, "b")) == [{"task_id": "task_1", "fence": 2}]

"""Whose mail it is: who may look at a message and who may mark it, in every combination that matters."""

from __future__ import annotations

import pytest

from handrail.domain.crew.inbox import MailReader, check_inbox, check_sender
from handrail.domain.crew.message import Message
from handrail.domain.crew.outbox import HUMAN
from handrail.kernel.errors import NotAllowed

PERSON = MailReader(None, person=True, strict=False)
NOBODY = MailReader(None, person=False, strict=False)
STRANGER = MailReader(None, person=False, strict=True)


def agent(agent_id: str, *, strict: bool = False) -> MailReader:
    return MailReader(agent_id, person=False, strict=strict)


def message(sender: str, recipient: str) -> Message:
    return Message(
        id="msg_1",
        thread_id="thr_1",
        sender_id=sender,
        recipient_id=recipient,
        message_type="query",
        subject=None,
        body="hello",
        priority="normal",
        status="unread",
        workflow_id=None,
        task_id=None,
        reply_to_id=None,
        created_at=1,
        read_at=None,
    )


@pytest.mark.parametrize(
    ("caller", "inbox", "owns"),
    [
        (agent("a"), "a", True),
        (agent("a"), "b", False),
        (agent("a", strict=True), "a", True),
        (NOBODY, "a", True),
        (STRANGER, "a", False),
        (PERSON, "a", True),
        (MailReader(None, person=True, strict=True), "a", False),
        (PERSON, HUMAN, True),
        (MailReader(None, person=True, strict=True), HUMAN, True),
        (NOBODY, HUMAN, False),
        (agent("a"), HUMAN, False),
        (agent(HUMAN), HUMAN, False),
    ],
)
def test_an_inbox_has_one_owner(caller: MailReader, inbox: str, owns: bool) -> None:
    assert caller.owns(inbox) is owns


@pytest.mark.parametrize(
    ("caller", "sees"),
    [
        (agent("a"), True),
        (agent("b", strict=True), True),
        (agent("c"), False),
        (NOBODY, True),
        (STRANGER, False),
        (PERSON, True),
        (MailReader(None, person=True, strict=True), True),
    ],
)
def test_a_message_is_seen_by_its_two_ends_and_by_people(caller: MailReader, sees: bool) -> None:
    assert caller.sees(message("a", "b")) is sees


def test_nobody_but_a_person_speaks_for_the_human() -> None:
    check_sender(PERSON, HUMAN)
    check_sender(NOBODY, "a")
    for caller in (NOBODY, STRANGER, agent("a")):
        with pytest.raises(NotAllowed):
            check_sender(caller, HUMAN)


def test_the_persons_inbox_is_closed_to_others_only_where_identity_is_strict() -> None:
    for caller in (PERSON, NOBODY, agent("a"), MailReader(None, person=True, strict=True)):
        check_inbox(caller, HUMAN)
    for caller in (STRANGER, agent("a", strict=True)):
        check_inbox(caller, "a")
        with pytest.raises(NotAllowed):
            check_inbox(caller, HUMAN)

"""Messages as plan.md's tools have them: sent, threaded, read, acknowledged, archived, expired, and each one's own."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import (
    AgentNotFound,
    IdentityUnproven,
    InvalidParams,
    MessageNotFound,
    NotAllowed,
    RunNotFound,
    TaskNotFound,
)
from tests.toolsets.plan.correspondents import PostOffice

FIELDS = [
    "id",
    "thread_id",
    "sender_id",
    "recipient_id",
    "message_type",
    "subject",
    "body",
    "priority",
    "status",
    "workflow_id",
    "task_id",
    "reply_to_id",
    "created_at",
    "read_at",
]


@pytest.fixture
def office(tmp_path: Path) -> PostOffice:
    found = PostOffice(tmp_path)
    found.register("ada", "ben", "cyd")
    return found


# -- sending ----------------------------------------------------------------------------------------------------------


def test_a_message_has_every_field_of_the_document(office: PostOffice) -> None:
    office.send("ag_1", "ag_2", {"a": [1, None]}, subject="Now", priority="high")
    (message,) = office.call("message_list", agent_id="ag_2")["messages"]
    assert list(message) == FIELDS
    assert message["body"] == {"a": [1, None]}
    assert (message["status"], message["read_at"], message["reply_to_id"]) == ("unread", None, None)
    assert message["created_at"] == office.clock.now_ms()


def test_a_name_that_one_agent_has_reaches_it(office: PostOffice) -> None:
    message_id = office.send("ag_1", "cyd")
    assert office.call("message_get", id=message_id)["recipient_id"] == "ag_3"


def test_of_several_with_one_name_the_one_that_is_there_is_meant(office: PostOffice) -> None:
    office.clock.advance(200_000)
    (later,) = office.register("ben")
    assert office.call("message_get", id=office.send("ag_1", "ben"))["recipient_id"] == later
    office.register("ben")
    refusal = office.refusal(
        "message_send", sender_id="ag_1", recipient_id="ben", body="x", message_type="notification"
    )
    assert isinstance(refusal, AgentNotFound)
    assert "3 agents are called ben" in refusal.message
    assert {"ag_4", "ag_5"} == set(refusal.hint.removeprefix("say which by its id: ").split(", "))


def test_an_unknown_recipient_is_refused_with_those_there_are(office: PostOffice) -> None:
    refusal = office.refusal("message_send", sender_id="ag_1", recipient_id="dan", body="x", message_type="query")
    assert refusal.code == AgentNotFound.code
    assert "ag_2 (ben)" in refusal.hint
    assert "human" in refusal.hint
    assert office.refusal(
        "message_send", sender_id="dan", recipient_id="ag_1", body="x", message_type="query"
    ).code == (AgentNotFound.code)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"body": ""}, "empty"),
        ({"body": {}}, "empty"),
        ({"body": "x" * 32_001}, "32000 is the most"),
        ({"body": {"text": "x" * 32_000}}, "32000 is the most"),
        ({"priority": "asap"}, "asap"),
        ({"message_type": "chat"}, "chat"),
        ({"expires_in_ms": 0}, "expires_in_ms"),
    ],
)
def test_what_cannot_be_sent_is_refused_and_said(office: PostOffice, changed: dict[str, Any], said: str) -> None:
    arguments = {"sender_id": "ag_1", "recipient_id": "ag_2", "body": "x", "message_type": "query"} | changed
    refusal = office.refusal("message_send", **arguments)
    assert isinstance(refusal, InvalidParams)
    assert said in refusal.message + refusal.hint
    assert office.kinds("ag_2") == []


def test_a_message_about_a_task_is_about_its_workflow_too(office: PostOffice) -> None:
    workflow = office.plan({"name": "a"})
    office.send("ag_1", "ag_2", "about it", task_id="task_1")
    office.send("ag_1", "ag_2", "about all", workflow_id=workflow)
    office.send("ag_1", "ag_2", "about nothing")
    assert office.bodies("ag_2", workflow_id=workflow) == ["about it", "about all"]
    other = office.plan({"name": "b"})
    sent = {"sender_id": "ag_1", "recipient_id": "ag_2", "body": "x", "message_type": "query"}
    assert isinstance(office.refusal("message_send", **sent, task_id="task_1", workflow_id=other), InvalidParams)
    assert isinstance(office.refusal("message_send", **sent, task_id="task_9"), TaskNotFound)
    assert isinstance(office.refusal("message_send", **sent, workflow_id="wf_9"), RunNotFound)


# -- threads ----------------------------------------------------------------------------------------------------------


def test_a_thread_is_read_in_the_order_of_writing_from_both_ends(office: PostOffice) -> None:
    first = office.send("ag_1", "ag_2", "one")
    second = office.send("ag_2", "ag_1", "two", reply_to_id=first, priority="urgent")
    office.send("ag_1", "ag_2", "three", reply_to_id=second)
    office.send("ag_3", "ag_2", "elsewhere")
    thread = office.call("message_get", id=first)["thread_id"]
    for agent in ("ag_1", "ag_2"):
        page = office.call("message_list", agent_id=agent, thread_id=thread)
        assert [message["body"] for message in page["messages"]] == ["one", "two", "three"]
        assert page["total"] == 3
        assert office.bodies(agent, thread_id=thread, limit=1, offset=1) == ["two"]
    assert office.bodies("ag_3", thread_id=thread) == []


def test_a_reply_is_dated_after_what_it_answers_whatever_its_clock_says(office: PostOffice) -> None:
    first = office.send("ag_1", "ag_2", "one")
    office.clock.advance(-60_000)
    office.send("ag_2", "ag_1", "two", reply_to_id=first)
    thread = office.call("message_get", id=first)["thread_id"]
    assert office.bodies("ag_1", thread_id=thread) == ["one", "two"]


def test_what_came_after_a_date_is_never_missed_though_clocks_differ(office: PostOffice) -> None:
    office.send("ag_1", "ag_2", "one")
    seen = office.call("message_list", agent_id="ag_2")["messages"][-1]["created_at"]
    office.send("ag_1", "ag_2", "same millisecond")
    office.clock.advance(-60_000)
    office.send("ag_3", "ag_2", "a clock that is late")
    assert office.bodies("ag_2", since=seen) == ["same millisecond", "a clock that is late"]


def test_a_thread_hides_what_its_reader_archived_unless_all_is_asked_for(office: PostOffice) -> None:
    first = office.send("ag_1", "ag_2", "one")
    second = office.send("ag_2", "ag_1", "two", reply_to_id=first)
    thread = office.call("message_get", id=first)["thread_id"]
    office.call("message_archive", message_ids=[second])
    assert office.bodies("ag_1", thread_id=thread) == ["one"]
    assert office.bodies("ag_2", thread_id=thread) == ["one", "two"]
    assert office.bodies("ag_1", thread_id=thread, status="all") == ["one", "two"]
    assert office.bodies("ag_1", thread_id=thread, status="unread") == []


def test_a_reply_to_a_message_between_others_is_refused(office: PostOffice) -> None:
    first = office.send("ag_1", "ag_2", "one")
    reply = {"sender_id": "ag_3", "recipient_id": "ag_1", "body": "x", "message_type": "response"}
    assert isinstance(office.refusal("message_send", **reply, reply_to_id=first), NotAllowed)
    assert isinstance(office.refusal("message_send", **reply, reply_to_id="msg_9"), MessageNotFound)


# -- lists ------------------------------------------------------------------------------------------------------------


def test_the_most_urgent_comes_first_then_what_came_first(office: PostOffice) -> None:
    for priority in ("low", "normal", "urgent", "high", "normal", "urgent"):
        office.send("ag_1", "ag_2", priority, priority=priority)
    assert office.bodies("ag_2") == ["urgent", "urgent", "high", "normal", "normal", "low"]
    assert office.bodies("ag_2", priority=["low", "high"]) == ["high", "low"]
    assert office.bodies("ag_2", status="all")[0] == "urgent"
    counted = office.call("message_count_unread", agent_id="ag_2")
    assert counted == {"count": 6, "by_priority": {"low": 1, "normal": 2, "high": 1, "urgent": 2}}
    assert office.call("message_count_unread", agent_id="ag_2", priority=["high"]) == {
        "count": 1,
        "by_priority": {"high": 1},
    }


def test_lists_are_narrowed_by_type_and_paged(office: PostOffice) -> None:
    for number in range(5):
        office.send("ag_1", "ag_2", f"m{number}", message_type=["query", "response"][number % 2])
    assert office.bodies("ag_2", message_type=["response"]) == ["m1", "m3"]
    page = office.call("message_list", agent_id="ag_2", limit=2, offset=2)
    assert [message["body"] for message in page["messages"]] == ["m2", "m3"]
    assert (page["total"], page["unread_count"]) == (5, 5)


def test_a_list_nobody_asked_to_be_long_stays_short_and_says_what_is_left(office: PostOffice) -> None:
    for _ in range(25):
        office.send("ag_1", "ag_2", "x" * 30_000)
    page = office.call("message_list", agent_id="ag_2")
    assert 5 <= len(page["messages"]) < 20
    assert page["total"] == 25
    assert page["messages"][0]["body"].endswith("more characters; `full` shows them)")
    assert len(str(page)) < 8_000
    assert len(office.call("message_list", agent_id="ag_2", limit=25)["messages"]) == 25
    assert office.bodies("ag_2", limit=1, full=True) == ["x" * 30_000]
    office.send("ag_1", "ag_3", {"long": "y" * 1000})
    assert office.bodies("ag_3")[0]["cut"].startswith('{"long":"yyy')
    assert office.bodies("ag_3", full=True) == [{"long": "y" * 1000}]


# -- reading ----------------------------------------------------------------------------------------------------------


def test_a_message_is_read_once_and_its_sender_sees_when(office: PostOffice) -> None:
    message_id = office.send("ag_1", "ag_2")
    assert office.as_agent("ag_1", "message_get", id=message_id)["status"] == "unread"
    office.clock.advance(1000)
    assert office.as_agent("ag_2", "message_get", id=message_id, mark_read=False)["status"] == "unread"
    assert office.as_agent("ag_2", "message_get", id=message_id)["status"] == "read"
    office.clock.advance(1000)
    office.as_agent("ag_2", "message_mark_read", message_ids=[message_id])
    seen = office.as_agent("ag_1", "message_get", id=message_id)
    assert (seen["status"], seen["read_at"]) == ("read", office.clock.now_ms() - 1000)
    assert office.kinds("ag_2") == ["message.sent", "message.read"]
    assert office.bodies("ag_2") == []
    assert office.bodies("ag_2", status="read") == ["hello"]


def test_what_asks_for_an_acknowledgement_is_unread_until_it_has_one(office: PostOffice) -> None:
    message_id = office.send("ag_1", "ag_2", requires_ack=True)
    shown = office.as_agent("ag_2", "message_get", id=message_id)
    assert (shown["status"], shown["requires_ack"], shown["acked_at"]) == ("unread", True, None)
    assert shown["read_at"] == office.clock.now_ms()
    assert office.call("message_count_unread", agent_id="ag_2")["count"] == 1
    assert office.bodies("ag_2") == ["hello"]
    office.clock.advance(5)
    office.as_agent("ag_2", "message_mark_read", message_ids=[message_id], ack=True)
    seen = office.as_agent("ag_1", "message_get", id=message_id)
    assert (seen["status"], seen["acked_at"], seen["read_at"]) == (
        "read",
        office.clock.now_ms(),
        office.clock.now_ms() - 5,
    )
    assert office.bodies("ag_2") == []
    assert office.kinds("ag_2") == ["message.sent", "message.read", "message.acknowledged"]


def test_archiving_is_no_acknowledgement(office: PostOffice) -> None:
    message_id = office.send("ag_1", "ag_2", requires_ack=True)
    office.call("message_archive", message_ids=[message_id, message_id])
    seen = office.as_agent("ag_1", "message_get", id=message_id)
    assert (seen["status"], seen["read_at"], seen["acked_at"]) == ("archived", None, None)
    assert (office.bodies("ag_2"), office.bodies("ag_2", status="read")) == ([], [])
    assert office.bodies("ag_2", status="all") == ["hello"]
    assert office.kinds("ag_2") == ["message.sent", "message.archived"]


def test_what_has_expired_is_neither_delivered_nor_counted_and_is_still_there(office: PostOffice) -> None:
    message_id = office.send("ag_1", "ag_2", "soon over", expires_in_ms=1000)
    office.clock.advance(999)
    assert office.bodies("ag_2") == ["soon over"]
    office.clock.advance(1)
    page = office.call("message_list", agent_id="ag_2")
    assert (page["messages"], page["unread_count"], page["total"]) == ([], 0, 0)
    assert office.call("message_count_unread", agent_id="ag_2")["count"] == 0
    (kept,) = office.call("message_list", agent_id="ag_2", status="all")["messages"]
    assert (kept["id"], kept["expired"], kept["status"]) == (message_id, True, "unread")


def test_many_are_marked_together_or_not_at_all(office: PostOffice) -> None:
    ids = [office.send("ag_1", "ag_2", str(number)) for number in range(3)]
    assert isinstance(office.refusal("message_mark_read", message_ids=[*ids, "msg_9"]), MessageNotFound)
    assert office.call("message_count_unread", agent_id="ag_2")["count"] == 3
    office.call("message_mark_read", message_ids=ids)
    assert office.kinds("ag_2") == ["message.sent"] * 3 + ["message.read"]
    assert isinstance(office.refusal("message_mark_read", message_ids=[]), InvalidParams)


# -- whose it is ------------------------------------------------------------------------------------------------------


def test_only_the_recipient_marks_archives_and_acknowledges(office: PostOffice) -> None:
    message_id = office.send("ag_1", "ag_2")
    for other in ("ag_1", "ag_3"):
        assert isinstance(office.refused(other, "message_mark_read", message_ids=[message_id]), NotAllowed)
        assert isinstance(office.refused(other, "message_archive", message_ids=[message_id]), NotAllowed)
        assert isinstance(office.refused(other, "message_get", id=message_id, ack=True), NotAllowed)
    assert isinstance(office.refused("ag_3", "message_get", id=message_id), NotAllowed)
    assert office.kinds("ag_2") == ["message.sent"]
    office.as_agent(None, "message_get", id=message_id)
    assert office.bodies("ag_2") == []


def test_under_strict_identity_mail_is_its_agents_alone(tmp_path: Path) -> None:
    office = PostOffice(tmp_path, identity="strict")
    office.register("ada", "ben")
    sent = {"sender_id": "ag_1", "recipient_id": "ag_2", "body": "x", "message_type": "query"}
    message_id = office.as_agent("ag_1", "message_send", **sent)["id"]
    assert isinstance(office.refused("ag_2", "message_send", **sent), IdentityUnproven)
    assert isinstance(office.refused("ag_1", "message_list", agent_id="ag_2"), IdentityUnproven)
    assert isinstance(office.refused(None, "message_get", id=message_id), NotAllowed)
    assert isinstance(office.refused(None, "message_archive", message_ids=[message_id]), NotAllowed)
    assert isinstance(office.refused("ag_1", "message_list", agent_id="human"), NotAllowed)
    assert isinstance(office.refused("ag_1", "message_count_unread", agent_id="human"), NotAllowed)
    assert office.as_agent("ag_2", "message_get", id=message_id)["status"] == "read"
    to_person = office.as_agent("ag_1", "message_send", **{**sent, "recipient_id": "human"})["id"]
    assert office.as_person("message_list", agent_id="human")["messages"][0]["id"] == to_person


def test_only_a_person_writes_as_the_human_and_reads_their_mail(office: PostOffice) -> None:
    sent = {"sender_id": "human", "recipient_id": "ag_1", "body": "x", "message_type": "notification"}
    broadcast = {"sender_id": "human", "body": "x", "message_type": "notification"}
    for agent in (None, "ag_1"):
        assert isinstance(office.refused(agent, "message_send", **sent), NotAllowed)
        assert isinstance(office.refused(agent, "message_broadcast", **broadcast), NotAllowed)
    question = office.as_person("message_send", **sent)["id"]
    assert office.as_person("message_broadcast", **broadcast)["sent_count"] == 3
    answer = office.send("ag_1", "human", "yes", reply_to_id=question)
    assert isinstance(office.refused(None, "message_mark_read", message_ids=[answer]), NotAllowed)
    assert office.as_agent(None, "message_get", id=answer)["status"] == "unread"
    assert office.as_person("message_get", id=answer)["status"] == "read"


# -- broadcasts -------------------------------------------------------------------------------------------------------


def broadcast(office: PostOffice, sender: str = "ag_1", **wanted: Any) -> list[str]:
    """Who gets it."""
    answer = office.call(
        "message_broadcast", sender_id=sender, message_type="notification", body="all", recipient_filter=wanted
    )
    assert answer["sent_count"] == len(answer["message_ids"])
    copies = [office.call("message_get", id=one, mark_read=False) for one in answer["message_ids"]]
    assert {copy["thread_id"] for copy in copies} == ({answer["thread_id"]} if copies else set())
    return [copy["recipient_id"] for copy in copies]


def test_a_broadcast_reaches_who_is_there_and_fits_and_never_its_sender(office: PostOffice) -> None:
    office.register("lead", role="coordinator", runtime="claude_code")
    office.plan({"name": "a"})
    office.call("agent_update", id="ag_3", status="busy")
    office.call("task_claim", agent_id="ag_2", task_id="task_1")
    assert broadcast(office) == ["ag_2", "ag_3", "ag_4"]
    assert broadcast(office, role="coordinator") == ["ag_4"]
    assert broadcast(office, runtime="codex") == ["ag_2", "ag_3"]
    assert broadcast(office, status="busy") == ["ag_2", "ag_3"]
    assert broadcast(office, status="online") == ["ag_4"]
    office.call("agent_unregister", id="ag_3")
    assert broadcast(office) == ["ag_2", "ag_4"]
    office.clock.advance(200_000)
    assert broadcast(office) == []


def test_a_reply_to_a_broadcast_is_between_two(office: PostOffice) -> None:
    sent = office.call("message_broadcast", sender_id="ag_1", message_type="notification", body="who?")
    first, second = sent["message_ids"]
    office.send("ag_2", "ag_1", "me", reply_to_id=first)
    assert office.bodies("ag_1", thread_id=sent["thread_id"]) == ["who?", "who?", "me"]
    assert office.bodies("ag_2", thread_id=sent["thread_id"]) == ["who?", "me"]
    assert office.bodies("ag_3", thread_id=sent["thread_id"]) == ["who?"]
    assert isinstance(office.refused("ag_2", "message_get", id=second), NotAllowed)


# -- without polling --------------------------------------------------------------------------------------------------


def test_other_tools_tell_how_much_is_unread(office: PostOffice) -> None:
    office.send("ag_1", "ag_2")
    assert office.as_agent("ag_2", "agent_get", id="ag_2")["unread_messages"] == 1
    assert "unread_messages" not in office.as_agent("ag_1", "agent_get", id="ag_1")
    assert "unread_messages" not in office.as_agent("ag_2", "message_list", agent_id="ag_2")


def test_a_waiting_list_is_answered_by_what_arrives(office: PostOffice) -> None:
    answers: list[Any] = []
    waiting = threading.Thread(
        target=lambda: answers.append(office.call("message_list", agent_id="ag_2", wait_ms=25_000))
    )
    waiting.start()
    office.send("ag_1", "ag_3", "not for ag_2")
    office.send("ag_1", "ag_2", "at last")
    waiting.join(20)
    assert not waiting.is_alive()
    assert [message["body"] for message in answers[0]["messages"]] == ["at last"]
    assert office.kinds("ag_2") == ["message.sent"]


def test_a_wait_is_answered_at_once_where_something_is_there_and_with_nothing_at_its_end(office: PostOffice) -> None:
    assert office.call("message_list", agent_id="ag_2", wait_ms=1)["messages"] == []
    office.send("ag_1", "ag_2")
    assert office.bodies("ag_2", wait_ms=25_000) == ["hello"]
    assert isinstance(office.refusal("message_list", agent_id="ag_2", wait_ms=25_001), InvalidParams)

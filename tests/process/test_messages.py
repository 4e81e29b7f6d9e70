"""Messages between real processes: a wait in one is ended by a send in another, subscribers hear of what others write,
and of what many send at once nothing is lost or out of order; on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import itertools
import queue
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.protocol.revisions import META_SUBSCRIPTION
from tests.process.http_peer import Peer, handrail_http
from tests.process.peer import DEADLINE_S, handrail_serve
from tests.process.served import META, UPDATED, Served


@pytest.fixture
def serve(store_options: tuple[str, ...], tmp_path: Path) -> Iterator[Callable[[], Served]]:
    """Starts processes on one store."""
    with contextlib.ExitStack() as stack:
        options = ("--toolsets", "agent,message", "--set", "durable=false", *store_options)
        yield lambda: Served(stack.enter_context(handrail_serve(tmp_path, *options)))


def test_a_wait_in_one_process_is_answered_by_a_send_in_another(serve: Callable[[], Served]) -> None:
    here, there = serve(), serve()
    ada, ben = here.register("ada"), there.register("ben")
    waiting = there.begin("tools/call", {"name": "message_list", "arguments": {"agent_id": ben, "wait_ms": 25_000}})
    assert there.call("agent_get", id=ben)["status"] == "online", "a waiting call holds up nobody"
    here.send(ada, ben, "now")
    page = there.answer(waiting)
    assert [message["body"] for message in page["messages"]] == ["now"]
    assert here.call("agent_get", id=ada).get("unread_messages") is None
    there.send(ben, ada, "heard")
    assert here.call("agent_get", id=ada)["unread_messages"] == 1


def test_subscribers_of_both_eras_hear_what_another_process_sends(serve: Callable[[], Served]) -> None:
    here, there = serve(), serve()
    ada, ben = here.register("ada"), there.register("ben")
    uri = f"handrail://inbox/{ben}"
    assert there.ask("resources/subscribe", uri=uri) == {}
    here.send(ada, ben, "one")
    assert there.heard.get(timeout=DEADLINE_S)["params"] == {"uri": uri}
    assert there.ask("resources/unsubscribe", uri=uri) == {}
    stream = there.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": [uri]}, "_meta": META})
    assert there.heard.get(timeout=DEADLINE_S)["params"]["notifications"] == {"resourceSubscriptions": [uri]}
    here.send(ada, ben, "two")
    told = there.heard.get(timeout=DEADLINE_S)
    assert (told["method"], told["params"]) == (UPDATED, {"uri": uri, "_meta": {META_SUBSCRIPTION: stream}})
    (content,) = there.ask("resources/read", uri=uri)["contents"]
    assert [message["body"] for message in msgspec.json.decode(content["text"])["messages"]] == ["one", "two"]


def test_a_server_with_subscribers_ends_with_its_input(tmp_path: Path) -> None:
    with handrail_serve(tmp_path, "--toolsets", "agent,message") as process:
        process.initialize()
        assert process.ask("resources/subscribe", {"uri": "handrail://inbox/human"})["result"] == {}
        process.end_input()
        assert process.wait() == 0
        assert process.errors() == ""


def test_subscribers_over_http_hear_what_a_process_on_a_pipe_sends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))  # both are one user's
    options = ("--toolsets", "agent,message")
    with handrail_http(tmp_path, *options) as server, Peer(server.url, "T") as peer:
        given: dict[str, Any] = {"name": "agent_register", "arguments": {"name": "ben", "runtime": "codex"}}
        registered = peer.stateless("tools/call", 1, **given).answer()["result"]
        ben = str(registered["structuredContent"]["id"])
        uri = f"handrail://inbox/{ben}"
        session = peer.session()
        assert session.ask("resources/subscribe", uri=uri).answer()["result"] == {}
        listening = peer.stateless("subscriptions/listen", "L", notifications={"resourceSubscriptions": [uri]})
        assert listening.message()["params"]["notifications"] == {"resourceSubscriptions": [uri]}
        with handrail_serve(tmp_path, *options) as process:
            line = Served(process)
            line.send(line.register("ada"), ben, "from elsewhere")
            assert listening.message()["params"]["uri"] == uri
            with session.standing() as standing:
                assert standing.message()["params"] == {"uri": uri}
        listening.close()
        assert "Traceback" not in server.end()


PROCESSES, SENDERS, EACH = 5, 30, 6


def test_of_what_thirty_send_at_once_nothing_is_lost_and_order_is_kept(serve: Callable[[], Served]) -> None:
    """Each answers in one thread that all share, and writes to its neighbour in a thread of their own."""
    lines = [serve() for _ in range(PROCESSES)]
    lead = lines[0].register("lead")
    senders = [lines[number % PROCESSES].register(f"sender {number}") for number in range(SENDERS)]
    call = lines[0].call("message_broadcast", sender_id=lead, message_type="notification", body="report")
    assert call["sent_count"] == SENDERS
    copies = {me: lines[0].call("message_list", agent_id=me)["messages"][0]["id"] for me in senders}
    assert set(copies.values()) == set(call["message_ids"])
    sent: queue.Queue[str] = queue.Queue()

    def work(number: int) -> None:
        line, me, neighbour = lines[number % PROCESSES], senders[number], senders[(number + 1) % SENDERS]
        before: dict[str, str] = {}
        for count in range(EACH):
            sent.put(line.send(me, lead, {"from": me, "n": count}, reply_to_id=copies[me]))
            said = line.send(me, neighbour, {"from": me, "n": count}, **before)
            before = {"reply_to_id": said}
            sent.put(said)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(SENDERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * DEADLINE_S)
    acknowledged = [sent.get_nowait() for _ in range(sent.qsize())]
    assert len(acknowledged) == 2 * SENDERS * EACH, "every send was answered"
    arrived: list[str] = []
    for owner in (lead, *senders):
        inbox = lines[1].call("message_list", agent_id=owner, status="all", limit=500, full=True)["messages"][::-1]
        reports = [message for message in inbox if isinstance(message["body"], dict)]
        arrived += [message["id"] for message in reports]
        assert _in_order(reports)
        assert all(newer["created_at"] > older["created_at"] for older, newer in itertools.pairwise(inbox))
    assert Counter(arrived) == Counter(acknowledged)
    shared = lines[2].call("message_list", agent_id=lead, thread_id=call["thread_id"], limit=500)["messages"]
    reports = [message for message in shared if message["sender_id"] != lead]
    assert len(reports) == SENDERS * EACH
    assert _in_order(reports)


def _in_order(messages: list[dict[str, Any]]) -> bool:
    """True when what each sender wrote stands in the order it was written, whole."""
    by_sender: dict[str, list[int]] = defaultdict(list)
    for message in messages:
        assert message["body"]["from"] == message["sender_id"]
        by_sender[message["sender_id"]].append(message["body"]["n"])
    return all(found == list(range(EACH)) for found in by_sender.values())

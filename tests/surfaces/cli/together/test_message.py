"""`handrail message`: a person reads what agents wrote, answers, and waits; and what `handrail status` says of it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.surfaces.cli.journalled import Project

PATIENCE_S = 30.0


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project", is_git=False)


def crew(project: Project, *names: str) -> None:
    for name in names or ("ada", "ben"):
        project.tool("agent_register", after=0, name=name, runtime="codex")


def write(project: Project, body: Any = "Shall I go on?", sender: str = "ag_1", **more: Any) -> str:
    given = {"sender_id": sender, "recipient_id": "human", "message_type": "query", "body": body, **more}
    return str(project.tool("message_send", **given)["id"])


def test_an_empty_inbox_says_so_and_makes_no_store(project: Project) -> None:
    assert project.shown("message") == 'Nothing to read. Agents write to you with message_send to "human".\n'
    assert project.json("message") == {"messages": [], "unread_count": 0, "total": 0}
    assert not (project.top / ".handrail").exists()


def test_unread_messages_come_thread_by_thread_the_newest_first(project: Project) -> None:
    crew(project)
    first = write(project, "Which key?", subject="The key")
    write(project, {"times": 5}, "ag_2", priority="urgent", requires_ack=True)
    write(project, "Found it", reply_to_id=first)
    text = project.shown("message")
    places = [text.index(part) for part in ("The key", "Found it", '{"times":5}')]
    assert places == sorted(places)
    assert "ada (ag_1), " in text
    assert ", urgent, to be acknowledged" in text
    assert [one["id"] for one in project.json("message")["messages"]] == ["msg_2", "msg_1", "msg_3"]
    assert project.shown("message", "list") == text


def test_reading_shows_it_whole_and_counts(project: Project) -> None:
    crew(project)
    write(project, "x" * 3000, subject="Long", task_id=None)
    text = project.shown("message", "read", "msg_1")
    assert text.count("x") >= 3000
    assert "ada (ag_1) to you, " in text
    assert "Answer: handrail message send ag_1 TEXT --reply-to msg_1" in text
    assert project.json("message")["unread_count"] == 0
    assert project.json("message", "read", "msg_1")["status"] == "read"


def test_what_asks_for_it_is_unread_until_it_is_acknowledged(project: Project) -> None:
    crew(project)
    write(project, {"a": ["b"]}, requires_ack=True)
    text = project.shown("message", "read", "msg_1")
    assert "handrail message read msg_1 --ack" in text
    assert '    "b"' in text
    assert "read, not acknowledged" in text
    assert project.json("message")["unread_count"] == 1
    assert project.json("message", "read", "msg_1", "--ack")["acked_at"] is not None
    assert project.json("message")["unread_count"] == 0
    assert "acknowledged" in project.shown("message", "read", "msg_1")


def test_a_person_writes_to_an_agent_by_id_beginning_or_name(project: Project) -> None:
    crew(project, "ada", "ben", "a long name")
    for agent, wanted in (("ag_1", "ag_1"), ("ben", "ag_2"), ("a long name", "ag_3")):
        sent = project.json("message", "send", agent, "Stop, please", "--priority", "urgent", "--ack")
        assert sent["recipient_id"] == wanted
        assert set(sent) == {"recipient_id", "id", "thread_id"}
    (message,) = project.tool("message_list", agent_id="ag_2")["messages"]
    assert (message["sender_id"], message["body"], message["priority"]) == ("human", "Stop, please", "urgent")
    assert (message["message_type"], message["requires_ack"]) == ("notification", True)
    assert "sent to ada (ag_1): " in project.shown("message", "send", "ada", "hello", "--subject", "Hi")
    event = project.json("log")[-1]
    assert (event["kind"], event["actor"], event["channel"]) == ("message.sent", "ann", "cli")


def test_words_need_no_quotes(project: Project) -> None:
    crew(project, "ada")
    project.shown("message", "send", "ada", "Chars", "please", "--ack")
    (message,) = project.tool("message_list", agent_id="ag_1")["messages"]
    assert (message["body"], message["requires_ack"]) == ("Chars please", True)


def test_who_mistypes_a_name_is_asked_whether_another_was_meant(project: Project) -> None:
    crew(project, "Ada")
    assert "there is no agent ada; did you mean Ada?" in project.refused("message", "send", "ada", "hello")


def test_an_empty_message_is_refused_with_the_command_that_sends_one(project: Project) -> None:
    crew(project, "Ada")
    said = project.refused("message", "send", "Ada", " ", code=2)
    assert "the message is empty" in said
    assert 'handrail message send Ada "…"' in said


def test_who_writes_to_nobody_learns_who_is_there(project: Project) -> None:
    assert "no agent has come here yet" in project.refused("message", "send", "ada", "hello")
    crew(project, "ben")
    refused = project.refused("message", "send", "ada", "hello")
    assert "`handrail agents` lists them; newest: ben" in refused
    assert "agent_register" not in refused


def test_an_answer_joins_the_thread_and_the_thread_is_shown_in_order(project: Project) -> None:
    crew(project)
    write(project, "Shall I?", subject="Deleting")
    answer = project.json("message", "send", "ada", "No", "--reply-to", "msg_1")
    assert answer["thread_id"] == "thr_1"
    for named in ("thr_1", "msg_1", answer["id"], answer["id"][:-4]):
        thread = project.json("message", "thread", named)
        assert [one["body"] for one in thread["messages"]] == ["Shall I?", "No"]
    text = project.shown("message", "thread", "msg_1")
    assert text.index("ada (ag_1) to you") < text.index("you to ada (ag_1)")
    assert "response" in text
    assert project.tool("message_get", id=answer["id"])["reply_to_id"] == "msg_1"


def test_a_person_looks_at_agents_mail_without_reading_it_for_them(project: Project) -> None:
    crew(project)
    project.tool("message_send", sender_id="ag_1", recipient_id="ag_2", message_type="query", body="Between us")
    text = project.shown("message", "read", "msg_1")
    assert "ada (ag_1) to ben (ag_2)" in text
    assert "Answer" not in text
    assert project.tool("message_count_unread", agent_id="ag_2")["count"] == 1


def test_what_is_meant_must_be_plain(project: Project) -> None:
    crew(project)
    assert "there is no message msg_9" in project.refused("message", "read", "msg_9")
    assert "there is no message x" in project.refused("message", "thread", "x")
    write(project)
    write(project)
    assert "could mean several messages" in project.refused("message", "read", "msg_")
    assert "AGENT_NOT_FOUND" in project.refused("message", "send", "dan", "hello")
    assert "AGENT_NOT_FOUND" in project.refused("message", "send", "ag_", "hello")
    assert "the message is empty" in project.refused("message", "send", "ada", "", code=2)
    assert "there is no message msg_9" in project.refused("message", "send", "ada", "hello", "--reply-to", "msg_9")
    assert "there is no command message raed; did you mean read?" in project.refused("message", "raed", code=2)
    assert "Usage: handrail message" in project.run("message", "--help").output


def test_no_message_moves_the_cursor(project: Project) -> None:
    crew(project, "e\x1b[31mvil")
    write(project, "a\x1b[2Jb\u202ec", subject="s\x9bx")
    write(project, {"k\x1b": "\u2028v\x85"})
    for argv in (("message",), ("message", "read", "msg_1"), ("message", "thread", "msg_2")):
        text = project.shown(*argv)
        assert all(letter.isprintable() or letter == "\n" for letter in text)


def test_lines_fit_the_terminal(project: Project) -> None:
    crew(project, "n" * 100)
    write(project, "word " * 100, subject="s" * 200, priority="high")
    for argv in (("message",), ("message", "read", "msg_1"), ("message", "thread", "msg_1")):
        assert all(len(line) <= 60 for line in project.shown(*argv, width=60).splitlines())


def test_status_names_unread_messages_and_is_silent_without(project: Project) -> None:
    crew(project)
    assert "unread" not in project.shown("status")
    write(project)
    assert "\n1 unread message: `handrail message`\n" in project.shown("status")
    write(project)
    assert "\n2 unread messages: `handrail message`\n" in project.shown("status")
    assert project.json("status")["unread_messages"] == 2


def test_waiting_ends_at_once_where_something_is_there(project: Project) -> None:
    crew(project)
    write(project, subject="Here")
    assert "Here" in project.shown("message", "wait")
    assert project.json("message", "wait")["messages"][0]["subject"] == "Here"


def waiting(project: Project, *options: str) -> subprocess.Popen[str]:
    environ = {**os.environ, "HOME": str(project.top.parent / "home")}
    return subprocess.Popen(
        [sys.executable, "-m", "handrail", "message", "wait", "--root", str(project.top), *options],
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_waiting_ends_with_what_arrives(project: Project) -> None:
    crew(project)
    process = waiting(project, "--json")
    write(project, "At last")
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, err) == (0, "")
    assert msgspec.json.decode(out)["messages"][0]["body"] == "At last"


def test_an_interrupted_wait_ends_without_a_trace(project: Project) -> None:
    crew(project)
    process = waiting(project)
    begun = threading.Event()
    _when_it_reads_the_store(process, begun)
    assert begun.wait(PATIENCE_S)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, out, err) == (130, "", "\nStopped.\n")


def _when_it_reads_the_store(process: subprocess.Popen[str], begun: threading.Event) -> None:
    """Sets the event once the process has opened the store's file: from then on it waits or is about to."""

    def is_open() -> bool:
        with contextlib.suppress(OSError):  # a descriptor that was closed meanwhile
            files = Path(f"/proc/{process.pid}/fd").iterdir()
            return any(one.readlink().name == "handrail.db-shm" for one in files)
        return False

    def look() -> None:
        while process.poll() is None and not is_open():
            begun.wait(0.02)
        begun.set()

    threading.Thread(target=look, daemon=True).start()

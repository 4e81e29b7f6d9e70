"""Calls of real processes that follow, cancel and repeat each other; on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.peer import DEADLINE_S, ServerProcess, handrail_serve
from tests.process.served import Served

TOOLSETS = "workflow,task,agent,message"
FLAGS = ("--enable-events-bus", "--enable-cancellation", "--enable-idempotency")
NEW: dict[str, Any] = {"name": "Work", "source_type": "prompt", "source_content": "Do it."}


class Line(Served):
    """A process with its handle."""

    def __init__(self, process: ServerProcess) -> None:
        super().__init__(process)
        self.process = process

    def refusal(self, request_id: int) -> dict[str, Any]:
        result = self.reply(request_id)["result"]
        assert result.get("isError"), result
        error: dict[str, Any] = result["structuredContent"]["error"]
        return error

    def poll(self, op_id: str, **wanted: Any) -> int:
        """A long poll that is under way once this is back."""
        after = self.call("logs_tail", stream="server", limit=1)["next_seq"]
        given = {"from_seq": after, "cats": ["gate"], "wait_ms": 25_000, "op_id": op_id, **wanted}
        request_id = self.begin("tools/call", {"name": "events_subscribe", "arguments": given})
        begun = self.call("events_subscribe", from_seq=after, cats=["op"], wait_ms=25_000)
        assert begun["events"][0]["opId"] == op_id
        return request_id


@pytest.fixture
def serve(store_options: tuple[str, ...], tmp_path: Path) -> Iterator[Callable[[], Line]]:
    """Starts processes on one store."""
    with contextlib.ExitStack() as stack:
        options = ("--toolsets", TOOLSETS, *FLAGS, "--set", "durable=false", *store_options)
        yield lambda: Line(stack.enter_context(handrail_serve(tmp_path, *options)))


def test_a_subscriber_hears_what_another_process_writes(serve: Callable[[], Line]) -> None:
    here, there = serve(), serve()
    there.call("workflow_create", **NEW)
    after = there.call("logs_tail", stream="server", limit=1)["next_seq"]
    wanted = {"from_seq": after, "cats": ["child"], "wait_ms": 25_000}
    waiting = there.begin("tools/call", {"name": "events_subscribe", "arguments": wanted})
    here.call("workflow_create", **NEW)
    ada = here.register("ada")
    page = there.answer(waiting)
    assert [(event["kind"], event["childId"]) for event in page["events"]] == [("AGENT.REGISTERED", ada)]
    assert page["next_seq"] == page["events"][-1]["seq"] > after


def test_a_long_poll_is_cancelled_from_another_process(serve: Callable[[], Line]) -> None:
    here, there = serve(), serve()
    waiting = there.poll("poll 1")
    outcome = here.call("op_cancel", op_id="poll 1", reason="enough")
    assert (outcome["outcome"], outcome["reason"]) == ("requested", "enough")
    refused = there.refusal(waiting)
    assert (refused["code"], refused["details"]["reason"]) == ("CANCELLED", "enough")
    assert here.call("op_cancel", op_id="poll 1")["outcome"] == "already_cancelled"


def test_a_cancelled_run_ends_the_calls_about_it_wherever_they_run(serve: Callable[[], Line]) -> None:
    here, there = serve(), serve()
    run_id = here.call("workflow_create", **NEW)["id"]
    waiting = there.poll("watch", run_id=run_id)
    outcome = here.call("plan_cancel", run_id=run_id)
    assert outcome["operations"] == [{"op_id": "watch", "outcome": "requested"}]
    assert there.refusal(waiting)["code"] == "CANCELLED"
    assert there.call("workflow_get", id=run_id)["status"] == "abandoned"


def test_a_call_of_a_process_that_was_killed_is_done(serve: Callable[[], Line]) -> None:
    here, there = serve(), serve()
    there.poll("poll 1")
    there.process.process.kill()
    there.process.process.wait(DEADLINE_S)
    assert here.call("op_cancel", op_id="poll 1")["outcome"] == "already_done"


KEYS, AT_ONCE = 12, 3


def test_what_two_processes_repeat_at_once_is_done_once(serve: Callable[[], Line]) -> None:
    lines = [serve(), serve()]
    keys = [f"key {number}" for number in range(KEYS)]
    answers: dict[str, list[dict[str, Any]]] = {key: [] for key in keys}
    together = threading.Barrier(len(lines) * AT_ONCE)

    def work(line: Line, turn: int) -> None:
        together.wait(DEADLINE_S)
        for key in keys[turn:] + keys[:turn]:
            answers[key].append(line.call("workflow_create", **{**NEW, "name": key}, idempotency_key=key))

    threads = [threading.Thread(target=work, args=(line, turn)) for line in lines for turn in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * DEADLINE_S)
    for key, given in answers.items():
        assert len(given) == len(threads), key
        assert len({answer["id"] for answer in given}) == 1
        assert [answer.get("idempotent", False) for answer in given].count(False) == 1
    assert lines[0].call("workflow_list", limit=200)["total"] == KEYS


def test_a_key_outlives_its_process(serve: Callable[[], Line]) -> None:
    first = serve()
    made = first.call("workflow_create", **NEW, idempotency_key="once")
    first.process.process.kill()
    first.process.process.wait(DEADLINE_S)
    second = serve()
    assert second.call("workflow_create", **NEW, idempotencyKey="once") == {**made, "idempotent": True}
    other = second.begin(
        "tools/call", {"name": "workflow_create", "arguments": {**NEW, "name": "Other", "idempotency_key": "once"}}
    )
    assert second.refusal(other)["code"] == "IDEMPOTENCY_CONFLICT"

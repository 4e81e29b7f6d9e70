"""Addresses between real processes: what one writes, a subscriber or a watching call of another hears, in both eras, on
SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.protocol.revisions import META_SUBSCRIPTION
from tests.process.peer import DEADLINE_S, handrail_serve
from tests.process.served import META, UPDATED, Served

PLAN = {"summary": "s", "approach": "a", "tasks": [{"name": "wrap", "description": "", "sequence": 1}]}


@pytest.fixture
def serve(store_options: tuple[str, ...], tmp_path: Path) -> Iterator[Callable[[], Served]]:
    """Starts processes on one store."""
    with contextlib.ExitStack() as stack:
        options = ("--toolsets", "workflow,task,agent", "--enable-resources", "--set", "durable=false", *store_options)
        yield lambda: Served(stack.enter_context(handrail_serve(tmp_path, *options)))


def planned(line: Served) -> tuple[str, str]:
    """A workflow and its task."""
    workflow_id = line.call("workflow_create", name="w", source_type="prompt", source_content="x")["id"]
    line.call("workflow_set_plan", id=workflow_id, plan=PLAN)
    (node,) = read(line, f"sc://graphs/{workflow_id}")["graph"]["nodes"]
    return workflow_id, node["id"]


def read(line: Served, uri: str, **more: Any) -> Any:
    (content,) = line.ask("resources/read", uri=uri, **more)["contents"]
    return msgspec.json.decode(content["text"])


def test_subscribers_of_both_eras_hear_what_another_process_does(serve: Callable[[], Served]) -> None:
    here, there = serve(), serve()
    workflow_id, task_id = planned(here)
    uri = f"sc://graphs/{workflow_id}"
    assert there.ask("resources/subscribe", uri=uri) == {}
    here.call("task_update_status", id=task_id, status="in_progress")
    assert there.heard.get(timeout=DEADLINE_S)["params"] == {"uri": uri}
    assert read(there, uri)["graph"]["nodes"][0]["attributes"]["status"] == "in_progress"
    assert there.ask("resources/unsubscribe", uri=uri) == {}

    listened = [f"sc://runs/{workflow_id}/events", uri]
    stream = there.begin("subscriptions/listen", {"notifications": {"resourceSubscriptions": listened}, "_meta": META})
    assert there.heard.get(timeout=DEADLINE_S)["params"]["notifications"]["resourceSubscriptions"] == sorted(listened)
    here.call("task_update_status", id=task_id, status="paused")
    told = [there.heard.get(timeout=DEADLINE_S) for _ in range(2)]
    assert {(one["method"], one["params"]["_meta"][META_SUBSCRIPTION]) for one in told} == {(UPDATED, stream)}
    assert sorted(one["params"]["uri"] for one in told) == sorted(listened)
    assert read(there, uri, _meta=META)["graph"]["nodes"][0]["attributes"]["status"] == "paused"


def test_a_watch_in_one_process_is_answered_by_a_write_in_another(serve: Callable[[], Served]) -> None:
    here, there = serve(), serve()
    workflow_id, task_id = planned(here)
    uri = f"sc://runs/{workflow_id}/events"
    seen = there.call("resources_watch", uri=uri)
    assert [event["seq"] for event in seen["events"]] == [1, 2]
    arguments = {"uri": uri, "from_seq": seen["next_seq"], "wait_ms": 25_000}
    waiting = there.begin("tools/call", {"name": "resources_watch", "arguments": arguments})
    assert there.call("resources_list", prefix=uri)["items"][0]["uri"] == uri, "a waiting call holds up nobody"
    here.call("task_update_status", id=task_id, status="in_progress")
    (event,) = there.answer(waiting)["events"]
    assert (event["seq"], event["kind"], event["jobId"]) == (3, "task.in_progress", task_id)


def test_a_version_is_the_same_in_every_process_and_after_all_that_follows(serve: Callable[[], Served]) -> None:
    here, there = serve(), serve()
    workflow_id, task_id = planned(here)
    uri = f"sc://graphs/{workflow_id}@v1"
    first = read(there, uri)
    here.call("task_update_status", id=task_id, status="in_progress")
    here.call("workflow_add_tasks", id=workflow_id, tasks=[{"name": "more", "description": "", "sequence": 2}])
    here.call("task_update_status", id=task_id, status="completed", outcome="done")
    assert read(there, uri) == read(here, uri) == first
    assert [node["label"] for node in read(there, f"sc://graphs/{workflow_id}@v2")["graph"]["nodes"]] == [
        "wrap",
        "more",
    ]

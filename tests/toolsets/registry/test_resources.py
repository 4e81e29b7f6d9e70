"""The tools of `sc://` addresses: what is listed can be read and watched, everything once and in order, and what is not
shown is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.registry.addresses import parse
from handrail.domain.registry.reader import AddressChanges, Most
from handrail.domain.registry.reader import watch as look_at
from handrail.domain.work.workflow import Workflow
from handrail.store.unit import Unit
from handrail.toolsets.registry import resources
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.addressed import Addressed

AB = ({"name": "a"}, {"name": "b", "depends_on": ["a"]})
EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> Addressed:
    return Addressed(tmp_path)


def busy(desk: Addressed, workflow_id: str, events: int) -> None:
    """So many more events of a workflow, none of which changes its plan."""
    for number in range(events):
        desk.call("workflow_set_parallelism", id=workflow_id, max_parallel_tasks=1 + number % 2)


def walked(desk: Addressed, uri: str, **more: Any) -> list[int]:
    """The numbers of all events, as registry.md's loop finds them."""
    found: list[int] = []
    after = 0
    while (page := desk.watch(uri, after, **more))["events"]:
        found += [event["seq"] for event in page["events"]]
        assert page["next_seq"] == found[-1]
        after = page["next_seq"]
    assert page["next_seq"] == after
    return found


# -- graphs -----------------------------------------------------------------------------------------------------------


def test_a_plan_is_a_graph(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB, {"name": "c", "parent": "b"})
    found = desk.read(f"sc://graphs/{workflow_id}")
    assert (found["graphId"], found["version"], found["committedAt"]) == (workflow_id, 1, desk.clock.now_ms())
    graph = found["graph"]
    assert (graph["name"], graph["graphId"], graph["graphVersion"]) == ("Work", workflow_id, 1)
    nodes = [(node["id"], node["label"]) for node in graph["nodes"]]
    assert nodes == [("task_1", "a"), ("task_2", "b"), ("task_3", "c")]
    assert {"from": "task_1", "to": "task_2", "attributes": {}} in graph["edges"]
    assert {"from": "task_2", "to": "task_3", "label": "part_of", "attributes": {}} in graph["edges"]
    for attributes in [graph["metadata"], *(one["attributes"] for one in (*graph["nodes"], *graph["edges"]))]:
        assert all(isinstance(value, str | int | float | bool) for value in attributes.values())


def test_a_workflow_without_a_plan_is_an_empty_graph(desk: Addressed) -> None:
    workflow_id = desk.call("workflow_create", name="w", source_type="prompt", source_content="x")["id"]
    found = desk.read(f"sc://graphs/{workflow_id}")
    assert (found["version"], found["committedAt"]) == (0, None)
    assert (found["graph"]["nodes"], found["graph"]["edges"]) == ([], [])
    assert desk.uris() == [f"sc://graphs/{workflow_id}", f"sc://runs/{workflow_id}/events"]
    assert "next change makes a version" in desk.refused("resources_read", uri=f"sc://graphs/{workflow_id}@v1").hint


def test_a_version_stays_as_it_is_whatever_comes_after(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    first = desk.read(f"sc://graphs/{workflow_id}@v1")
    assert first == desk.read(f"sc://graphs/{workflow_id}")
    desk.clock.advance(1000)
    desk.move("task_1", "in_progress")
    moved = desk.read(f"sc://graphs/{workflow_id}")
    assert moved["version"] == 1, "a task that moves makes no version"
    assert moved["graph"] != first["graph"]
    desk.replan(workflow_id, {"name": "b", "priority": 5}, {"name": "c", "depends_on": ["a"]})
    second = desk.read(f"sc://graphs/{workflow_id}@v2")
    assert second == desk.read(f"sc://graphs/{workflow_id}")
    assert second["committedAt"] == first["committedAt"] + 1000
    desk.move("task_1", "completed")
    desk.call("workflow_add_tasks", id=workflow_id, tasks=[{"name": "d", "description": "", "sequence": 9}])
    for task in ("task_2", "task_3", "task_4"):
        desk.move(task, "in_progress", "completed")
    desk.call("workflow_update_status", id=workflow_id, status="completed")
    assert desk.read(f"sc://graphs/{workflow_id}@v1") == first
    assert desk.read(f"sc://graphs/{workflow_id}@v2") == second
    assert desk.read(f"sc://graphs/{workflow_id}")["version"] == 3


def test_a_change_of_a_plan_is_a_committed_transaction(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    desk.clock.advance(5)
    desk.move("task_1", "in_progress")
    before = desk.read(f"sc://graphs/{workflow_id}")["graph"]
    desk.replan(workflow_id, {"name": "c"})
    after = desk.read(f"sc://graphs/{workflow_id}")["graph"]
    now = desk.clock.now_ms()
    assert desk.read(f"sc://snapshots/{workflow_id}/v2") == {
        "graphId": workflow_id,
        "txId": "v2",
        "baseVersion": 1,
        "startedAt": now,
        "state": "committed",
        "committedAt": now,
        "finalVersion": 2,
        "baseGraph": before,
        "finalGraph": after,
        "owner": "tester",
        "note": "changed",
    }
    first = desk.read(f"sc://snapshots/{workflow_id}/v1")
    assert (first["baseVersion"], first["baseGraph"]["nodes"], first["baseGraph"]["graphVersion"]) == (0, [], 0)
    assert "v1, v2" in desk.refused("resources_read", uri=f"sc://snapshots/{workflow_id}/tx_9").hint


@pytest.mark.parametrize(
    "uri",
    [
        "sc://graphs/wf_9",
        "sc://graphs/wf_9@v1",
        "sc://graphs/wf_1@v2",
        "sc://snapshots/wf_9/v1",
        "sc://snapshots/wf_1/v2",
        "sc://snapshots/wf_1/x",
        "sc://runs/wf_9/events",
        "sc://children/ag_9/logs",
        "sc://blackboard/no%20name",
        "sc://runs/wf_1",
        "x",
    ],
)
def test_where_nothing_is_both_tools_say_what_to_do(desk: Addressed, uri: str) -> None:
    desk.plan(*AB)
    for tool in ("resources_read", "resources_watch"):
        refusal = desk.refused(tool, uri=uri)
        assert (refusal.code, bool(refusal.hint)) == ("RESOURCE_NOT_FOUND", True)


def test_an_address_that_is_written_otherwise_is_answered_as_it_should_be(desk: Addressed) -> None:
    desk.plan(*AB)
    assert desk.ask("resources_read", uri="sc://graphs/%77f_1@v01")["uri"] == "sc://graphs/wf_1@v1"


# -- watching ---------------------------------------------------------------------------------------------------------


def test_the_loop_of_the_document_sees_every_event_once(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    busy(desk, workflow_id, 60)
    uri = f"sc://runs/{workflow_id}/events"
    assert walked(desk, uri) == walked(desk, uri, limit=7) == walked(desk, uri, limit=500) == list(range(1, 63))
    assert desk.watch(uri, 62) == {"uri": uri, "kind": "run_events", "events": [], "next_seq": 62}
    assert desk.watch(uri, 10**9)["next_seq"] == 10**9


def test_a_graph_tells_of_what_changed_it(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary="half")
    desk.move("task_1", "in_progress")
    uri = f"sc://graphs/{workflow_id}"
    assert [event["kind"] for event in desk.watch(uri)["events"]] == [
        "workflow.created",
        "workflow.planned",
        "task.in_progress",
    ]
    assert walked(desk, uri, limit=1) == [1, 2, 4]


def test_a_version_tells_of_what_made_it_and_of_nothing_more(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    busy(desk, workflow_id, 3)
    desk.replan(workflow_id, {"name": "c"})
    busy(desk, workflow_id, 3)
    for version, seq in ((1, 2), (2, 6)):
        for uri in (f"sc://graphs/{workflow_id}@v{version}", f"sc://snapshots/{workflow_id}/v{version}"):
            assert walked(desk, uri) == [seq]
            assert desk.watch(uri, seq + 1)["events"] == []


def test_a_version_that_is_taken_back_is_gone_and_its_number_goes_to_the_next(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    uri = f"sc://graphs/{workflow_id}@v2"
    desk.replan(workflow_id, {"name": "c"})
    first = desk.read(uri)
    desk.store.undo(TESTER)
    assert desk.refused("resources_read", uri=uri).hint.startswith(f"the newest is sc://graphs/{workflow_id}@v1")
    assert desk.read(f"sc://graphs/{workflow_id}") == desk.read(f"sc://graphs/{workflow_id}@v1")
    desk.replan(workflow_id, {"name": "d"})
    assert desk.read(uri) == desk.read(f"sc://graphs/{workflow_id}") != first
    assert [event["kind"] for event in desk.watch(uri)["events"]] == [
        "workflow.replanned",
        "ledger.undo",
        "workflow.replanned",
    ]
    assert walked(desk, uri, limit=1) == [3, 4, 5]


def test_without_a_limit_a_reply_is_short_and_with_one_it_is_not(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    busy(desk, workflow_id, 120)
    desk.call("agent_register", name="ada", runtime="codex")
    for number in range(40):
        desk.ask("bb_set", key=f"b{number}:k", value="x" * 3000)
        desk.ask("bb_set", key=f"plan:{number}", value="x" * 3000)
    for uri in (f"sc://runs/{workflow_id}/events", f"sc://graphs/{workflow_id}", "sc://blackboard/plan"):
        assert len(msgspec.json.encode(desk.watch(uri))) < EIGHT_KB
        assert len(walked(desk, uri)) == len(walked(desk, uri, limit=500)) >= 40
    assert len(msgspec.json.encode(desk.ask("resources_list"))) < EIGHT_KB
    assert len(desk.watch(f"sc://runs/{workflow_id}/events", limit=100)["events"]) == 100


# -- runs, children, boards -------------------------------------------------------------------------------------------


def test_reading_a_run_shows_its_newest_events_and_says_what_is_left_out(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    uri = f"sc://runs/{workflow_id}/events"
    whole = desk.read(uri)
    assert ([event["seq"] for event in whole["events"]], whole["total"]) == ([1, 2], 2)
    assert "truncated_before" not in whole
    busy(desk, workflow_id, 248)
    newest = desk.read(uri)
    assert [event["seq"] for event in newest["events"]] == list(range(51, 251))
    assert (newest["runId"], newest["total"], newest["truncated_before"]) == (workflow_id, 250, 51)


def test_a_log_holds_what_an_agent_did_and_what_was_done_to_it(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    ada = desk.call("agent_register", name="ada", runtime="codex")["id"]
    desk.call("agent_register", name="ben", runtime="codex")
    desk.call("task_claim", task_id="task_1", agent_id=ada)
    desk.call("task_update_status", id="task_1", status="in_progress", agent_id=ada)
    desk.call("workflow_set_parallelism", id=workflow_id, max_parallel_tasks=2)
    uri = f"sc://children/{ada}/logs"
    log = desk.read(uri)
    assert (log["childId"], log["total"]) == (ada, len(log["logs"]))
    assert "truncated_before" not in log
    events = [event for event in desk.store.feed() if ada in (event.actor, event.stream)]
    assert [line["seq"] for line in log["logs"]] == [event.position for event in events] == walked(desk, uri, limit=1)
    assert {"agent.registered", "task.claimed", "task.in_progress"} <= {event.kind for event in events}
    assert all(set(line) == {"seq", "ts", "stream", "message"} and line["stream"] == "meta" for line in log["logs"])


def test_a_long_log_shows_its_newest_lines(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    ada = desk.call("agent_register", name="ada", runtime="codex")["id"]
    for number in range(230):
        desk.call("workflow_set_parallelism", id=workflow_id, max_parallel_tasks=1 + number % 2, agent_id=ada)
    log = desk.read(f"sc://children/{ada}/logs")
    places = [event.position for event in desk.store.feed() if ada in (event.actor, event.stream)]
    assert [line["seq"] for line in log["logs"]] == places[-200:]
    assert (log["total"], log["truncated_before"]) == (len(places), places[-200])


def test_a_board_is_read_and_watched(desk: Addressed) -> None:
    assert "bb_set" in desk.refused("resources_read", uri="sc://blackboard/plan").hint
    assert desk.watch("sc://blackboard/plan")["events"] == [], "a board may be waited for"
    desk.ask("bb_set", key="plan:next", value={"task": "a"}, tags=["x"])
    desk.ask("bb_set", key="plan:gone", value=1, ttl_ms=10)
    desk.clock.advance(11)
    board = desk.read("sc://blackboard/plan")
    assert (board["namespace"], [entry["key"] for entry in board["entries"]], board["total"]) == (
        "plan",
        ["plan:next"],
        1,
    )
    changes = desk.watch("sc://blackboard/plan")["events"]
    assert [(change["seq"], change["kind"], change["key"]) for change in changes] == [
        (1, "set", "plan:next"),
        (2, "set", "plan:gone"),
        (3, "expire", "plan:gone"),
    ]
    assert changes[0]["entry"] == board["entries"][0]


def test_a_large_board_says_where_it_goes_on(desk: Addressed) -> None:
    for number in range(10):
        desk.ask("bb_set", key=f"plan:{number}", value="x" * 60_000)
    board = desk.read("sc://blackboard/plan")
    assert (len(board["entries"]), board["total"], board["after"]) == (4, 10, "plan:3")
    rest = desk.ask("bb_query", namespace="plan", after=board["after"], limit=500)
    assert len(rest["entries"]) == 6


def test_what_a_retention_hides_is_said(tmp_path: Path) -> None:
    desk = Addressed(tmp_path, event_history=5)
    workflow_id = desk.plan(*AB)
    ada = desk.call("agent_register", name="ada", runtime="codex")["id"]
    for number in range(18):
        desk.call("workflow_set_parallelism", id=workflow_id, max_parallel_tasks=1 + number % 2, agent_id=ada)
    for number in range(9):
        desk.ask("bb_set", key="plan:next", value=number)
    places = [event.position for event in desk.store.feed() if ada in (event.actor, event.stream)]
    for uri, numbers in (
        (f"sc://runs/{workflow_id}/events", list(range(1, 21))),
        (f"sc://graphs/{workflow_id}", list(range(1, 21))),
        (f"sc://children/{ada}/logs", places),
        ("sc://blackboard/plan", list(range(1, 10))),
    ):
        page = desk.watch(uri, limit=3)
        assert [event["seq"] for event in page["events"]] == numbers[-5:-2], uri
        assert page["truncated_before"] == numbers[-5]
        rest = desk.watch(uri, page["next_seq"])
        assert [event["seq"] for event in rest["events"]] == numbers[-2:]
        assert "truncated_before" not in rest
        assert "truncated_before" not in desk.watch(uri, numbers[-6])
        assert desk.watch(uri, numbers[-7])["truncated_before"] == numbers[-5]
    run, log = desk.read(f"sc://runs/{workflow_id}/events"), desk.read(f"sc://children/{ada}/logs")
    assert ([event["seq"] for event in run["events"]], run["total"], run["truncated_before"]) == (
        [16, 17, 18, 19, 20],
        20,
        16,
    )
    assert ([line["seq"] for line in log["logs"]], log["total"]) == (places[-5:], len(places))
    listed = {item["uri"]: item.get("metadata") for item in desk.ask("resources_list")["items"]}
    assert listed[f"sc://runs/{workflow_id}/events"] == {"event_count": 5, "latest_seq": 20, "formats": ["json"]}
    assert len(desk.read(f"sc://graphs/{workflow_id}@v1")["graph"]["nodes"]) == 2, "a version outlives its event"


# -- the list ---------------------------------------------------------------------------------------------------------


def furnished(desk: Addressed) -> list[str]:
    """Twelve workflows with one to three versions, two agents, three boards; their addresses."""
    expected = ["sc://blackboard/a-b", "sc://blackboard/b", "sc://blackboard/b.c"]
    for board in ("b", "a-b", "b.c"):
        desk.ask("bb_set", key=f"{board}:x", value=1)
    for name in ("ada", "ben"):
        expected.append(f"sc://children/{desk.call('agent_register', name=name, runtime='codex')['id']}/logs")
    for number in range(12):
        workflow_id = desk.plan(*AB)
        for again in range(number % 3):
            desk.replan(workflow_id, {"name": f"c{again}"})
        expected += [f"sc://graphs/{workflow_id}", f"sc://runs/{workflow_id}/events"]
        for version in range(1, number % 3 + 2):
            expected += [f"sc://graphs/{workflow_id}@v{version}", f"sc://snapshots/{workflow_id}/v{version}"]
    return sorted(expected)


def test_everything_is_listed_in_the_order_of_addresses(desk: Addressed) -> None:
    expected = furnished(desk)
    assert desk.uris(limit=500) == expected
    for uri in expected:
        assert desk.ask("resources_read", uri=uri)["uri"] == uri
        assert desk.ask("resources_watch", uri=uri, limit=1)["events"]


def test_a_prefix_and_a_limit_cut_the_same_list(desk: Addressed) -> None:
    expected = furnished(desk)
    prefixes = ("sc", "sc://g", "sc://graphs/wf_1", "sc://graphs/wf_1@v", "sc://runs/wf_12", "sc://blackboard/b", "sd")
    for prefix in (*prefixes, "sc://snapshots/wf_3/v", "sc://children/ag_", "sc://graphs/%", " sc://runs/ "):
        fitting = [uri for uri in expected if uri.startswith(prefix.strip())]
        for limit in (1, 2, 5, 500):
            answer = desk.ask("resources_list", prefix=prefix, limit=limit)
            assert [item["uri"] for item in answer["items"]] == fitting[:limit], (prefix, limit)
            assert answer.get("truncated", False) is (len(fitting) > limit)
    assert desk.refused("resources_list", prefix="  ").code == "INVALID_PARAMS"


@pytest.mark.parametrize("limit", [1, 3, 10])
def test_pages_after_each_other_are_the_whole_list(desk: Addressed, limit: int) -> None:
    expected = furnished(desk)
    for prefix in ("sc://", "sc://graphs/wf_1"):
        found: list[str] = []
        more: dict[str, Any] = {}
        while page := desk.uris(prefix=prefix, limit=limit, **more):
            found += page
            more = {"after": page[-1]}
        assert found == [uri for uri in expected if uri.startswith(prefix)]


def test_a_list_tells_what_is_there(desk: Addressed) -> None:
    workflow_id = desk.plan(*AB)
    desk.replan(workflow_id, {"name": "c"})
    desk.ask("bb_set", key="plan:x", value=1)
    desk.ask("bb_set", key="plan:x", value=2)
    desk.call("agent_register", name="ada", runtime="codex")
    assert desk.ask("resources_list")["items"] == [
        {
            "uri": "sc://blackboard/plan",
            "kind": "blackboard_namespace",
            "metadata": {"entry_count": 1, "latest_version": 2},
        },
        {"uri": "sc://children/ag_1/logs", "kind": "child_logs"},
        {"uri": "sc://graphs/wf_1", "kind": "graph", "metadata": {"latest_version": 2}},
        {"uri": "sc://graphs/wf_1@v1", "kind": "graph_version"},
        {"uri": "sc://graphs/wf_1@v2", "kind": "graph_version"},
        {
            "uri": "sc://runs/wf_1/events",
            "kind": "run_events",
            "metadata": {"event_count": 3, "latest_seq": 3, "formats": ["json"]},
        },
        {"uri": "sc://snapshots/wf_1/v1", "kind": "snapshot", "metadata": {"state": "committed", "base_version": 0}},
        {"uri": "sc://snapshots/wf_1/v2", "kind": "snapshot", "metadata": {"state": "committed", "base_version": 1}},
    ]


def test_a_few_addresses_are_found_without_looking_at_all_workflows(
    desk: Addressed, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(150):
        desk.plan({"name": "a"})
    read: list[int] = []
    select = Unit.select

    def counted(unit: Unit, kind: Any, query: Any) -> Any:
        found = select(unit, kind, query)
        read.append(len(found) if kind is Workflow else 0)
        return found

    monkeypatch.setattr(Unit, "select", counted)
    for request in ({"limit": 5}, {"prefix": "sc://runs/", "limit": 5}, {"after": "sc://graphs/wf_50", "limit": 5}):
        read.clear()
        assert len(desk.uris(**request)) == 5
        assert sum(read) <= 20


def test_in_a_shared_store_only_this_repositorys_workflows_are_listed(tmp_path: Path) -> None:
    desk = Addressed(tmp_path, global_store=True)
    here = desk.plan({"name": "a"})
    there = desk.plan({"name": "b"}, repository_path=str(tmp_path / "elsewhere"))
    assert desk.uris(prefix="sc://runs/") == [f"sc://runs/{here}/events"]
    assert desk.uris(prefix=f"sc://runs/{there}") == []
    assert desk.read(f"sc://graphs/{there}")["graphId"] == there, "an id says what is meant"


def test_what_a_poll_has_looked_at_is_not_looked_at_again(desk: Addressed, monkeypatch: pytest.MonkeyPatch) -> None:
    desk.plan({"name": "one"})
    begun: list[int] = []

    def looked(unit: Any, address: Any, after: int, most: Any, *, keep: int) -> AddressChanges:
        begun.append(after)
        if len(begun) < 3:  # nothing of it changes the graph; the poll wakes again
            return AddressChanges([], looked_to=after + 40)
        return AddressChanges([{"seq": after + 1}], looked_to=after + 1)

    monkeypatch.setattr(resources, "watch", looked)
    monkeypatch.setattr(desk._handrail.call.ledger, "wait", lambda *_: True)
    page = desk.watch("sc://graphs/wf_1", 2, wait_ms=25_000)
    assert (begun, page["next_seq"]) == ([2, 42, 82], 83)


@pytest.mark.parametrize("uri", ["sc://graphs/wf_1", "sc://graphs/wf_1@v1", "sc://snapshots/wf_1/v1"])
def test_how_far_was_looked_is_told_to_the_next_look(desk: Addressed, uri: str) -> None:
    desk.plan({"name": "one"})
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary="on it")
    head = len(desk.store.events("wf_1"))
    watched = desk.store.run(TESTER, lambda unit: look_at(unit, parse(uri), head - 1, Most(9, 9999), keep=0))
    assert (watched.events, watched.looked_to) == ([], head)


def test_retention_hides_the_making_of_a_version_and_says_so(desk: Addressed) -> None:
    desk.plan({"name": "one"})
    for _ in range(3):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary="on it")
    for uri in ("sc://graphs/wf_1@v1", "sc://snapshots/wf_1/v1"):
        assert desk.watch(uri)["events"]
        head = len(desk.store.events("wf_1"))
        watched = desk.store.run(TESTER, lambda unit: look_at(unit, parse(uri), 0, Most(9, 9999), keep=2))  # noqa: B023
        assert (watched.events, watched.truncated_before) == ([], head - 1)

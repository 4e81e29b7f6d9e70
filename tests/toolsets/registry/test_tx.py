"""Transactions on graphs that are no plans: trying, committing, coming too late, running out, whose they are, and what
addresses show of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.registry.envelopes import envelope
from handrail.domain.registry.reader import touched
from handrail.kernel.errors import (
    GraphInvalid,
    GraphNotFound,
    InvalidParams,
    NotAllowed,
    NothingToUndo,
    ResourceNotFound,
    TxConflict,
    TxEnded,
)
from handrail.protocol.wire import encode
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.graphs import Graphs, edge, gone, no_edge, node, relabel

EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> Graphs:
    return Graphs(tmp_path)


def test_a_transaction_tries_and_then_makes(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g")
    tried = desk.call("tx_apply", tx_id=tx, operations=[node("d"), edge("c", "d")])
    assert (tried["base_version"], tried["preview_version"], tried["changed"]) == (1, 2, True)
    assert [one["op"] for one in tried["applied"]] == ["add_node", "add_edge"]
    assert [one["path"] for one in tried["diff"]] == ["/nodes/d", "/edges/c->d"]
    assert [item["id"] for item in tried["graph"]["nodes"]] == ["a", "b", "c", "d"]
    assert set(desk.nodes("g")) == {"a", "b", "c"}
    again = desk.call("tx_apply", tx_id=tx, operations=[relabel("d", "D")])
    assert again["diff"][0]["value"] == {"label": "D"}
    done = desk.call("tx_commit", tx_id=tx)
    assert (done["version"], done["changed"], done["nodes"], done["edges"]) == (2, True, 4, 3)
    assert desk.nodes("g")["d"] == {"id": "d", "label": "D", "attributes": {}}
    assert desk.store.verify() == []


def test_only_what_differs_is_written(desk: Graphs) -> None:
    desk.call("graph_create", graph_id="big", nodes=[{"id": f"n{number}"} for number in range(300)])
    desk.change("big", relabel("n7", "seven"), note="a name")
    event = desk.last("gr:big")
    assert (event.kind, event.data) == ("graph.committed", {"reason": "a name"})
    assert {(change.table, change.key) for change in event.changes} == {("graph", "big"), ("graph_node", "big/n7")}


def test_the_version_moves_only_when_something_is_different(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g", node("d"), gone("d"))
    done = desk.call("tx_commit", tx_id=tx)
    assert (done["version"], done["changed"]) == (1, False)
    assert desk.last("gr:g").kind == "graph.created"
    assert desk.change("g", relabel("a", "A"))["version"] == 1
    assert desk.read(f"sc://snapshots/g/{tx}")["finalVersion"] == 1


def test_of_two_the_later_is_refused_and_told_what_is_different(desk: Graphs) -> None:
    desk.make()
    first, second = desk.begin("g", node("d")), desk.begin("g", node("e"))
    desk.call("tx_commit", tx_id=first)
    late = desk.call("tx_apply", tx_id=second, operations=[node("f")])
    assert late["latest_version"] == 2
    assert {item["id"] for item in late["graph"]["nodes"]} == {"a", "b", "c", "e", "f"}
    refusal = desk.refusal("tx_commit", tx_id=second)
    assert isinstance(refusal, TxConflict)
    assert (refusal.details["base_version"], refusal.details["version"]) == (1, 2)
    assert refusal.details["diff_summary"]["nodesAdded"] == 1
    assert "begin again" in refusal.hint
    assert set(desk.nodes("g")) == {"a", "b", "c", "d"}
    assert desk.read(f"sc://snapshots/g/{second}")["state"] == "pending"


def test_an_expected_version_is_asked_for(desk: Graphs) -> None:
    desk.make()
    assert isinstance(desk.refusal("tx_begin", graph_id="g", expected_version=2), TxConflict)
    assert desk.call("tx_begin", graph_id="g", expected_version=1)["base_version"] == 1


@pytest.mark.parametrize("tool", ["tx_apply", "tx_commit", "tx_rollback"])
def test_one_that_has_run_out_is_over_from_that_moment_on(desk: Graphs, tool: str) -> None:
    desk.make()
    more = {"operations": [node("e")]} if tool == "tx_apply" else {}
    tx = desk.begin("g", node("d"), ttl_ms=1000)
    desk.clock.advance(999)
    assert desk.read(f"sc://snapshots/g/{tx}")["state"] == "pending"
    desk.clock.advance(1)
    refusal = desk.refusal(tool, tx_id=tx, **more)
    assert isinstance(refusal, TxEnded)
    assert refusal.details["expired"] is True
    shown = desk.read(f"sc://snapshots/g/{tx}")
    assert (shown["state"], shown["expired"], shown["endedAt"]) == ("rolled_back", True, shown["expiresAt"])
    assert shown["finalGraph"] is None
    assert set(desk.nodes("g")) == {"a", "b", "c"}


def test_a_transaction_lasts_an_hour_and_no_longer_than_a_day(desk: Graphs) -> None:
    desk.make()
    begun = desk.call("tx_begin", graph_id="g")
    assert begun["expires_at"] - begun["started_at"] == 3_600_000
    assert isinstance(desk.refusal("tx_begin", graph_id="g", ttl_ms=86_400_001), InvalidParams)


def test_one_that_is_over_says_how_it_ended(desk: Graphs) -> None:
    desk.make()
    done, dropped = desk.begin("g", node("d")), desk.begin("g", node("e"))
    desk.call("tx_commit", tx_id=done)
    given_up = desk.call("tx_rollback", tx_id=dropped)
    assert (given_up["version"], given_up["snapshot"]) == (1, f"sc://snapshots/g/{dropped}")
    again = desk.refusal("tx_commit", tx_id=done)
    assert isinstance(again, TxEnded)
    assert (again.details["state"], again.details["version"]) == ("committed", 2)
    refused = desk.refusal("tx_commit", tx_id=dropped)
    assert isinstance(refused, TxEnded)
    assert refused.details["state"] == "rolled_back"


def test_a_transaction_is_its_owners(desk: Graphs) -> None:
    desk.make()
    anna, ben = desk.agent("Anna"), desk.agent("Ben")
    tx = desk.begin("g", node("d"), agent_id=anna)
    for tool, more in (("tx_apply", {"operations": [node("e")]}), ("tx_commit", {}), ("tx_rollback", {})):
        for who in ({"agent_id": ben}, {}, {"owner": anna}, {"agent_id": ben, "owner": anna}):
            refusal = desk.refusal(tool, tx_id=tx, **more, **who)
            assert isinstance(refusal, NotAllowed)
    assert desk.call("tx_commit", tx_id=tx, agent_id=anna)["version"] == 2


def test_who_names_an_owner_that_is_no_agent_speaks_for_it(desk: Graphs) -> None:
    desk.make()
    ben = desk.agent("Ben")
    tx = desk.begin("g", node("d"), owner="team")
    assert isinstance(desk.refusal("tx_commit", tx_id=tx, agent_id=ben), NotAllowed)
    assert isinstance(desk.refusal("tx_commit", tx_id=tx, agent_id=ben, owner="others"), NotAllowed)
    assert desk.call("tx_commit", tx_id=tx, agent_id=ben, owner="team")["version"] == 2
    mine = desk.begin("g", owner="team")  # who began it needs no name
    assert desk.call("tx_rollback", tx_id=mine)["version"] == 2


def test_rules_are_told_while_trying_and_kept_when_committing(desk: Graphs) -> None:
    desk.make(metadata={"dag": True, "max_out_degree": 1})
    tx = desk.begin("g")
    tried = desk.call("tx_apply", tx_id=tx, operations=[edge("c", "a"), edge("a", "c")])
    assert tried["invariants"]["ok"] is False
    assert {one["rule"] for one in tried["invariants"]["broken"]} == {"dag", "max_out_degree"}
    refusal = desk.refusal("tx_commit", tx_id=tx)
    assert isinstance(refusal, GraphInvalid)
    assert desk.edges("g") == {("a", "b", ""), ("b", "c", "")}
    mended = desk.call("tx_apply", tx_id=tx, operations=[no_edge("c", "a"), no_edge("a", "c")])
    assert mended["invariants"] == {"ok": True, "broken": []}
    assert desk.call("tx_commit", tx_id=tx)["changed"] is False


def test_an_operation_that_fails_leaves_the_transaction_as_it_was(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g", node("d"))
    refusal = desk.refusal("tx_apply", tx_id=tx, operations=[node("e"), gone("x")])
    assert isinstance(refusal, GraphInvalid)
    assert refusal.details["index"] == 1
    wrong = desk.refusal("tx_apply", tx_id=tx, operations=[{"op": "add_nod", "id": "x"}])
    assert "add_node" in wrong.hint
    wrong = desk.refusal("tx_apply", tx_id=tx, operations=[{"op": "add_edge", "from": "a"}])
    assert wrong.hint.startswith("add_edge {from, to")
    assert desk.call("tx_commit", tx_id=tx)["nodes"] == 4


@pytest.mark.parametrize(
    "arguments",
    [
        {"graph_id": "wf_7"},
        {"graph_id": "g"},
        {"nodes": [{"id": "a"}, {"id": "a"}]},
        {"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "b"}]},
        {"nodes": [{"id": "a", "attributes": {"x": None}}]},
        {"nodes": [{"id": "a", "attributes": {"x": {}}}]},
        {"metadata": {"x": []}},
        {"nodes": [{"id": "a"}], "edges": [{"from": "a", "to": "a"}], "metadata": {"dag": True}},
    ],
)
def test_what_is_no_sound_graph_is_not_made(desk: Graphs, arguments: dict[str, Any]) -> None:
    desk.make()
    assert isinstance(desk.refusal("graph_create", **arguments), GraphInvalid)
    assert desk.call("resources_list", prefix="sc://graphs/")["items"][1:] == [
        {"uri": "sc://graphs/g@v1", "kind": "graph_version"}
    ]


def test_an_id_that_an_address_could_not_hold_is_refused(desk: Graphs) -> None:
    for wrong in ("a b", "a/b", "é", "", "x" * 121, "a\n"):
        assert isinstance(desk.refusal("graph_create", graph_id=wrong), InvalidParams)
    assert desk.call("graph_create")["graph_id"] == "graph_1"


def test_versions_stay_as_they_were_and_snapshots_tell_of_each_change(desk: Graphs) -> None:
    desk.make()
    copies = {1: desk.state("g")}
    desk.clock.advance(5)
    tx = desk.begin("g", relabel("a", "first"), edge("a", "c", "also"), note="labels")
    desk.clock.advance(5)
    desk.call("tx_commit", tx_id=tx)
    copies[2] = desk.state("g")
    desk.clock.advance(5)
    desk.change("g", gone("b"), {"op": "patch_metadata", "set": {"x": 1}})
    copies[3] = desk.state("g")
    for version, copy in copies.items():
        assert desk.read(f"sc://graphs/g@v{version}") == copy
        if version > 1:
            shown = desk.read(f"sc://snapshots/g/v{version}")
            assert (shown["baseGraph"], shown["finalGraph"]) == (copies[version - 1]["graph"], copy["graph"])
    shown = desk.read(f"sc://snapshots/g/{tx}")
    assert (shown["state"], shown["baseVersion"], shown["finalVersion"], shown["note"]) == ("committed", 1, 2, "labels")
    assert (shown["baseGraph"], shown["finalGraph"]) == (copies[1]["graph"], copies[2]["graph"])
    assert (shown["owner"], shown["committedAt"] - shown["startedAt"]) == ("tester", 5)
    assert isinstance(desk.refusal("resources_read", uri="sc://graphs/g@v4"), ResourceNotFound)
    assert isinstance(desk.refusal("resources_read", uri="sc://snapshots/g/tx_99"), ResourceNotFound)
    assert isinstance(desk.refusal("tx_begin", graph_id="h"), GraphNotFound)


def test_lists_have_graphs_and_plans_in_one_order(desk: Graphs) -> None:
    desk.make("zebra")
    desk.make("alpha")
    workflow = desk.plan({"name": "one"})
    tx = desk.begin("alpha", node("d"), note="try", ttl_ms=10)
    items = desk.call("resources_list", limit=100)["items"]
    uris = [item["uri"] for item in items]
    assert uris == sorted(uris)
    assert {f"sc://graphs/{name}" for name in ("alpha", "zebra", workflow)} <= set(uris)
    told = {item["uri"]: item.get("metadata") for item in items}
    assert told["sc://graphs/alpha"] == {"latest_version": 1}
    assert told[f"sc://snapshots/alpha/{tx}"] == {
        "state": "pending",
        "base_version": 1,
        "owner": "tester",
        "note": "try",
        "expires_at": desk.clock.now_ms() + 10,
    }
    pages, after = [], ""
    while True:
        page = desk.call("resources_list", limit=2, **({"after": after} if after else {}))
        pages += [item["uri"] for item in page["items"]]
        if not page.get("truncated"):
            break
        after = pages[-1]
    assert pages == uris


def test_graphs_and_transactions_are_watched(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g", node("d"))
    desk.call("graph_lock", graph_id="g")
    desk.call("tx_commit", tx_id=tx)
    kinds = [event["kind"] for event in desk.call("resources_watch", uri="sc://graphs/g")["events"]]
    assert kinds == ["graph.created", "graph.committed"]
    (made,) = desk.call("resources_watch", uri="sc://graphs/g@v2")["events"]
    assert made["kind"] == "graph.committed"
    kinds = [event["kind"] for event in desk.call("resources_watch", uri=f"sc://snapshots/g/{tx}")["events"]]
    assert kinds == ["tx.begun", "tx.applied", "tx.committed"]


def test_a_change_can_be_taken_back_and_made_anew(desk: Graphs) -> None:
    desk.make()
    desk.change("g", relabel("a", "wrong"))
    desk.store.undo(TESTER)
    assert (desk.state("g")["version"], desk.nodes("g")["a"]["label"]) == (1, "A")
    desk.change("g", relabel("a", "right"))
    copy = desk.state("g")
    assert (copy["version"], copy["graph"]["nodes"][0]["label"]) == (2, "right")
    desk.change("g", node("d"))
    assert desk.read("sc://graphs/g@v2") == copy
    assert desk.store.verify() == []


def test_fences_and_transactions_are_not_taken_back(desk: Graphs) -> None:
    desk.make()
    desk.begin("g")
    with pytest.raises(NothingToUndo):
        desk.store.undo(TESTER)
    desk.call("graph_lock", graph_id="g")
    with pytest.raises(NothingToUndo):
        desk.store.undo(TESTER)


def test_a_large_graph_is_shown_by_counts_and_whole_where_asked(desk: Graphs) -> None:
    many = [{"id": f"node-{number}", "label": "x" * 40} for number in range(1000)]
    desk.call("graph_create", graph_id="big", nodes=many)
    begun = desk.call("tx_begin", graph_id="big")
    assert (begun["nodes"], begun["edges"], begun["uri"]) == (1000, 0, "sc://graphs/big")
    assert "graph" not in begun
    operations = [
        {"op": "set_node_attribute", "id": f"node-{n}", "key": "k" * 50, "value": "v" * 50} for n in range(200)
    ]
    tried = desk.call("tx_apply", tx_id=begun["tx_id"], operations=operations)
    assert len(encode(tried)) < EIGHT_KB
    assert (tried["applied_total"], tried["diff_total"]) == (200, 200)
    committed = desk.call("tx_commit", tx_id=begun["tx_id"], include_graph=True)
    assert len(committed["graph"]["nodes"]) == 1000


def test_many_changes_at_once_stay_within_a_reply(desk: Graphs) -> None:
    workflow = desk.plan({"name": "one"})
    answer = desk.change(workflow, *[node(f"n{n}", f"task {n} {'x' * 100}") for n in range(200)])
    assert len(encode(answer)) < EIGHT_KB
    assert answer["created_total"] == 200
    desk.audit(workflow)


def test_what_happens_is_told_with_its_graph(desk: Graphs) -> None:
    desk.make()
    tx = desk.begin("g", node("d"), note="more")
    desk.call("tx_commit", tx_id=tx)
    desk.call("graph_lock", graph_id="g", holder="anna")
    events = desk.store.feed()
    told = [envelope(event) for event in events]
    assert [(one["kind"], one["cat"], one["graphId"]) for one in told] == [
        ("GRAPH.CREATED", "graph", "g"),
        ("TX.BEGUN", "graph", "g"),
        ("TX.APPLIED", "graph", "g"),
        ("GRAPH.COMMITTED", "graph", "g"),
        ("TX.COMMITTED", "graph", "g"),
        ("GRAPH.LOCKED", "graph", "g"),
    ]
    assert told[3]["msg"] == f"graph g: committed by tester; reason more, transaction {tx}"
    at = [[address.uri for address in touched(event)] for event in events]
    assert at[0] == ["sc://graphs/g", "sc://graphs/g@v1", "sc://snapshots/g/v1"]
    assert at[1] == at[2] == at[4] == [f"sc://snapshots/g/{tx}"]
    assert at[3] == ["sc://graphs/g", "sc://graphs/g@v2", "sc://snapshots/g/v2"]
    assert at[5] == []

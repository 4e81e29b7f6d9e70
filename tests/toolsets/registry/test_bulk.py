"""Many changes at once: all or none, and every one that cannot be done is named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import BulkRefused, GraphInvalid, InvalidParams
from handrail.protocol.wire import encode
from tests.toolsets.registry.graphs import Graphs, edge, gone, node, relabel

EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> Graphs:
    return Graphs(tmp_path)


def board(desk: Graphs, name: str) -> dict[str, Any]:
    return {entry["key"]: entry["value"] for entry in desk.read(f"sc://blackboard/{name}")["entries"]}


def test_entries_of_several_boards_are_set_together(desk: Graphs) -> None:
    entries = [
        {"key": "a:x", "value": 1, "tags": ["t"]},
        {"key": "b:x", "value": {"deep": [1]}},
        {"key": "a:y", "value": None, "ttl_ms": 10},
    ]
    done = desk.call("bb_batch_set", entries=entries)
    assert done == {
        "count": 3,
        "entries": [{"key": "a:x", "version": 1}, {"key": "b:x", "version": 1}, {"key": "a:y", "version": 2}],
    }
    assert board(desk, "a") == {"a:x": 1, "a:y": None}
    desk.clock.advance(10)
    assert board(desk, "a") == {"a:x": 1}


def test_one_that_cannot_be_set_keeps_all_from_being_set(desk: Graphs) -> None:
    desk.call("bb_batch_set", entries=[{"key": "a:x", "value": 1}])
    entries = [
        {"key": "a:new", "value": 1},
        {"key": "a:x", "value": 2, "expected_version": 0},
        {"key": "a:y", "value": "v" * 70_000},
        {"key": "a:z", "value": 2, "expected_version": 7},
        {"key": "bad board:z", "value": 2},
    ]
    refusal = desk.refusal("bb_batch_set", entries=entries)
    assert isinstance(refusal, BulkRefused)
    failures = refusal.details["failures"]
    assert [(one["index"], one["code"]) for one in failures] == [
        (1, "BOARD_CONFLICT"),
        (2, "INVALID_PARAMS"),
        (3, "BOARD_CONFLICT"),
        (4, "INVALID_PARAMS"),
    ]
    assert all(one["message"] and one["hint"] for one in failures)
    assert refusal.details["rolled_back"] is True
    assert board(desk, "a") == {"a:x": 1}
    assert desk.store.verify() == []


def test_there_are_bounds(desk: Graphs) -> None:
    assert isinstance(desk.refusal("bb_batch_set", entries=[]), InvalidParams)
    many = [{"key": f"a:{number}", "value": 1} for number in range(101)]
    assert isinstance(desk.refusal("bb_batch_set", entries=many), InvalidParams)
    assert len(encode(desk.call("bb_batch_set", entries=many[:100]))) < EIGHT_KB
    desk.make()
    assert isinstance(desk.refusal("graph_batch_mutate", graph_id="g", operations=[]), InvalidParams)
    over = [node(f"n{number}") for number in range(201)]
    assert isinstance(desk.refusal("graph_batch_mutate", graph_id="g", operations=over), InvalidParams)


def test_changes_of_a_graph_are_one_version(desk: Graphs) -> None:
    desk.make()
    done = desk.change("g", node("d"), edge("c", "d"), relabel("a", "first"), note="three")
    assert (done["base_version"], done["version"], len(done["applied"])) == (1, 2, 3)
    assert desk.last("gr:g").data["reason"] == "three"


def test_every_operation_that_fails_by_itself_is_named(desk: Graphs) -> None:
    desk.make()
    half = {"op": "rewrite", "rule": "split_parallel", "node": "b", "parts": [{"id": "b1"}, {"id": "a"}]}
    refusal = desk.refuse("g", gone("x"), node("d"), edge("c", "d"), {"op": "nonsense"}, node("d"), half, gone("b"))
    assert isinstance(refusal, BulkRefused)
    failures = refusal.details["failures"]
    assert [one["index"] for one in failures] == [0, 3, 4, 5]
    assert failures[0]["message"] == "there is no node x"
    assert failures[2]["message"] == "a node d is already there"
    assert {one["code"] for one in failures} == {"GRAPH_INVALID"}


def test_many_failures_stay_within_a_reply(desk: Graphs) -> None:
    desk.make()
    refusal = desk.refuse("g", *[gone("x" * 150 + str(number)) for number in range(200)])
    assert refusal.details["failed"] == 200
    assert len(encode(refusal.as_dict())) < EIGHT_KB


def test_a_rule_of_the_whole_is_no_single_operations_fault(desk: Graphs) -> None:
    desk.make(metadata={"dag": True})
    refusal = desk.refuse("g", node("d"), edge("c", "a"))
    assert isinstance(refusal, GraphInvalid)
    assert refusal.details["rule"] == "dag"

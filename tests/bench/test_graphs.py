"""`bench/graphs` measures what it says: every step changes or compares its graph, and ratios are of one round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bench.graphs.__main__ import ENABLED, measure, ratio, table
from bench.graphs.making import graph_of, with_other_nodes
from bench.graphs.steps import FREE, MANY, PART, Committing, Measured, in_memory
from bench.plan.filling import WORKFLOW, fill
from handrail.domain.graphs.diff import difference
from handrail.domain.graphs.graph import check_invariants, check_sound
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.store.memory import MemoryEngine
from handrail.store.store import Store
from handrail.wiring import LazyLedger, WorkPlace, assemble, settings_at


@pytest.fixture
def committing(tmp_path: Path) -> Committing:
    engine = MemoryEngine()
    fill(engine, 100, 100)
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    place = WorkPlace(project=tmp_path, home=tmp_path, environ={})
    settings = settings_at(place, {"toolsets": "workflow,task", "enable": ENABLED})
    return Committing(assemble(place, settings, ledger=LazyLedger(lambda: store)), store, 100)


def version(committing: Committing, graph: str) -> int:
    begun: dict[str, Any] = committing.ask("tx_begin", graph_id=graph)
    return int(begun["base_version"])


def test_graphs_that_are_measured_keep_their_rules() -> None:
    graph = graph_of(100)
    check_sound(graph)
    check_invariants(graph)
    assert (len(graph.nodes), len(graph.edges)) == (100, 184)
    for count in (1, MANY):
        assert len(difference(graph, with_other_nodes(graph, count))) == count


def test_every_commit_is_one_version(committing: Committing) -> None:
    steps = {one.name: one for one in committing.steps()}
    for name, one in steps.items():
        graph = WORKFLOW if "on the plan" in name else FREE
        before = version(committing, graph)
        answer = one.step()
        moves = not name.startswith(("write", "read"))
        assert version(committing, graph) == before + moves, name
        assert one.against is None or one.against in steps
        if name.startswith("graph_diff"):
            assert answer["total"] == 1
    assert committing.replan(PART)["applied_total"] > 0


def test_what_is_measured_in_memory_runs() -> None:
    steps = in_memory(120)
    found = {one.name: one.step() for one in steps}
    assert len(found[f"difference, {MANY} are, and all was read anew"]) == MANY
    assert {one.against for one in steps} - {None} <= found.keys()


def test_a_step_is_compared_within_its_round() -> None:
    one = Measured("ours", lambda: None, "floor")
    times = {"floor": [1.0, 2.0, 4.0], "ours": [10.0, 40.0, 40.0]}
    assert ratio(one, times) == "10.0"
    lines = table([100], [Measured("floor", lambda: None), one], [times])
    assert lines[-1] == "| ours | floor | 40.000 | 10.0 |"


def test_steps_take_turns() -> None:
    seen: list[str] = []
    steps = [Measured(name, lambda name=name: seen.append(name)) for name in "ab"]  # type: ignore[misc]
    times = measure(steps, 2)
    assert {name: len(found) for name, found in times.items()} == {"a": 2, "b": 2}
    assert [name for number, name in enumerate(seen) if number % 50 == 0] == ["a", "b", "b", "a", "a", "b"]

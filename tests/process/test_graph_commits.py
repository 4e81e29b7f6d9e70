"""Real processes that change one graph at once: of commits that began with the same version one is made and the others
are told, and a plan that two change while a third works it off loses no task and does none twice. On SQLite and on
PostgreSQL."""

from __future__ import annotations

import contextlib
import itertools
import os
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.kernel.records import where
from handrail.store.store import Store
from handrail.store.tables import BY_NAME as TABLES
from handrail.wiring import WorkPlace, ledger_at, settings_at
from tests.process.peer import DEADLINE_S, handrail_serve
from tests.process.served import Served
from tests.store.server import running, schema_of_its_own

TOOLSETS = "workflow,task,orchestration,agent"
FLAGS = ("--enable-tx", "--enable-bulk")
ROUNDS, PLANNERS = 10, 2
_schemas = itertools.count(1)


class Shop(NamedTuple):
    """A store, and a way to start processes on it."""

    serve: Callable[[], Served]
    store: Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgres"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    with contextlib.ExitStack() as stack:
        address = str(tmp_path / "graphs.db")
        if request.param == "postgres":
            server = stack.enter_context(running())
            address = stack.enter_context(schema_of_its_own(server, f"commits_{os.getpid()}_{next(_schemas)}"))
        options = ["--toolsets", TOOLSETS, *FLAGS, "--set", "durable=false", "--db", address]

        def opened() -> Store:
            place = WorkPlace(project=tmp_path, home=Path.home(), environ={})
            store = ledger_at(place, settings_at(place, {"db": address})).open()
            stack.callback(store.engine.close)
            return store

        yield Shop(lambda: Served(stack.enter_context(handrail_serve(tmp_path, *options))), opened)


def tried(line: Served, tool: str, **arguments: Any) -> tuple[str | None, dict[str, Any]]:
    """The code of the refusal, if it was refused, and what was said."""
    result = line.reply(line.begin("tools/call", {"name": tool, "arguments": arguments}))["result"]
    said = result["structuredContent"]
    return (said["error"]["code"], said["error"]) if result.get("isError") else (None, said)


def together(*works: Callable[[], None]) -> None:
    """All of these at once; what goes wrong in one of them goes wrong here."""
    wrong: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - carried to the test
            wrong.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(4 * DEADLINE_S)
        assert not thread.is_alive(), "it did not come to an end"
    if wrong:
        raise wrong[0]


def test_of_commits_at_once_exactly_one_is_made(shop: Shop) -> None:
    lines = [shop.serve() for _ in range(PLANNERS)]
    lines[0].call("graph_create", graph_id="g", nodes=[{"id": "root"}])
    for number, line in enumerate(lines):
        line.register(f"a{number}")
    start = threading.Barrier(PLANNERS)
    outcomes: list[list[str | None]] = [[] for _ in lines]

    def race(who: int) -> None:
        line = lines[who]
        for number in range(ROUNDS):
            start.wait(DEADLINE_S)
            tx = line.call("tx_begin", graph_id="g", expected_version=number + 1)["tx_id"]
            new = {"op": "add_node", "id": f"{number}", "label": f"{who}"}  # both add this one: it must be one's
            line.call("tx_apply", tx_id=tx, operations=[new, {"op": "add_edge", "from": "root", "to": f"{number}"}])
            start.wait(DEADLINE_S)
            code, said = tried(line, "tx_commit", tx_id=tx)
            outcomes[who].append(code)
            assert code is None or said["details"]["version"] == number + 2
            start.wait(DEADLINE_S)

    together(*(lambda who=who: race(who) for who in range(PLANNERS)))
    for codes in zip(*outcomes, strict=True):
        assert sorted(codes, key=str) == [None, "TX_CONFLICT"]
    store = shop.store()
    with store.engine.reading() as reader:
        nodes = {node.key: node.label for node, _ in reader.select(TABLES["graph_node"], where(graph_id="g"))}
    winners = [str(codes.index(None)) for codes in zip(*outcomes, strict=True)]
    assert nodes == {"root": "", **{str(number): who for number, who in enumerate(winners)}}
    assert store.verify() == []


def test_a_plan_that_two_change_while_a_third_works_loses_and_repeats_nothing(shop: Shop) -> None:
    planners, worker = [shop.serve() for _ in range(PLANNERS)], shop.serve()
    made = {"name": "Work", "source_type": "prompt", "source_content": "Do it.", "max_parallel_tasks": 4}
    work = worker.call("workflow_create", **made)["id"]
    first = [
        {"name": f"t{n}", "description": "", "sequence": n, "depends_on": [f"t{n - 1}"] if n else []} for n in range(8)
    ]
    worker.call("workflow_add_tasks", id=work, tasks=first)
    start, over = threading.Barrier(PLANNERS), list[int]()
    won: list[str] = []
    lost = Counter[str]()
    done: list[str] = []

    def change(who: int) -> None:
        line = planners[who]
        for number in range(ROUNDS):
            start.wait(DEADLINE_S)
            begun = line.call("tx_begin", graph_id=work, include_graph=True)
            nodes = begun["graph"]["nodes"]
            last = max(nodes, key=lambda node: (node["attributes"]["sequence"], node["id"]))
            label = f"p{who} {number}"
            operations = [
                {"op": "add_node", "id": "new", "label": label},
                {"op": "add_edge", "from": last["id"], "to": "new"},
            ]
            idle = [node for node in nodes if node["attributes"]["status"] in ("pending", "blocked")]
            if idle:  # the worker may have begun with it by then
                operations.append({"op": "set_node_attribute", "id": idle[0]["id"], "key": "priority", "value": number})
            line.call("tx_apply", tx_id=begun["tx_id"], operations=operations)
            start.wait(DEADLINE_S)
            code, said = tried(line, "tx_commit", tx_id=begun["tx_id"])
            won.append(said["created"]["new"]) if code is None else lost.update([code])
        over.append(who)

    def work_off() -> None:
        while True:
            is_last = len(over) == PLANNERS
            found = worker.call("workflow_next_tasks", workflow_id=work)["tasks"]
            for task in found:
                worker.call("task_update_status", id=task["id"], status="in_progress")
                worker.call("task_update_status", id=task["id"], status="completed", outcome="done")
                done.append(task["id"])
            if is_last and not found:
                return

    together(*(lambda who=who: change(who) for who in range(PLANNERS)), work_off)
    assert lost.keys() <= {"TX_CONFLICT", "GRAPH_INVALID"}, lost
    assert len(won) + sum(lost.values()) == PLANNERS * ROUNDS
    assert 0 < len(won) <= ROUNDS
    check_worked_off(shop.store(), work, [str(task["name"]) for task in first], won, done)


def check_worked_off(store: Store, work: str, first: list[str], won: list[str], done: list[str]) -> None:
    """Every task that was planned is there, was begun once and done once."""
    with store.engine.reading() as reader:
        tasks = {task.id: task for task, _ in reader.select(TABLES["task"], where(workflow_id=work))}
    assert len(tasks) == len(first) + len(won)
    assert {tasks[key].name for key in tasks if key not in won} == set(first)
    assert set(won) <= tasks.keys()
    assert Counter(done) == Counter(tasks.keys())
    assert {(task.status, task.attempts, task.unmet) for task in tasks.values()} == {("completed", 1, 0)}
    kinds = Counter(event.kind for event in store.events(work, limit=10_000))
    assert (kinds["task.completed"], kinds["workflow.replanned"]) == (len(tasks), len(won))
    assert store.verify() == []

"""Graphs and plans against a plain reference: whatever several actors begin, try, commit, give up, lock and patch while
time passes and tasks are started, claimed and finished, every answer and every refusal is the one that nested
dictionaries predict, and no task that is done or under way is lost, changed or done twice."""

from __future__ import annotations

import copy
import os
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from handrail.domain.crew.agent import CrewRules
from handrail.kernel.clock import FixedClock
from handrail.kernel.errors import Refusal
from handrail.kernel.ids import CountingIds
from handrail.kernel.records import where
from handrail.store.memory import MemoryEngine
from handrail.store.ports import Engine
from handrail.store.sqlite import SqliteEngine
from handrail.store.store import Store
from tests.toolsets.plan.plan_model import DONE, LEGAL, Entry, Hold, PlanModel, planned
from tests.toolsets.registry.graph_model import (
    Doc,
    Op,
    Wrong,
    broken,
    failing,
    merged,
    mutated,
    patched,
    read,
    same,
    shown,
)
from tests.toolsets.registry.graph_moves import changes, merges, patches
from tests.toolsets.registry.graphs import Graphs

AGENTS = ("ag_1", "ag_2")
LEASE_MS = CrewRules().lease_ms
HOUR_MS, TEN_MINUTES_MS = 3_600_000, 600_000


class Who(NamedTuple):
    """Who calls, and in whose name."""

    name: str
    named: str | None = None

    @property
    def names(self) -> set[str]:
        return {self.name, *({self.named} if self.named else ())}

    @property
    def is_liar(self) -> bool:
        return self.named in AGENTS and self.named != self.name

    def given(self, member: str = "owner") -> dict[str, Any]:
        agent = {"agent_id": self.name} if self.name in AGENTS else {}
        return {**agent, **({member: self.named} if self.named else {})}


CREW = (Who("tester"), Who("tester", "cora"), Who("ag_1"), Who("ag_2"), Who("ag_2", "cora"))
actors = st.sampled_from([*CREW, *CREW, *CREW, Who("tester", "ag_1")])
expectations = st.sampled_from([None, None, None, "right", "right", "wrong"])
fences = st.sampled_from([None, None, None, None, None, "right", "old"])


class Tried:
    """A transaction: a copy of the graph as it was when it began, and what was done to the copy."""

    def __init__(self, graph: str, version: int, base: Doc, who: Who, until: int) -> None:
        self.graph, self.version, self.until = graph, version, until
        self.base, self.now = base, copy.deepcopy(base)
        self.owner, self.begun_by = who.named or who.name, who.name
        self.ended = False

    def is_for(self, who: Who) -> bool:
        return self.owner in who.names or (self.owner not in AGENTS and self.begun_by == who.name)


class Lock(NamedTuple):
    """Who locked a graph last, under which fence, until when, and for how long it was asked."""

    holder: str | None = None
    fence: int = 0
    until: int = 0
    lasts: int = TEN_MINUTES_MS


class GraphMachine(RuleBasedStateMachine):
    """Actors that change graphs. What a graph is, and what may become of it, is the subclasses'."""

    graphs: tuple[str, ...] = ()
    is_plan = False

    def engine(self) -> Engine:
        return MemoryEngine()

    @initialize()
    def begin_all(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        clock = FixedClock()
        store = Store(self.engine(), clock=clock, ids=CountingIds())
        self.desk = Graphs(Path(self.folder.name), store=store)
        self.desk.clock = clock
        for name in AGENTS:
            assert self.desk.agent(name) in AGENTS
        self.txs: dict[str, Tried] = {}
        self.locks = dict.fromkeys(self.graphs, Lock())
        self.versions: dict[str, list[Doc]] = {}
        self.prepare()

    def prepare(self) -> None:
        raise NotImplementedError

    def teardown(self) -> None:
        if hasattr(self, "versions"):
            try:
                self.look_over()
                assert self.desk.store.verify() == []
            finally:
                self.desk.store.engine.close()
                self.folder.cleanup()

    def look_over(self) -> None:
        """What is looked at once, at the end."""

    @property
    def now_ms(self) -> int:
        return self.desk.clock.now_ms()

    def document(self, graph: str) -> Doc:
        return self.versions[graph][-1]

    def version(self, graph: str) -> int:
        return len(self.versions[graph])

    def heard(self, agent: str) -> None:
        """An agent has called: whatever comes of it, what it has claimed lasts."""

    def fixed(self) -> tuple[str, ...]:
        return ()

    def called(self, tool: str, who: Who | None = None, **arguments: Any) -> Any:
        if who is not None and who.name in AGENTS:
            self.heard(who.name)
        try:
            return self.desk.call(tool, **arguments)
        except Refusal as refusal:
            return refusal

    def expect(self, code: str | None, answer: Any) -> bool:
        """Whether it was done; that it was, or was refused with this code, is what was predicted."""
        found = answer.code if isinstance(answer, Refusal) else None
        assert found == code, (found, code, answer)
        return code is None

    # -- predictions --------------------------------------------------------------------------------------------------

    def is_locked(self, graph: str, names: set[str], fence: int | None) -> bool:
        lock = self.locks[graph]
        if lock.until <= self.now_ms:
            return fence is not None
        return lock.holder not in names or fence not in (None, lock.fence)

    def fence(self, graph: str, wanted: str | None) -> int | None:
        return None if wanted is None else self.locks[graph].fence - (wanted == "old")

    def wanted(self, graph: str, expected: str | None) -> int | None:
        return None if expected is None else self.version(graph) + (expected == "wrong")

    def tx_refusal(self, tx: Tried, who: Who) -> str | None:
        if who.is_liar or not tx.is_for(who):
            return "NOT_ALLOWED"
        return "TX_ENDED" if tx.ended or tx.until <= self.now_ms else None

    def verdict(self, graph: str, after: Doc, names: set[str], *, enforce: bool = True) -> str | None:
        """Why a graph cannot become another one."""
        raise NotImplementedError

    def settle(self, graph: str, after: Doc, answer: Any) -> bool:
        """The graph is another one now; whether anything came of it."""
        raise NotImplementedError

    def settled(self, graph: str, after: Doc, answer: Any, version: int) -> None:
        changed = self.settle(graph, after, answer)
        assert answer["changed"] is changed
        assert version == self.version(graph)
        self.check_shown(graph, answer["graph"], self.document(graph))

    def check_shown(self, graph: str, answer: Doc, expected: Doc) -> None:
        found = shown(answer)
        assert same(found, expected), (found, expected)

    # -- what actors do -----------------------------------------------------------------------------------------------

    def graph_drawn(self, data: st.DataObject) -> str:
        return data.draw(st.sampled_from(self.graphs))

    @rule(data=st.data(), who=actors, expected=expectations, ttl=st.sampled_from([None, None, 50, 2000]))
    def begin(self, data: st.DataObject, who: Who, expected: str | None, ttl: int | None) -> None:
        self.try_begin(self.graph_drawn(data), who, expected, ttl)

    def try_begin(self, graph: str, who: Who, expected: str | None = None, ttl: int | None = None) -> str | None:
        wanted = self.wanted(graph, expected)
        more = {**({} if wanted is None else {"expected_version": wanted}), **({} if ttl is None else {"ttl_ms": ttl})}
        answer = self.called("tx_begin", who, graph_id=graph, include_graph=True, **who.given(), **more)
        code = "NOT_ALLOWED" if who.is_liar else "TX_CONFLICT" if expected == "wrong" else None
        if not self.expect(code, answer):
            return None
        tx = Tried(graph, self.version(graph), copy.deepcopy(self.document(graph)), who, self.now_ms + (ttl or HOUR_MS))
        assert (answer["base_version"], answer["owner"], answer["expires_at"]) == (tx.version, tx.owner, tx.until)
        self.check_shown(graph, answer["graph"], tx.base)
        self.txs[answer["tx_id"]] = tx
        return str(answer["tx_id"])

    def tx_drawn(self, data: st.DataObject, who: Who) -> str | None:
        """A transaction, mostly one of one's own that goes on."""
        own = [key for key, tx in self.txs.items() if self.tx_refusal(tx, who) is None]
        every = [*own, *own, *own, *self.txs]
        return data.draw(st.sampled_from(every)) if every else None

    @rule(data=st.data(), who=actors)
    def apply(self, data: st.DataObject, who: Who) -> None:
        tx_id = self.tx_drawn(data, who)
        if tx_id is None:
            answer = self.called("tx_apply", who, tx_id="tx_99", operations=[{"op": "remove_node", "id": "a"}])
            self.expect("TX_NOT_FOUND", answer)
            return
        self.try_apply(data, tx_id, who)

    def try_apply(self, data: st.DataObject, tx_id: str, who: Who) -> None:
        tx = self.txs[tx_id]
        operations = data.draw(changes(tx.now, plan=self.is_plan))
        answer = self.called("tx_apply", who, tx_id=tx_id, operations=operations, include_graph=True, **who.given())
        code = self.tx_refusal(tx, who)
        after = tx.now
        if code is None:
            try:
                after = mutated(tx.now, operations, self.fixed())
            except Wrong as wrong:
                code = wrong.code
        if not self.expect(code, answer):
            return
        tx.now = after
        changed = not same(self.compared(tx.base), self.compared(after))
        assert (answer["changed"], answer["preview_version"]) == (changed, tx.version + changed)
        assert len(answer["applied"]) == len(operations)
        self.check_shown(tx.graph, answer["graph"], after)
        if self.version(tx.graph) != tx.version:
            assert answer["latest_version"] == self.version(tx.graph)
        else:
            verdict = self.verdict(tx.graph, after, who.names | {tx.owner})
            assert answer["invariants"]["ok"] is (verdict is None), (answer["invariants"], verdict)

    def compared(self, document: Doc) -> Doc:
        return document

    @rule(data=st.data(), who=actors, fence=fences)
    def commit(self, data: st.DataObject, who: Who, fence: str | None) -> None:
        tx_id = self.tx_drawn(data, who)
        if tx_id is not None:
            self.try_commit(tx_id, who, fence)

    @rule(data=st.data(), crew=st.lists(st.sampled_from(CREW), min_size=1, max_size=2), ends=st.booleans())
    def change_together(self, data: st.DataObject, crew: list[Who], ends: bool) -> None:
        """One or two actors begin with the same version and try something; mostly they commit, one after the other."""
        graph = self.graph_drawn(data)
        begun = [(who, self.try_begin(graph, who, "right")) for who in crew]
        for who, tx_id in begun:
            assert tx_id is not None
            for _ in range(data.draw(st.integers(1, 2))):
                self.try_apply(data, tx_id, who)
        for who, tx_id in begun if ends else ():
            assert tx_id is not None
            self.try_commit(tx_id, who)

    def try_commit(self, tx_id: str, who: Who, fence: str | None = None) -> None:
        tx = self.txs[tx_id]
        given = self.fence(tx.graph, fence)
        named = {} if given is None else {"fence": given}
        answer = self.called("tx_commit", who, tx_id=tx_id, include_graph=True, **who.given(), **named)
        names = who.names | {tx.owner}
        code = self.tx_refusal(tx, who)
        if code is None and self.version(tx.graph) != tx.version:
            code = "TX_CONFLICT"
            assert answer.details["version"] == self.version(tx.graph)
        if code is None and self.is_locked(tx.graph, names, given):
            code = "LOCK_HELD"
        if code is None:
            code = self.verdict(tx.graph, tx.now, names)
        if self.expect(code, answer):
            tx.ended = True
            self.settled(tx.graph, tx.now, answer, answer["version"])

    @rule(data=st.data(), who=actors)
    def roll_back(self, data: st.DataObject, who: Who) -> None:
        tx_id = self.tx_drawn(data, who)
        if tx_id is None:
            return
        tx = self.txs[tx_id]
        if self.expect(self.tx_refusal(tx, who), self.called("tx_rollback", who, tx_id=tx_id, **who.given())):
            tx.ended = True

    @rule(data=st.data(), who=actors, expected=expectations, fence=fences)
    def change_at_once(self, data: st.DataObject, who: Who, expected: str | None, fence: str | None) -> None:
        graph = self.graph_drawn(data)
        self.try_change(graph, self.changes_drawn(data, graph), who, expected, fence)

    @rule(data=st.data(), who=st.sampled_from(CREW), fence=st.sampled_from([None, "right", "old"]))
    def change_under_a_lock(self, data: st.DataObject, who: Who, fence: str | None) -> None:
        graph = self.graph_drawn(data)
        self.try_lock(graph, who, 40)
        self.try_change(graph, self.changes_drawn(data, graph), who, None, fence)

    def changes_drawn(self, data: st.DataObject, graph: str) -> list[Op]:
        return data.draw(changes(self.document(graph), plan=self.is_plan, most=4))

    def try_change(
        self, graph: str, operations: list[Op], who: Who, expected: str | None = None, fence: str | None = None
    ) -> None:
        wanted, given = self.wanted(graph, expected), self.fence(graph, fence)
        more = {
            **({} if wanted is None else {"expected_version": wanted}),
            **({} if given is None else {"fence": given}),
        }
        answer = self.called(
            "graph_batch_mutate", who, graph_id=graph, operations=operations, include_graph=True, **who.given(), **more
        )
        code = self.refusal_to_change(graph, who, expected, given)
        after = self.document(graph)
        if code is None:
            if failed := failing(after, operations, self.fixed()):
                code = "BULK_REFUSED"
                assert [one["index"] for one in answer.details["failures"]] == failed
            else:
                after = mutated(after, operations, self.fixed())
                code = self.verdict(graph, after, who.names)
        if self.expect(code, answer):
            self.settled(graph, after, answer, answer["version"])

    @rule(
        data=st.data(),
        who=actors,
        expected=expectations,
        fence=fences,
        enforce=st.booleans(),
        merge=st.booleans(),
    )
    def patch(
        self, data: st.DataObject, who: Who, expected: str | None, fence: str | None, enforce: bool, merge: bool
    ) -> None:
        graph = self.graph_drawn(data)
        enforce |= self.is_plan
        now = self.document(graph)
        wish: Any = data.draw((merges if merge else patches)(now, plan=self.is_plan))
        wanted, given = self.wanted(graph, expected), self.fence(graph, fence)
        more: dict[str, Any] = {} if wanted is None else {"base_version": wanted}
        more |= {**({} if given is None else {"fence": given}), "merge" if merge else "patch": wish}
        answer = self.called(
            "graph_patch",
            who,
            graph_id=graph,
            include_graph=True,
            **({} if enforce else {"enforce_invariants": False}),
            **who.given(),
            **more,
        )
        code, after = self.refusal_to_change(graph, who, expected, given), now
        if code is None:
            try:
                after = read((merged if merge else patched)(now, wish))
                code = self.verdict(graph, after, who.names, enforce=enforce)
            except Wrong as wrong:
                code = wrong.code
        if self.expect(code, answer):
            assert answer["invariants"]["ok"] is (self.is_plan or not broken(after))
            self.settled(graph, after, answer, answer["committed_version"])

    def refusal_to_change(self, graph: str, who: Who, expected: str | None, fence: int | None) -> str | None:
        if who.is_liar:
            return "NOT_ALLOWED"
        if expected == "wrong":
            return "TX_CONFLICT"
        return "LOCK_HELD" if self.is_locked(graph, who.names, fence) else None

    @rule(data=st.data(), who=actors, ttl=st.sampled_from([None, 1, 1, 40, 40, 5000]))
    def lock(self, data: st.DataObject, who: Who, ttl: int | None) -> None:
        self.try_lock(self.graph_drawn(data), who, ttl)

    def try_lock(self, graph: str, who: Who, ttl: int | None) -> None:
        lock, holder = self.locks[graph], who.named or who.name
        held = lock.until > self.now_ms
        more = {} if ttl is None else {"ttl_ms": ttl}
        answer = self.called("graph_lock", who, graph_id=graph, **who.given("holder"), **more)
        code = "NOT_ALLOWED" if who.is_liar else "LOCK_HELD" if held and lock.holder != holder else None
        if not self.expect(code, answer):
            return
        lasts = ttl or (lock.lasts if held else TEN_MINUTES_MS)
        until = max(lock.until, self.now_ms + lasts)
        self.locks[graph] = Lock(holder, lock.fence + (not held), until, until - self.now_ms)
        assert (answer["fence"], answer["expires_at"]) == (self.locks[graph].fence, until)

    @rule(data=st.data(), who=actors, fence=fences)
    def unlock(self, data: st.DataObject, who: Who, fence: str | None) -> None:
        graph = self.graph_drawn(data)
        lock, holder = self.locks[graph], who.named or who.name
        held, given = lock.until > self.now_ms, self.fence(graph, fence)
        more = {} if given is None else {"fence": given}
        named = {**who.given("holder"), "holder": holder}
        answer = self.called("graph_unlock", who, lock_id=f"lock:{graph}", **named, **more)
        own = lock.holder == holder and given in (None, lock.fence)
        code = "NOT_ALLOWED" if who.is_liar else None
        if code is None and lock.holder is not None and not own and (held or given is not None):
            code = "LOCK_HELD"
        if self.expect(code, answer):
            assert answer["released"] is (own and lock.holder is not None)
            if own:
                self.locks[graph] = Lock(None, lock.fence)

    @rule(ms=st.sampled_from([1, 45, 3000, LEASE_MS, TEN_MINUTES_MS, HOUR_MS]))
    def time_passes(self, ms: int) -> None:
        self.desk.clock.advance(ms)

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def transactions_are_as_they_should_be(self) -> None:
        for key, tx in getattr(self, "txs", {}).items():
            state = self.desk.read(f"sc://snapshots/{tx.graph}/{key}")["state"]
            assert (state == "pending") is (not tx.ended and tx.until > self.now_ms)


class FreeGraphs(GraphMachine):
    """Two graphs that are no plans: one that must not lead in circles, and one with no rules."""

    graphs = ("g", "h")

    def prepare(self) -> None:
        for graph, said in (("g", {"dag": True}), ("h", {})):
            self.desk.make(graph, metadata=said)
            self.versions[graph] = [shown(self.desk.state(graph)["graph"])]

    def verdict(self, graph: str, after: Doc, names: set[str], *, enforce: bool = True) -> str | None:
        return "GRAPH_INVALID" if enforce and broken(after) else None

    def settle(self, graph: str, after: Doc, answer: Any) -> bool:
        if same(after, self.document(graph)):
            return False
        self.versions[graph].append(copy.deepcopy(after))
        return True

    @invariant()
    def every_graph_is_the_references(self) -> None:
        for graph in getattr(self, "versions", ()):
            state = self.desk.state(graph)
            assert state["version"] == self.version(graph)
            self.check_shown(graph, state["graph"], self.document(graph))

    def look_over(self) -> None:
        """Every version is what it was."""
        for graph, documents in self.versions.items():
            for version, document in enumerate(documents, 1):
                self.check_shown(graph, self.desk.read(f"sc://graphs/{graph}@v{version}")["graph"], document)


class Plans(GraphMachine):
    """A workflow whose tasks are started, claimed, given back, failed and finished while its plan is changed."""

    graphs = ("wf_1",)
    is_plan = True

    def prepare(self) -> None:
        tasks: tuple[Doc, ...] = (
            {"name": "a"},
            {"name": "b", "depends_on": ["a"]},
            {"name": "c", "depends_on": ["b"]},
            {"name": "d", "parent": "c"},
        )
        assert self.desk.plan(*tasks, name="w", max_parallel_tasks=4) == "wf_1"
        self.plan = PlanModel("w")
        ids = {task["name"]: f"task_{number}" for number, task in enumerate(tasks, 1)}
        for number, task in enumerate(tasks, 1):
            entry = Entry(task["name"], {"sequence": number}, ids.get(task.get("parent", "")))
            entry.needs = {ids[need] for need in task.get("depends_on", ())}
            self.plan.tasks[ids[task["name"]]] = entry
        self.versions["wf_1"] = [self.plan.document()]

    def fixed(self) -> tuple[str, ...]:
        return tuple(self.plan.tasks)

    def heard(self, agent: str) -> None:
        for task in self.plan.tasks.values():
            if task.hold.holder == agent and task.hold.until > self.now_ms:
                task.hold = Hold(agent, self.now_ms + LEASE_MS)

    def compared(self, document: Doc) -> Doc:
        return planned(document)

    def check_shown(self, graph: str, answer: Doc, expected: Doc) -> None:
        found = planned(shown(answer))
        assert same(found, planned(expected)), (found, expected)

    def verdict(self, graph: str, after: Doc, names: set[str], *, enforce: bool = True) -> str | None:
        return self.plan.verdict(after, names, self.now_ms)

    def settle(self, graph: str, after: Doc, answer: Any) -> bool:
        before, created = self.plan.document(), answer.get("created", {})
        assert created.keys() == after["nodes"].keys() - self.plan.tasks.keys()
        last = max(task.attributes["sequence"] for task in self.plan.tasks.values()) if self.plan.tasks else 0
        skipped = self.plan.become(after, created)
        for key in created.values():  # a new task that names no sequence comes after all others
            if "sequence" not in self.plan.tasks[key].attributes:
                found = self.row(key).sequence
                assert found > last
                self.plan.tasks[key].attributes["sequence"] = found
        assert sorted(answer.get("skipped", ())) == sorted(skipped)
        is_other = not same(before, self.plan.document())
        if is_other:
            self.versions[graph].append(self.plan.document())
        return is_other or bool(skipped)

    def row(self, task_id: str) -> Any:
        return self.desk.rows("task", where(id=task_id))[0]

    def task_drawn(self, data: st.DataObject) -> str | None:
        return data.draw(st.sampled_from(sorted(self.plan.tasks))) if self.plan.tasks else None

    # -- what is done meanwhile ---------------------------------------------------------------------------------------

    @rule(data=st.data(), who=st.sampled_from([Who("tester"), *map(Who, AGENTS)]))
    def move(self, data: st.DataObject, who: Who) -> None:
        key = self.task_drawn(data)
        if key is None:
            return
        able = sorted(LEGAL[self.plan.tasks[key].status])
        self.try_move(key, data.draw(st.sampled_from([*able, *able, *LEGAL])), who)

    @rule(data=st.data(), ends=st.sampled_from(["completed", "completed", "failed", "paused", None]))
    def work(self, data: st.DataObject, ends: str | None) -> None:
        """Something that can be begun is begun, and mostly brought to an end."""
        if ready := sorted(self.plan.ready(self.now_ms)):
            key = data.draw(st.sampled_from(ready))
            self.try_move(key, "in_progress", Who("tester"))
            if ends is not None:
                self.try_move(key, ends, Who("tester"))

    def try_move(self, key: str, status: str, who: Who) -> None:
        task = self.plan.tasks[key]
        able = LEGAL[task.status]
        answer = self.called(
            "task_update_status", who, id=key, status=status, outcome="done", error="broken", **who.given()
        )
        code: str | None = None
        if self.plan.holder(key, self.now_ms) not in (None, who.name):
            code = "CLAIM_HELD"
        elif status not in able:
            code = "ILLEGAL_TRANSITION"
        elif status in ("planning", "in_progress") and self.plan.is_blocked(key):
            code = "TASK_BLOCKED"
        elif status in DONE and self.plan.has_open_parts(key):
            code = "TASKS_OPEN"
        if not self.expect(code, answer):
            return
        task.status = status
        task.traces |= status == "in_progress"
        if task.hold.holder == who.name:
            task.hold = Hold(who.name, self.now_ms + LEASE_MS)
        if status in (*DONE, "failed", "pending"):
            task.hold = Hold()

    @rule(data=st.data(), agent=st.sampled_from(AGENTS), start=st.booleans())
    def claim(self, data: st.DataObject, agent: str, start: bool) -> None:
        key = self.task_drawn(data)
        if key is not None:
            self.try_claim(key, agent, start)

    @rule(data=st.data(), who=st.sampled_from(CREW), fails=st.booleans(), start=st.booleans())
    def change_what_somebody_has_tried(self, data: st.DataObject, who: Who, fails: bool, start: bool) -> None:
        """A task that an agent has just claimed, or has failed at, is changed by somebody."""
        ready = sorted(self.plan.ready(self.now_ms))
        if not ready:
            return
        key = data.draw(st.sampled_from(ready))
        self.try_claim(key, "ag_1", start or fails)
        if fails:
            self.try_move(key, "failed", Who("ag_1"))
        ways: list[Op] = [
            {"op": "set_node_attribute", "id": key, "key": "priority", "value": 7},
            {"op": "rename_node", "id": key, "label": "another name"},
            {"op": "remove_node", "id": key},
        ]
        self.try_change("wf_1", [data.draw(st.sampled_from(ways))], who)

    def try_claim(self, key: str, agent: str, start: bool) -> None:
        task = self.plan.tasks[key]
        answer = self.called("task_claim", Who(agent), task_id=key, agent_id=agent, start=start)
        blocked = self.plan.is_blocked(key)
        code = "ILLEGAL_TRANSITION" if task.status in DONE else "TASK_BLOCKED" if blocked else None
        if not self.expect(code, answer):
            return
        holder = self.plan.holder(key, self.now_ms)
        assert answer["success"] is (holder in (None, agent))
        if answer["success"]:
            task.hold = Hold(agent, self.now_ms + LEASE_MS)
            if start:
                task.status, task.traces = "in_progress", True

    @rule(data=st.data(), agent=st.sampled_from(AGENTS))
    def give_back(self, data: st.DataObject, agent: str) -> None:
        key = self.task_drawn(data)
        if key is None:
            return
        task = self.plan.tasks[key]
        answer = self.called("task_release", Who(agent), task_id=key, agent_id=agent)
        if self.expect("CLAIM_HELD" if task.hold.holder not in (None, agent) else None, answer):
            assert answer["success"] is (task.hold.holder == agent)
            if answer["success"]:
                task.hold = Hold()
                task.status = "pending" if task.status in ("planning", "in_progress", "paused") else task.status

    @rule(data=st.data(), who=st.sampled_from([Who("tester"), *map(Who, AGENTS)]))
    def add_a_task(self, data: st.DataObject, who: Who) -> None:
        """The plan's own tools keep to locks too, and move the version that a transaction began with."""
        names = {task.name for task in self.plan.tasks.values()}
        name = next(name for name in (f"more{number}" for number in range(99)) if name not in names)
        task = {"name": name, "description": "", "sequence": 9}
        answer = self.called("workflow_add_tasks", who, id="wf_1", tasks=[task], **who.given())
        if self.expect("LOCK_HELD" if self.is_locked("wf_1", who.names, None) else None, answer):
            made = self.desk.tasks("wf_1")[name].id
            self.plan.tasks[made] = Entry(name, {"sequence": 9})
            self.versions["wf_1"].append(self.plan.document())

    # -- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def every_task_is_the_references(self) -> None:
        if not hasattr(self, "plan"):
            return
        rows = {task.id: task for task in self.desk.tasks("wf_1").values()}
        assert rows.keys() == self.plan.tasks.keys()
        for key, task in self.plan.tasks.items():
            row = rows[key]
            said = {"sequence": row.sequence, "priority": row.priority, "description": row.description}
            assert (row.name, row.parent_task_id, row.status) == (task.name, task.parent, task.status), key
            assert said == task.attributes, key
        assert self.desk.state("wf_1")["version"] == self.version("wf_1")

    @invariant()
    def what_can_be_begun_follows(self) -> None:
        if not hasattr(self, "plan"):
            return
        deserted = {
            key
            for key, task in self.plan.tasks.items()
            if task.status in ("planning", "in_progress", "paused")
            and task.hold.holder is not None
            and task.hold.until <= self.now_ms
            and not self.plan.is_blocked(key)
        }
        offered = self.desk.call("workflow_next_tasks", workflow_id="wf_1", limit=50)["tasks"]
        assert {task["id"] for task in offered} == self.plan.ready(self.now_ms) | deserted
        self.desk.audit("wf_1")

    def look_over(self) -> None:
        """Nothing was done twice, and what was done is there; every version is what it was."""
        ended = Counter[str]()
        for event in self.desk.store.events("wf_1", limit=10_000):
            if event.kind == "task.completed":
                ended.update(
                    change.key for change in event.changes if (change.after or {}).get("status") == "completed"
                )
        assert set(ended.values()) <= {1}
        assert ended.keys() == {key for key, task in self.plan.tasks.items() if task.status == "completed"}
        for version, document in enumerate(self.versions["wf_1"], 1):
            said = self.desk.read(f"sc://graphs/wf_1@v{version}")["graph"]
            assert {node["id"]: node["label"] for node in said["nodes"]} == {
                key: node["label"] for key, node in document["nodes"].items()
            }


def on_sqlite(machine: type[GraphMachine]) -> type[GraphMachine]:
    def engine(self: GraphMachine) -> Engine:
        return SqliteEngine(Path(self.folder.name) / "handrail.db", version="0", durable=False)

    return type(f"{machine.__name__}OnSqlite", (machine,), {"engine": engine})


THOROUGH = os.environ.get("HANDRAIL_HYPOTHESIS") == "torture"


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [FreeGraphs, Plans])
def test_graphs_in_memory(machine: type[GraphMachine]) -> None:
    run_state_machine_as_test(machine, settings=settings(max_examples=1500 if THOROUGH else 40, stateful_step_count=30))


@pytest.mark.hypothesis
@pytest.mark.parametrize("machine", [FreeGraphs, Plans])
def test_graphs_on_sqlite(machine: type[GraphMachine]) -> None:
    run_state_machine_as_test(
        on_sqlite(machine), settings=settings(max_examples=400 if THOROUGH else 6, stateful_step_count=25)
    )

"""Boards against a plain dictionary: whatever two agents set, expect, remove and take back while time passes, every
read says what the dictionary says, and whoever watches sees every change once, in order, and can rebuild the board."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import msgspec
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from handrail.kernel.errors import BoardConflict, NothingToUndo
from handrail.kernel.ledger import Actor
from tests.toolsets.registry.boards import Boards

BOARDS = ("default", "plan")
KEYS = ("x", "y", "plan:x", "plan:xy", "plan:z")
actors = st.sampled_from(["ada", "ben"])
keys = st.sampled_from(KEYS)
names = st.sampled_from(BOARDS)
values: st.SearchStrategy[Any] = st.sampled_from([None, 0, False, 1, 1.0, True, "v", [], {"a": 1}, {"a": 1.0}])
tags = st.lists(st.sampled_from(["s", "t"]), max_size=2, unique=True)
Entry = dict[str, Any]


def full(key: str) -> str:
    return key if ":" in key else f"default:{key}"


def same(one: Any, other: Any) -> bool:
    """In JSON 1, 1.0 and true differ."""
    return msgspec.json.encode(one) == msgspec.json.encode(other)


class BoardMachine(RuleBasedStateMachine):
    """Two agents, two boards, three watchers a board that look at different times and in different steps."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.desk = Boards(Path(self.folder.name))
        self.rows: dict[str, dict[str, Entry]] = {name: {} for name in BOARDS}
        """What stands on each board, with what has run out and was not written off yet."""
        self.log: dict[str, list[dict[str, Any]]] = {name: [] for name in BOARDS}
        self.by_actor: dict[str, list[tuple[str, int]]] = {"ada": [], "ben": [], "handrail": []}
        self.gone: set[tuple[str, int]] = set()
        self.cursors = {(name, watcher): 0 for name in BOARDS for watcher in range(3)}
        self.rebuilt: dict[tuple[str, int], dict[str, Entry]] = {cursor: {} for cursor in self.cursors}

    def teardown(self) -> None:
        if hasattr(self, "desk"):
            assert self.desk.store.verify() == []
            self.folder.cleanup()

    # -- the model --------------------------------------------------------------------------------------------------

    def live(self, name: str) -> dict[str, Entry]:
        now = self.desk.clock.now_ms()
        return {
            key: entry
            for key, entry in self.rows[name].items()
            if entry["expiresAt"] is None or entry["expiresAt"] > now
        }

    def happened(self, name: str, who: str, kind: str, key: str, entry: Entry | None, reason: str | None) -> None:
        version, now = len(self.log[name]) + 1, self.desk.clock.now_ms()
        change: dict[str, Any] = {"version": version, "kind": kind, "key": key, "ts": now}
        change |= {"entry": entry} if entry is not None else {}
        change |= {"previous": self.rows[name][key]} if key in self.rows[name] else {}
        change |= {"reason": reason} if reason is not None else {}
        change |= {"by": who} if kind != "expire" else {}
        if entry is None:
            del self.rows[name][key]
        else:
            self.rows[name][key] = entry
        self.log[name].append(change)
        self.by_actor[who].append((name, version))

    def swept(self, name: str) -> None:
        gone = [entry for key, entry in self.rows[name].items() if key not in self.live(name)]
        for entry in sorted(gone, key=lambda entry: (entry["expiresAt"], entry["key"])):
            self.happened(name, "handrail", "expire", entry["key"], None, "ttl")

    def version(self, key: str) -> int:
        there = self.live(key.partition(":")[0]).get(key)
        return there["version"] if there is not None else 0

    # -- what agents do ---------------------------------------------------------------------------------------------

    @rule(
        who=actors,
        key=keys,
        value=values,
        tags=tags,
        ttl=st.sampled_from([None, None, 1, 40, 1000]),
        expected=st.sampled_from(["any", "right", "none", 1, 5]),
    )
    def set(self, who: str, key: str, value: Any, tags: list[str], ttl: int | None, expected: Any) -> None:
        whole, name = full(key), full(key).partition(":")[0]
        there = self.version(whole)
        wanted = {"any": None, "right": there, "none": 0}.get(expected, expected)
        more: dict[str, Any] = {} if wanted is None else {"expected_version": wanted}
        more |= {} if ttl is None else {"ttl_ms": ttl}
        if wanted not in (None, there):
            refusal = self.desk.refused("bb_set", who, key=key, value=value, tags=tags, **more)
            assert isinstance(refusal, BoardConflict)
            assert same(refusal.details["entry"], self.live(name).get(whole))
            return
        answer = self.desk.put(key, value, who, tags=tags, **more)
        self.swept(name)
        now, old = self.desk.clock.now_ms(), self.rows[name].get(whole)
        entry = {"key": whole, "value": value, "tags": tags, "createdAt": old["createdAt"] if old else now}
        entry |= {"updatedAt": now, "expiresAt": None if ttl is None else now + ttl}
        entry |= {"version": len(self.log[name]) + 1, "setBy": who}
        assert same(answer, entry)
        self.happened(name, who, "set", whole, entry, None)

    @rule(who=actors, key=keys, expected=st.sampled_from(["any", "right", 1, 5]))
    def delete(self, who: str, key: str, expected: Any) -> None:
        whole, name = full(key), full(key).partition(":")[0]
        there = self.version(whole)
        wanted = {"any": None, "right": there or None}.get(expected, expected)
        more = {} if wanted is None else {"expected_version": wanted}
        if wanted not in (None, there):
            assert isinstance(self.desk.refused("bb_delete", who, key=key, **more), BoardConflict)
            return
        answer = self.desk.ask("bb_delete", who, key=key, **more)
        self.swept(name)
        assert answer["deleted"] is bool(there)
        if there:
            assert answer["version"] == len(self.log[name]) + 1
            assert same(answer["previous"], self.rows[name][whole])
            self.happened(name, who, "delete", whole, None, None)

    @rule(who=actors)
    def undo(self, who: str) -> None:
        """A person who takes back what went wrong, step by step: only the last write of a board that stands."""
        mine = [one for one in self.by_actor[who] if self.stands(*one)]
        name, version = mine[-1] if mine else ("", 0)
        if not mine or any(self.stands(name, later) for later in range(version + 1, len(self.log[name]) + 1)):
            try:
                self.desk.store.undo(Actor(who, "cli"))
            except NothingToUndo:
                return
            raise AssertionError("an undo that could not be")
        self.desk.store.undo(Actor(who, "cli"))
        self.gone.add((name, version))
        last = self.log[name][version - 1]
        entry = last.get("previous")
        self.happened(name, who, "delete" if entry is None else "set", last["key"], entry, "undo")

    def stands(self, name: str, version: int) -> bool:
        """Whether a write was not taken back, and is no taking back itself."""
        return (name, version) not in self.gone and self.log[name][version - 1].get("reason") != "undo"

    @rule(ms=st.sampled_from([0, 1, 30, 2000]))
    def time_passes(self, ms: int) -> None:
        self.desk.clock.advance(ms)

    @rule(who=actors, name=names, watcher=st.integers(0, 2), limit=st.sampled_from([1, 2, 500, None]))
    def watch(self, who: str, name: str, watcher: int, limit: int | None) -> None:
        start = self.cursors[name, watcher]
        more = {} if limit is None else {"limit": limit}
        told = self.desk.ask("bb_watch", who, namespace=name, start_version=start, **more)
        self.swept(name)
        expected = self.log[name][start : start + (limit or 100)]
        assert len(told["events"]) == len(expected)
        for shown, known in zip(told["events"], expected, strict=True):
            assert shown.keys() == known.keys()
            assert all(same(shown[member], known[member]) for member in known)
        self.cursors[name, watcher] = told["next_version"]
        assert told["next_version"] == start + len(expected)
        assert told["latest_version"] == len(self.log[name])
        self.rebuild(name, watcher, told["events"])

    def rebuild(self, name: str, watcher: int, events: list[dict[str, Any]]) -> None:
        """A watcher knows the board by what it was told alone."""
        known = self.rebuilt[name, watcher]
        for event in events:
            assert same(known.get(event["key"]), event.get("previous"))
            if "entry" in event:
                known[event["key"]] = event["entry"]
            else:
                del known[event["key"]]
        if self.cursors[name, watcher] == len(self.log[name]):
            assert same(sorted(known.items()), sorted(self.rows[name].items()))

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def every_read_says_what_the_dictionary_says(self) -> None:
        if not hasattr(self, "rows"):
            return
        everything = {**self.live("default"), **self.live("plan")}
        page = self.desk.ask("bb_query", limit=500)
        assert same(page["entries"], [everything[key] for key in sorted(everything)])
        assert page["total"] == len(everything)
        for key in KEYS:
            assert same(self.desk.ask("bb_get", key=key)["entry"], everything.get(full(key)))
        tagged = self.desk.ask("bb_query", namespace="plan", tags=["t"], prefix="x", limit=500)
        fitting = [key for key in sorted(everything) if key.startswith("plan:x") and "t" in everything[key]["tags"]]
        assert [entry["key"] for entry in tagged["entries"]] == fitting

    @invariant()
    def versions_count_without_gaps(self) -> None:
        for name, log in getattr(self, "log", {}).items():
            assert self.desk.ask("bb_query", namespace=name)["latest_version"] == len(log)
            assert all(later["version"] == one["version"] + 1 for one, later in itertools.pairwise(log))


BoardMachine.TestCase.settings = settings(stateful_step_count=25)
TestBoards = BoardMachine.TestCase

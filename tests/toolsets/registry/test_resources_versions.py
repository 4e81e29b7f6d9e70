"""Versions of a plan against copies that were made when each was committed: whatever happens later, reading a version
gives that copy, and its snapshot the graphs right before and after."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from handrail.kernel.errors import Refusal
from handrail.kernel.records import where
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.plan.test_workflow_machine import NAMES, drafts
from tests.toolsets.registry.addressed import Addressed

STATES = ("planning", "in_progress", "paused", "completed", "failed", "skipped", "pending")


class VersionMachine(RuleBasedStateMachine):
    """Somebody plans, works, plans anew and takes things back; somebody else copies every version as it comes."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.desk = Addressed(Path(self.folder.name))
        self.id = self.desk.call("workflow_create", name="w", source_type="prompt", source_content="")["id"]
        self.desk.call("workflow_set_parallelism", id=self.id, max_parallel_tasks=5)
        self.agent = self.desk.call("agent_register", name="ada", runtime="codex")["id"]
        self.at_first = self.standing()
        self.committed: dict[int, Any] = {}
        self.bases: dict[int, Any] = {}

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def do(self, tool: str, **arguments: Any) -> None:
        self.tried(lambda: self.desk.call(tool, **arguments))

    def tried(self, change: Any) -> None:
        before = self.latest()
        self.desk.clock.advance(7)
        try:
            change()
        except Refusal:
            assert self.latest() == before
            return
        after = self.latest()
        if after["version"] > before["version"]:
            assert after["version"] == before["version"] + 1
            self.committed[after["version"]] = after
            self.bases[after["version"]] = before["graph"]
        elif after["version"] < before["version"]:  # taken back
            del self.committed[before["version"]], self.bases[before["version"]]
        elif not self.committed:
            assert after["version"] == 0

    def latest(self) -> Any:
        return self.desk.read(f"sc://graphs/{self.id}")

    def tasks(self) -> list[dict[str, Any]]:
        nodes: list[dict[str, Any]] = self.latest()["graph"]["nodes"]
        return nodes

    @rule(data=st.data())
    def add(self, data: st.DataObject) -> None:
        known = [node["label"] for node in self.tasks()]
        self.do("workflow_add_tasks", id=self.id, tasks=data.draw(drafts(NAMES, known)))

    @rule(data=st.data())
    def replan(self, data: st.DataObject) -> None:
        known = [node["label"] for node in self.tasks()]
        self.do("workflow_replan", id=self.id, reason="r", tasks=data.draw(drafts(NAMES, known)))

    @rule(data=st.data(), status=st.sampled_from(STATES))
    def move(self, data: st.DataObject, status: str) -> None:
        if nodes := self.tasks():
            task = data.draw(st.sampled_from(nodes))["id"]
            self.do("task_update_status", id=task, status=status, outcome="done", error="broken")

    @rule(data=st.data())
    def take_out(self, data: st.DataObject) -> None:
        if nodes := self.tasks():
            self.do("workflow_remove_task", task_id=data.draw(st.sampled_from(nodes))["id"])

    @rule(data=st.data())
    def claim(self, data: st.DataObject) -> None:
        if nodes := self.tasks():
            self.do("task_claim", task_id=data.draw(st.sampled_from(nodes))["id"], agent_id=self.agent)

    @rule()
    def undo(self) -> None:
        if self.standing() > self.at_first:  # the workflow itself stays
            self.tried(lambda: self.desk.store.undo(TESTER))

    def standing(self) -> int:
        """How many writes are not taken back."""
        kinds = [event.kind for event in self.desk.store.feed(limit=10_000) if event.actor == TESTER.name]
        return sum(-1 if kind == "ledger.undo" else not kind.startswith("op.") for kind in kinds)

    @rule(status=st.sampled_from(("in_progress", "paused")))
    def pause_or_go_on(self, status: str) -> None:
        self.do("workflow_update_status", id=self.id, status=status)

    @invariant()
    def every_version_is_as_it_was(self) -> None:
        if not hasattr(self, "committed"):
            return
        for version, was in self.committed.items():
            assert self.desk.read(f"sc://graphs/{self.id}@v{version}") == was
            snapshot = self.desk.read(f"sc://snapshots/{self.id}/v{version}")
            assert (snapshot["baseGraph"], snapshot["finalGraph"]) == (self.bases[version], was["graph"])
            assert (snapshot["baseVersion"], snapshot["finalVersion"]) == (version - 1, version)
        newest = max(self.committed, default=0)
        assert sorted(self.committed) == list(range(1, newest + 1))
        listed = [uri for uri in self.desk.uris(prefix=f"sc://graphs/{self.id}", limit=500) if "@" in uri]
        assert listed == sorted(f"sc://graphs/{self.id}@v{version}" for version in self.committed)
        refusal = self.desk.refused("resources_read", uri=f"sc://graphs/{self.id}@v{newest + 1}")
        assert refusal.code == "RESOURCE_NOT_FOUND"

    @invariant()
    def the_latest_graph_shows_every_task_and_dependency(self) -> None:
        if not hasattr(self, "committed"):
            return
        shown = self.latest()["graph"]
        tasks = self.desk.rows("task", where(workflow_id=self.id))
        links = self.desk.rows("dependency", where(workflow_id=self.id))
        assert {(node["id"], node["label"], node["attributes"]["status"]) for node in shown["nodes"]} == {
            (task.id, task.name, task.shown_status) for task in tasks
        }
        waits = {(edge["from"], edge["to"]) for edge in shown["edges"] if "label" not in edge}
        parts = {(edge["from"], edge["to"]) for edge in shown["edges"] if edge.get("label") == "part_of"}
        assert waits == {(link.needs_id, link.task_id) for link in links}
        assert parts == {(task.parent_task_id, task.id) for task in tasks if task.parent_task_id is not None}
        assert len(shown["edges"]) == len(waits) + len(parts)


VersionMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20)
TestVersions = VersionMachine.TestCase

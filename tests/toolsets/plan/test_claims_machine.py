"""Claims against a model that is nothing but a table: agents claim, write, give back, fall silent, leave and return, in
any order and at any time; whoever writes is whoever the model says may."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from handrail.domain.crew.agent import CrewRules
from handrail.kernel.errors import ClaimHeld, Refusal
from tests.toolsets.plan.planned import Desk

TASKS = ("task_1", "task_2", "task_3")
AGENTS = ("ag_1", "ag_2", "ag_3")
LEASE_MS = CrewRules().lease_ms

tasks = st.sampled_from(TASKS)
agents = st.sampled_from(AGENTS)


class Hold(NamedTuple):
    """Who has had a task last, under which fence, until when; nobody once it was given back."""

    holder: str | None = None
    fence: int = 0
    until: int = 0


class Crew(RuleBasedStateMachine):
    """Three agents and three tasks that can be done over and over: none is ever finished."""

    @initialize()
    def prepare(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.desk = Desk(Path(self._folder.name))
        self.desk.plan(*({"name": name} for name in TASKS))
        self.secrets: dict[str, str] = {}
        for name in AGENTS:
            answer = self.desk.call("agent_register", name=name, runtime="custom")
            self.secrets[answer["id"]] = answer["secret"]
        self.hold = dict.fromkeys(TASKS, Hold())
        self.present = dict.fromkeys(AGENTS, self.now + LEASE_MS)
        self.lost: dict[str, int] = dict.fromkeys(AGENTS, 0)

    def teardown(self) -> None:
        if hasattr(self, "_folder"):
            assert self.desk.store.verify() == []
            self._folder.cleanup()

    @property
    def now(self) -> int:
        return self.desk.clock.now_ms()

    def held_by(self, task: str) -> str | None:
        hold = self.hold[task]
        return hold.holder if hold.until > self.now else None

    def call(self, agent: str, tool: str, **arguments: Any) -> Any:
        """A call in an agent's name: whatever comes of it, the agent is there and what it still has is renewed."""
        self.present[agent] = self.now + LEASE_MS
        for task, hold in self.hold.items():
            if hold.holder == agent and hold.until > self.now:
                self.hold[task] = hold._replace(until=self.now + LEASE_MS)
        try:
            return self.desk.call(tool, agent_secret=self.secrets[agent], **arguments)
        except Refusal as refusal:
            return refusal

    @rule(ms=st.sampled_from((LEASE_MS // 30, LEASE_MS // 3, LEASE_MS - LEASE_MS // 3, LEASE_MS, 2 * LEASE_MS)))
    def time_passes(self, ms: int) -> None:
        self.desk.clock.advance(ms)

    @rule(task=tasks, agent=agents, start=st.booleans())
    def claim(self, task: str, agent: str, start: bool) -> None:
        before = self.hold[task]
        holder = self.held_by(task)
        answer = self.call(agent, "task_claim", task_id=task, agent_id=agent, start=start)
        if holder not in (None, agent):
            assert answer["success"] is False
            assert answer["already_claimed_by"] == holder
            return
        fence = before.fence if holder == agent else before.fence + 1
        assert (answer["success"], answer["fence"]) == (True, fence)
        taken = before.holder if before.holder not in (None, agent) else None
        assert answer.get("taken_from") == taken
        if taken is not None:
            self.lost[taken] += 1
        self.hold[task] = Hold(agent, fence, self.now + LEASE_MS)

    @rule(task=tasks, agent=agents, fence=st.sampled_from((None, -1, 0)))
    def write(self, task: str, agent: str, fence: int | None) -> None:
        """With no fence, with the current one, or with one before."""
        hold = self.hold[task]
        given = None if fence is None else hold.fence + fence
        named = {} if given is None else {"fence": given}
        holder = self.held_by(task)
        answer = self.call(agent, "checkpoint_add", task_id=task, type="progress", summary="s", agent_id=agent, **named)
        right = given is None or (given == hold.fence and hold.holder == agent)
        if right and holder in (None, agent):
            assert not isinstance(answer, Refusal), answer
            if hold.holder == agent:
                self.hold[task] = hold._replace(until=self.now + LEASE_MS)
        else:
            assert isinstance(answer, ClaimHeld)
            if holder is not None:
                assert answer.details["held_by"] == holder

    @rule(task=tasks)
    def a_stranger_writes(self, task: str) -> None:
        try:
            self.desk.call("checkpoint_add", task_id=task, type="progress", summary="s")
        except ClaimHeld:
            assert self.held_by(task) is not None
        else:
            assert self.held_by(task) is None

    @rule(task=tasks, agent=agents)
    def give_back(self, task: str, agent: str) -> None:
        hold = self.hold[task]
        answer = self.call(agent, "task_release", task_id=task, agent_id=agent)
        if hold.holder is None:
            assert answer["success"] is False
        elif hold.holder == agent:
            assert answer["success"] is True
            self.hold[task] = Hold(None, hold.fence)
        else:
            assert isinstance(answer, ClaimHeld)

    @rule(agent=agents)
    def leave(self, agent: str) -> None:
        answer = self.call(agent, "agent_unregister", id=agent)
        own = [task for task, hold in self.hold.items() if hold.holder == agent]
        assert answer["tasks_released"] == len(own)
        for task in own:
            self.hold[task] = Hold(None, self.hold[task].fence)
        self.present[agent] = 0

    @rule(agent=agents)
    def beat(self, agent: str) -> None:
        answer = self.call(agent, "agent_heartbeat", agent_id=agent)
        own = {task for task, hold in self.hold.items() if hold.holder == agent}
        held = {task for task in own if self.held_by(task) == agent}
        assert {claim["task_id"] for claim in answer.get("holding", ())} == held
        assert {claim["task_id"] for claim in answer.get("lapsed", ())} == own - held
        assert len(answer.get("lost", ())) == min(self.lost[agent], 15)

    @rule(task=tasks, agent=agents)
    @precondition(lambda self: hasattr(self, "desk"))
    def fail(self, task: str, agent: str) -> None:
        if self.held_by(task) != agent or self.desk.task(task)["status"] != "in_progress":
            return
        self.call(agent, "task_update_status", id=task, status="failed", error="e", agent_id=agent)
        self.hold[task] = Hold(None, self.hold[task].fence)

    @invariant()
    def everybody_sees_the_same(self) -> None:
        if not hasattr(self, "desk"):
            return
        for task in TASKS:
            assert self.desk.task(task)["assigned_agent_id"] == self.held_by(task)
        free = {task for task in TASKS if self.held_by(task) is None}
        offered = self.desk.call("workflow_next_tasks", workflow_id="wf_1")["tasks"]
        # What somebody began without ever claiming it is somebody's; here nobody does.
        assert {task["id"] for task in offered} == free
        for agent in AGENTS:
            there = self.present[agent] > self.now
            status = self.desk.call("agent_get", id=agent)["status"]
            busy = any(self.held_by(task) == agent for task in TASKS)
            assert status == ("busy" if busy else "online" if there else "offline"), (agent, there, busy)


Crew.TestCase.settings = settings(stateful_step_count=40)
TestCrew = Crew.TestCase

"""One agent of a crew, a process of its own: `python -m tests.process.crew_agent ORDERS`, where ORDERS is JSON.

It looks for a task, claims it, leaves checkpoints, completes it, and goes on until nothing is left of the workflow.
Every answer is a line of JSON on stdout: what was acknowledged, what was refused. With `waits` it stops after its
first claim until a line comes on stdin: whoever watches it can freeze, kill or cut it off just there. A `rogue` agent
leaves out the check of claims: the double work that an audit has to find.
"""

from __future__ import annotations

import os
import random
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from tests.process.crew_lines import HttpLine, Line, OwnLine, Refused, ServeLine, settings_for

CHECKPOINTS = 2
PAUSE_S = 0.03
OFFERS = 8
OVER = ("CLAIM_HELD", "ILLEGAL_TRANSITION")
"""Refusals that tell that somebody else has taken or finished a task."""


class Orders(msgspec.Struct, frozen=True, kw_only=True):
    """Who the agent is, where it works, and how it gets there."""

    name: str
    life: int
    seed: int
    workflow: str
    address: str
    folder: str
    heartbeat_ms: int
    line: str = "own"
    """own, serve, or the address of a server over HTTP."""
    token: str = ""
    id: str | None = None
    secret: str | None = None
    waits: bool = False
    rogue: bool = False
    work_ms: int = 0


def say(**line: Any) -> None:
    """One line in one write, so that a kill leaves whole lines."""
    os.write(1, msgspec.json.encode(line) + b"\n")


def line_of(orders: Orders) -> Line:
    if orders.line.startswith("http"):
        return HttpLine(orders.line, orders.token)
    settings = settings_for(orders.address, orders.heartbeat_ms)
    kind = ServeLine if orders.line == "serve" else OwnLine
    return kind(Path(orders.folder), settings, orders.name)


class Worker:
    """The agent at work."""

    def __init__(self, orders: Orders, line: Line) -> None:
        self._orders = orders
        self._line = line
        self._chance = random.Random(f"{orders.seed}/{orders.name}/{orders.life}")
        self._identity: dict[str, Any] = {}
        self._waits = orders.waits
        self._writes = 0
        self._watcher = os.getppid()

    def register(self) -> list[str]:
        """Comes, or comes back; the tasks that are still its own."""
        arguments: dict[str, Any] = {"name": self._orders.name, "runtime": "custom"}
        if self._orders.id is not None:
            arguments |= {"id": self._orders.id, "agent_secret": self._orders.secret}
        told = self._insist("agent_register", arguments)
        self._identity = {"agent_id": told["id"], "agent_secret": told.get("secret") or self._orders.secret}
        kept = {name: [claim["task_id"] for claim in told.get(name, ())] for name in ("holding", "lapsed", "lost")}
        say(here=told["id"], secret=self._identity["agent_secret"], life=self._orders.life, **kept)
        return kept["holding"] + kept["lapsed"]

    def work(self, mine: list[str]) -> None:
        for task_id in mine:
            self._take(task_id)
        while not self._is_over():
            asked = {"workflow_id": self._orders.workflow, "limit": OFFERS, **self._identity}
            offered = self._insist("task_get_available", asked)["tasks"]
            if offered:
                self._take(self._chance.choice(offered)["id"])
            else:
                threading.Event().wait(PAUSE_S * (0.5 + self._chance.random()))

    def _is_over(self) -> bool:
        """True when everything is done, or nobody watches any more."""
        if os.getppid() != self._watcher:
            return True
        shown = self._insist("workflow_get", {"id": self._orders.workflow})
        return bool(shown["completed_tasks"] == shown["total_tasks"])

    def _take(self, task_id: str) -> None:
        """One task, from the claim to its end, or as far as it is ours."""
        claimed = self._write("claim", task_id, None, "task_claim", {"task_id": task_id, "start": True})
        if claimed is None or not claimed["success"]:
            return
        fence: int = claimed["fence"]
        if self._waits:
            self._waits = False
            sys.stdin.readline()
        for _ in range(CHECKPOINTS):
            threading.Event().wait(self._orders.work_ms / 1000 * self._chance.random())
            noted = {"task_id": task_id, "type": "progress", "summary": self._mark(fence)}
            if self._write("checkpoint", task_id, fence, "checkpoint_add", noted) is None:
                return
            if self._chance.random() < 0.2:
                self._insist("agent_heartbeat", {"current_task_id": task_id, **self._identity})
        finished = {"id": task_id, "status": "completed", "outcome": self._mark(fence)}
        self._write("completed", task_id, fence, "task_update_status", finished)

    def _mark(self, fence: int) -> str:
        """What tells a write from every other: who made it, in which life, under which fence, the how-manieth."""
        self._writes += 1
        return f"{self._orders.name}/{self._orders.life}/{fence}/{self._writes}"

    def _write(
        self, doing: str, task_id: str, fence: int | None, tool: str, arguments: dict[str, Any]
    ) -> dict[str, Any] | None:
        """One write, again while the store cannot be reached; None when it was declined."""
        mark = arguments.get("summary") or arguments.get("outcome")
        fenced = {} if fence is None else {"fence": fence}
        while True:
            try:
                answer = self._line.call(tool, {**arguments, **fenced, **self._identity})
            except Refused as refused:
                told = {"unknown": refused.is_unknown, "why": str(refused)}
                say(refused=refused.code, doing=doing, task=task_id, mark=mark, fence=fence, **told)
                if refused.is_passing:
                    threading.Event().wait(PAUSE_S)
                    if doing == "checkpoint" and refused.is_unknown:  # it may be there: another one says the rest
                        return {}
                    continue
                if refused.code not in OVER:
                    raise
                return None
            if answer.get("success", True):
                told = {"fence": answer.get("fence", fence), "taken_from": answer.get("taken_from")}
                say(did=doing, task=task_id, mark=mark, **told)
            return answer

    def _insist(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """A call that writes nothing to a task, until it is answered."""
        while True:
            try:
                return self._line.call(tool, arguments)
            except Refused as refused:
                say(refused=refused.code, doing=tool, unknown=refused.is_unknown)
                if not refused.is_passing:
                    raise
                threading.Event().wait(PAUSE_S)


def leave_out_the_check() -> None:
    from handrail.toolsets import here

    here.check_writer = lambda *_: None  # type: ignore[attr-defined]


def main(orders: Orders) -> None:
    if orders.rogue:
        leave_out_the_check()
    worker = Worker(orders, line_of(orders))
    worker.work(worker.register())
    say(done=orders.name)


if __name__ == "__main__":
    main(msgspec.json.decode(sys.argv[1], type=Orders))

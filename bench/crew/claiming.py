"""A worker that claims: `python -m bench.crew.claiming KIND FILE|ADDRESS LANE LANES`.

The real operations, called in this process through the function that serves `tools/call`, over a store of its own.
`claim` takes a new task each time and begins it. `work` takes one, begins it and completes it in the next step, as an
agent does. Every step is one call and one commit. `-shared` kinds take their tasks from one plan for all lanes.
"""

from __future__ import annotations

import itertools
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

from bench.store.slices import Prepare, Step, grow_log, serve
from handrail.kernel.ledger import Actor
from handrail.surfaces.invocation import CallingClient, invoke
from handrail.wiring import Handrail, WorkPlace, assemble, settings_at

ACTOR = Actor("bench", "mcp")
TOOLSETS = "workflow,task,agent"
SHARED = "-shared"
PLANNED_TOGETHER = 500
"""Tasks of one plan."""


class Agent:
    """One agent of one process: what it is told to do, it does by calling tools."""

    def __init__(self, handrail: Handrail, lane: int, lanes: int) -> None:
        self._handrail = handrail
        self._client = CallingClient()
        self._lane, self._lanes = lane, lanes
        self._spare: list[str] = []
        self._id: str = self.call("agent_register", name=f"agent {lane}", runtime="custom")["id"]

    def call(self, tool: str, **arguments: Any) -> Any:
        operation = self._handrail.switch.find(tool)
        assert operation is not None
        return invoke(operation, self._handrail.call, arguments, actor=ACTOR, client=self._client)

    # -- the plans, before the clock runs ----------------------------------------------------------------------------

    def own_tasks(self, count: int) -> list[str]:
        """So many tasks that nobody has had, in plans of this lane's own."""
        while len(self._spare) < count:
            self._spare += self._tasks_of(self._plan(PLANNED_TOGETHER))
        return self._spare

    def shared_tasks(self, count: int) -> list[str]:
        """This lane's share of one plan. The first lane, which is asked first, makes it."""
        if self._lane == 0:
            workflow_id = self._plan(count * self._lanes)
        else:
            workflow_id = self.call("workflow_list", limit=1)["workflows"][0]["id"]
        return self._tasks_of(workflow_id)[self._lane :: self._lanes]

    def _plan(self, count: int) -> str:
        made = self.call(
            "workflow_create",
            name=f"Plan of lane {self._lane}",
            source_type="prompt",
            source_content="Move every importer to the queue. " * 10,
            max_parallel_tasks=100,
        )
        tasks = [
            {"name": f"importer {number}", "description": "Move it and keep its tests green. " * 5, "sequence": 1}
            for number in range(count)
        ]
        plan = {"summary": "One queue", "approach": "Importer by importer", "tasks": tasks}
        self.call("workflow_set_plan", id=made["id"], plan=plan)
        return str(made["id"])

    def _tasks_of(self, workflow_id: str) -> list[str]:
        found: list[str] = []
        while True:
            shown = self.call(
                "workflow_get", id=workflow_id, include_tasks=True, task_limit=1000, task_offset=len(found)
            )
            found += [task["id"] for task in shown["tasks"]]
            if len(shown["tasks"]) < 1000:
                return found

    # -- what is timed -----------------------------------------------------------------------------------------------

    def claims(self, tasks: list[str]) -> Step:
        """Each step claims and begins a task."""
        return lambda: self._claim(tasks.pop())

    def works(self, tasks: list[str]) -> Step:
        """Steps in turns: a task claimed and begun, then completed."""
        steps = self._working(tasks)
        return lambda: next(steps)

    def _working(self, tasks: list[str]) -> Iterator[None]:
        while True:
            task = tasks.pop()
            fence = self._claim(task)
            yield
            self.call(
                "task_update_status",
                id=task,
                status="completed",
                outcome="Moved; its tests pass.",
                agent_id=self._id,
                fence=fence,
            )
            yield

    def _claim(self, task: str) -> int:
        claimed = self.call("task_claim", task_id=task, agent_id=self._id, start=True)
        if not claimed["success"]:
            raise RuntimeError(f"{task} is {claimed['already_claimed_by']}'s")
        return int(claimed["fence"])


def steps_of(kind: str, agent: Agent) -> Prepare:
    find = agent.shared_tasks if kind.endswith(SHARED) else agent.own_tasks

    def prepare(_lane: int, count: int) -> Step:
        if kind.removesuffix(SHARED) == "claim":
            return agent.claims(find(count))
        return agent.works(find(-(-count // 2)))

    return prepare


def opened(folder: Path, address: str) -> Handrail:
    place = WorkPlace(project=folder, home=folder, environ={})
    return assemble(place, settings_at(place, {"toolsets": TOOLSETS, "db": address}))


def main(kind: str, address: str, lane: int, lanes: int) -> None:
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        handrail = opened(Path(folder), address)
        agent = Agent(handrail, lane, lanes)
        if lane == 0 and "://" not in address:
            connection = apsw.Connection(address)
            grow_log(lambda text: connection.execute(text).fetchall())
            connection.close()
        serve(steps_of(kind, agent), lane=lane)
        handrail.ledger.open().engine.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *itertools.islice(map(int, sys.argv[3:]), 2))

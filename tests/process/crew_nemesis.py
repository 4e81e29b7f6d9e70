"""A crew of agent processes on one workflow, and what is done to them: killed, frozen past their lease and resumed,
started anew. Everything is decided by a seed; what the agents say is kept life by life for the audit."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handrail.kernel.records import PAGE
from handrail.store.store import Store
from tests.process.crew_agent import Orders
from tests.process.crew_audit import Life, audit, counts
from tests.process.crew_lines import OwnLine, settings_for
from tests.process.store_crew import DEADLINE_S, child_environment

AT_ONCE = 400
"""Tasks of a plan that are handed in with one call."""
STUCK_S = 120.0
"""How long nobody may say a word."""


def layered(seed: int, tasks: int, width: int) -> dict[str, list[str]]:
    """A plan in layers: each task waits for one to three of the layer before."""
    chance = random.Random(f"plan/{seed}")
    needs: dict[str, list[str]] = {}
    for number in range(tasks):
        layer = number // width
        above = [f"task {one}" for one in range((layer - 1) * width, layer * width)] if layer else []
        needs[f"task {number}"] = chance.sample(above, min(len(above), chance.randint(1, 3)))
    return needs


class Ground:
    """A store that a crew shares, and the workflow in it."""

    def __init__(self, folder: Path, address: str, heartbeat_ms: int) -> None:
        self.folder = folder
        self.address = address
        self.heartbeat_ms = heartbeat_ms
        self._line = OwnLine(folder, settings_for(address, heartbeat_ms), "setup")

    @property
    def lease_s(self) -> float:
        return 3 * self.heartbeat_ms / 1000

    @property
    def store(self) -> Store:
        return self._line.handrail.ledger.open()

    def plan(self, needs: Mapping[str, Sequence[str]]) -> str:
        """A new workflow with these tasks."""
        made = {"name": "crew", "source_type": "prompt", "source_content": "work", "max_parallel_tasks": 50}
        workflow: str = self._line.call("workflow_create", made)["id"]
        tasks = [
            {"name": name, "description": "-", "sequence": 0, "depends_on": list(found)}
            for name, found in needs.items()
        ]
        for start in range(0, len(tasks), AT_ONCE):
            self._line.call("workflow_add_tasks", {"id": workflow, "tasks": tasks[start : start + AT_ONCE]})
        return workflow

    def close(self) -> None:
        self.store.engine.close()


class Agent:
    """One agent through all its lives. Its process leads a group of its own: a server it started shares its fate."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self.lives: list[Life] = []
        self.frozen = False
        self.process: subprocess.Popen[bytes]
        self._pending = b""
        self.ended = True

    @property
    def name(self) -> str:
        return self._orders.name

    @property
    def life(self) -> Life:
        return self.lives[-1]

    @property
    def id(self) -> str | None:
        return next((life.agent_id for life in reversed(self.lives) if life.agent_id is not None), None)

    @property
    def is_standing(self) -> bool:
        """True while it runs and has been heard of, so that it can be struck."""
        return not self.ended and not self.frozen and self.life.agent_id is not None

    @property
    def held(self) -> str | None:
        """The task it claimed last and has not completed, as far as it said."""
        done = [line for line in self.life.acks if line["did"] in ("claim", "completed")]
        return done[-1]["task"] if done and done[-1]["did"] == "claim" else None

    def start(self, lost_before: Iterable[str] = ()) -> None:
        before = next((line for life in self.lives for line in life.said if "here" in line), None)
        orders = msgspec.structs.replace(self._orders, life=len(self.lives) + 1)
        if before is not None:
            orders = msgspec.structs.replace(orders, id=before["here"], secret=before["secret"], waits=False)
        self.lives.append(Life(self.name, orders.life, lost_before=set(lost_before)))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.process.crew_agent", msgspec.json.encode(orders).decode()],
            env=child_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
        )
        self._pending, self.ended, self.frozen = b"", False, False

    def fileno(self) -> int:
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def listen(self) -> None:
        """Takes in what is there; call it when there is something."""
        chunk = os.read(self.fileno(), 1 << 16)
        *lines, self._pending = (self._pending + chunk).split(b"\n")
        for line in lines:
            said = msgspec.json.decode(line)
            self.life.said.append(said)
            if "here" in said:
                self.life.agent_id = said["here"]
        if not chunk:
            self.ended = True
            self.process.wait(DEADLINE_S)
            for pipe in (self.process.stdin, self.process.stdout):
                assert pipe is not None
                pipe.close()

    def go_on(self) -> None:
        """Lets an agent that waits after its first claim go on."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def freeze(self) -> None:
        os.killpg(self.process.pid, signal.SIGSTOP)
        self.frozen = True

    def thaw(self) -> None:
        os.killpg(self.process.pid, signal.SIGCONT)
        self.frozen = False

    def kill(self) -> None:
        """Ends it here and now; hears what it had said until then."""
        self.life.killed = True
        os.killpg(self.process.pid, signal.SIGKILL)
        while not self.ended:
            self.listen()


class Crew:
    """Agents at work on one workflow."""

    def __init__(self, ground: Ground, needs: Mapping[str, Sequence[str]], seed: int) -> None:
        self.ground = ground
        self.needs = needs
        self.seed = seed
        self.workflow = ground.plan(needs)
        self.agents: list[Agent] = []
        self.done: Counter[str] = Counter()
        self.struck: Counter[str] = Counter()
        self._chance = random.Random(f"nemesis/{seed}")

    def add(self, name: str, **orders: Any) -> Agent:
        where = {"workflow": self.workflow, "address": self.ground.address, "folder": str(self.ground.folder)}
        given = {**where, "heartbeat_ms": self.ground.heartbeat_ms, "life": 1, "seed": self.seed, **orders}
        agent = Agent(Orders(name=name, **given))
        agent.start()
        self.agents.append(agent)
        return agent

    # -- listening ----------------------------------------------------------------------------------------------------

    def listen(self, timeout_s: float) -> bool:
        """Takes in what anybody says; False when nobody did within the time."""
        ready, _, _ = select.select([agent for agent in self.agents if not agent.ended], [], [], timeout_s)
        for agent in ready:
            agent.listen()
            if agent.ended and not agent.life.killed:
                assert agent.process.returncode == 0, f"{agent.name} ended by itself: {agent.life.said[-3:]}"
        return bool(ready)

    def until(self, happened: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + STUCK_S
        while not happened():
            assert time.monotonic() < deadline, f"seed {self.seed}: {what} does not happen"
            self.listen(0.2)

    def listen_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0 and self.is_busy:
            self.listen(left)

    @property
    def is_busy(self) -> bool:
        return any(not agent.ended and not agent.frozen for agent in self.agents)

    def taken_from(self, agent: Agent) -> set[str]:
        """The tasks that others said to have taken from an agent."""
        return {
            line["task"]
            for other in self.agents
            for life in other.lives
            for line in life.acks
            if line.get("taken_from") is not None and line["taken_from"] == agent.id
        }

    def taken_over(self, agent: Agent, task: str) -> bool:
        return task in self.taken_from(agent)

    def claimed(self, agent: Agent) -> str:
        """The task of an agent's first claim, once it has one."""
        self.until(lambda: agent.held is not None, f"a claim of {agent.name}")
        assert agent.held is not None
        return agent.held

    # -- what is done to them -----------------------------------------------------------------------------------------

    def kill(self, agent: Agent) -> None:
        agent.kill()
        self.done["kills"] += 1
        self.struck[agent.name] += 1

    def start_again(self, agent: Agent) -> None:
        agent.start(self.taken_from(agent))
        self.done["restarts"] += 1

    def freeze(self, agent: Agent) -> None:
        agent.freeze()
        self.done["freezes"] += 1
        self.struck[agent.name] += 1

    def strike(self, victim: Agent) -> Callable[[], None]:
        """Does one thing to an agent; what is to be done later to bring it back."""
        if self._chance.random() < 0.5:
            self.freeze(victim)
            return victim.thaw
        self.kill(victim)
        return lambda: self.start_again(victim)

    def torment(self, victims: Sequence[Agent], most: int) -> None:
        """Strikes again and again until the work is done, and sees everybody home. Who is struck is away for a moment,
        or for longer than its lease."""
        later: list[tuple[float, Callable[[], None]]] = []
        strikes, next_strike = 0, time.monotonic()
        while self.is_busy:
            now = time.monotonic()
            for at, bring_back in [one for one in later if one[0] <= now]:
                bring_back()
                later.remove((at, bring_back))
            standing = [agent for agent in victims if agent.is_standing]
            if strikes < most and now >= next_strike and standing:
                strikes += 1
                away = self._chance.choice((0.1, 1.2, 1.8)) * self.ground.lease_s
                spared = min(self.struck[agent.name] for agent in standing)
                victim = self._chance.choice([agent for agent in standing if self.struck[agent.name] == spared])
                later.append((now + away, self.strike(victim)))
                next_strike = now + self._chance.random() * self.ground.lease_s
            self.listen(0.05)
        for _, bring_back in later:
            bring_back()
        self.see_home()

    def see_home(self) -> None:
        while any(not agent.ended for agent in self.agents):
            assert self.listen(STUCK_S), f"seed {self.seed}: nobody says a word"

    def end(self) -> None:
        """Ends whoever is still there: a test that failed leaves nobody behind."""
        for agent in self.agents:
            if not agent.ended:
                agent.kill()

    # -- afterwards ---------------------------------------------------------------------------------------------------

    @property
    def lives(self) -> list[Life]:
        return [life for agent in self.agents for life in agent.lives]

    def problems(self) -> list[str]:
        store = self.ground.store
        found = [f"verify: {problem}" for problem in store.verify()]
        return found + audit(every_event(store), self.workflow, self.needs, self.lives)

    def report(self) -> str:
        came_to = counts(every_event(self.ground.store), self.workflow, self.lives)
        told = {**came_to._asdict(), **self.done}
        return f"seed {self.seed}: {len(self.agents)} agents, " + ", ".join(f"{told[name]} {name}" for name in told)


def every_event(store: Store) -> list[Any]:
    found: list[Any] = []
    while page := store.feed(after=found[-1].position if found else 0, limit=PAGE):
        found += page
    return found

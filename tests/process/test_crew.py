"""Many agents on one plan while some are killed, frozen past their lease or started anew: every task is done exactly
once, over the whole recorded history, on SQLite and on PostgreSQL."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.crew_audit import counts
from tests.process.crew_nemesis import Crew, Ground, every_event, layered
from tests.store.server import running, schema_of_its_own

HEARTBEAT_MS = 150
STORES = ("sqlite", "postgres")
TORTURED = int(os.environ.get("HANDRAIL_CREW_TASKS", "1000"))
"""Tasks of the long version. Fewer where it has only a slice of the time: cut off, it would prove nothing."""


@contextlib.contextmanager
def ground_on(kind: str, folder: Path, heartbeat_ms: int = HEARTBEAT_MS) -> Iterator[Ground]:
    """A store that processes can share."""
    with contextlib.ExitStack() as stack:
        if kind == "postgres":
            server = stack.enter_context(running(of_its_own=True))
            address = stack.enter_context(schema_of_its_own(server, "crew"))
        else:
            address = str(folder / "crew.db")
        ground = Ground(folder, address, heartbeat_ms)
        stack.callback(ground.close)
        yield ground


@contextlib.contextmanager
def crew_on(ground: Ground, *, tasks: int, width: int, seed: int) -> Iterator[Crew]:
    crew = Crew(ground, layered(seed, tasks, width), seed)
    try:
        yield crew
    finally:
        crew.end()


def three_fates(crew: Crew) -> None:
    """What chance might leave out: one agent frozen with its claim until it is lost, one killed with it and back after
    that, one killed and back at once."""
    frozen, late, prompt = crew.agents[:3]
    lost = crew.claimed(frozen)
    crew.freeze(frozen)
    gone = crew.claimed(late)
    crew.kill(late)
    kept = crew.claimed(prompt)
    crew.kill(prompt)
    crew.start_again(prompt)
    crew.until(lambda: prompt.life.agent_id is not None, "the return of the one that was killed")
    told = prompt.life.said[0]
    assert kept in told["holding"] + told["lapsed"] + told["lost"], "it is told how its claim stands"
    crew.until(lambda: crew.taken_over(frozen, lost), "that another takes what the frozen one had")
    crew.until(lambda: crew.taken_over(late, gone), "that another takes what the dead one had")
    frozen.thaw()
    frozen.go_on()
    crew.start_again(late)
    crew.until(lambda: bool(frozen.life.refusals), "the refusal of the one that was frozen")
    assert frozen.life.refusals[0]["refused"] == "CLAIM_HELD"
    crew.until(lambda: late.life.agent_id is not None, "the return of the one that was lost")
    assert gone in late.life.said[0]["lost"]


def work_through(crew: Crew, *, agents: int, served: int, strikes: int, work_ms: int) -> None:
    """A third of the agents are struck; some of those and some of the others have a real server of their own."""
    began = time.monotonic()
    victims = max(3, agents // 3)
    for number in range(agents):
        line = "serve" if number < served or victims <= number < victims + served else "own"
        crew.add(f"a{number}", line=line, waits=number < 3, work_ms=work_ms)
    three_fates(crew)
    crew.torment(crew.agents[:victims], strikes)
    print(f"{crew.report()}, {time.monotonic() - began:.1f} s")
    assert crew.problems() == [], f"seed {crew.seed}"
    came_to = counts(every_event(crew.ground.store), crew.workflow, crew.lives)
    assert came_to.tasks == len(crew.needs)
    assert came_to.takeovers >= 2
    assert came_to.held >= 1
    assert all(crew.struck[agent.name] for agent in crew.agents[:victims])


@pytest.mark.parametrize("store", STORES)
def test_every_task_is_done_once_while_agents_are_killed_frozen_and_started_anew(tmp_path: Path, store: str) -> None:
    with ground_on(store, tmp_path) as ground, crew_on(ground, tasks=60, width=10, seed=20261116) as crew:
        work_through(crew, agents=8, served=1, strikes=8, work_ms=300)


def test_the_audit_finds_the_double_work_of_an_agent_that_nobody_checks(tmp_path: Path) -> None:
    with ground_on("sqlite", tmp_path) as ground, crew_on(ground, tasks=12, width=4, seed=1) as crew:
        rogue = crew.add("rogue", waits=True, rogue=True)
        task = crew.claimed(rogue)
        crew.freeze(rogue)
        for number in range(2):
            crew.add(f"a{number}", work_ms=20)
        crew.until(lambda: crew.taken_over(rogue, task), "that another takes what the rogue had")
        rogue.thaw()
        rogue.go_on()
        crew.see_home()
        problems = crew.problems()
        assert any(f"of {task} by {rogue.id} while" in problem for problem in problems), problems


@pytest.mark.torture
@pytest.mark.parametrize("store", STORES)
def test_thirty_two_agents_do_a_thousand_tasks_once_each(tmp_path: Path, store: str) -> None:
    with ground_on(store, tmp_path, 400) as ground, crew_on(ground, tasks=TORTURED, width=40, seed=32) as crew:
        work_through(crew, agents=32, served=1, strikes=10_000, work_ms=600)

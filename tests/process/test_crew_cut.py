"""Two servers on one PostgreSQL, agents on both. One is cut off for longer than a lease and comes back: whatever its
agents had was taken over, and nothing they wrote meanwhile is accepted beside it."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process.crew_audit import counts
from tests.process.crew_cut import HELD_BACK, THROWN_OFF, WAYS, CuttingWire, cutting_wire_to
from tests.process.crew_lines import TOOLSETS
from tests.process.crew_nemesis import Agent, Crew, Ground, every_event, layered
from tests.process.http_peer import HttpProcess, handrail_http
from tests.process.test_crew import ground_on

TOKEN = "T"
HEARTBEAT_MS = 200


class Sides(NamedTuple):
    """The server that stays, the one that is cut off, and the wire between it and the store."""

    near: HttpProcess
    far: HttpProcess
    wire: CuttingWire


def server_on(ground: Ground, folder: Path, address: str) -> HttpProcess:
    folder.mkdir()
    options = ("--db", address, "--toolsets", TOOLSETS, "--set", f"heartbeat_ms={ground.heartbeat_ms}")
    return handrail_http(folder, *options, token=TOKEN)


@contextlib.contextmanager
def two_servers(ground: Ground) -> Iterator[Sides]:
    with (
        cutting_wire_to(ground.address) as wire,
        server_on(ground, ground.folder / "near", ground.address) as near,
        server_on(ground, ground.folder / "far", wire.address) as far,
    ):
        yield Sides(near, far, wire)


@contextlib.contextmanager
def crew_of_both(folder: Path, *, tasks: int, seed: int) -> Iterator[tuple[Crew, Sides]]:
    with ground_on("postgres", folder, HEARTBEAT_MS) as ground, two_servers(ground) as sides:
        crew = Crew(ground, layered(seed, tasks, 8), seed)
        try:
            yield crew, sides
        finally:
            sides.wire.rejoin()
            crew.end()


def man(crew: Crew, sides: Sides, each: int, waiting: int, work_ms: int) -> tuple[list[Agent], list[Agent]]:
    """Agents on both sides. The first of the far side wait after their first claim; the near side comes when those
    have theirs."""
    far = [
        crew.add(f"far{number}", line=sides.far.url, token=TOKEN, waits=number < waiting, work_ms=work_ms)
        for number in range(each)
    ]
    for agent in far[:waiting]:
        crew.claimed(agent)
    near = [crew.add(f"near{number}", line=sides.near.url, token=TOKEN, work_ms=work_ms) for number in range(each)]
    return near, far


def found_right(crew: Crew, began: float) -> None:
    print(f"{crew.report()}, {time.monotonic() - began:.1f} s")
    assert crew.problems() == [], f"seed {crew.seed}"
    came_to = counts(every_event(crew.ground.store), crew.workflow, crew.lives)
    assert came_to.tasks == len(crew.needs)
    assert came_to.held >= 1


@pytest.mark.parametrize("way", WAYS)
def test_what_a_cut_off_server_writes_is_not_accepted_beside_what_others_did(tmp_path: Path, way: str) -> None:
    began = time.monotonic()
    with crew_of_both(tmp_path, tasks=40, seed=7) as (crew, sides):
        _, (silent, busy, *_) = man(crew, sides, each=3, waiting=2, work_ms=150)
        had = [crew.claimed(silent), crew.claimed(busy)]
        sides.wire.cut(way)
        before = len(busy.life.acks)
        busy.go_on()
        for agent, task in zip((silent, busy), had, strict=True):
            crew.until(lambda agent=agent, task=task: crew.taken_over(agent, task), "that others take over")  # type: ignore[misc]
        assert len(busy.life.acks) == before, "nothing is acknowledged by a server that is cut off"
        sides.wire.rejoin()
        silent.go_on()
        for agent in (silent, busy):
            crew.until(lambda agent=agent: "CLAIM_HELD" in refusals_of(agent), f"the refusal of {agent.name}")  # type: ignore[misc]
        crew.see_home()
        found_right(crew, began)


def refusals_of(agent: Agent) -> list[str]:
    return [line["refused"] for line in agent.life.refusals]


@pytest.mark.torture
def test_a_server_that_is_cut_off_again_and_again_does_no_work_twice(tmp_path: Path) -> None:
    began = time.monotonic()
    with crew_of_both(tmp_path, tasks=400, seed=11) as (crew, sides):
        chance = random.Random(crew.seed)
        _, far = man(crew, sides, each=8, waiting=1, work_ms=300)
        task = crew.claimed(far[0])
        sides.wire.cut(THROWN_OFF)
        crew.until(lambda: crew.taken_over(far[0], task), "that others take over")
        sides.wire.rejoin()
        far[0].go_on()
        while crew.is_busy:
            crew.listen_for(chance.random() * crew.ground.lease_s)
            sides.wire.cut(chance.choice((THROWN_OFF, HELD_BACK)))
            crew.listen_for(chance.choice((0.2, 1.5, 2.5)) * crew.ground.lease_s)
            sides.wire.rejoin()
        crew.see_home()
        crew.done["cuts"] = sides.wire.cuts
        found_right(crew, began)

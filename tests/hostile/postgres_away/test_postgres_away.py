"""A PostgreSQL hiccup costs no server its life, no acknowledged write, and nothing happens twice."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.postgres_away.crew import AWAY, WAYS, Crew, Ground, acknowledged, ground, refused, unknown
from tests.process.peer import handrail_serve


@pytest.fixture(scope="module")
def place() -> Iterator[Ground]:
    with ground() as made:
        yield made


def test_servers_stay_while_the_store_is_away_and_go_on_when_it_is_back(place: Ground, tmp_path: Path) -> None:
    """Every way once, under load. Refused calls say that nothing was written, and that is true."""
    with Crew(place, tmp_path, 2) as crew:
        crew.load()
        for way in WAYS:
            crew.until(acknowledged, 2)
            way(place, lambda: crew.outage(1.0))
        crew.until(acknowledged, 3)
        crew.end()
        assert list(crew.problems()) == []
        told = [told for caller in crew.callers for told in caller.told if told.error]
        assert {one.error["code"] for one in told} >= {AWAY}
        assert {one.error["details"]["outcome"] for one in told if one.error["code"] == AWAY} <= {"nothing", "unknown"}


def test_a_server_that_was_started_while_the_store_was_away_uses_it_later(place: Ground, tmp_path: Path) -> None:
    arguments = {"name": "Import", "source_type": "prompt", "source_content": "x"}
    call = {"name": "workflow_create", "arguments": arguments}

    def ask_in_vain() -> None:
        server.initialize()
        for bare in (True, False):
            reply = server.ask("workflow_create", arguments) if bare else server.ask("tools/call", call)
            error = reply["error"]["data"] if bare else reply["result"]["structuredContent"]["error"]
            assert (error["code"], error["details"]["outcome"]) == (AWAY, "nothing")
            assert "call again" in error["hint"]

    with handrail_serve(tmp_path, "--toolsets", "workflow", "--db", place.address) as server:
        place.killed(ask_in_vain)
        assert server.ask("tools/call", call)["result"]["structuredContent"]["id"]
        server.end_input()
        assert server.wait() == 0


@pytest.mark.torture
def test_sixty_hiccups_of_every_kind_under_load_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    chance = random.Random(seed)
    began = time.monotonic()
    with ground() as place, Crew(place, tmp_path, 6) as crew:
        crew.load()
        for number in range(60):
            crew.until(acknowledged, chance.choice((0, 1, 5)))
            for _ in range(chance.choice((0, 0, 1, 3))):
                place.cut()
            if number % 10 == 9:  # longer than anybody looks for the outcome of a write
                place.killed(lambda: crew.outage(20.0))
            else:
                chance.choice(WAYS)(place, lambda: crew.outage(chance.choice((0.0, 0.3, 2.0))))
        crew.until(acknowledged, 20)
        crew.end()
        assert list(crew.problems()) == [], f"seed {seed}"
        counts = {what.__name__: sum(map(what, crew.callers)) for what in (acknowledged, refused, unknown)}
        print(f"{counts} in {time.monotonic() - began:.0f} s")
        assert counts["acknowledged"] > 500

"""kill -9 at random moments: what was acknowledged is there, what was not is there whole or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.store_crew import Crew, Outcome
from tests.process.store_writer import ACK_FIRST, CHECKPOINT_PAGES, DURABLE


def kill_and_look(
    path: Path, *, seed: int, rounds: int, all_every: int, size: int, env: dict[str, str] | None = None
) -> Outcome:
    outcome = Crew(path, seed, size, env).run(rounds, all_every)
    print(f"seed {seed}: {outcome.kills} kills, {len(outcome.acks)} acknowledged, {len(outcome.lost)} lost")
    assert outcome.problems == [], f"seed {seed}, round {outcome.rounds}"
    assert outcome.rounds == rounds
    return outcome


def test_nothing_acknowledged_is_lost_when_writers_are_killed(tmp_path: Path) -> None:
    often = {CHECKPOINT_PAGES: "50"}
    outcome = kill_and_look(tmp_path / "store.db", seed=20261116, rounds=8, all_every=4, size=3, env=often)
    assert outcome.kills >= 12
    assert len(outcome.acks) > 50


def test_the_harness_finds_a_writer_that_acknowledges_before_it_commits(tmp_path: Path) -> None:
    outcome = Crew(tmp_path / "store.db", 1, 3, {ACK_FIRST: "1"}).run(rounds=40, all_every=2)
    assert outcome.lost, f"{outcome.kills} kills and not one lost write was noticed: the harness is blind"


@pytest.mark.torture
@pytest.mark.parametrize(
    ("seed", "env"), [(0, {}), (1, {DURABLE: "1"}), (2, {CHECKPOINT_PAGES: "20"})], ids=["plain", "durable", "often"]
)
def test_two_hundred_rounds_of_killing(tmp_path: Path, seed: int, env: dict[str, str]) -> None:
    """With defaults, synced at every commit, and checkpointed all the time."""
    kill_and_look(tmp_path / "store.db", seed=seed, rounds=200, all_every=8, size=6, env=env)

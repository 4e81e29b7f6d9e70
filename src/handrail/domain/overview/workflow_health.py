"""The standing of a workflow, in one word that a page can colour: who can move it on now, rather than its status.

A workflow in progress may be active, wait for a person, or be held by an agent that is no longer heard from; its status
is the same in all three cases. Pure: counts and evidence are passed in.
"""

from __future__ import annotations

from typing import NamedTuple

from handrail.domain.work.workflow import CLOSED

STANDINGS = ("waits_for_you", "stuck", "running", "ready", "paused", "failed", "done_but_open", *CLOSED)
"""Every possible standing."""


class HealthFacts(NamedTuple):
    """What is known about a workflow."""

    status: str
    total: int = 0
    finished: int = 0
    moving: int = 0
    """Tasks that are actually moving: their agents are present and there was news of them."""
    stuck: int = 0
    """Tasks under way in name only."""
    ready: int = 0
    paused: int = 0
    failed: int = 0
    waiting: int = 0
    """Decisions that wait for a person."""
    run: Driven | None = None


class Driven(NamedTuple):
    """What is known about a run of a pipeline."""

    waits: bool
    """It waits at a gate."""
    stopped: bool
    under_way: bool
    """A phase was handed out."""
    driver_there: bool
    ended: bool = False


def standing_of(seen: HealthFacts) -> str:
    """One of `STANDINGS`."""
    if seen.status in CLOSED:
        return seen.status
    if seen.run is not None and not seen.run.ended:
        return _of_run(seen, seen.run)
    if seen.waiting and not (seen.moving or seen.ready):
        return "waits_for_you"
    if seen.status in ("paused", "failed"):
        return seen.status
    if seen.total and seen.finished == seen.total:
        return "done_but_open"
    return _of_tasks(seen)


def _of_run(seen: HealthFacts, run: Driven) -> str:
    if run.waits:
        return "waits_for_you"
    if run.stopped or seen.status == "paused":
        return "paused"
    if seen.status == "failed":
        return "failed"
    if seen.moving or (run.under_way and run.driver_there):
        return "running"
    return "stuck" if run.under_way or seen.stuck else "ready"


def _of_tasks(seen: HealthFacts) -> str:
    if seen.moving:
        return "running"
    if seen.stuck:
        return "stuck"
    if seen.ready or not seen.total:  # without a plan, planning is what can begin
        return "ready"
    if seen.failed:
        return "failed"
    return "paused" if seen.paused else "stuck"

"""Seats for the real clients: each has its own home and project. A test file names its client as `CLIENT`.

What a client did is kept for the tests of one file that only look at it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.register_assert_rewrite("tests.clients.real.checks")

from tests.clients.real.clients import Client  # noqa: E402 - what it imports may assert
from tests.clients.real.install import modules  # noqa: E402
from tests.clients.real.scripted_model import ASIDE, Received, ScriptedModel, Turn, say  # noqa: E402
from tests.clients.real.seat import Ended, Seat  # noqa: E402
from tests.clients.real.stories import RAILS, compacting, done, start, walk  # noqa: E402

NewSeat = Callable[..., Seat]


@dataclass(frozen=True)
class Walked:
    """A client's whole walk: where it sat, how it ended, and every request with Handrail's tools."""

    seat: Seat
    ended: Ended
    requests: Sequence[Received]


@pytest.fixture(scope="session")
def installed() -> Path:
    found = modules()
    if found is None:
        pytest.skip("the real clients are not installed: ./run clients does that")
    return found


@pytest.fixture(scope="module")
def client(request: pytest.FixtureRequest) -> Client:
    chosen: Client = request.module.CLIENT
    return chosen


@pytest.fixture(scope="module")
def new_seat(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewSeat]:
    """Makes seats: a client, what its model does, and another's seat to share home and project with. Without `allowed`
    nothing is written that lets the client call Handrail unasked."""
    with ExitStack() as models:

        def make(client: Client, *script: Turn, beside: Seat | None = None, allowed: bool = True) -> Seat:
            home = beside.home if beside else tmp_path_factory.mktemp(f"{client.name}-home")
            project = beside.project if beside else tmp_path_factory.mktemp(f"{client.name}-project")
            if beside is None:
                subprocess.run(["git", "init", "-q", str(project)], check=True)
            model = models.enter_context(ScriptedModel(*script))
            seat = Seat(client, installed, home, project, model)
            seat.settle(allowed=allowed)
            return seat

        yield make


@pytest.fixture(scope="module")
def walked(client: Client, new_seat: NewSeat) -> Walked:
    seat = new_seat(client, *walk())
    ended = seat.run("Lay the rails.")
    return Walked(seat, ended, seat.model.conversation())


@dataclass(frozen=True)
class HookRuns:
    """What the model was asked in three runs of one client, each with another task open than before."""

    started: Sequence[Received]
    resumed: Sequence[Received]
    compacted: Sequence[Received]


@pytest.fixture(scope="module")
def hooks(client: Client, new_seat: NewSeat) -> HookRuns:
    """A new conversation, the same one taken up again, and the same one compacted. Tasks are started outside of it."""
    seat = new_seat(client)
    workflow = seat.call("start_workflow", name="Lay rails", description="Rails to hold on to")["workflow_id"]
    first = seat.call("start_task", workflow_id=workflow, name=RAILS[0], goal="A rail that bears")["task_id"]
    started = _asked(seat, "What now?", say("One."))
    seat.call("complete_task", **done(first))
    second = seat.call("start_task", workflow_id=workflow, name=RAILS[1], goal="A rail that bears")["task_id"]
    resumed = _asked(seat, "And now?", say("Two."), again=True)
    seat.call("complete_task", **done(second))
    return HookRuns(started, resumed, _compacted(seat, workflow))


def _compacted(seat: Seat, workflow: str) -> Sequence[Received]:
    """What the model is asked from the compaction on. A third task is started in what is compacted."""
    if seat.client.full:
        requests = _asked(seat, "Go on.", *compacting(workflow, RAILS[2], seat.client.full), again=True)
        if seat.client.told_at_once:
            return requests
    else:
        _asked(seat, "Go on.", start(workflow, RAILS[2]), say("Three."), again=True)
        _asked(seat, "/compact", say(ASIDE), again=True)
    return _asked(seat, "And then?", say("Four."), again=True)


def _asked(seat: Seat, prompt: str, *script: Turn, again: bool = False) -> Sequence[Received]:
    before = seat.model.play(*script)
    ended = seat.run(prompt, again=again)
    assert ended.code == 0, ended.errors
    return seat.model.conversation(before)

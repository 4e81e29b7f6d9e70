"""Two real clients at once in one project, on one store: neither loses what it wrote."""

from __future__ import annotations

import threading

import pytest

from tests.clients.real.clients import ClaudeCode, Client, Codex, Copilot, Gemini
from tests.clients.real.conftest import NewSeat
from tests.clients.real.scripted_model import ScriptedModel, call
from tests.clients.real.seat import run_together
from tests.clients.real.stories import walk

pytestmark = pytest.mark.clients

PAIRS: list[tuple[Client, Client]] = [(ClaudeCode(), Codex()), (Gemini(), Copilot())]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: "-".join(one.name for one in pair))
def test_two_clients_write_at_once(new_seat: NewSeat, pair: tuple[Client, Client]) -> None:
    both_here = threading.Event()
    first, second = (walk(f"Rails of {one.name}", f"A rail of {one.name}") for one in pair)
    here = new_seat(pair[0], call("workflow_list", held=both_here), *first)
    there = new_seat(pair[1], call("workflow_list", held=both_here), *second, beside=here)
    watcher = threading.Thread(target=_release, args=(both_here, here.model, there.model), daemon=True)
    watcher.start()
    ended = run_together([here, there], "Lay the rails.")
    watcher.join()
    assert [one.code for one in ended] == [0, 0]
    decided = {decision["task_name"] for decision in here.told("decisions")["decisions"]}
    assert decided == {f"A rail of {one.name}" for one in pair}
    for one in pair:
        moments = here.told("journal", f"Rails of {one.name}")["moments"]
        assert [moment["kind"] for moment in moments] == ["created", "began", "decision", "ended"]


def _release(held: threading.Event, *models: ScriptedModel) -> None:
    """Lets both go on once both have asked."""
    for model in models:
        model.wait_for(lambda requests: any(not one.aside for one in requests))
    held.set()

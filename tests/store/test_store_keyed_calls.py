"""Idempotency keys on every store: calls at once, calls from another process's store."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from tests.store.ground import Ground
from tests.surfaces.keyed import Slow, an_operation, call_it, noticed
from tests.toolsets.registry.registry_desk import Beginning, RegistryDesk

AT_ONCE = 6
ANNA: dict[str, Any] = {"name": "Anna", "runtime": "custom", "idempotency_key": "k1"}


def test_of_many_calls_at_once_one_is_done_and_all_get_its_answer(tmp_path: Path, ground: Ground) -> None:
    """All have read that there is no answer yet before any of them writes."""
    desk = RegistryDesk(tmp_path, "idempotency", store=ground.store)
    meeting = threading.Barrier(AT_ONCE)
    met = threading.local()

    def new_secret() -> str:
        if not getattr(met, "once", False):
            met.once = True
            meeting.wait(20)
        return "s" * 24

    desk.with_world(new_secret=new_secret)
    calls = [Beginning(lambda: desk.call("agent_register", **ANNA)) for _ in range(AT_ONCE)]
    answers = [call.result() for call in calls]
    assert {answer["id"] for answer in answers} == {answers[0]["id"]}
    assert sorted(answer.get("idempotent", False) for answer in answers) == [False] + [True] * (AT_ONCE - 1)
    assert desk.call("agent_list")["total"] == 1


def test_keys_outlive_the_process(tmp_path: Path, ground: Ground) -> None:
    first = RegistryDesk(tmp_path / "one", "idempotency", store=ground.store)
    later = RegistryDesk(tmp_path / "two", "idempotency", store=ground.another())
    later.with_call(here=first._handrail.call.here)
    answer = first.call("agent_register", **ANNA)
    again = later.call("agent_register", **ANNA)
    assert (again["id"], again["idempotent"]) == (answer["id"], True)


def test_while_the_first_looks_at_the_world_the_second_waits_for_its_answer(tmp_path: Path, ground: Ground) -> None:
    desk = RegistryDesk(tmp_path / "one", "idempotency", store=ground.store)
    elsewhere = RegistryDesk(tmp_path / "two", "idempotency", store=ground.another())
    elsewhere.with_call(here=desk._handrail.call.here)
    elsewhere.with_world(is_alive=lambda _: True)
    slow = Slow()
    operation = an_operation(prepare=slow)
    first = Beginning(lambda: call_it(desk, operation))
    assert slow.begun.wait(20)
    waits = noticed(elsewhere)
    second = Beginning(lambda: call_it(elsewhere, operation))
    assert waits.wait(20)
    assert not second.is_over
    slow.go_on.set()
    assert second.result() == {**first.result(), "idempotent": True}
    assert slow.times == 1
    assert call_it(desk, operation)["idempotent"] is True
    assert slow.times == 1, "what is known need not be looked at"

"""Who drives a run, and who may drive it next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from handrail.domain.pipeline.ownership import (
    HELD_MS,
    RunDriver,
    held_by_another,
    holder_of,
    is_same,
    refuse_second,
    shown_holder,
    still_holding,
)

NOW = 10_000_000_000
FIRST = {"name": "first", "agent_id": None, "session": "host/1/100/1", "since": NOW}


def there(answer: bool | None) -> Any:
    return lambda _: answer


def asked_for_nobody(_: Mapping[str, Any]) -> bool:
    raise AssertionError("there was nobody to look for")


def test_who_could_not_be_known_again_holds_nothing() -> None:
    assert holder_of(RunDriver("cli"), NOW) is None
    assert holder_of(RunDriver("x", None, "s"), NOW) == {"name": "x", "agent_id": None, "session": "s", "since": NOW}


@pytest.mark.parametrize(
    ("holder", "caller", "same"),
    [
        ({"session": "s"}, RunDriver("x", None, "s"), True),
        ({"session": "s"}, RunDriver("x", None, "t"), False),
        ({"session": "s"}, RunDriver("x"), False),
        ({"session": None, "agent_id": "a"}, RunDriver("x", None, None), False),
        ({"session": "s", "agent_id": "a"}, RunDriver("x", "a", "t"), True),
        ({"session": "s", "agent_id": "a"}, RunDriver("x", "b", "s"), False),
        # It began to drive, and registered as an agent afterwards; or another registered on its connection too.
        ({"session": "s", "agent_id": None}, RunDriver("x", "a", "s"), True),
        ({"session": "s", "agent_id": "a"}, RunDriver("x", None, "s"), True),
    ],
)
def test_a_holder_is_known_by_its_agent_or_its_connection(
    holder: dict[str, Any], caller: RunDriver, same: bool
) -> None:
    assert is_same({"agent_id": None, **holder}, caller) is same


def test_an_agent_that_came_back_is_looked_for_where_it_is_now() -> None:
    holder = {"agent_id": "a", "session": "old", "since": 1}
    assert still_holding(holder, RunDriver("x", "a", "new")) == {"agent_id": "a", "session": "new", "since": 1}
    assert still_holding(holder, RunDriver("x", "a", None)) is holder
    assert still_holding(holder, RunDriver("x", "a", "old")) is holder


def test_nobody_else_holds_what_nobody_or_oneself_holds() -> None:
    second = RunDriver("second", None, "host/2/200/1")
    assert not held_by_another(None, NOW, second, asked_for_nobody, NOW)
    assert not held_by_another(FIRST, NOW, RunDriver("first", None, "host/1/100/1"), asked_for_nobody, NOW)


def test_a_holder_is_believed_while_it_is_there_and_for_a_time_where_nobody_can_look() -> None:
    second = RunDriver("second", None, "host/2/200/1")
    assert held_by_another(FIRST, 0, second, there(True), NOW), "however long it works"
    assert not held_by_another(FIRST, NOW, second, there(False), NOW), "gone is gone, at once"
    assert held_by_another(FIRST, NOW, second, there(None), NOW + HELD_MS - 1)
    assert not held_by_another(FIRST, NOW, second, there(None), NOW + HELD_MS)
    assert held_by_another(FIRST, NOW, RunDriver("cli"), there(True), NOW)


def test_the_refusal_names_the_holder_and_says_what_can_be_done() -> None:
    refusal = refuse_second(".specs/x", FIRST, NOW - 180_000, NOW)
    assert refusal.message == "first drives .specs/x; it moved 3 minutes ago"
    assert "pipeline_next_action with take_over: true" in (refusal.hint or "")
    assert refusal.details["held_by"] == {"name": "first", "agent_id": None, "since": NOW}
    assert "session" not in shown_holder(FIRST)


def test_a_holder_without_a_name_is_refused_well_and_a_clock_that_went_back_too() -> None:
    assert refuse_second(".specs/x", {"name": ""}, NOW + 5000, NOW).message.startswith("another orchestrator drives")

"""State machines: what may follow what, said so that the next legal move is clear."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.errors import IllegalTransition
from handrail.kernel.machine import Machine

DOOR = Machine("door", {"open": ("shut",), "shut": ("open", "locked"), "locked": ("shut", "gone"), "gone": ()})
STATES = st.sampled_from(DOOR.states)


@given(STATES, STATES)
def test_exactly_the_listed_moves_are_legal(current: str, wanted: str) -> None:
    if wanted in DOOR.transitions[current]:
        DOOR.check("the door", current, wanted)
    else:
        with pytest.raises(IllegalTransition):
            DOOR.check("the door", current, wanted)


def test_a_refusal_names_the_states_that_may_follow() -> None:
    with pytest.raises(IllegalTransition, match="the door is shut and cannot become gone") as refused:
        DOOR.check("the door", "shut", "gone")
    assert refused.value.hint == "from shut it can become open or locked"
    assert refused.value.details == {"status": "shut", "allowed": ["open", "locked"]}


def test_a_refusal_says_where_it_ends() -> None:
    with pytest.raises(IllegalTransition) as refused:
        DOOR.check("the door", "gone", "open")
    assert refused.value.hint == "gone is final"
    assert refused.value.details["allowed"] == []


def test_staying_is_a_move_like_any_other() -> None:
    with pytest.raises(IllegalTransition):
        DOOR.check("the door", "open", "open")


def test_the_first_state_is_the_beginning_and_those_without_a_way_out_are_the_ends() -> None:
    assert DOOR.initial == "open"
    assert DOOR.states == ("open", "shut", "locked", "gone")
    assert DOOR.terminal == ("gone",)


def test_a_machine_cannot_name_a_state_it_does_not_have() -> None:
    with pytest.raises(AssertionError, match="ajar"):
        Machine("door", {"open": ("ajar",)})


def test_a_machine_cannot_have_a_state_that_is_never_reached() -> None:
    with pytest.raises(AssertionError, match="never be reached"):
        Machine("door", {"open": ("shut",), "shut": (), "painted": ("open",)})


def test_the_picture_shows_every_move_once() -> None:
    assert DOOR.as_mermaid().splitlines() == [
        "stateDiagram-v2",
        "  [*] --> open",
        "  open --> shut",
        "  shut --> open",
        "  shut --> locked",
        "  locked --> shut",
        "  locked --> gone",
        "  gone --> [*]",
    ]

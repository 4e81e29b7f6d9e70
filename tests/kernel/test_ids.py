"""Ids: a readable prefix, then letters that sort by time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.ids import CountingIds, id_text

MS = st.integers(0, 2**48 - 1)
CHANCE = st.integers(0, 2**80 - 1)


@given(MS, CHANCE)
def test_an_id_is_its_prefix_and_26_letters_without_look_alikes(ms: int, chance: int) -> None:
    prefix, _, letters = id_text("wf", ms, chance).rpartition("_")
    assert prefix == "wf"
    assert len(letters) == 26
    assert not set(letters) - set("0123456789abcdefghjkmnpqrstvwxyz")


@given(MS, MS, CHANCE, CHANCE)
def test_ids_sort_by_their_time(first: int, second: int, one: int, two: int) -> None:
    if first != second:
        assert (id_text("wf", first, one) < id_text("wf", second, two)) == (first < second)


@given(MS, CHANCE, CHANCE)
def test_different_chance_makes_different_ids(ms: int, one: int, two: int) -> None:
    assert (id_text("wf", ms, one) == id_text("wf", ms, two)) == (one == two)


def test_more_chance_than_there_is_room_for_does_not_change_the_time() -> None:
    assert id_text("wf", 5, 2**80 + 7) == id_text("wf", 5, 7)


def test_known_letters() -> None:
    assert id_text("wf", 0, 0) == "wf_" + "0" * 26
    assert id_text("wf", 0, 31) == "wf_" + "0" * 25 + "z"
    assert id_text("wf", 1, 0) == "wf_" + "0" * 9 + "1" + "0" * 16


def test_counting_ids_count_for_each_prefix() -> None:
    ids = CountingIds()
    assert [ids.new("wf"), ids.new("task"), ids.new("wf")] == ["wf_1", "task_1", "wf_2"]

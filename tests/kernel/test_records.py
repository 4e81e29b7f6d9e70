"""Questions to the store."""

from __future__ import annotations

from handrail.kernel.records import CHUNK, chunks


def test_values_are_asked_for_once_and_no_more_at_a_time_than_a_question_takes() -> None:
    values = [str(number) for number in range(CHUNK + 1)]
    first, second = chunks([*values, "0"])
    assert (len(first), second) == (CHUNK, (str(CHUNK),))
    assert list(chunks(())) == []

"""How much of a list goes into a reply."""

from __future__ import annotations

from handrail.domain.reply_size import within


def test_of_what_is_too_long_one_is_shown() -> None:
    assert within(["a" * 50, "b"], 10) == ["a" * 50]
    assert within(["a", "b", "c"], 10) == ["a", "b"]
    assert within([], 0) == []

"""The nearest known name."""

from __future__ import annotations

from handrail.kernel.wording import did_you_mean, nearest


def test_a_typo_finds_its_word() -> None:
    assert nearest("workflow_lst", ["workflow_get", "workflow_list"]) == "workflow_list"
    assert did_you_mean("sole", ["solo", "team"]) == "; did you mean solo?"


def test_nothing_near_is_nothing() -> None:
    assert nearest("zzzz", ["solo", "team"]) is None
    assert did_you_mean("zzzz", []) == ""


def test_the_only_name_that_begins_like_it_is_near() -> None:
    assert nearest("Retry", ["Retry imports of a day", "Ship"]) == "Retry imports of a day"
    assert nearest("Retry", ["Retry imports of a day", "Retry exports of a day"]) is None
    assert nearest("", ["Ship"]) is None

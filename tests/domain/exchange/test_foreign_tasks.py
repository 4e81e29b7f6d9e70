"""Names for tasks that come from elsewhere: of one line, short enough, each given once."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.exchange.foreign_tasks import NAME_MAX, Names


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("  Fix   the\tlogin \n", "Fix the login"),
        ("\x1b[31mred\u202e", "[31mred"),
        ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"),
        ("a \U0001f468\u200d\U0001f469\u200d\U0001f467", "a \U0001f468\u200d\U0001f469\u200d\U0001f467"),
        ("\u200da\u200b \u200c b\u200d", "a b"),
        ("\u200c\u200d", "#7"),
        ("", "#7"),
        (" \n ", "#7"),
        ("x" * 200, "x" * 200),
        ("x" * 201, "x" * 199 + "…"),
    ],
)
def test_a_title_becomes_a_name(title: str, name: str) -> None:
    assert Names().name(title, "#7") == name


def test_a_name_that_is_taken_gets_the_id_and_then_a_number() -> None:
    names = Names()
    assert [names.name("A", "#1"), names.name("A", "#2"), names.name("A", "#2"), names.name("A (#2)", "#3")] == [
        *("A", "A (#2)", "A (#2, 2)"),
        "A (#2) (#3)",
    ]
    assert names.name("y" * 300, "#4") != names.name("y" * 300, "#5")


@given(st.lists(st.tuples(st.sampled_from(["a", "a (1)", "", "b" * 250]) | st.text(), st.sampled_from(["1", ""]))))
def test_no_name_is_given_twice_and_each_fits(titles: list[tuple[str, str]]) -> None:
    names = Names()
    given_names = [names.name(title, source_id) for title, source_id in titles]
    assert len(set(given_names)) == len(given_names)
    assert all(0 < len(name) <= NAME_MAX and name == name.strip() for name in given_names)

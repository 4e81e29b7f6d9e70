"""The comparison that examples rest on can itself fail."""

from __future__ import annotations

from typing import Any

import pytest

from tests.examples import shows


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ([1, 3], [1, 2, 3]),
        ([], [1]),
        ("Analyze the task...", "Analyze the task\nand more"),
        ("PREP: ... VERIFY: ...", "PREP: a\nb\nVERIFY: c\n\nd"),
        ({"a": [{"b": "x..."}]}, {"a": [{"b": "y"}, {"b": "xyz"}]}),
    ],
)
def test_what_is_shown_may_leave_things_out(shown: Any, real: Any) -> None:
    assert shows(shown, real)


@pytest.mark.parametrize(
    ("shown", "real"),
    [
        ({"a": 1}, {"b": 1}),
        ([3, 1], [1, 2, 3]),
        ([1], {"0": 1}),
        ("Analyze...", "analyze"),
        (True, 1),
        (1, "1"),
        ({"a": {}}, {"a": []}),
        (None, False),
    ],
)
def test_what_is_shown_must_be_there(shown: Any, real: Any) -> None:
    assert not shows(shown, real)

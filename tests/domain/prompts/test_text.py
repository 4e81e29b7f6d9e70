"""Filling in a prompt: names, conditions, counted steps, and quotations that cannot be closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.prompts.text import PromptArgument, PromptText, filled, quoted


@pytest.mark.parametrize(
    ("body", "there", "reads"),
    [
        ("Call {a}.", {"a": "tool_a"}, "Call tool_a."),
        ("Call {a}.\nThen {b}.", {"b": "tool_b"}, "Then tool_b."),
        ("1. {a}\n1. {b}\n1. {c}", {"a": "x", "c": "z"}, "1. x\n2. z"),
        ("{?a}yes\n{!a}no", {"a": ""}, "yes"),
        ("{?a}yes\n{!a}no", {}, "no"),
        ("1. {?a}{!b}only a", {"a": ""}, "1. only a"),
        ("1. {?a}{!b}only a", {"a": "", "b": ""}, ""),
        ("one\n\n{a}\n\ntwo", {}, "one\n\ntwo"),
        ("{a}", {"a": "{b}", "b": "never"}, "{b}"),
        ("{a}", {"a": "1. {?b}x"}, "1. {?b}x"),
        ("a {} { } {A} brace", {}, "a {} { } {A} brace"),
    ],
)
def test_a_text_is_filled_in(body: str, there: dict[str, str], reads: str) -> None:
    assert filled(body, there) == reads


def test_a_need_may_be_met_by_either() -> None:
    text = PromptText(name="n", title="t", description="d", needs=("a | b", "c"))
    assert text.misses({"b", "c"}) is None
    assert text.misses({"c"}) == "a | b"
    assert text.misses({"a"}) == "c"


def test_an_argument_without_its_tool_is_not_taken() -> None:
    one, other = PromptArgument(name="x", description="x"), PromptArgument(name="y", description="y", needs="tool")
    text = PromptText(name="n", title="t", description="d", needs=(), arguments=(one, other))
    assert text.taken({}) == (one,)
    assert text.taken({"tool": ""}) == (one, other)


@given(st.text(alphabet="`\n a"))
def test_a_quotation_is_closed_by_its_own_fence_only(text: str) -> None:
    fence, *inside, end = quoted(text).split("\n")
    assert fence == end
    assert "\n".join(inside) == text
    assert fence not in text

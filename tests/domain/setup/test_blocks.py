"""The block for agents: put at the end, renewed in its place, and never over somebody's own words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.setup.blocks import RULES, block, drop_block, put_block, state_of
from handrail.domain.setup.edits import NotUnderstood, done, undone
from handrail.kernel.tokens import estimate_tokens

texts = st.one_of(
    st.sampled_from(["", "# Rules", "# Rules\n", "a\r\nb\r\n", "\n\n", "a\r\nb"]),
    st.text(alphabet="ab\n# ", max_size=12),
)


@given(texts)
def test_the_block_is_added_and_taken_out_to_the_byte(text: str) -> None:
    edits = put_block(text)
    after = done(text, edits)
    assert state_of(after) == "current"
    assert after.startswith(text)
    assert put_block(after) == []
    assert undone(after, edits) == text


@given(texts)
def test_the_block_is_cut_out_of_a_text_that_went_on(text: str) -> None:
    after = done(text, put_block(text)) + "more\n"
    cut = done(after, drop_block(after))
    assert state_of(cut) == "missing"
    assert cut.startswith(text)
    assert cut.endswith("more\n")


def test_an_old_block_is_renewed_in_its_place() -> None:
    old = "before\n" + block("other rules\n") + "\nafter\n"
    assert state_of(old) == "stale"
    new = done(old, put_block(old))
    assert new == "before\n" + block() + "\nafter\n"


def test_words_that_somebody_changed_stay() -> None:
    text = block().replace("five", "nine")
    assert state_of(text) == "edited"
    assert put_block(text) == []


@pytest.mark.parametrize("text", [block() + "\n" + block(), block().partition("<!-- handrail:end")[0]])
def test_markers_that_do_not_pair_are_left_alone(text: str) -> None:
    assert state_of(text) == "broken"
    with pytest.raises(NotUnderstood):
        put_block(text)


def test_the_rules_are_those_of_the_journal_and_short() -> None:
    for name in ("start_workflow", "start_task", "log_decision", "log_issue", "log_milestone", "complete_task"):
        assert f"`{name}`" in RULES
    assert "at most five" in RULES
    assert "empty lists" in " ".join(RULES.split())
    assert estimate_tokens(RULES) < 300

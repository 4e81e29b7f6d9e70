"""Keys: which board they mean, and what is refused before anything is looked up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.board.entry import KEY, NAME, TAG, Key, beginning_of, key_of, tags_of
from handrail.kernel.errors import InvalidParams


@pytest.mark.parametrize(
    ("text", "board", "meant"),
    [
        ("plan:next", None, Key("plan", "plan:next")),
        ("plan:a:b", None, Key("plan", "plan:a:b")),
        ("next", None, Key("default", "default:next")),
        ("default:next", None, Key("default", "default:next")),
        ("next", "plan", Key("plan", "plan:next")),
        ("plan:next", "plan", Key("plan", "plan:next")),
        ("wf_1.x-2:é 書", None, Key("wf_1.x-2", "wf_1.x-2:é 書")),
    ],
)
def test_a_key_means_one_board(text: str, board: str | None, meant: Key) -> None:
    assert key_of(text, board) == meant


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (":x", "missing before the colon"),
        ("a b:x", "not a name for a board"),
        ("ä:x", "not a name for a board"),
        (".x:y", "not a name for a board"),
        (f"{'b' * (NAME + 1)}:x", "not a name for a board"),
        ("plan:", "ends with its board's name"),
        ("", "the key is empty"),
        ("plan: x", "begins with a space"),
        ("plan:x ", "ends with a space"),
        ("plan:x\ny", "nobody can see"),
        ("plan:x\0", "nobody can see"),
        ("plan:\u202ex", "nobody can see"),
        (f"plan:{'x' * KEY}", "is the most"),
    ],
)
def test_what_is_no_key_is_refused_and_says_why(text: str, says: str) -> None:
    with pytest.raises(InvalidParams, match=says) as refused:
        key_of(text)
    assert refused.value.hint


def test_a_key_of_another_board_than_the_one_named_is_refused() -> None:
    with pytest.raises(InvalidParams, match="namespace says plan") as refused:
        key_of("other:x", "plan")
    assert "plan:other:x" in refused.value.hint
    assert key_of("plan:other:x", "plan").id == "plan:other:x"


def test_a_beginning_may_be_a_board_alone_or_end_with_a_space() -> None:
    assert beginning_of("plan:") == Key("plan", "plan:")
    assert beginning_of("plan:my ") == Key("plan", "plan:my ")


def test_tags_come_once_each_in_their_order() -> None:
    assert tags_of(["b", "a", "b"]) == ["b", "a"]


@pytest.mark.parametrize("tag", ["", " a", "a\n", "x" * (TAG + 1)])
def test_what_is_no_tag_is_refused(tag: str) -> None:
    with pytest.raises(InvalidParams, match="is no tag"):
        tags_of([tag])


@given(st.text(max_size=30))
def test_a_key_in_full_means_itself(text: str) -> None:
    try:
        key = key_of(text)
    except InvalidParams:
        return
    assert key_of(key.id) == key
    assert key.id.startswith(f"{key.board}:")


@pytest.mark.parametrize("text", ["plan:\ud800", "\ud800:next", "\udfff"])
def test_half_a_character_is_no_key(text: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        key_of(text)
    refused.value.message.encode()

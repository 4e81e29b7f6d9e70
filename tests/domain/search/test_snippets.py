"""The piece of a text that shows why it was found."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.search.snippets import CUT, found_in, snippet
from handrail.domain.search.words import understood


def shown(text: str, typed: str, room: int = 60) -> str:
    """A snippet with what was found in brackets."""
    pieces = snippet(text, understood(typed).wanted, room)
    return "".join(f"[{piece.text}]" if piece.found else piece.text for piece in pieces)


def test_what_was_looked_for_is_marked_as_it_was_written() -> None:
    assert shown("A Queue, two QUEUES", "queue") == "A [Queue], two QUEUES"
    assert shown("A Queue, two QUEUES", "queue*") == "A [Queue], two [QUEUES]"
    assert shown("naïve Café", "cafe") == "naïve [Café]"


def test_parts_of_names_are_marked() -> None:
    assert shown("raise retryLimit in src/retry_limit.py", "limit") == "raise retry[Limit] in src/retry_[limit].py"
    assert shown("raise retryLimit in src/retry_limit.py", "retryLimit") == "raise [retryLimit] in src/[retry_limit].py"
    assert shown("raise retryLimit", "retrylimit") == "raise [retryLimit]"
    assert shown("with oauth or OAuth", "OAuth") == "with [oauth] or [OAuth]"


def test_a_phrase_is_marked_where_it_stands_whole() -> None:
    assert shown("lost a connection; lost connection", '"lost connection"') == "lost a connection; [lost connection]"
    assert shown("移行データベース", "データ") == "移行[データ]ベース"


def test_a_long_text_is_cut_around_the_most_that_was_found() -> None:
    text = f"{'queue and more words ' * 10}here a queue lost its connection at last {'and so on ' * 30}"
    found = shown(text, "queue lost connection")
    assert "[queue] [lost] its [connection]" in found
    assert found.startswith(CUT)
    assert found.endswith(CUT)


def test_where_nothing_is_found_it_is_the_beginning() -> None:
    assert shown("one two three", "zebra") == "one two three"
    assert shown("one two three " * 20, "zebra", 20) == f"one two three one{CUT}"


def test_terms_are_counted_once() -> None:
    assert found_in("queue queue lost", understood("queue lost zebra").wanted) == 2


@given(st.text(max_size=200), st.sampled_from(["a", "a b", '"a b"', "a*", "é 数"]), st.integers(3, 40))
def test_a_snippet_is_part_of_its_text_and_fits(text: str, typed: str, room: int) -> None:
    whole = "".join(piece.text for piece in snippet(text, understood(typed).wanted, room))
    assert len(whole) <= room
    assert whole.removeprefix(CUT).removesuffix(CUT) in text or whole in text

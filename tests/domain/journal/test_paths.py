"""File names as text and back: nothing is lost, and JSON can carry every one."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.paths import path_bytes, path_text


@given(st.binary(min_size=1, max_size=40))
def test_every_name_comes_back_as_it_was(name: bytes) -> None:
    text = path_text(name)
    assert path_bytes(text) == name
    assert msgspec.json.decode(msgspec.json.encode(text)) == text


@given(st.text(alphabet='"\\0123\xe9a/', min_size=1, max_size=12))
def test_names_that_look_quoted_come_back_too(name: str) -> None:
    assert path_bytes(path_text(name.encode())) == name.encode()


@given(st.binary(min_size=1, max_size=20), st.binary(min_size=1, max_size=20))
def test_two_names_have_two_texts(one: bytes, other: bytes) -> None:
    assert (path_text(one) == path_text(other)) == (one == other)


def test_ordinary_names_stand_as_they_are() -> None:
    for name in ("src/app.py", "with space", "caf\u00e9", "new\nline", "back\\slash"):
        assert path_text(name.encode()) == name


def test_other_names_are_quoted_as_git_does() -> None:
    assert path_text(b"caf\xe9.txt") == '"caf\\351.txt"'
    assert path_text(b'"quoted') == '"\\"quoted"'

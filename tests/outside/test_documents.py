"""Reading JSON and YAML: the same data from both, and for every mistake its place."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from handrail.kernel.limits import MESSAGE_DEPTH
from handrail.outside.documents import Unreadable, position_at, read_json, read_yaml


@pytest.fixture(params=["libyaml", "pure Python"])
def _either_yaml(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading with and without the C library, which not every platform has."""
    if request.param == "pure Python":
        monkeypatch.delattr(yaml, "CSafeLoader", raising=False)


both_yamls = pytest.mark.usefixtures("_either_yaml")


def refused(read: Any, text: str) -> tuple[str, tuple[int, int] | None]:
    with pytest.raises(Unreadable) as caught:
        read(text)
    offset = caught.value.offset
    if offset is None:
        return caught.value.reason, None
    place = position_at(text, offset)
    return caught.value.reason, (place.line, place.column)


@both_yamls
@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("true", True),
        ("false", False),
        ("null", None),
        ("", None),
        ("0", 0),
        ("-12", -12),
        ("1.0", 1.0),
        ("2.5e3", 2500.0),
        ("123456789012345678901234567890", 123456789012345678901234567890),
        ("text", "text"),
        ("'true'", "true"),
        ('"12"', "12"),
        ("yes", "yes"),
        ("no", "no"),
        ("on", "on"),
        ("off", "off"),
        ("True", "True"),
        ("NULL", "NULL"),
        ("~", "~"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("1_000", "1_000"),
        ("0o7", "0o7"),
        ("017", "017"),
        ("0x1F", "0x1F"),
        ("1:30", "1:30"),
        (".5", ".5"),
        ("5.", "5."),
        ("+1", "+1"),
        (".inf", ".inf"),
        (".nan", ".nan"),
        ("=", "="),
        ("<<", "<<"),
    ],
)
def test_yaml_has_the_scalars_of_json_and_everything_else_is_text(said: str, value: object) -> None:
    found = read_yaml(f"a: {said}\n").data["a"]
    assert found == value
    assert type(found) is type(value)


@both_yamls
def test_yaml_keys_are_always_text() -> None:
    assert read_yaml("1: a\ntrue: b\non: c\nnull: d\n").data == {"1": "a", "true": "b", "on": "c", "null": "d"}


@both_yamls
def test_yaml_blocks_and_flows_are_read() -> None:
    text = "a: |\n  one\n  two\nb: >-\n  x\n  y\nc: [1, {d: 'e'}]\n'f':\n- g\n-\n  - h\n"
    assert read_yaml(text).data == {"a": "one\ntwo\n", "b": "x y", "c": [1, {"d": "e"}], "f": ["g", ["h"]]}


@both_yamls
@pytest.mark.parametrize(("text", "data"), [("", None), ("# nothing\n", None), ("- 1", [1]), ("word", "word")])
def test_any_yaml_document_is_data(text: str, data: object) -> None:
    assert read_yaml(text).data == data


@both_yamls
@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", 'the key "c" is already given in line 3; keep one', (4, 3)),
        ("a: &x 1\n", 'anchors and aliases ("x") are not read: write the text out', (1, 4)),
        ("a: *x\n", 'anchors and aliases ("x") are not read', (1, 4)),
        ("a: &x\n  b: 1\n", 'anchors and aliases ("x") are not read', (1, 4)),
        ("a: !!python/object:os.system b\n", "tags (", (1, 4)),
        ("a: !!str 3\n", "tags (", (1, 4)),
        ("a: ! b\n", 'tags ("!") are not read', (1, 4)),
        ("a: !!map {}\n", "tags (", (1, 4)),
        ("? [a]\n: b\n", "a key must be text, not a list or an object", (1, 3)),
        ("a: 1\n---\nb: 2\n", "a second document starts here; a file holds one", (2, 1)),
        ("a: b: c\n", "this is not valid YAML: mapping values are not allowed", (1, 5)),
        ("a:\n\t- b\n", "this is not valid YAML: found character", (2, 1)),
        ("a: [1, 2\n", "this is not valid YAML", (2, 1)),
        ("é: é\n\x01\n", "the character U+0001 is not allowed in YAML", (2, 1)),
        ("a: 1e999\n", "the number 1e999… is out of range", (1, 4)),
        ('a: "\\ud800"\n', "", (1, 4)),
    ],
)
def test_a_mistake_in_yaml_has_its_place(text: str, words: str, place: tuple[int, int]) -> None:
    reason, found = refused(read_yaml, text)
    assert words in reason
    assert found is not None
    assert found[0] == place[0]
    assert words == "" or found == place


@both_yamls
def test_yaml_nesting_has_a_bound() -> None:
    assert read_yaml("[" * MESSAGE_DEPTH + "]" * MESSAGE_DEPTH).data
    deep = MESSAGE_DEPTH + 1
    assert refused(read_yaml, "[" * deep + "]" * deep) == (
        f"it is nested more than {MESSAGE_DEPTH} levels deep",
        (1, deep),
    )
    assert "nested" in refused(read_yaml, "[" * 100_000)[0]


@pytest.mark.parametrize(
    ("text", "words", "place"),
    [
        ('{\n  "a": 1,\n}', "this is not valid JSON: trailing comma in object", (3, 1)),
        ('{"é": tru}', "this is not valid JSON: invalid character", (1, 11)),
        ("// no\n{}", "this is not valid JSON: invalid character", (1, 1)),
        ('{"a": 1', "this is not valid JSON: it ends too early", (1, 8)),
        ("", "this is not valid JSON: it ends too early", (1, 1)),
        ("{} x", "this is not valid JSON: trailing characters", (1, 4)),
        ('{"a": 1,\n "b": {"c": 1,\n "c": 2}}', 'the key "c" is already given in line 2; keep one', (3, 2)),
        ('{"a": 1, "\\u0061": 2}', 'the key "a" is already given in line 1; keep one', (1, 10)),
    ],
)
def test_a_mistake_in_json_has_its_place(text: str, words: str, place: tuple[int, int]) -> None:
    assert refused(read_json, text) == (words, place)


def test_a_mistake_in_json_without_a_known_place_still_has_its_reason() -> None:
    assert refused(read_json, '{"a": 1e999}') == ("this is not usable JSON: Number out of range", None)
    assert refused(read_json, "[" * 100_000) == (f"it is nested more than {MESSAGE_DEPTH} levels deep", None)


def test_a_key_given_twice_names_its_path() -> None:
    with pytest.raises(Unreadable) as caught:
        read_json('{"a": [0, {"b": 1, "b": 2}]}')
    assert caught.value.path == ("a", 1, "b")


NUMBERS = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
TREES = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(TREES)
def test_json_text_gives_back_what_was_written(tree: Any) -> None:
    assert read_json(msgspec.json.encode(tree).decode()).data == tree


@given(st.text(alphabet="ab:[]{}-\"'|&*!#,? \n\t01.é", max_size=30))
def test_no_text_makes_a_reader_crash(text: str) -> None:
    for read in (read_json, read_yaml):
        try:
            msgspec.json.encode(read(text).data)
        except Unreadable as problem:
            found = problem
        else:
            continue
        assert found.reason
        assert found.offset is None or 0 <= found.offset <= len(text)


PRINTABLE = st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Cn", "Zl", "Zp"], exclude_characters="\ufeff")


@both_yamls
@given(st.text(alphabet=PRINTABLE, max_size=30))
def test_quoted_yaml_text_is_the_same_text(text: str) -> None:
    assert read_yaml("a: '" + text.replace("'", "''") + "'").data == {"a": text}

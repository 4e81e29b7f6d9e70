"""Where a value stands in its text, in both formats, and what stands in for a value that is not there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.guides.definition import Path
from handrail.outside.documents import Position, Spot, locate, position_at, read_json, read_yaml

JSON = '{\n\t"a": 1,\n  "é": [10, {"b\\"c": null}],\n  "steps": [\n    {"id": "x"}\n  ]\n}\n'
YAML = (
    "# a comment\na: 1\n'é': [10, {b: null}]\nsteps:\n  - id: x\n    prompt: |\n      long\n      x\n  -\n    id: y\n"
)


def in_json(text: str, *path: str | int) -> tuple[int, int]:
    found = locate(text, read_json(text).spots, path)
    return found.line, found.column


def in_yaml(text: str, *path: str | int) -> tuple[int, int]:
    found = locate(text, read_yaml(text).spots, path)
    return found.line, found.column


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (1, 1)),
        (("a",), (2, 2)),
        (("é",), (3, 3)),
        (("é", 0), (3, 9)),
        (("é", 1), (3, 13)),
        (("é", 1, 'b"c'), (3, 14)),
        (("steps",), (4, 3)),
        (("steps", 0), (5, 5)),
        (("steps", 0, "id"), (5, 6)),
    ],
)
def test_places_in_json(path: Path, place: tuple[int, int]) -> None:
    assert in_json(JSON, *path) == place


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ((), (2, 1)),
        (("a",), (2, 1)),
        (("é",), (3, 1)),
        (("é", 0), (3, 7)),
        (("é", 1, "b"), (3, 12)),
        (("steps",), (4, 1)),
        (("steps", 0), (5, 5)),
        (("steps", 0, "prompt"), (6, 5)),
        (("steps", 1, "id"), (10, 5)),
    ],
)
def test_places_in_yaml(path: Path, place: tuple[int, int]) -> None:
    assert in_yaml(YAML, *path) == place


@pytest.mark.parametrize("path", [("steps", 0, "nope"), ("steps", 0, "nope", 3, "deeper"), ("steps", 0, 0)])
def test_what_is_missing_stands_at_its_nearest_parent(path: Path) -> None:
    assert in_json(JSON, *path) == (5, 5)
    assert in_yaml(YAML, *path) == (5, 5)


def test_lines_and_columns_count_from_one_and_by_characters() -> None:
    text = "ab\n\tüx\r\n"
    assert position_at(text, 0) == Position(1, 1)
    assert position_at(text, 2) == Position(1, 3)
    assert position_at(text, 3) == Position(2, 1)
    assert position_at(text, 5) == Position(2, 3)
    assert position_at(text, len(text)) == Position(3, 1)
    assert position_at("", 0) == Position(1, 1)


def test_line_ends_of_other_systems_count_the_same() -> None:
    assert in_json(JSON.replace("\n", "\r\n"), "steps", 0, "id") == (5, 6)
    assert in_yaml(YAML.replace("\n", "\r\n"), "steps", 1, "id") == (10, 5)


TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def places(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    found: list[tuple[Path, Any]] = [(path, value)]
    inner: Any = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for part, one in inner:
        found.extend(places(one, (*path, part)))
    return found


def spot_at(root: Spot, path: Path) -> Spot:
    for part in path:
        root = root.inner[part]
    return root


@given(TREES)
def test_every_json_value_starts_where_it_is_said_to_stand(tree: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(tree), indent=2).decode()
    root = read_json(text).spots
    for path, value in places(tree):
        rest = text[spot_at(root, path).offset :]
        if path and isinstance(path[-1], str):
            key = msgspec.json.encode(path[-1]).decode()
            assert rest.startswith(key)
            rest = rest[len(key) :].lstrip().removeprefix(":").lstrip()
        first = (
            "{" if isinstance(value, dict) else "[" if isinstance(value, list) else msgspec.json.encode(value).decode()
        )
        assert rest.startswith(first)

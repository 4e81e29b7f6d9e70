"""Changing JSON with comments: what is added is there, all else stays, and taking it out gives the bytes back."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.setup import jsonc, jsonc_edit
from handrail.domain.setup.edits import NotUnderstood, done, undone
from tests.domain.setup.texts import configurations, json_texts

ENTRY: dict[str, Any] = {"command": "/bin/python", "args": ["-m", "handrail", "serve"]}
PATH = ("mcpServers", "handrail")


@given(configurations(), st.sampled_from([None, 2, "\t"]))
def test_plain_json_is_read_as_python_reads_it(value: dict[str, Any], indent: int | str | None) -> None:
    assert jsonc.plain(json.dumps(value, indent=indent)) == value


@given(json_texts())
def test_a_member_is_added_and_the_rest_stays(text: str) -> None:
    before = jsonc.plain(text)
    edits = jsonc_edit.put(text, PATH, ENTRY)
    after = done(text, edits)
    expected = {**before, "mcpServers": {**before.get("mcpServers", {}), "handrail": ENTRY}}
    assert jsonc.plain(after) == expected
    assert all(edit.removed == "" for edit in edits)
    assert undone(after, edits) == text
    assert jsonc_edit.put(after, PATH, ENTRY) == []


@given(json_texts())
def test_an_item_is_added_to_a_list_and_the_rest_stays(text: str) -> None:
    before = jsonc.plain(text)
    group = {"hooks": [{"type": "command", "command": "ours"}]}
    edits = jsonc_edit.append(text, ("hooks", "Stop"), group)
    after = done(text, edits)
    hooks = before.get("hooks", {})
    assert jsonc.plain(after) == {**before, "hooks": {**hooks, "Stop": [*hooks.get("Stop", []), group]}}
    assert undone(after, edits) == text


@given(json_texts())
def test_what_was_added_can_be_cut_out_of_a_text_that_changed_meanwhile(text: str) -> None:
    before = jsonc.plain(text)
    after = done(text, jsonc_edit.put(text, PATH, ENTRY))
    changed = done(after, jsonc_edit.put(after, ("later",), 1))
    cut = jsonc.plain(done(changed, jsonc_edit.drop(changed, PATH)))
    assert cut.pop("later") == 1
    kept = {name: value for name, value in before.items() if name != "mcpServers" or value}
    assert cut == kept


@given(json_texts())
def test_an_item_of_ours_is_cut_out_and_those_of_others_stay(text: str) -> None:
    group = {"hooks": ["ours"]}
    after = done(text, jsonc_edit.append(text, ("hooks", "Stop"), group))
    cut = jsonc.plain(done(after, jsonc_edit.drop(after, ("hooks", "Stop"), group)))
    before = jsonc.plain(text)
    others = before.get("hooks", {}).get("Stop", [])
    assert cut.get("hooks", {}).get("Stop", []) == others
    assert {k: v for k, v in cut.items() if k != "hooks"} == {k: v for k, v in before.items() if k != "hooks"}


def test_a_comment_on_the_last_line_stays_with_what_it_is_about() -> None:
    text = '{\n\t"a": 1, // one\n\t"b": 2 // two\n}'
    assert done(text, jsonc_edit.put(text, ("c",), 3)) == '{\n\t"a": 1, // one\n\t"b": 2, // two\n\t"c": 3\n}'


def test_a_value_is_replaced_in_its_place() -> None:
    text = '{\r\n  "m": {"x": 1}, // keep\r\n  "n": 2\r\n}'
    edits = jsonc_edit.put(text, ("m",), {"y": 2})
    assert done(text, edits) == '{\r\n  "m": {\r\n    "y": 2\r\n  }, // keep\r\n  "n": 2\r\n}'
    assert undone(done(text, edits), edits) == text


def test_what_a_user_added_to_our_entry_is_no_reason_to_write() -> None:
    text = json.dumps({"mcpServers": {"handrail": {**ENTRY, "env": {"A": "1"}}}})
    assert jsonc_edit.put(text, PATH, ENTRY) == []


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[1]", '{"a" 1}', '{"a": 1 "b": 2}', "{,}", "nonsense", '{"mcpServers": []}', "{} {}", '{"a": "\n"}'),
        *("[", "[" * 5000, '{"mcpServers": 3}', '{"a": /* open }'),
    ],
)
def test_what_cannot_be_understood_is_said_and_not_touched(text: str) -> None:
    with pytest.raises(NotUnderstood):
        jsonc_edit.put(text, PATH, ENTRY)


@given(st.text(alphabet='{}[]",:/* \n\r\\ab1', max_size=30))
def test_any_text_is_either_changed_rightly_or_not_understood(text: str) -> None:
    try:
        edits = jsonc_edit.put(text, PATH, ENTRY)
    except NotUnderstood:
        return
    after = done(text, edits)
    assert jsonc.plain(after)["mcpServers"]["handrail"] == ENTRY
    assert undone(after, edits) == text

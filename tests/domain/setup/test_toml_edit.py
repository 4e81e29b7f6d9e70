"""Changing TOML: tables and keys are added where they mean what they should, and the rest stays to the byte."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import assume, given

from handrail.domain.setup import toml_edit
from handrail.domain.setup.edits import NotUnderstood, done, undone
from tests.domain.setup.texts import toml_texts

PATH = ("mcp_servers", "handrail")
ENTRY = {"command": '/a "b"\\python', "args": ["-m", "handrail", "serve"]}


def _valid(text: str) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        assume(condition=False)
        raise


@given(toml_texts())
def test_a_table_is_added_and_the_rest_stays(text: str) -> None:
    before = _valid(text)
    edits = toml_edit.put_table(text, PATH, ENTRY)
    after = done(text, edits)
    servers = before.get("mcp_servers", {})
    assert isinstance(servers, dict)
    assert tomllib.loads(after) == {**before, "mcp_servers": {**servers, "handrail": ENTRY}}
    assert after.startswith(text)
    assert undone(after, edits) == text
    assert toml_edit.put_table(after, PATH, ENTRY) == []
    changed = after + "\n[later]\nx = 1\n"
    assert tomllib.loads(done(changed, toml_edit.drop_table(changed, PATH))) == {**before, "later": {"x": 1}}


@given(toml_texts())
def test_a_key_is_added_outside_of_every_table(text: str) -> None:
    before = _valid(text)
    edits = toml_edit.put_key(text, "approvals", "human")
    after = done(text, edits)
    assert tomllib.loads(after) == {**before, "approvals": "human"}
    assert undone(after, edits) == text
    assert tomllib.loads(done(after, toml_edit.drop_key(after, "approvals", "human"))) == before


def test_a_table_is_replaced_and_what_is_around_it_stays() -> None:
    text = (
        'a = 1\r\n\r\n[mcp_servers."handrail"] # ours\r\ncommand = "old"\r\n# about b\r\n'
        '[mcp_servers.handrail.env]\r\nX = "1"\r\n\r\n[b]\r\n'
    )
    edits = toml_edit.put_table(text, PATH, ENTRY)
    after = done(text, edits)
    assert tomllib.loads(after)["mcp_servers"]["handrail"] == {**ENTRY, "env": {"X": "1"}}
    assert '[mcp_servers."handrail"] # ours\r\n' in after
    assert "# about b\r\n" in after
    assert undone(after, edits) == text


def test_a_key_is_changed_in_its_place() -> None:
    text = 'x = 1\napprovals = "agent" # for now\n[t]\n'
    assert done(text, toml_edit.put_key(text, "approvals", "human")) == ('x = 1\napprovals = "human" # for now\n[t]\n')


@pytest.mark.parametrize(
    "text",
    ["= 1", "mcp_servers = 3", 'mcp_servers = {other = {command = "x"}}', '[mcp_servers]\nhandrail = {command = "x"}'],
)
def test_what_cannot_be_added_to_is_said(text: str) -> None:
    with pytest.raises(NotUnderstood):
        toml_edit.put_table(text, PATH, ENTRY)

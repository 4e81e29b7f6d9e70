"""What a client's own file says of a folder: the rules are the client's, and what cannot be read trusts nothing."""

from __future__ import annotations

import json

import pytest

from handrail.domain.setup.folder_trust import codex_plugin, codex_trusts, gemini_trusts, has_folder_trust_off

HERE = ("/here/project",)


@pytest.mark.parametrize(
    ("rules", "trusted"),
    [
        ({}, False),
        ({"/here/project": "TRUST_FOLDER"}, True),
        ({"/here": "TRUST_FOLDER"}, True),
        ({"/here/pro": "TRUST_FOLDER"}, False),
        ({"/here/other": "TRUST_PARENT"}, True),
        ({"/": "TRUST_FOLDER", "/here/project": "DO_NOT_TRUST"}, False),
        ({"/here": "DO_NOT_TRUST", "/here/project": "TRUST_FOLDER"}, True),
        ({"/here/project": "else"}, False),
        ([], False),
    ],
)
def test_gemini(rules: object, trusted: bool) -> None:
    assert gemini_trusts(json.dumps(rules), HERE) is trusted


@pytest.mark.parametrize(
    ("text", "trusted"),
    [
        ("", False),
        ('[projects."/here/project"]\ntrust_level = "trusted"', True),
        ('[projects."/here/project"]\ntrust_level = "untrusted"', False),
        ('[projects."/here"]\ntrust_level = "trusted"', False),
        ("projects = 3", False),
        ("x = ", False),
    ],
)
def test_codex(text: str, trusted: bool) -> None:
    assert codex_trusts(text, HERE) is trusted


def test_the_question_can_be_off() -> None:
    assert has_folder_trust_off('{"security": {"folderTrust": {"enabled": false}}}')
    assert not has_folder_trust_off("{}")


def test_a_plugin_of_codex_counts_unless_it_is_off() -> None:
    assert codex_plugin('[plugins."handrail@x"]\n')
    assert not codex_plugin('[plugins."handrail@x"]\nenabled = false\n')
    assert not codex_plugin('[plugins."handrails@x"]\nenabled = true\n')

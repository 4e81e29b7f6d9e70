"""Which format a file is in: by its content, and by its name where the content cannot be read."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange.formats import format_of, recognise
from handrail.kernel.errors import InvalidParams
from tests.domain.exchange import samples
from tests.domain.exchange.made_up import json_values, written

FORMATS = ("task-master", "beads", "github", "workrail", "handrail", "markdown", None)


@pytest.mark.parametrize(("name", "form"), samples.SAMPLES.items())
def test_every_sample_is_recognised_under_any_name(tmp_path: Path, name: str, form: str) -> None:
    samples.write_all(tmp_path)
    text = (tmp_path / name).read_text(encoding="utf-8")
    assert recognise(text, "export.txt") == form
    assert recognise("\ufeff\r\n" + text, name) == form


@pytest.mark.parametrize(
    ("text", "name", "form"),
    [
        ('{"handrail": 1, "name": "x"}\n{"name": "task"}\n', "-", "handrail"),
        ("# Plan\n\n- [ ] first\n", "-", "markdown"),
        ("1. [x] first\n", "plan.txt", "markdown"),
        ("# Only a heading", "PLAN.md", "markdown"),
        ("- a list\n- without boxes", "notes.txt", None),
        ("[ ] is no list", "notes.txt", None),
        ("", "notes.txt", None),
        ("[]", "issues.json", None),
        ("[[]]", "-", None),
        ('[{"tasks": []}]', "-", None),
        ('{"a": 1}', "a.json", None),
        ('{"tasks": [', "tasks.json", "task-master"),
        ('{"tasks": [', ".taskmaster/tasks/tasks.json", "task-master"),
        ("", ".beads/issues.jsonl", "beads"),
        ('{"id": ', "plan.jsonl", "handrail"),
        ('{"_type": "memory", "key": "a", "value": "b"}\n', "-", "beads"),
        ('{"number": 3, "title": "one issue"}', "-", "github"),
        ('[[{"number": 3, "title": "a page"}]]', "-", "github"),
        ('[{"id": "bd-1", "title": "a", "status": "open"}]', "-", "beads"),
        ("[" * 200_000, "-", None),
    ],
)
def test_content_first_then_the_name(text: str, name: str, form: str | None) -> None:
    assert recognise(text, name) == form


def test_a_pretty_printed_file_is_recognised_too() -> None:
    assert recognise(json.dumps(samples.gh_issues(), indent=2), "-") == "github"


@given(st.text() | st.builds(written, json_values), st.text(max_size=10))
@settings(max_examples=2 * settings().max_examples)
def test_whatever_is_given_there_is_an_answer(text: str, name: str) -> None:
    assert recognise(text, name) in FORMATS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "nothing is in it"),
        ("\ufeff \r\n", "nothing is in it"),
        ("[]\n", "nothing is in it"),
        ("{}", "nothing is in it"),
        ('{"tasks": [{"id": 1', "line 1, column 20: this is not JSON"),
        ('[{"number": 3, "title": "a"}, {"num', "line 1, column 32: this is not JSON"),
        ("[" * 200_000, "nested"),
        ('{\n<<<<<<< HEAD\n"tasks": []}', "line 2, column 1: this is not JSON"),
        ('{"a": 1}', "was not recognised"),
        ('[["a"]]', "was not recognised"),
        ("[ ] is no list", "was not recognised"),
        ("<html>", "was not recognised"),
    ],
)
def test_what_is_not_recognised_is_refused_for_what_is_wrong_with_it(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said) as caught:
        format_of(text, "export.json")
    assert caught.value.hint


@given(st.text() | st.builds(written, json_values), st.text(max_size=10))
def test_a_format_or_a_refusal(text: str, name: str) -> None:
    with contextlib.suppress(InvalidParams):
        assert format_of(text, name) in FORMATS

"""Taking a request apart: flags, sources, names. Nothing is looked up."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.request import (
    SOURCES,
    Fetched,
    Flags,
    RequestSource,
    fetch_needed,
    fetched,
    is_main_branch,
    planned_as,
    slug,
    take_apart,
)
from handrail.domain.work.workflow import SOURCE_TYPES
from handrail.kernel.errors import InvalidParams


def test_plain_text_is_what_it_says() -> None:
    asked = take_apart("  fix   the login\n", "main")
    assert (asked.text, asked.source_type, asked.source_id, asked.errors) == ("fix the login", "text", None, ())
    assert asked.flags == Flags(current_branch="main")


def test_flags_are_taken_out_wherever_they_stand() -> None:
    asked = take_apart("--auto fix --nopr the --effort=L login --debug --discuss --resume", None)
    assert asked.text == "fix the login"
    assert asked.flags == Flags(auto=True, skip_pr=True, debug=True, discuss=True, effort_override="L")
    assert asked.errors == ()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--effort=XS do it", "there is no effort XS: one of S, M, L"),
        ("--effort= do it", "there is no effort without a name"),
        ("--effort do it", "there is no effort without a name"),
        ("--atuo do it", "did you mean --auto?"),
        ("--auto=yes do it", "there is no flag --auto=yes"),
        ("ab", "input too short: minimum 3 characters required"),
        ("", "input too short: minimum 3 characters required"),
        ("--auto --nopr", "input too short: minimum 3 characters required"),
    ],
)
def test_what_cannot_be_meant_is_said(arguments: str, error: str) -> None:
    assert any(error in one for one in take_apart(arguments, None).errors)


def test_a_dash_inside_a_word_is_no_flag() -> None:
    asked = take_apart("make a--b work -- and -x too", None)
    assert (asked.text, asked.errors) == ("make a--b work -- and -x too", ())


@pytest.mark.parametrize(
    ("address", "source", "number"),
    [
        ("https://github.com/owner/repo/issues/42", "github_issue", "42"),
        ("https://github.com/owner/repo/issues/42#issuecomment-1", "github_issue", "42"),
        ("https://team.atlassian.net/browse/SOA-123", "jira_issue", "SOA-123"),
        ("https://linear.app/team/issue/ENG-7/some-title", "linear_issue", "ENG-7"),
        ("https://gitlab.com/group/sub/project/-/issues/9", "gitlab_issue", "9"),
        ("https://gitlab.com/group/project/-/work_items/9", "gitlab_issue", "9"),
    ],
)
def test_an_address_is_known_by_its_form(address: str, source: str, number: str) -> None:
    asked = take_apart(f"{address} --auto", None)
    assert (asked.source_type, asked.source_id, asked.text, asked.errors) == (source, number, address, ())
    assert asked.source is not None
    assert fetch_needed(asked.source)["instruction"].startswith(f"fetch {asked.source.service} issue fields")


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/owner/repo/pull/42",
        "https://github.com/owner/repo/issues/x",
        "https://github.com/owner/repo/issues/٤٢",
        "http://github.com/owner/repo/issues/42",
        "https://team.atlassian.net/browse/",
        "https://linear.app/team/issues",
        "https://gitlab.com/group/project/issues",
    ],
)
def test_an_address_that_is_nearly_one_is_refused_with_an_example(address: str) -> None:
    (error,) = take_apart(address, None).errors
    assert "it looks like https://" in error


def test_an_address_elsewhere_or_within_a_sentence_is_text() -> None:
    for text in (
        "https://example.org/issues/4",
        "see https://github.com/owner/repo/issues/42 please",
        "https://example.org?x=.atlassian.net/browse/AB-1",
        "https://github.com.example.org/owner/repo/issues/42 and more",
    ):
        asked = take_apart(text, None)
        assert (asked.source_type, asked.errors) == ("text", ())


def test_a_slug_is_a_name_for_a_folder() -> None:
    assert slug("https://github.com/owner/repo/issues/42") == "https-github-com-owner-repo-issues-42"
    assert slug("../..//Fix: the LOGIN!") == "fix-the-login"
    assert slug("日本語") == slug("") == "task"
    assert slug("a" * 59 + " b c") == "a" * 59


@settings(max_examples=60)
@given(text=st.text(max_size=100))
def test_any_text_has_a_slug_and_can_be_taken_apart(text: str) -> None:
    name = slug(text)
    assert 1 <= len(name) <= 60
    assert slug(name) == name
    assert not set(name) - set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert take_apart(text, None).source_type == "text"


def test_main_branches_are_known() -> None:
    assert all(map(is_main_branch, (None, "", "main", "master")))
    assert not is_main_branch("feature/main")


def test_the_lines_of_a_request_stay_as_they_are() -> None:
    asked = take_apart("Fix it --auto\n\n- one\n    - two --nopr\n", None)
    assert asked.text == "Fix it \n\n- one\n    - two"
    assert asked.flags.auto
    assert asked.flags.skip_pr


VALUES: dict[str, Any] = {"labels": ["bug"], "story_points": 3, "estimate": 3}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.service)
def test_what_is_asked_for_is_understood_by_its_own_name_and_with_the_service_in_front(source: RequestSource) -> None:
    plain = {field: VALUES.get(field, f"the {field}") for field in fetch_needed(source)["fields"]}
    found = fetched(plain, source)
    assert found == fetched({f"{source.service}_{field}": value for field, value in plain.items()}, None)
    assert found.title in ("the title", "the summary")
    assert found.text in ("the body", "the description")
    assert found.labels == (("bug",) if "labels" in plain else ())
    assert found.points == (3.0 if {"story_points", "estimate"} & set(plain) else None)


def test_the_name_with_the_service_is_the_more_exact_one_and_nothing_is_nothing() -> None:
    github = SOURCES[0]
    assert fetched({"title": "a", "github_title": "b", "body": None}, github) == Fetched(title="b")
    assert fetched({}, None).body == ""
    assert fetched({"title": "a", "body": "b"}, github).body == "a\n\nb"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"titel": "a"}, "external_context has no titel; did you mean title?"),
        ({"summary": "a"}, "external_context has no summary"),
        ({"labels": "bug"}, "external_context.github_labels must be a list of names"),
        ({"labels": [{"name": "bug"}]}, "must be a list of names"),
        ({"jira_story_points": "3"}, "must be a number"),
        ({"jira_story_points": True}, "must be a number"),
        ({"body": "x" * 100_001}, "must be a text of at most 100000 characters"),
        ({"body": 5}, "must be a text"),
    ],
)
def test_what_would_be_of_no_effect_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        fetched(given, SOURCES[0])
    assert said in refused.value.message


def test_a_refusal_lists_what_is_known() -> None:
    with pytest.raises(InvalidParams, match="needs source_url") as refused:
        fetched({"title": "a"}, None)
    assert (refused.value.hint or "").startswith("known: github_labels, github_title")
    with pytest.raises(InvalidParams) as refused:
        fetched({"x": "a"}, SOURCES[1])
    assert (refused.value.hint or "").startswith("known: issue_type, story_points, summary, description, github_labels")


@pytest.mark.parametrize(
    ("source", "planned"),
    [
        ("text", "prompt"),
        ("github_issue", "github_issue"),
        ("jira_issue", "jira"),
        ("linear_issue", "linear"),
        ("gitlab_issue", "custom"),
        ("something newer", "custom"),
    ],
)
def test_every_source_has_a_name_that_plans_know(source: str, planned: str) -> None:
    assert planned_as(source) == planned
    assert planned in SOURCE_TYPES

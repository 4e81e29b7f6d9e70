"""GitHub issues, read: from gh's own fields first, and from the words of their bodies where those say more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange.github import blockers, parts, read
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.kernel.errors import InvalidParams
from tests.domain.exchange import samples
from tests.domain.exchange.made_up import check_document, json_values, records, texts, written


def by_id(document: PlanDocument) -> dict[str, PlannedTask]:
    return {task.origin.id: task for task in document.tasks if task.origin is not None}


def kept(task: PlannedTask) -> dict[str, Any]:
    assert task.origin is not None
    return task.origin.fields


def one(**fields: Any) -> PlannedTask:
    return read(json.dumps([samples.gh_issue(1, "T", **fields)]), "plan").tasks[0]


def test_the_sample_is_read_in_the_order_of_numbers() -> None:
    document = read(samples.github(), "plan")
    check_document(document)
    assert document.source_type == "github_issue"
    assert document.source_ref == "https://github.com/acme/shop/issues"
    tasks = by_id(document)
    assert {key: task.status for key, task in tasks.items()} == {
        "#7": "pending",
        "#8": "skipped",
        "#9": "skipped",
        "#10": "pending",
        "#11": "completed",
        "#12": "pending",
        "#13": "pending",
        "#14": "pending",
    }
    assert [task.name for task in document.tasks][-2:] == ["Checkout", "Checkout (#14)"]


def test_an_issue_has_everything_where_it_belongs() -> None:
    task = by_id(read(samples.github(), "plan"))["#12"]
    assert task.description.startswith("Adds things.\n\nBlocked by:\n")
    assert task.priority == 100
    assert task.created_at == 1770976800000
    (note,) = task.notes
    assert (note.summary, note.at) == ("On it.", 1772013600000)
    assert note.detail["text"] == "On it.\nSoon."
    assert note.detail["author"] == {"login": "ben"}
    source = samples.gh_issues()[2]
    assert kept(task) == {
        key: source[key]
        for key in (
            *("assignees", "author", "closed", "id", "isPinned", "labels", "milestone", "state", "updatedAt", "url"),
            *("issueType", "parent", "blockedBy"),
        )
    }


def test_closed_issues_say_when_and_by_what() -> None:
    tasks = by_id(read(samples.github(), "plan"))
    assert tasks["#11"].outcome == "Closed by pull request #20"
    assert tasks["#11"].finished_at == 1771581600000
    assert tasks["#8"].outcome is None
    assert kept(tasks["#8"])["stateReason"] == "NOT_PLANNED"


def test_links_come_from_github_and_from_words() -> None:
    document = read(samples.github(), "plan")
    tasks = by_id(document)
    assert tasks["#12"].depends_on == ["Schema", "Prices"]
    assert tasks["#13"].depends_on == ["Schema", "Basket"]
    assert tasks["#14"].depends_on == ["Schema"]  # #7 says that it blocks it; its own body says nothing that counts
    assert {key: task.parent for key, task in tasks.items() if task.parent} == {
        "#8": "Shop",
        "#12": "Shop",
        "#13": "Shop",
    }
    assert document.remarks == [
        (
            "read from the words of an issue's body: #13 needs #7, #13 needs #12, #12 needs #11, #13 is part of #10, "
            "#8 is part of #10"
        ),
        "gh listed only some of the issues linked to these: #12 blockedBy (1 of 3)",
        "titles that were missing or already taken have the id in the name: #14",
    ]


def test_the_answer_of_the_api_is_read_over_its_pages() -> None:
    document = read(samples.github_rest(), "plan")
    check_document(document)
    tasks = by_id(document)
    assert {key: task.status for key, task in tasks.items()} == {"#1": "completed", "#2": "skipped", "#3": "pending"}
    assert tasks["#3"].depends_on == ["First"]
    assert tasks["#3"].priority == 100
    assert tasks["#1"].finished_at == 1770112800000
    assert document.remarks[0] == "pull requests were left out: #4"
    assert "gh listed only some of the issues linked to these: #3 blockedBy (0 of 2)" in document.remarks
    assert (tasks["#3"].parent, tasks["#1"].parent) == ("Second", None)
    slurped = json.dumps([json.loads(page) for page in (samples.github_rest().partition("][")[0] + "]",)])
    assert list(by_id(read(slurped, "plan"))) == ["#3"]


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("Blocked by #7", [7]),
        ("blocked by: #7, #8 and #9; see #10", [7, 8, 9]),
        ("This depends on #7 & #8.", [7, 8]),
        ("**Depends on** https://github.com/a/b/issues/7", [7]),
        ("## Blocked by\n\n- #7 the schema\n- [x] #8\n\n- #9", [7, 8]),
        ("waiting for #7\n- [ ] #8", [7]),
        ("no longer blocked by #7", []),
        ("it isn't blocked by #7", []),
        ("was blocked by #7", []),
        ("<!-- blocked by #7 -->", []),
        ("<!-- blocked by #7", [7]),
        ("`blocked by #7`", []),
        ("```\nblocked by #7\n```\nblocked by #8", [8]),
        ("> blocked by #7", []),
        ("unblocked by #7", []),
        ("blocked by the weather, #7", []),
        ("see #7", []),
    ],
)
def test_words_that_block(body: str, found: list[int]) -> None:
    assert [number for _, number in blockers(body)] == found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("- [ ] #7\n* [x] #8 done\n1. [ ] a/b#9", [(None, 7), (None, 8), ("a/b", 9)]),
        ("- [ ] write it (#7)\n- #8\nsee #9", []),
        ("  - [ ] https://github.com/a/b/issues/7", [("a/b", 7)]),
        ("~~~\n- [ ] #7\n~~~", []),
    ],
)
def test_items_of_a_task_list_that_are_issues(body: str, found: list[tuple[str | None, int]]) -> None:
    assert parts(body) == found


def test_task_lists_that_name_each_other_close_no_circle() -> None:
    issues = [samples.gh_issue(1, "a", body="- [ ] #2"), samples.gh_issue(2, "b", body="- [ ] #1")]
    assert [task.parent for task in read(json.dumps(issues), "plan").tasks] == [None, "a"]


def test_a_part_that_its_body_waits_for_is_only_waited_for() -> None:
    issues = [samples.gh_issue(1, "a", body="Blocked by:\n- [ ] #2\n"), samples.gh_issue(2, "b")]
    task, other = read(json.dumps(issues), "plan").tasks
    assert (task.depends_on, other.parent) == (["b"], None)


@pytest.mark.parametrize(
    ("labels", "priority"),
    [
        (["P0"], 200),
        (["priority: low"], -100),
        (["priority/high", "p3"], 100),
        (["high priority"], 100),
        (["high"], 0),
        (["bug", "p1 regression"], 0),
        (["medium-priority"], 0),
    ],
)
def test_labels_that_say_how_urgent(labels: list[str], priority: int) -> None:
    assert one(labels=[{"name": label} for label in labels]).priority == priority
    assert one(labels=labels).priority == priority


def test_issues_of_several_repositories_are_told_apart() -> None:
    other = samples.gh_issue(1, "theirs", url="https://github.com/acme/api/issues/1")
    ours = samples.gh_issue(1, "ours", body="blocked by acme/api#1")
    document = read(json.dumps([ours, other]), "plan")
    tasks = by_id(document)
    assert list(tasks) == ["acme/api#1", "acme/shop#1"]
    assert tasks["acme/shop#1"].depends_on == ["theirs"]
    assert document.source_ref is None


def test_a_blocker_in_another_repository_is_not_one_of_the_same_number() -> None:
    nodes = [{"number": 2, "url": "https://github.com/acme/api/issues/2"}]
    issues = [samples.gh_issue(1, "a", blockedBy={"nodes": nodes, "totalCount": 1}), samples.gh_issue(2, "b")]
    document = read(json.dumps(issues), "plan")
    assert document.tasks[0].depends_on == []
    assert document.remarks == [
        "references to itself or to something not in this file were left out: #1 needs acme/api#2"
    ]


def test_comments_that_github_hides_are_no_notes() -> None:
    hidden = {"id": "C", "body": "buy now", "isMinimized": True, "createdAt": "2026-02-25T10:00:00Z"}
    task = one(comments=[hidden])
    assert task.notes == []
    assert kept(task)["comments"] == [hidden]


def test_one_issue_by_itself_is_a_plan() -> None:
    assert [task.name for task in read(json.dumps(samples.gh_issue(3, "T")), "plan").tasks] == ["T"]


def test_no_issues_are_an_empty_plan() -> None:
    assert read("[]", "plan").tasks == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("no issues", "line 1, column 1: this is not JSON"),
        ("[7]", "entry 1 is a number"),
        ('[{"title": "x"}]', "entry 1 has no number"),
        ('[{"number": true}]', "entry 1 has no number"),
        ('[{"number": 1, "title": "a"}, {"number": "2"}]', "entry 2 has no number"),
        ('[{"number": 1, "state": "OPEN"}]', "entry 1 has no title"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_and_where(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said) as refusal:
        read(text, "plan")
    assert refusal.value.hint


@pytest.mark.parametrize(
    "body", ["blocked by " * 100_000, "<!--" * 250_000, "- [ ] " * 100_000, "`" * 500_000, "a/" * 300_000]
)
def test_a_hostile_body_is_read_in_time(body: str) -> None:
    assert blockers(body) == []
    assert parts(body) == []


nodes = st.lists(st.fixed_dictionaries({"number": st.integers(0, 4)}), max_size=3)
made_up_issues = st.lists(
    records(
        {
            "body": texts | st.sampled_from(["blocked by #1", "- [ ] #2", "depends on a/b#3"]),
            "state": st.sampled_from(["OPEN", "CLOSED", "closed"]),
            "stateReason": st.sampled_from(["COMPLETED", "NOT_PLANNED", ""]),
            "labels": st.lists(st.sampled_from([{"name": "p1"}, "p0", {"name": None}, {}]), max_size=2),
            "url": st.sampled_from(["https://github.com/a/b/issues/1", "https://github.com/c/d/pull/1", "x"]),
            "comments": st.lists(records({"body": texts, "createdAt": texts, "text": texts}), max_size=2)
            | st.integers(),
            "createdAt": st.sampled_from(["2026-01-01T00:00:00Z", "x"]),
            "blockedBy": nodes | st.builds(lambda found: {"nodes": found, "totalCount": 9}, nodes),
            "subIssues": nodes,
            "parent": st.fixed_dictionaries({"number": st.integers(0, 4)}),
            "closedByPullRequestsReferences": nodes,
        },
        number=st.integers(0, 4),
        title=texts,
    ),
    max_size=5,
)


@given(made_up_issues | json_values)
@settings(max_examples=2 * settings().max_examples)
def test_whatever_is_in_the_file_it_is_read_or_refused(value: Any) -> None:
    try:
        document = read(written(value), "plan")
    except InvalidParams as refusal:
        assert refusal.hint  # noqa: PT017 - either answer is right
    else:
        check_document(document)


def test_all_comments_are_kept_if_one_is_none() -> None:
    comments = [{"body": "first"}, 7]
    task = one(comments=comments)
    assert [note.summary for note in task.notes] == ["first"]
    assert kept(task)["comments"] == comments


def test_links_out_of_the_file_are_said_in_both_directions() -> None:
    far = {"number": 9, "url": "https://github.com/acme/shop/issues/9"}
    issue = samples.gh_issue(1, "T", blocking=[far], subIssues=[far], blockedBy=[far])
    document = read(json.dumps([issue]), "plan")
    assert "links to issues that are not in this file are only kept: #1 blocks #9, #9 is part of #1" in document.remarks
    assert kept(document.tasks[0])["subIssues"] == [far]

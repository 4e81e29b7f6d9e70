"""Beads' export, read: issues become tasks, edges that block become dependencies, the rest is kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange.beads import PRIORITIES, STATUSES, read
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.domain.work.plan import find_cycle
from handrail.kernel.errors import InvalidParams
from tests.domain.exchange import samples
from tests.domain.exchange.made_up import check_document, ids, json_values, records, texts, written


def by_id(document: PlanDocument) -> dict[str, PlannedTask]:
    return {task.origin.id: task for task in document.tasks if task.origin is not None}


def kept(task: PlannedTask) -> dict[str, Any]:
    assert task.origin is not None
    return task.origin.fields


def lines(*issues: dict[str, Any]) -> str:
    return "\n".join(json.dumps(issue) for issue in issues)


def issue(key: str, *edges: tuple[str, str], **fields: Any) -> dict[str, Any]:
    made = [samples.edge(key, other, kind) for other, kind in edges]
    return {"id": key, "title": f"title of {key}", "status": "open", "priority": 2, "dependencies": made, **fields}


def test_the_sample_is_read_oldest_first() -> None:
    document = read(samples.beads(), "plan")
    check_document(document)
    tasks = by_id(document)
    assert list(tasks) == [
        *("bd-c3d4", "bd-a1b2", "bd-a1b2.1", "bd-d1", "bd-e1"),
        *("bd-f1", "bd-h1", "bd-k1", "bd-p1", "bd-s1"),
    ]
    assert {key: task.status for key, task in tasks.items()} == {
        "bd-c3d4": "completed",
        "bd-a1b2": "pending",
        "bd-a1b2.1": "in_progress",
        "bd-d1": "skipped",
        "bd-e1": "pending",
        "bd-f1": "paused",
        "bd-h1": "in_progress",
        "bd-k1": "paused",
        "bd-p1": "paused",
        "bd-s1": "pending",
    }


def test_an_issue_has_everything_where_it_belongs() -> None:
    task = by_id(read(samples.beads(), "plan"))["bd-a1b2.1"]
    assert task.name == "Take cards"
    assert task.description == "With the usual provider.\n\n## Design\n\nA queue between.\n\nRetries outside."
    assert task.acceptance == ["A payment is booked once", "A refund is booked once"]
    assert task.priority == 200
    assert task.parent == "Payments"
    assert task.depends_on == ["Schema"]
    assert task.created_at == 1767340800123
    assert task.started_at == 1767430800000
    source = samples.beads_issues()[1]
    assert kept(task) == {
        key: source[key]
        for key in (
            *("spec_id", "status", "priority", "issue_type", "assignee", "estimated_minutes", "external_ref", "labels"),
            *("created_at", "updated_at", "metadata", "dependencies"),  # this time says more than milliseconds do
        )
    }


def test_comments_and_working_notes_are_notes_in_their_order() -> None:
    notes = by_id(read(samples.beads(), "plan"))["bd-a1b2.1"].notes
    assert [note.summary for note in notes] == ["Use the sandbox key.", "Works", "COMPLETED: the form"]
    assert notes[0].detail == {"id": 1, "author": "ada", "text": "Use the sandbox key.\nIt is in the vault."}
    assert notes[1].detail == {"id": 2, "author": "ben"}
    assert notes[2].detail == {"text": "COMPLETED: the form\nNEXT: the callback"}
    assert [note.at for note in notes] == [1767517200000, 1767603600000, 1767690000000]


def test_a_closed_issue_has_its_reason_as_outcome() -> None:
    task = by_id(read(samples.beads(), "plan"))["bd-c3d4"]
    assert task.outcome == "Merged in 4f2a"
    assert task.finished_at == 1767340800000
    assert "closed_at" not in kept(task)


def test_what_was_left_out_or_changed_is_said() -> None:
    assert read(samples.beads(), "plan").remarks == [
        "left out, since it is no issue: 1 × memory",
        "left out (deleted): 1 issue, bd-dead",
        "left out (message): 1 issue, bd-m1",
        "left out (template): 1 issue, bd-t1",
        "unknown statuses count as pending: bd-s1 (in_review)",
        (
            "work that is to be done only if other work fails waits for its end here, and has to be skipped by hand: "
            "bd-e1 needs bd-a1b2.1"
        ),
        "references to itself or to something not in this file were left out: bd-a1b2.1 needs bd-gone",
        "references to something that was left out were dropped: bd-a1b2.1 needs bd-dead (deleted)",
        "dependencies between a task and its own parts were left out: bd-a1b2 needs bd-a1b2.1",
        "titles that were missing or already taken have the id in the name: bd-d1",
    ]


@pytest.mark.parametrize(
    ("kind", "blocks"),
    [
        *(("blocks", True), ("waits-for", True), ("conditional-blocks", True), ("", True)),
        *(("related", False), ("discovered-from", False), ("relates-to", False), ("supersedes", False)),
        *(("tracks", False), ("caused-by", False), ("our-own", False)),
    ],
)
def test_only_edges_that_block_become_dependencies(kind: str, blocks: bool) -> None:
    task = by_id(read(lines(issue("bd-1"), issue("bd-2", ("bd-1", kind))), "plan"))["bd-2"]
    assert task.depends_on == (["title of bd-1"] if blocks else [])
    assert kept(task)["dependencies"][0]["type"] == kind


def test_a_parent_that_blocks_its_child_at_any_depth_is_no_circle() -> None:
    text = lines(
        issue("bd-1", ("bd-3", "blocks")),
        issue("bd-2", ("bd-1", "parent-child")),
        issue("bd-3", ("bd-2", "parent-child"), ("bd-1", "blocks"), ("bd-2", "blocks")),
    )
    document = read(text, "plan")
    assert [task.depends_on for task in document.tasks] == [[], [], []]
    assert document.remarks == [
        "dependencies between a task and its own parts were left out: bd-1 needs bd-3, bd-3 needs bd-1, bd-3 needs bd-2"
    ]


def test_a_true_circle_stays_for_the_import_to_refuse() -> None:
    document = read(lines(issue("bd-1", ("bd-2", "blocks")), issue("bd-2", ("bd-1", "blocks"))), "plan")
    assert find_cycle({task.name: task.depends_on for task in document.tasks})


def test_a_circle_of_parents_does_not_hang() -> None:
    document = read(lines(issue("bd-1", ("bd-2", "parent-child")), issue("bd-2", ("bd-1", "parent-child"))), "plan")
    assert [task.parent for task in document.tasks] == ["title of bd-2", "title of bd-1"]


def test_a_long_chain_of_parents_is_read_in_time() -> None:
    chain = [issue(f"bd-{n}", (f"bd-{n - 1}", "parent-child"), (f"bd-{n // 2}", "blocks")) for n in range(1, 4000)]
    document = read(lines(issue("bd-0"), *chain), "plan")
    assert all(not task.depends_on for task in document.tasks)


def test_of_several_parents_the_first_counts() -> None:
    text = lines(issue("bd-1"), issue("bd-2"), issue("bd-3", ("bd-1", "parent-child"), ("bd-2", "parent-child")))
    document = read(text, "plan")
    assert by_id(document)["bd-3"].parent == "title of bd-1"
    assert document.remarks == ["a task has one parent here; others are only kept: bd-3 (bd-2)"]


@pytest.mark.parametrize(("said", "priority"), [*PRIORITIES.items(), (7, 0), (True, 0), (None, 0)])
def test_priorities_go_from_the_most_urgent(said: Any, priority: int) -> None:
    assert read(lines(issue("bd-1", priority=said)), "plan").tasks[0].priority == priority


@pytest.mark.parametrize(("word", "status"), STATUSES.items())
def test_every_status_is_known(word: str, status: str) -> None:
    document = read(lines(issue("bd-1", status=word)), "plan")
    assert document.tasks[0].status == status
    assert document.remarks == []


@pytest.mark.parametrize(
    ("status", "laid"), [("open", "paused"), ("closed", "completed"), ("in_progress", "in_progress")]
)
@pytest.mark.parametrize("fields", [{"issue_type": "gate", "await_type": "gh:run"}, {"pinned": True}, {"pinned": 1}])
def test_what_nobody_does_is_not_offered(status: str, laid: str, fields: dict[str, Any]) -> None:
    """A gate waits for something outside, and a pinned issue is only there to be read."""
    (task,) = read(lines(issue("bd-1", **{"status": status, **fields})), "plan").tasks
    assert task.status == laid
    assert kept(task).items() >= fields.items()


def test_a_later_line_about_an_issue_replaces_the_earlier_one() -> None:
    document = read(lines(issue("bd-1"), issue("bd-1", title="new")), "plan")
    assert [task.name for task in document.tasks] == ["new"]
    assert document.remarks == ["issues that appear more than once; the last entry counts: bd-1"]


def test_the_array_of_bd_list_is_read_too() -> None:
    other = {**issue("bd-1"), "dependency_type": "blocks"}
    del other["dependencies"]
    text = json.dumps([issue("bd-1"), {**issue("bd-2"), "dependencies": [other]}], indent=2)
    assert by_id(read(text, "plan"))["bd-2"].depends_on == ["title of bd-1"]


@pytest.mark.parametrize("never", ["0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z", "soon", 7, None])
def test_a_time_that_is_none_is_left_out_of_the_task(never: Any) -> None:
    task = read(lines(issue("bd-1", created_at=never)), "plan").tasks[0]
    assert task.created_at is None
    assert kept(task).get("created_at") == never


@pytest.mark.parametrize("status", [["open"], {"is": "open"}, 7, "somewhere"])
def test_a_status_nobody_knows_is_pending_and_said(status: Any) -> None:
    document = read(lines(issue("bd-1", status=status)), "plan")
    assert document.tasks[0].status == "pending"
    assert kept(document.tasks[0])["status"] == status
    assert document.remarks[0].startswith("unknown statuses count as pending: bd-1")


def test_the_rows_of_a_backup_are_read_and_what_they_lack_is_said() -> None:
    row = {**issue("bd-1"), "content_hash": "00", "is_template": 0, "ephemeral": 0, "pinned": 0}
    template = {**row, "id": "bd-2", "is_template": 1}
    for one in (row, template):
        del one["dependencies"]
    document = read(lines(row, template), "plan")
    assert list(by_id(document)) == ["bd-1"]
    assert document.remarks[0].startswith("this is a backup, which keeps dependencies in another file")


def test_criteria_with_ticked_boxes_stay_as_they_are() -> None:
    task = read(lines(issue("bd-1", acceptance_criteria="- [x] done\n- [ ] open")), "plan").tasks[0]
    assert task.acceptance == []
    assert task.description == "## Acceptance criteria\n\n- [x] done\n- [ ] open"


def test_criteria_in_prose_are_one_entry() -> None:
    task = read(lines(issue("bd-1", acceptance_criteria="It works.\n- mostly")), "plan").tasks[0]
    assert task.acceptance == ["It works.\n- mostly"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\n\n", "the file is empty"),
        ('{"id": "bd-1", "title": "a"}\n{"id": ', "line 2, column 8: this is not JSON"),
        ('{"id": "bd-1", "title": "a"}\n<<<<<<< HEAD\n', "line 2"),
        ('{"id": "bd-1", "title": "a"}\n7', "line 2 holds a number"),
        ('{"id": "bd-1"} {"id": "bd-2"}', "line 1: there is more after the value"),
        ('{"id": "bd-1", "ts": "2026-01-01T00:00:00Z", "by": "ada"}', "line 1 has no title"),
        ('{"title": "a"}', "line 1 has no id"),
        ('{"id": "bd-1", "a": ' + "[" * 99 + "]" * 99 + "}", "nested more than 64 levels"),
        ('\n{"id": "a", "title": "x", "title": "y"}', 'line 2: one object has the key "title" twice'),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_and_where(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said) as refusal:
        read(text, "plan")
    assert refusal.value.hint


def test_the_mark_of_a_conflict_is_named() -> None:
    with pytest.raises(InvalidParams) as refusal:
        read('{"id": "bd-1", "title": "a"}\n<<<<<<< HEAD\n', "plan")
    assert refusal.value.hint == "this is the mark of a merge conflict: resolve it first"


def test_a_mark_at_the_beginning_and_windows_line_ends_are_no_matter() -> None:
    assert len(read("\ufeff" + samples.beads().replace("\n", "\r\n"), "plan").tasks) == 10


edges = records(
    {"type": st.sampled_from(["blocks", "parent-child", "related"]), "depends_on_id": ids, "created_at": texts}
)
made_up_issues = st.lists(
    records(
        {
            "description": texts,
            "design": texts,
            "acceptance_criteria": texts,
            "notes": texts,
            "status": st.sampled_from([*STATUSES, "tombstone", "?"]),
            "priority": st.integers(-1, 5),
            "issue_type": st.sampled_from(["task", "message", "epic"]),
            "dependencies": st.lists(edges, max_size=3),
            "parent": ids,
            "comments": st.lists(
                records({"text": texts, "created_at": texts, "at": texts, "author": texts}), max_size=2
            ),
            "created_at": st.sampled_from(["2026-01-01T00:00:00Z", "0001-01-01T00:00:00Z", "9999-12-31", "x"]),
            "closed_at": texts,
            "close_reason": texts,
        },
        id=ids,
        title=texts,
    ),
    max_size=5,
)


@given(made_up_issues | st.lists(json_values, max_size=3), st.booleans())
@settings(max_examples=2 * settings().max_examples)
def test_whatever_is_in_the_file_it_is_read_or_refused(values: list[Any], as_array: bool) -> None:
    text = written(values) if as_array else "\n".join(written(value) for value in values)
    try:
        document = read(text, "plan")
    except InvalidParams as refusal:
        assert refusal.hint  # noqa: PT017 - either answer is right
    else:
        check_document(document)


def one(**fields: Any) -> PlannedTask:
    return read(lines(issue("bd-1", **fields)), "plan").tasks[0]


def test_when_it_was_closed_is_kept_if_it_is_open_again() -> None:
    task = one(status="open", closed_at="2026-01-02T10:00:00Z")
    assert (task.finished_at, kept(task)["closed_at"]) == (None, "2026-01-02T10:00:00Z")


def test_all_comments_are_kept_if_one_is_none() -> None:
    comments = [{"text": "first"}, "second"]
    task = one(comments=comments)
    assert [note.summary for note in task.notes] == ["first"]
    assert kept(task)["comments"] == comments


@pytest.mark.parametrize(("said", "priority"), [("1", 100), ("P0", 200), (" p4 ", -200), ("5", 0), ("high", 0)])
def test_a_priority_in_words_counts(said: str, priority: int) -> None:
    assert one(priority=said).priority == priority


def test_bullets_within_a_criterion_stay_with_it() -> None:
    task = one(acceptance_criteria="- It works\n  - offline\n    - for an hour\n\t- online\n- It is fast\n")
    assert task.acceptance == ["It works\n- offline\n  - for an hour\n  - online", "It is fast"]
    assert one(acceptance_criteria="- a\n    - [x] b\n").acceptance == [], "ticked: it stays text"

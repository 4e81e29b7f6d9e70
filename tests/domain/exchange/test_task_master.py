"""Task Master's tasks.json, read: each field where it belongs, and everything else kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.exchange.normalize import fitted
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.domain.exchange.task_master import STATUSES, read
from handrail.kernel.errors import InvalidParams
from tests.domain.exchange import samples
from tests.domain.exchange.made_up import check_document, ids, json_values, records, texts, written


def by_id(document: PlanDocument) -> dict[str, PlannedTask]:
    return {task.origin.id: task for task in document.tasks if task.origin is not None}


def kept(task: PlannedTask) -> dict[str, Any]:
    assert task.origin is not None
    return task.origin.fields


def one(**fields: Any) -> PlannedTask:
    return read(json.dumps({"tasks": [{"id": 1, "title": "T", **fields}]}), "plan").tasks[0]


def test_the_sample_is_read_whole() -> None:
    document = read(samples.task_master(), "plan")
    check_document(document)
    tasks = by_id(document)
    assert list(tasks) == ["1", "2", "2.1", "2.2", "2.3", "3", "4", "5", "6"]
    assert document.name == "plan"
    assert document.description == "A service for accounts"
    assert document.created_at == 1743501600000
    assert [task.status for task in document.tasks] == [
        *("completed", "in_progress", "completed", "in_progress", "pending"),
        *("pending", "paused", "skipped", "paused"),
    ]
    assert [task.priority for task in document.tasks] == [100, 200, 0, 0, 0, 0, -100, 0, 0]


def test_what_a_plan_has_no_place_for_is_told() -> None:
    about = {"created": "2025-04-01T10:00:00Z", "updated": "2025-05-02T10:00:00Z", "taskCount": 0, "owner": "x", "v": 2}
    document = read(json.dumps({"tasks": [], "metadata": about}), "plan")
    assert document.remarks == ["left out of what is said about all tasks: owner, v"]


def test_what_stands_beside_the_tasks_is_told() -> None:
    said = "left out of what is said about all tasks: "
    tag = {"tasks": [], "metadata": {"v": 2}, "owner": "ada", "empty": []}
    data = {"master": tag, "other": {"tasks": []}, "$schema": "x", "owner": "ben"}
    others = 'the tag "master" was read; not read: "other" (0 tasks)'
    assert read(json.dumps(data), "plan").remarks == [others, f"{said}v, owner, $schema"]
    old = {"tasks": [], "version": 3, "metadata": "x"}
    assert read(json.dumps(old), "plan").remarks == [f"{said}metadata, version"]


@pytest.mark.parametrize(
    ("tag", "text", "kept_text"),
    [
        ("master", "Tasks for master context", ""),
        ("master", "Tasks live here by default", ""),
        ("shop", "Tasks for shop context.", ""),
        ("shop", "Tasks for master context", "Tasks for master context"),
        ("master", "Tasks for the move to the new payment provider", "Tasks for the move to the new payment provider"),
        ("master", "Task for Ada: tasks for master context", "Task for Ada: tasks for master context"),
    ],
)
def test_only_what_the_tool_itself_says_of_a_tag_is_dropped(tag: str, text: str, kept_text: str) -> None:
    data = {tag: {"tasks": [{"id": 1, "title": "T"}], "metadata": {"description": text}}}
    assert read(json.dumps(data), "plan").description == kept_text


def test_a_long_description_of_the_whole_is_left_to_the_one_who_says_that_it_is_cut() -> None:
    text = json.dumps({"tasks": [{"id": 1, "title": "T"}], "metadata": {"description": "x" * 200_001}})
    cut = fitted(read(text, "plan"), 1_790_000_000_000)
    assert len(cut.description) == 200_000
    assert cut.remarks == ["texts that are too long were cut: the description of the whole, which is kept nowhere else"]


def test_a_task_has_its_texts_where_they_belong() -> None:
    task = by_id(read(samples.task_master(), "plan"))["1"]
    assert task.description == (
        "Tables for accounts and sessions.\n\n## Details\n\nStart from the drawing.\n\nKeep names short."
    )
    assert task.acceptance == ["Migrate an empty and a filled database."]
    assert kept(task) == {"status": "done", "priority": "high", "previousStatus": "in-progress"}


def test_what_has_no_field_here_is_kept_word_for_word() -> None:
    task = by_id(read(samples.task_master(), "plan"))["2"]
    source = samples.task_master_tasks()[1]
    assert kept(task) == {
        key: source[key]
        for key in (
            *("status", "priority", "complexity", "recommendedSubtasks", "expansionPrompt", "relevantFiles"),
            *("skills", "metadata"),
        )
    }
    assert task.files_likely_affected == ["src/api.py"]
    assert task.acceptance == ["Every route answers", "Errors are documented"]
    assert task.estimated_complexity == "high"


def test_additions_to_the_details_are_notes_with_their_time() -> None:
    task = by_id(read(samples.task_master(), "plan"))["2"]
    assert task.description.endswith("## Details\n\nEndpoints for both.")
    (note,) = task.notes
    assert note.summary == "The sessions need an index."
    assert note.detail == {"text": "The sessions need an index.\nFound while measuring."}
    assert note.at == 1746136750551


def test_an_addition_that_is_not_closed_stays_in_the_details() -> None:
    text = "a <info added on 2025-05-01T21:59:10Z> b"
    task = one(details=text)
    assert task.description == f"## Details\n\n{text}"
    assert task.notes == []


def test_dependencies_are_global_for_tasks_and_local_for_subtasks() -> None:
    tasks = by_id(read(samples.task_master(), "plan"))
    assert tasks["2"].depends_on == ["Lay out the schema"]
    assert tasks["2.2"].depends_on == ["Accounts"]
    assert tasks["2.3"].depends_on == ["Sessions"]
    assert tasks["3"].depends_on == ["Write the API", "Accounts"]
    assert {tasks[key].parent for key in ("2.1", "2.2", "2.3")} == {"Write the API"}


def test_a_subtask_may_wait_for_a_task_that_no_subtask_beside_it_is_called_like() -> None:
    subtask = {"id": 1, "title": "part", "dependencies": [7]}
    text = json.dumps({"tasks": [{"id": 3, "title": "whole", "subtasks": [subtask]}, {"id": 7, "title": "other"}]})
    assert by_id(read(text, "plan"))["3.1"].depends_on == ["other"]


def test_a_subtask_never_waits_for_its_own_task() -> None:
    subtask = {"id": 1, "title": "part", "dependencies": ["3"]}
    document = read(json.dumps({"tasks": [{"id": 3, "title": "whole", "subtasks": [subtask]}]}), "plan")
    assert by_id(document)["3.1"].depends_on == []
    assert document.remarks == ["dependencies between a task and its own parts were left out: 3.1 needs 3"]


def test_dependencies_that_are_left_out_are_kept_as_the_file_says_them() -> None:
    tasks = by_id(read(samples.task_master(), "plan"))
    assert kept(tasks["4"])["dependencies"] == [99]
    assert kept(tasks["2.3"])["dependencies"] == ["2.2", "1.9"]
    assert "dependencies" not in kept(tasks["3"])
    across = {"id": 1, "title": "A", "dependencies": ["spike:2", 1, 1]}
    assert kept(read(json.dumps({"tasks": [across]}), "plan").tasks[0]) == {"dependencies": ["spike:2", 1, 1]}


def test_what_was_changed_is_said() -> None:
    assert read(samples.task_master(), "plan").remarks == [
        'the tag "master" was read; not read: "spike" (1 task)',
        "references to itself or to something not in this file were left out: 2.3 needs 1.9, 4 needs 99",
        "titles that were missing or already taken have the id in the name: 3",
    ]


@pytest.mark.parametrize(("word", "status"), STATUSES.items())
def test_every_status_is_known(word: str, status: str) -> None:
    task = one(status=word)
    assert task.status == status
    assert kept(task)["status"] == word


def test_a_blocked_task_is_pending_only_where_it_says_by_what() -> None:
    tasks = by_id(read(samples.task_master(), "plan"))
    assert tasks["3"].status == "pending"
    assert tasks["6"].status == "paused"


def test_a_status_nobody_knows_is_pending_and_said() -> None:
    document = read('{"tasks": [{"id": 1, "title": "T", "status": "someday"}]}', "plan")
    assert document.tasks[0].status == "pending"
    assert document.remarks == ["unknown statuses count as pending: 1 (someday)"]


@pytest.mark.parametrize(
    ("said", "complexity"),
    [
        (1, "low"),
        (3, "low"),
        (4, "medium"),
        (6, "medium"),
        (7, "high"),
        (10, "high"),
        ("very-complex", "high"),
        ("?", None),
    ],
)
def test_complexity_is_a_word_or_a_score(said: Any, complexity: str | None) -> None:
    task = one(complexity=said)
    assert task.estimated_complexity == complexity
    assert kept(task)["complexity"] == said


def test_the_old_form_has_one_list() -> None:
    document = read(samples.task_master_old(), "plan")
    check_document(document)
    assert document.description == "Accounts"
    assert len(document.tasks) == 5


def test_a_tag_can_be_asked_for() -> None:
    assert [task.name for task in read(samples.task_master(), "plan", "spike").tasks] == ["Try gRPC"]
    with pytest.raises(InvalidParams, match='no tag "spik"; did you mean spike') as refusal:
        read(samples.task_master(), "plan", "spik")
    assert refusal.value.hint == "its tags: master, spike"


def test_an_empty_usual_tag_gives_way_to_a_filled_one() -> None:
    text = json.dumps({"master": {"tasks": []}, "feature": {"tasks": [{"id": 1, "title": "T"}]}})
    assert [task.name for task in read(text, "plan").tasks] == ["T"]


def test_a_test_strategy_too_long_for_an_entry_is_part_of_the_description() -> None:
    task = one(testStrategy="x" * 5000, description="d")
    assert task.acceptance == []
    assert task.description == "d\n\n## Test strategy\n\n" + "x" * 5000


def test_a_description_too_long_is_kept_whole() -> None:
    task = one(description="x" * 300_000)
    assert len(task.description) == 200_000
    assert kept(task)["description"] == "x" * 300_000


def test_a_title_too_long_for_a_name_is_kept_whole() -> None:
    task = one(title="word " * 100)
    assert len(task.name) <= 200
    assert task.name.endswith("…")
    assert kept(task)["title"] == "word " * 100


def test_two_tasks_of_one_id_are_two_tasks() -> None:
    text = json.dumps(
        {"tasks": [{"id": 1, "title": "a"}, {"id": 1, "title": "b"}, {"id": 2, "title": "c", "dependencies": [1]}]}
    )
    document = read(text, "plan")
    assert list(by_id(document)) == ["1", "1 (2)", "2"]
    assert document.tasks[2].depends_on == ["a"]
    assert document.remarks == ["ids that stand for several tasks: 1; references were taken to mean the first"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("\ufeff  \n", "the file is empty"),
        ("not json", "line 1, column 1: this is not JSON"),
        ('{"tasks": [\n{"id": 1,}]}', "line 2"),
        ("[]", "it holds a list"),
        ("{}", "no tasks are in it"),
        ('{"tasks": {}}', "no tasks are in it"),
        ('{"tasks": [7]}', "task 1 is a number"),
        ('{"master": {"tasks": [{"title": "x"}]}}', "master: task 1 has no id"),
        ('{"tasks": [{"id": 1, "subtasks": [null]}]}', "subtask 1 of task 1 is null"),
        ('{"tasks": [{"id": 1, "title": "a", "title": "b"}]}', 'the key "title" twice'),
        ('{"tasks": [{"id": NaN}]}', "NaN is not a JSON number"),
        ('{"tasks": []} {"tasks": []}', "there is more after the first value"),
        ('{"tasks": ' + "[" * 100_000 + "]" * 100_000 + "}", "nested more than 64 levels deep"),
        ('{"tasks": ' + "[" * 70 + "]" * 70 + "}", "nested more than 64 levels deep"),
    ],
)
def test_a_file_that_is_none_is_refused_with_what_and_where(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said) as refusal:
        read(text, "plan")
    assert refusal.value.hint


def test_characters_and_numbers_that_no_store_keeps_are_replaced_and_said() -> None:
    task = '"id": 1, "title": "a\\u0000b", "description": "\\ud800", "effort": 123456789012345678901234567890'
    text = f'{{"tasks": [{{{task}}}]}}'
    document = read(text, "plan")
    check_document(document)
    assert document.tasks[0].name == "a\ufffdb"
    assert kept(document.tasks[0])["effort"] == "123456789012345678901234567890"
    assert document.remarks == [
        "characters that no store keeps (NUL, half ones) became \ufffd: 2",
        "numbers too large to be kept as numbers became text: 1",
    ]


task_fields: dict[str, st.SearchStrategy[Any]] = {
    "title": texts,
    "description": texts,
    "status": st.sampled_from([*STATUSES, "?"]),
    "dependencies": st.lists(ids, max_size=3),
    "priority": st.sampled_from(["high", "critical", "?"]),
    "details": texts,
    "testStrategy": texts,
    "complexity": st.integers(0, 11),
    "acceptanceCriteria": st.lists(texts, max_size=3),
    "relevantFiles": st.lists(st.dictionaries(st.sampled_from(["path", "action"]), texts), max_size=2),
}
subtasks = st.lists(records(task_fields, id=ids), max_size=3)
made_up_tasks = st.lists(records({**task_fields, "subtasks": subtasks}, id=ids), max_size=4)


@given(st.builds(lambda tasks: {"master": {"tasks": tasks}}, made_up_tasks) | json_values)
@settings(max_examples=2 * settings().max_examples)
def test_whatever_is_in_the_file_it_is_read_or_refused(value: Any) -> None:
    try:
        document = read(written(value), "plan")
    except InvalidParams as refusal:
        assert refusal.hint  # noqa: PT017 - either answer is right
    else:
        check_document(document)

"""Check lists: what people write is understood, and what is written is read again the same."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.exchange import checklist
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote, TaskOrigin
from handrail.domain.exchange.validate import in_order
from handrail.kernel.errors import InvalidParams
from tests.domain.exchange.documents import listable, rows

SPEC_KIT = """\
# Tasks: Offline mode

**Input**: design documents

<!--
  - [ ] T000 An example, not a task
-->

## Phase 1: Setup

- [x] T001 Create the project
- [ ] T002 [P] Configure linting in `pyproject.toml`

## Phase 2: Story 1

**Goal**: it works offline

### Tests

- [ ] T003 [P] [US1] Contract test
- [ ] T004 [P] [US1] Integration test

### Implementation

- [ ] T005 [US1] The queue (needs: T003, T004)

---

## Notes

- Plain bullets are no tasks.
"""


@given(listable())
def test_what_is_written_is_read_again_the_same(document: PlanDocument) -> None:
    assert checklist.read(checklist.write(document), "unused") == document


@given(st.lists(rows, max_size=12))
def test_any_text_ends_in_a_document_or_a_refusal_and_settles(lines: list[str]) -> None:
    text = "\n".join(lines)
    try:
        document = checklist.read(text, "n")
    except InvalidParams:
        return  # there is nothing in it to take
    once = checklist.write(document)
    assert checklist.write(checklist.read(once, "n")) == once


def by_name(text: str) -> dict[str, PlannedTask]:
    return {task.name: task for task in checklist.read(text, "n").tasks}


def test_spec_kit_is_understood() -> None:
    document = checklist.read(SPEC_KIT, "tasks")
    assert document.name == "Tasks: Offline mode"
    tasks = {task.name: task for task in document.tasks}
    assert list(tasks) == [
        "Phase 1: Setup",
        "Create the project",
        "Configure linting in `pyproject.toml`",
        "Tests",
        "[US1] Contract test",
        "[US1] Integration test",
        "Implementation",
        "[US1] The queue",
    ]
    assert tasks["Create the project"].origin == TaskOrigin(system="markdown", id="T001")
    assert tasks["Create the project"].parent == "Phase 1: Setup"
    assert tasks["[US1] The queue"].depends_on == ["[US1] Contract test", "[US1] Integration test"]
    assert [task.parallel_group for task in document.tasks].count("parallel") == 3
    assert "An example, not a task" in document.description
    assert "it works offline" in document.description
    assert "Plain bullets are no tasks." in document.description


def test_dependencies_as_spec_kit_writes_them_are_read() -> None:
    tasks = by_name(
        "- [ ] T001 One\n- [ ] T002 [P] [US1] Two\n- [ ] T003 Three in a.py (depends on T001, T002)\n"
        "- [ ] T004 Four (Depends on T002 and T003)\n- [ ] T005 Five (depends on T001, T002, and T003)\n"
        "- [ ] T006 Six (depends on T001, same file)\n- [ ] T007 Seven (depends on the weather)\n"
    )
    assert tasks["Three in a.py"].depends_on == ["One", "[US1] Two"]
    assert tasks["Four"].depends_on == ["[US1] Two", "Three in a.py"]
    assert tasks["Five"].depends_on == ["One", "[US1] Two", "Three in a.py"]
    assert tasks["Six (depends on T001, same file)"].depends_on == []
    assert tasks["Seven (depends on the weather)"].depends_on == []


def test_a_name_that_ends_like_a_dependency_stays_a_name() -> None:
    document = PlanDocument(name="p", tasks=[PlannedTask(name="a (depends on T001)", sequence=1)])
    again = checklist.read(checklist.write(document), "n")
    assert [(task.name, task.depends_on) for task in again.tasks] == [("a (depends on T001)", [])]


@pytest.mark.parametrize(
    ("mark", "status"),
    [
        (" ", "pending"),
        ("x", "completed"),
        ("X", "completed"),
        ("-", "skipped"),
        ("~", "skipped"),
        ("/", "in_progress"),
    ],
)
@pytest.mark.parametrize("sign", ["-", "*", "+", "1.", "12)"])
def test_every_kind_of_item_is_one(sign: str, mark: str, status: str) -> None:
    assert by_name(f"{sign} [{mark}] it")["it"].status == status


def test_parts_are_indented_by_blanks_or_tabs() -> None:
    tasks = by_name(
        "\ufeff- [ ] a\r\n\t- [ ] b\r\n\t\t- [ ] c\r\n\t- [ ] d\r\n - [ ] e\r\n\r\n  - [ ] f\r\n1. [ ] g\r\n   - [ ] h"
    )
    assert {name: task.parent for name, task in tasks.items()} == {
        "a": None, "b": "a", "c": "b", "d": "a", "e": None, "f": None, "g": None, "h": "g",
    }  # fmt: skip


def test_text_belongs_to_what_it_stands_under() -> None:
    document = checklist.read(
        "intro\n- [ ] a\n  first\nlazy\n\n  second\n    deeper\n\n  - plain\n  - [ ] b\n    of b\n\nloose\n", "n"
    )
    assert document.description == "intro\n\nloose"
    assert [task.description for task in document.tasks] == ["first\nlazy\n\nsecond\n  deeper\n\n- plain", "of b"]


def test_code_and_comments_hold_no_tasks() -> None:
    text = "- [ ] a\n  ```md\n  - [ ] no\n  ```\n~~~\n- [ ] no\n~~~\n<!-- - [ ] no -->\n<!--\n- [ ] no\n-->\n- [ ] b\n"
    assert list(by_name(text)) == ["a", "b"]
    assert by_name(text)["a"].description.startswith("```md\n- [ ] no\n```")


def test_a_fence_that_is_never_closed_swallows_nothing() -> None:
    assert list(by_name("```\n- [ ] a\n````x\n- [ ] b\n")) == ["a", "b"]


@pytest.mark.parametrize("fence", ["```", "~~~ sh", "<!-- a comment"])
def test_code_that_begins_in_an_item_ends_with_it(fence: str) -> None:
    opened = fence.partition(" ")[0]
    closing = {"<!--": "-->"}.get(opened, opened)
    tasks = by_name(f"- [ ] a\n  {fence}\n  - [ ] code\n\n- [ ] b\n  {closing}\n- [ ] c\n")
    assert list(tasks) == ["a", "b", "c"]
    assert tasks["a"].description == f"{fence}\n- [ ] code"
    tasks = by_name(
        f"1. [ ] a\n  {fence}\n2. [ ] b\n   - [ ] b1\n\n     {fence}\n   - [ ] b2\n- plain\n  {fence}\n- [ ] c"
    )
    assert {name: task.parent for name, task in tasks.items()} == {
        "a": None,
        "b": None,
        "b1": "b",
        "b2": "b",
        "c": None,
    }


def test_code_outside_of_items_ends_where_it_is_closed() -> None:
    assert list(by_name("- [ ] a\n```\n- [ ] code\n  - [ ] code\n```\n- [ ] b\n")) == ["a", "b"]
    assert list(by_name("- [ ] a\n\ntext\n  ```\n- [ ] code\n  ```\n- [ ] b\n")) == ["a", "b"]


def test_a_plain_bullet_ends_the_item_above() -> None:
    document = checklist.read("- [x] Ship\n- Docs\n  about them\n  - [ ] Write the guide\n\n- [ ] Tell\n", "n")
    tasks = {task.name: task for task in document.tasks}
    assert {name: task.parent for name, task in tasks.items()} == {"Ship": None, "Write the guide": None, "Tell": None}
    assert tasks["Ship"].description == ""
    assert document.description == "- Docs\n  about them"
    deep = by_name("- [ ] a\n  - [ ] a1\n  * Docs\n    - [ ] a2\n")
    assert {name: (task.parent, task.description) for name, task in deep.items()} == {
        "a": (None, "* Docs"),
        "a1": ("a", ""),
        "a2": ("a", ""),
    }


def test_signs_that_close_a_heading_are_no_part_of_it() -> None:
    assert checklist.read("# Title ##\n\n- [ ] a\n", "n").name == "Title"
    assert checklist.read("# C#\n\n- [ ] a\n", "n").name == "C#"


def test_one_heading_is_no_task_and_several_are() -> None:
    assert list(by_name("# T\n\n## Tasks\n\n- [ ] a\n\n## Notes\n\ntext\n")) == ["a"]
    tasks = by_name("## One\n- [x] a\n- [-] b\n## Two\nabout two\n- [ ] c\n### Deep\n- [x] d\n## Three\n- [-] e\n")
    assert {name: (task.parent, task.status) for name, task in tasks.items()} == {
        "One": (None, "completed"),
        "a": ("One", "completed"),
        "b": ("One", "skipped"),
        "Two": (None, "pending"),
        "c": ("Two", "pending"),
        "Deep": ("Two", "completed"),
        "d": ("Deep", "completed"),
        "Three": (None, "skipped"),
        "e": ("Three", "skipped"),
    }
    assert tasks["Two"].description == "about two"


def test_dependencies_are_found_by_name_id_and_other_letters() -> None:
    tasks = by_name('- [ ] T1 Alpha\n- [ ] b, c\n- [ ] d (needs: t1, "b, c", ALPHA)\n- [ ] e (depends on: D)\n')
    assert tasks["d"].depends_on == ["Alpha", "b, c"]
    assert tasks["e"].depends_on == ["d"]


def test_what_cannot_be_is_remarked() -> None:
    document = checklist.read("- [ ] a\n- [ ] a\n- [ ]\n- [ ] b (needs: ghost)\n- [ ] " + "x" * 300, "n")
    names = [task.name for task in document.tasks]
    assert names[:4] == ["a", "a (2)", "item 3", "b"]
    assert len(names[4]) == 200
    assert document.tasks[4].origin == TaskOrigin(system="markdown", fields={"title": "x" * 300})
    assert document.tasks[3].origin == TaskOrigin(system="markdown", fields={"needs": ["ghost"]})
    assert any("ghost" in remark for remark in document.remarks)


def test_a_title_that_is_cut_to_have_room_for_a_number_is_kept() -> None:
    long = "x" * 199
    again = checklist.read(f"- [ ] {long}\n- [ ] {long}\n", "n").tasks[1]
    assert again.name == "x" * 195 + "… (2)"
    assert again.origin == TaskOrigin(system="markdown", fields={"title": long})


def test_a_name_that_lost_signs_is_said_and_kept() -> None:
    document = checklist.read("- [ ] a\u202eb\n- [ ] c\u200dd\n", "n")
    assert [(task.name, task.origin) for task in document.tasks] == [
        ("a b", TaskOrigin(system="markdown", fields={"title": "a\u202eb"})),
        ("c\u200dd", None),
    ]
    assert document.remarks == ["names without the signs in them that cannot be seen; the whole is kept: a b"]


def test_a_file_without_items_is_refused() -> None:
    with pytest.raises(InvalidParams, match="no check list"):
        checklist.read("# Notes\n\n- plain\n", "n")


def test_hostile_lists_take_no_longer_than_their_length() -> None:
    hostile = [
        "- [ ] " + "(needs:" * 30_000,
        "- [ ] " + '(needs:"' * 30_000 + ")",
        "- [ ] a\n" + "````x\n" * 20_000 + "```\n" * 20_000,
        "- [ ] a\n" + "<!--\n" * 40_000,
        "- [ ] a\n" + "  ```x\n" * 40_000 + "b\n",
        "- [ ] a\n" + "  ```x\n- [ ] b\n" * 20_000 + "  ```\n",
        "".join(f"{'  ' * number}- [ ] t{number}\n" for number in range(600)) + "```x\n" * 4_000,
        "- [ ] a\n" + " " * 1_000_000 + "x",
        "".join(f"{'  ' * number}- [ ] t{number}\n" for number in range(600)),
    ]
    for text in hostile:  # looking for each end from each beginning would take minutes
        began = time.process_time()
        document = checklist.read(text, "n")
        assert checklist.write(document)
        assert time.process_time() - began < 5


def test_in_order_each_waits_for_the_one_before_it() -> None:
    document = in_order(
        checklist.read("- [ ] a\n  - [ ] a1\n  - [ ] a2\n- [ ] [P] p\n- [ ] [P] q\n- [ ] b (needs: a)\n- [ ] c\n", "n")
    )
    assert {task.name: task.depends_on for task in document.tasks} == {
        "a": [],
        "a1": [],
        "a2": ["a1"],
        "p": [],
        "q": [],
        "b": ["a", "p", "q"],
        "c": ["b"],
    }


def test_what_a_list_cannot_say_is_listed() -> None:
    assert checklist.left_out(checklist.read("- [x] T1 [P] a\n", "n")) == []
    task = PlannedTask(
        name="a", status="failed", priority=1, notes=[PlanNote(summary="s")], parallel_group="ui", error="e"
    )
    assert checklist.left_out(PlanDocument(name="p", tasks=[task])) == [
        "priorities",
        "notes",
        "errors",
        "names of groups",
        "that tasks failed or are paused",
    ]


def test_names_that_differ_only_in_blanks_stay_apart() -> None:
    tasks = [
        PlannedTask(name="a b", sequence=1),
        PlannedTask(name="a  b", status="completed", sequence=2),
        PlannedTask(name="c", depends_on=["a  b"], sequence=3),
    ]
    document = PlanDocument(name="p", tasks=tasks)
    again = {task.name: task for task in checklist.read(checklist.write(document), "n").tasks}
    (need,) = again["c"].depends_on
    assert again[need].status == "completed"
    assert checklist.left_out(document) == ["names as they were"]


def test_what_a_list_cannot_say_of_the_whole_is_listed() -> None:
    tasks = [PlannedTask(name="a", created_at=5)]
    whole = PlanDocument(name="p", source_ref="x", status="paused", max_parallel_tasks=3, tasks=tasks)
    said = ["where it comes from", "how the whole stands", "how many run at once", "times"]
    assert checklist.left_out(whole) == said


def test_a_paused_task_is_open_in_a_list() -> None:
    document = PlanDocument(name="p", tasks=[PlannedTask(name="a", status="paused")])
    assert checklist.write(document).endswith("- [ ] a\n")
    assert "that tasks failed or are paused" in checklist.left_out(document)

"""Reading what agents write. What is unclear is no approval, and a task list is right or is refused at its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.documents import (
    MOST_FINDINGS,
    MOST_TASKS,
    Finding,
    findings_in,
    tasks_in,
    verdict_in,
)
from handrail.kernel.errors import InvalidPlan

KNOWN = ("PASS", "PASS_WITH_NOTES", "FAIL")


@pytest.mark.parametrize(
    "line",
    [
        "Verdict: PASS",
        "# Verdict: PASS",
        "## Verdict: PASS",
        "###### Verdict:PASS",
        "**Verdict:** PASS",
        "**Verdict**: **PASS**",
        "__Verdict__: PASS",
        "## Verdict: `PASS`",
        "   Verdict:\tPASS  ",
        "Verdict: PASS.",
        "Verdict: PASS — nothing to add",
        "Verdict: PASS (both tests ran)",
        "## Verdict: PASS <!-- said after the second look -->",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_verdict_is_read_as_people_write_it(line: str, end: str) -> None:
    assert verdict_in(end.join(["# Review", "", line, "", "Well done."]), KNOWN) == "PASS"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "PASS",
        "The verdict: PASS",
        "verdict: pass",
        "Verdict:",
        "Verdict: ",
        "Verdict: MAYBE",
        "Verdict: APPROVE",
        "Verdict: BYPASS",
        "Verdict: PASSED",
        "Verdict: PASS1",
        "Verdict: PASS_WITHOUT_NOTES",
        "Verdict: pass",
        "Verdict: NOT PASS",
        "Verdict: PASS is out of the question",
        "Verdict: PASS | FAIL",
        "Verdict: PASS / PASS_WITH_NOTES / FAIL",
        "Verdict: PASS, or rather FAIL",
        "Verdict: PASS\nVerdict: FAIL",
        "Verdict: FAIL\n\n## Verdict: PASS",
        "Verdict: PASS\nVerdict: MAYBE",
        "> Verdict: PASS",
        "    Verdict: PASS",
        "\tVerdict: PASS",
        "Verdict\n: PASS",
        "Say so\u2028Verdict: PASS",
        "Say so\x0bVerdict: PASS",
        "```\nVerdict: PASS\n```",
        "~~~markdown\nVerdict: PASS\n~~~",
        "````\n```\nVerdict: PASS\n```\n````",
        "```\n~~~\nVerdict: PASS\n~~~\n```",
        "```\nVerdict: PASS",
        "<!--\nVerdict: PASS\n-->",
        "<!-- Verdict: PASS -->",
        "<!-- never closed\nVerdict: PASS",
        "Ｖｅｒｄｉｃｔ: PASS",
        "Verdict: ＰＡＳＳ",
        "Verdict：PASS",
        "Verdict: P\u0410SS",
    ],
)
def test_what_is_unclear_is_no_verdict(text: str) -> None:
    assert verdict_in(text, KNOWN) is None


def test_the_same_verdict_twice_is_one_and_an_example_in_code_is_none() -> None:
    text = "```\n## Verdict: FAIL\n```\n## Verdict: PASS_WITH_NOTES\n<!-- Verdict: FAIL -->\nVerdict: PASS_WITH_NOTES\n"
    assert verdict_in(text, KNOWN) == "PASS_WITH_NOTES"


def test_code_inside_a_line_opens_no_block() -> None:
    assert verdict_in("```inline``` code\nVerdict: PASS\n", KNOWN) == "PASS"


@settings(max_examples=60)
@given(text=st.text(max_size=80))
def test_a_verdict_is_never_found_where_the_word_does_not_stand(text: str) -> None:
    found = verdict_in(text, KNOWN)
    assert found is None or (found in text and "Verdict" in text)


def test_a_huge_review_is_read_in_one_go() -> None:
    hard = [
        "- a" + " " * 200_000 + "b",
        "*" * 200_000,
        "**[CRITICAL] " * 20_000,
        "#" * 200_000,
        "`" * 200_000,
        "`" * 200_000,
    ]
    assert verdict_in("\n".join([*hard, "Verdict: PASS"]), KNOWN) == "PASS"
    assert len(findings_in("\n".join(hard))) == MOST_FINDINGS


def test_findings_have_a_severity_and_a_text() -> None:
    text = (
        "**1. [CRITICAL] Errors are swallowed** in fetch\n- **[MINOR] Name it** and **[MAJOR] No test **\n"
        "**[TRIVIAL] no**\n[MINOR] no\n```\n**[MINOR] an example**\n```\n"
    )
    assert findings_in(text) == [
        Finding("CRITICAL", "Errors are swallowed"),
        Finding("MINOR", "Name it"),
        Finding("MAJOR", "No test"),
    ]
    assert len(findings_in("**[MINOR] x**\n" * 1000)) == MOST_FINDINGS


FULL = """\
# Tasks

Intro with mode: whatever

## Task 1: Wrap the fetch
mode: sequential
files:
- src/fetch.py
- `src/wrap.py` (new)
depends_on: []

Write it small.
- a point, not a file

## Task 02 : Test it
- **Mode:** parallel
- **Files**: [tests/test_fetch.py, `tests/x.py`]
- **Depends on:** Task 1

```yaml
mode: nonsense
## Task 9: an example
```

## Task 3: Merge elsewhere
mode: `human_gate`
depends_on:
- 1
- 2
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_task_list_is_read_with_its_fields(end: str) -> None:
    first, second, third = tasks_in(FULL.replace("\n", end))
    assert (first.number, first.title, first.mode, first.depends_on, first.line) == (
        1,
        "Wrap the fetch",
        "sequential",
        (),
        5,
    )
    assert first.files == ("src/fetch.py", "src/wrap.py")
    assert first.text == "Write it small.\n- a point, not a file"
    assert (second.number, second.title, second.mode, second.depends_on) == (2, "Test it", "parallel", (1,))
    assert second.files == ("tests/test_fetch.py", "tests/x.py")
    assert "mode: nonsense" in second.text
    assert (third.mode, third.depends_on) == ("human_gate", (1, 2))


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("x\n## Task one: a", 2, "a task has a number, not one"),
        ("## Task ٣: a", 1, "a task has a number"),
        (f"## Task {'9' * 5000}: a", 1, "a task has a number"),
        ("## Task -1: a", 1, "a task has a number"),
        ("\n\n## Task 1:   ", 3, "has no title"),
        ("## Task 1: a\nmode: paralel", 2, "did you mean parallel"),
        ("## Task 1: a\nmode:", 2, "no mode without a name"),
        ("## Task 1: a\nmode: human_gate\n\nmode: sequential", 4, "mode of task 1 stands at line 2 already"),
        ("## Task 1: a\ndepends_on: [x]", 2, "a task has a number, not x"),
        ("## Task 1: a\ndepends_on: 1 2", 2, "a task has a number"),
        ("## Task 1: a\ndepends_on: [2,]\n## Task 2: b", 2, "a task has a number, not nothing"),
        ("## Task 1: a\ndepends_on:\n- the first one", 3, "a task has a number"),
        ("## Task 1: a\ndepends_on: [1]", 1, "depends on itself"),
        ("x\n## Task 1: a\ndepends_on: [7]", 2, "depends on task 7, which is not there"),
        ("## Task 1: a\n\n## Task 1: b", 3, "task 1 stands at line 1 already"),
        ("## Task 1: a\n## Task 01: b", 2, "already"),
        ("## Task 1: a\n### Task 2: b", 2, "a task begins so"),
        ("## Task 1: a\n## task 2: b", 2, "a task begins so"),
        ("## Task 1: a\n## Task 2 - b", 2, "a task begins so"),
        ("## Task 1: a\n  ## Task 2: b", 2, "a task begins so"),
        ("## Task 1: a\n```\n## Task 2: b", 2, "a code block begins here and never ends"),
        ("## Task 1: a\x0c\u2028\n## Task x: b", 2, "not x"),
        (
            "## Task 1: a\n## Task 2: b\ndepends_on: [4]\n## Task 3: c\ndepends_on: [2]\n## Task 4: d\ndepends_on: [3]",
            2,
            "in a circle: 2 → 4 → 3 → 2",
        ),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_mistake_in_a_task_list_is_refused_at_its_line(text: str, line: int, why: str, end: str) -> None:
    with pytest.raises(InvalidPlan) as refused:
        tasks_in(text.replace("\n", end), "list.md")
    assert refused.value.details["line"] == line
    assert f"list.md, line {line}:" in refused.value.message
    assert why in refused.value.message
    assert len(refused.value.message) < 300


def test_a_list_without_a_task_is_refused() -> None:
    for text in ("", "# Tasks\n", "## Tasks\nnone", "```\n## Task 1: a\n```\n"):
        with pytest.raises(InvalidPlan, match="has no task"):
            tasks_in(text)


def test_five_hundred_tasks_are_a_list_and_one_more_is_not() -> None:
    def listed(count: int) -> str:
        return "\n".join(
            f"## Task {n}: t\ndepends_on: [{n - 1}]" if n > 1 else "## Task 1: t" for n in range(1, count + 1)
        )

    assert len(tasks_in(listed(MOST_TASKS))) == MOST_TASKS
    with pytest.raises(InvalidPlan, match="more than 500"):
        tasks_in(listed(MOST_TASKS + 1))


def test_a_circle_of_five_hundred_is_found() -> None:
    count = MOST_TASKS
    text = "\n".join(f"## Task {n}: t\ndepends_on: [{n % count + 1}]" for n in range(1, count + 1))
    with pytest.raises(InvalidPlan, match="circle"):
        tasks_in(text)


def test_titles_and_files_may_be_in_any_script() -> None:
    (task,) = tasks_in("## Task 1: 直す 🧰 \u202eabc\u200b\nfiles:\n- src/каталог/наш файл.py\n")
    assert task.title == "直す 🧰 \u202eabc\u200b"
    assert task.files == ("src/каталог/наш файл.py",)


_LINES = st.sampled_from(
    [
        "## Task 1: a",
        "## Task 2: b",
        "## Task",
        "mode: parallel",
        "mode: x",
        "files:",
        "- a",
        "depends_on: [1]",
        "```",
        "",
        "é",
    ]
)


@settings(max_examples=100)
@given(lines=st.lists(_LINES | st.text(max_size=12), max_size=12))
def test_any_text_is_a_list_or_is_refused(lines: list[str]) -> None:
    try:
        found = tasks_in("\n".join(lines))
    except InvalidPlan:
        return
    assert len({task.number for task in found}) == len(found) > 0

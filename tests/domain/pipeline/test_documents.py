"""Reading what agents write. What is unclear is no approval, and a task list is right or is refused at its line."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.documents import (
    MOST_FILES,
    MOST_FINDINGS,
    MOST_NEEDS,
    MOST_TASKS,
    PATH,
    TITLE,
    Judgement,
    ReviewFinding,
    findings_in,
    judgement_in,
    tasks_in,
)
from handrail.kernel.errors import InvalidPlan


def verdict_in(text: str) -> str | None:
    return judgement_in(text, ("PASS", "PASS_WITH_NOTES"), ("FAIL",)).verdict


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
    assert verdict_in(end.join(["# Review", "", line, "", "Well done."])) == "PASS"


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
    assert verdict_in(text) is None


def test_the_same_verdict_twice_is_one_and_an_example_in_code_is_none() -> None:
    text = "```\n## Verdict: FAIL\n```\n## Verdict: PASS_WITH_NOTES\n<!-- Verdict: FAIL -->\nVerdict: PASS_WITH_NOTES\n"
    assert verdict_in(text) == "PASS_WITH_NOTES"


def test_code_inside_a_line_opens_no_block() -> None:
    assert verdict_in("```inline``` code\nVerdict: PASS\n") == "PASS"


@settings(max_examples=60)
@given(text=st.text(max_size=80))
def test_a_verdict_is_never_found_where_the_word_does_not_stand(text: str) -> None:
    found = verdict_in(text)
    assert found is None or (found in text and "Verdict" in text)


PASSES, FAILS = ("APPROVE", "APPROVE_WITH_NOTES"), ("REVISE",)


def judged(*lines: str) -> Judgement:
    """A review that approves at line 3, with these lines below it."""
    return judgement_in("\n".join(["# Review", "", "## Verdict: APPROVE", *lines]), PASSES, FAILS)


@pytest.mark.parametrize(
    "line",
    [
        "## Verdict: REVISE",
        "**Verdict:** REVISE",
        "## Final Verdict: REVISE",
        "### Verdict (second look): REVISE",
        "Verdict for the design as a whole: REVISE",
        "- **Verdict:** REVISE",
        "    - Verdict: REVISE",
        "3. Verdict: REVISE",
        "| Verdict | REVISE |",
        "|**Verdict**|`REVISE`|",
        "Verdict - REVISE",
        "Verdict — REVISE, since the limit is missing",
        "VERDICT = REVISE",
        "verdict: revise",
        "The verdict is REVISE",
        "## Decision: REVISE",
        "**Recommendation:** REVISE before anybody builds it",
        "# REVISE",
        "## REVISE: the limit is missing",
        "**REVISE**",
        "- [x] REVISE",
        "## Verdict\n\nREVISE",
        "**Verdict**:\nREVISE",
    ],
)
def test_a_review_that_also_says_the_opposite_approves_nothing(line: str) -> None:
    found = judged("", line)
    assert found.verdict is None
    assert "APPROVE at line 3" in found.problem
    assert "REVISE at line" in found.problem
    assert judgement_in(f"## Verdict: APPROVE\n\n{line}\n", PASSES, FAILS).verdict is None


@pytest.mark.parametrize(
    "line",
    [
        "> ## Verdict: REVISE",
        "> **Verdict:** REVISE",
        "```\n## Verdict: REVISE\n```",
        "<!-- ## Verdict: REVISE -->",
        "    Verdict: REVISE",
        "The verdict of the first review was REVISE, and all of it is settled.",
        "I thought about REVISE.",
        "## Why this is no REVISE",
        "Verdict: APPROVE",
        "Recommendation: revise the wording when you are there anyway.",
        "**Recommendation:** APPROVE",
        "Decision: APPROVE_WITH_NOTES would be as right",
        "- [ ] REVISE",
        "- REVISE: at least one critical finding",
        "REVISE",
        "Verdict",
    ],
)
def test_what_is_quoted_told_or_agrees_does_not_speak_against_a_verdict(line: str) -> None:
    assert judged(line) == Judgement("APPROVE")


def test_two_lines_of_the_form_differ_even_where_both_pass() -> None:
    assert judged("## Verdict: APPROVE_WITH_NOTES").verdict is None
    assert judged("Verdict: Revise.").verdict is None


@pytest.mark.parametrize(
    "line",
    [
        "**[CRITICAL] Errors are swallowed**",
        "- **1. [CRITICAL] Errors are swallowed** in fetch",
        "1. [CRITICAL] Errors are swallowed",
        "- [CRITICAL]: errors are swallowed",
        "### [CRITICAL] Errors are swallowed",
        "**[CRITICAL]** Errors are swallowed",
        "**[CRITICAL] `fetch`**",
        "| [CRITICAL] | Errors are swallowed |",
        "**[MINOR] x** and **[CRITICAL] Errors are swallowed**",
        "**[MINOR] x**\n" * MOST_FINDINGS + "**[CRITICAL] Errors are swallowed**",
    ],
)
def test_a_critical_finding_beside_an_approval_is_one_of_two_mistakes(line: str) -> None:
    found = judged("", line)
    assert found.verdict is None
    assert "it says APPROVE, and line" in found.problem
    assert "critical finding" in found.problem
    assert judgement_in(f"{line}\n## Verdict: REVISE", PASSES, FAILS) == Judgement("REVISE")


@pytest.mark.parametrize(
    "line",
    [
        "**[MINOR] Name it**",
        "**[MAJOR] No test**",
        "**[CRITICAL] None**",
        "**[CRITICAL]** none found.",
        "- [CRITICAL] —",
        "- `**[CRITICAL] …**` for what must be changed",
        "> **[CRITICAL] Errors are swallowed**",
        "There is nothing critical, no [CRITICAL] at all.",
        "```\n**[CRITICAL] Errors are swallowed**\n```",
    ],
)
def test_what_is_no_critical_finding_leaves_the_verdict(line: str) -> None:
    assert judged(line) == Judgement("APPROVE")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no line of it is a verdict"),
        ("It looks fine.\n\n**Verdict** is APPROVE", "line 3 is not of its form"),
        ("# R\nVerdict: MAYBE", "line 2: MAYBE is no verdict here"),
        ("Verdict: APPROVE | REVISE", "line 1: a verdict is one word"),
        ("Verdict: APPROVE\n```\nVerdict: REVISE", "begins at line 2 and never ends"),
        ("Verdict: APPROVE\n<!--\nVerdict: REVISE", "begins at line 2 and never ends"),
    ],
)
def test_a_review_that_cannot_be_read_says_why(text: str, why: str) -> None:
    found = judgement_in(text, PASSES, FAILS)
    assert found.verdict is None
    assert why in found.problem
    assert len(found.problem) < 300


@settings(max_examples=60)
@given(lines=st.lists(st.sampled_from(["## Verdict: APPROVE", "Verdict: REVISE", "**[CRITICAL] x**", "> y", "z", "#"])))
def test_an_approval_is_whole_or_none(lines: list[str]) -> None:
    found = judgement_in("\n".join(lines), PASSES, FAILS)
    if found.verdict in PASSES:
        assert not {"Verdict: REVISE", "**[CRITICAL] x**"} & set(lines)
    assert bool(found.problem) == (found.verdict is None)


def test_a_huge_review_is_read_in_one_go() -> None:
    hard = [
        "- a" + " " * 200_000 + "b",
        "*" * 200_000,
        "**[CRITICAL] " * 20_000,
        "#" * 200_000,
        "verdict " * 30_000,
        "a " * 100_000,
        "`" * 200_000,
        "`" * 200_000,
    ]
    assert judgement_in("\n".join([*hard[:2], *hard[3:], "Verdict: PASS"]), ("PASS",), ("FAIL",)) == Judgement("PASS")
    assert judgement_in("\n".join([*hard, "Verdict: FAIL"]), ("PASS",), ("FAIL",)) == Judgement("FAIL")
    assert len(findings_in("\n".join(hard))) == MOST_FINDINGS


def test_findings_have_a_severity_and_a_text() -> None:
    text = (
        "**1. [CRITICAL] Errors are swallowed** in fetch\n- **[MINOR] Name it** and **[MAJOR] No test **\n"
        "**[TRIVIAL] no**\n[MINOR] no\n```\n**[MINOR] an example**\n```\n"
    )
    assert findings_in(text) == [
        ReviewFinding("CRITICAL", "Errors are swallowed"),
        ReviewFinding("MINOR", "Name it"),
        ReviewFinding("MAJOR", "No test"),
    ]
    assert len(findings_in("**[MINOR] x**\n" * 1000)) == MOST_FINDINGS


def test_findings_are_the_reviews_own_and_can_be_kept() -> None:
    assert findings_in("> **[CRITICAL] what the last one found**\n**[MINOR] a\0b\x1b[2J**") == [
        ReviewFinding("MINOR", "a b [2J")
    ]


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
        ("## Task 1: a\nmode: human_gate\n\nmode: sequential", 4, "task 1 already has mode, at line 2"),
        ("## Task 1: a\ndepends_on: [x]", 2, "a task has a number, not x"),
        ("## Task 1: a\ndepends_on: 1 2", 2, "a task has a number"),
        ("## Task 1: a\ndepends_on: [2,]\n## Task 2: b", 2, "a task has a number, not nothing"),
        ("## Task 1: a\ndepends_on:\n- the first one", 3, "a task has a number"),
        ("## Task 1: a\n\ndepends_on: [1]", 3, "depends on itself"),
        ("x\n## Task 1: a\ndepends_on: [7]", 3, "depends on task 7, which is not there"),
        ("## Task 1: a\n## Task 2: b\ndepends_on:\n- 1\n- 7", 5, "task 2 depends on task 7, which is not there"),
        ("## Task 1: a\n\n## Task 1: b", 3, "task 1 is already defined at line 1"),
        ("## Task 1: a\n## Task 01: b", 2, "already"),
        ("## Task 1: a\n### Task 2: b", 2, "a task starts with"),
        ("## Task 1: a\n## task 2: b", 2, "a task starts with"),
        ("## Task 1: a\n## Task 2 - b", 2, "a task starts with"),
        ("## Task 1: a\n  ## Task 2: b", 2, "a task starts with"),
        ("## Task 1: a\n```\n## Task 2: b", 2, "a code block begins here and never ends"),
        ("## Task 1: a\x0c\u2028\n## Task x: b", 2, "not x"),
        ("x\n## Task 1: a\0b", 2, "the title of task 1 contains the invisible character U+0000"),
        ("## Task 1: a\x1b[2Jb", 1, "U+001B"),
        ("## Task 1: a\x85b", 1, "U+0085"),
        ("## Task 1: a\u2028b", 1, "U+2028"),
        ("## Task 1: a\ud800b", 1, "U+D800"),
        ("## Task 1: a\nfiles:\n- ok.py\n- b\0.py", 4, "a file's name contains the invisible character U+0000"),
        ("## Task 1: a\nfiles: [a.py, `b\x7f.py`]", 2, "U+007F"),
        (f"x\n## Task 1: {'a' * (TITLE + 1)}", 2, f"has {TITLE + 1} characters; {TITLE} are the most"),
        (f"## Task 1: a\nfiles:\n- {'a' * (PATH + 1)}", 3, f"{PATH} are the most"),
        ("## Task 1: a\nfiles:\n" + "- x\n" * (MOST_FILES + 1), MOST_FILES + 3, f"more than {MOST_FILES} files"),
        (
            "## Task 1: a\n## Task 2: b\ndepends_on: [4]\n## Task 3: c\ndepends_on: [2]\n## Task 4: d\ndepends_on: [3]",
            3,
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
    for more in (1, 20_000):
        with pytest.raises(InvalidPlan, match="line 1000: more than 500"):
            tasks_in(listed(MOST_TASKS + more))


def test_there_is_an_end_to_dependencies() -> None:
    def listed(count: int) -> str:
        first = "".join(f"## Task {number}: t\n" for number in range(1, 101))
        many = ", ".join(str(number) for number in range(1, 101))
        return first + "".join(f"## Task {number}: t\ndepends_on: [{many}]\n" for number in range(101, 101 + count))

    most = MOST_NEEDS // 100
    assert len(tasks_in(listed(most))) == 100 + most
    with pytest.raises(InvalidPlan, match=f"line {100 + 2 * most + 2}: more than {MOST_NEEDS} dependencies"):
        tasks_in(listed(most + 1))


def test_the_longest_title_and_path_are_taken_and_a_tab_is_a_blank() -> None:
    (task,) = tasks_in(f"## Task 1: {'a' * (TITLE - 2)}\tb\nfiles:\n- {'p' * PATH}\n")
    assert task.title == f"{'a' * (TITLE - 2)} b"
    assert task.files == ("p" * PATH,)


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

"""What earlier runs teach: ranked the same way every time, near findings as one, and nothing that is not to the
point."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.lessons import (
    COMPARED_CHARACTERS,
    NOTES,
    Lesson,
    Lessons,
    Noted,
    PastRun,
    SimilarRun,
    friction_in,
    friction_of,
    learn,
    lines_for,
    merged,
    similar_runs,
    terms,
)

RUNS = [
    PastRun(spec_name="rename-button", one_liner="Rename the save button", request="The label should be Store."),
    PastRun(
        spec_name="fix-auth-timeout",
        effort="M",
        one_liner="Requests no longer time out in the auth middleware",
        request="Requests time out after 30 s in the authentication middleware.",
        outcome="completed",
        tokens=45000,
        duration_ms=12 * 60_000,
    ),
    PastRun(spec_name="auth-audit-log", one_liner="Log sign-ins", request="Write an audit log of authentication."),
    PastRun(spec_name="export-csv", one_liner="Export orders as CSV", request="Orders can be exported as CSV."),
]


def names(found: list[SimilarRun]) -> list[str]:
    return [similar.run.spec_name for similar in found]


def test_the_run_that_was_about_the_same_comes_first() -> None:
    found = similar_runs("The authentication middleware times out when requests are slow", RUNS)
    assert names(found)[0] == "fix-auth-timeout"
    assert "export-csv" not in names(found)
    assert [one.score for one in found] == sorted((one.score for one in found), reverse=True)


def test_a_request_that_nothing_was_like_has_no_similar_runs() -> None:
    assert similar_runs("Translate the handbook into Welsh", RUNS) == []
    assert similar_runs("the of and", RUNS) == []
    assert similar_runs("Rename", []) == []


def test_one_common_word_is_no_similarity_unless_it_is_all_that_was_asked() -> None:
    assert similar_runs("button colours of the settings page", RUNS) == []
    assert names(similar_runs("CSV", RUNS)) == ["export-csv"]


def test_of_equal_runs_the_newer_comes_first_and_only_the_best_are_kept() -> None:
    same = [PastRun(spec_name=f"run{place}", request="Fix the parser of dates") for place in range(5)]
    assert names(similar_runs("the date parser", same)) == ["run0", "run1", "run2"]


def test_rare_words_count_more_than_frequent_ones() -> None:
    runs = [PastRun(spec_name=f"s{n}", request="server config change") for n in range(8)]
    runs.append(PastRun(spec_name="rare", request="server webhook change"))
    assert names(similar_runs("server change webhook config", runs))[0] == "rare"


def test_words_are_found_in_names_of_code_and_in_scripts_without_spaces() -> None:
    assert terms("The parsePriceList of parse_orders") == ["parsepricelist", "parse", "price", "list", "parse", "order"]
    assert terms("認証の修正") == ["認証", "証の", "の修", "修正"]
    runs = [PastRun(spec_name="a", request="認証ミドルウェアの修正"), PastRun(spec_name="b", request="注文の出力")]
    assert names(similar_runs("認証の修正", runs)) == ["a"]


def test_findings_in_other_words_are_one_within_their_severity() -> None:
    found = merged(
        [
            Noted(text="src/cart.py:42: no test covers an empty cart", severity="MINOR", run="one", at=1),
            Noted(text="`src/shop.py:7`: No tests cover an empty cart.", severity="MINOR", run="two", at=3),
            Noted(text="No test covers an empty cart", severity="CRITICAL", run="two", at=2),
            Noted(text="The password is written to the log", severity="MINOR", run="two", at=2),
        ],
        10,
    )
    assert found == [
        Lesson(text="`src/shop.py:7`: No tests cover an empty cart.", severity="MINOR", runs=2, times=2, last_at=3),
        Lesson(text="No test covers an empty cart", severity="CRITICAL", last_at=2),
        Lesson(text="The password is written to the log", severity="MINOR", last_at=2),
    ]


@pytest.mark.parametrize(
    ("other", "patterns"), [("abcdefghij klmnopq", 1), ("abcdefghij klmnxyz", 1), ("abcdefghij klwvxyz", 2)]
)
def test_fewer_than_three_characters_in_ten_make_another_wording(other: str, patterns: int) -> None:
    notes = [Noted(text="abcdefghij klmnopqrst", run="one"), Noted(text=other, run="two")]
    assert len(merged(notes, 10)) == patterns


def test_what_one_run_repeats_counts_as_one_run() -> None:
    often = [Noted(text="Name the index", severity="MINOR", run="one", at=at) for at in range(5)]
    twice = [Noted(text="Close the file", severity="MINOR", run=run, at=0) for run in ("one", "two")]
    assert [(one.text, one.runs, one.times) for one in merged([*often, *twice], 10)] == [
        ("Close the file", 2, 2),
        ("Name the index", 1, 5),
    ]


def test_the_order_in_which_findings_come_does_not_matter() -> None:
    notes = [
        Noted(text=f"{what} is {how} in module {place}", severity=severity, run=f"r{place}", at=place % 3)
        for place, (what, how, severity) in enumerate(
            (what, how, severity)
            for what in ("The error", "A timeout", "The test")
            for how in ("swallowed", "missing")
            for severity in ("CRITICAL", "MINOR")
        )
    ]
    expected = merged(notes, 20)
    for seed in range(5):
        shuffled = list(notes)
        random.Random(seed).shuffle(shuffled)
        assert merged(shuffled, 20) == expected


def test_of_wordings_as_fresh_as_each_other_the_same_one_is_shown_whatever_came_first() -> None:
    notes = [Noted(text=text, run=text) for text in ("Tests cover no empty cart", "A test covers no empty cart")]
    assert merged(notes, 5) == merged(notes[::-1], 5)
    assert [pattern.runs for pattern in merged(notes, 5)] == [2]


def test_empty_notes_are_none_and_the_list_is_cut() -> None:
    assert merged([Noted(text="  "), Noted(text="…")], 5) == []
    apart = ["alpha beta", "gamma delta", "epsilon zeta", "eta theta"]
    assert len(merged([Noted(text=text, run=text) for text in apart], 3)) == 3


def slow_distance(one: str, other: str) -> int:
    row = list(range(len(other) + 1))
    for place, left in enumerate(one, 1):
        above, row[0] = row[0], place
        for column, right in enumerate(other, 1):
            above, row[column] = row[column], min(row[column] + 1, row[column - 1] + 1, above + (left != right))
    return row[-1]


def merges(one: str, other: str) -> bool:
    return len(merged([Noted(text=one, run="one", at=2), Noted(text=other, run="two", at=1)], 5)) == 1


@settings(max_examples=200, deadline=None)
@given(st.text("xyz", min_size=1, max_size=30), st.text("xyz", min_size=1, max_size=30))
def test_two_findings_are_one_by_the_distance_of_the_table(one: str, other: str) -> None:
    assert merges(one, other) == (10 * slow_distance(one, other) < 3 * max(len(one), len(other)))


@pytest.mark.parametrize("length", [10, 20, 50, 60, 70, 90, COMPARED_CHARACTERS])
def test_exactly_three_characters_in_ten_are_another_finding(length: int) -> None:
    differing = length * 3 // 10
    assert not merges("q" * length, "z" * differing + "q" * (length - differing))
    assert merges("q" * length, "z" * (differing - 1) + "q" * (length - differing + 1))


def test_findings_without_spaces_between_words_are_compared_too() -> None:
    assert merges("空のカートのテストがありません", "空のカートに対するテストがありません")
    assert not merges("空のカートのテストがありません", "パスワードがログに書かれています")


def test_a_note_joins_the_freshest_finding_that_says_the_same() -> None:
    texts = ["aaaaaaaaaa", "aaaaaaabbb", "aaaaaaaabb"]  # the third is near to both, which are apart
    notes = [Noted(text=text, run=text, at=9 - place) for place, text in enumerate(texts)]
    assert [(one.text, one.times) for one in merged(notes, 5)] == [("aaaaaaaaaa", 2), ("aaaaaaabbb", 1)]


def test_only_the_newest_notes_are_looked_at() -> None:
    old = [Noted(text="Close the file", run="old", at=0)]
    new = [Noted(text="Name the index", run=str(at), at=at) for at in range(1, NOTES + 1)]
    assert [one.text for one in merged([*old, *new], 5)] == ["Name the index"]


def test_what_counts_distances_is_loaded_when_there_are_two_findings() -> None:
    code = (
        "import sys; from handrail.domain.pipeline.lessons import Noted, learn; "
        "one, two = Noted(text='Name the index'), Noted(text='Close the file'); "
        "learn('x', findings=[one]); before = 'rapidfuzz' in sys.modules; "
        "learn('x', findings=[one, two]); print(before, 'rapidfuzz' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("- a\n* b\n1. c\nplain\n", ["a", "b", "c"]),
        ("# Summary\n- no\n\n## Improvement Report\n- yes\n### Tests\n- too\n## Open\n- no\n", ["yes", "too"]),
        ("## Improvement Report\n- None.\n- nothing\n", []),
        ("## Improvement Report\nAll went well.\n\n## Other\n- no\n", []),
        ("", []),
    ],
)
def test_friction_points_are_the_bullets_of_the_improvement_report(text: str, points: list[str]) -> None:
    assert friction_in(text) == points


def test_the_report_of_the_summary_is_the_last_word_and_its_other_bullets_are_no_friction() -> None:
    note, summary = "- from the note\n", "## Changes\n- the parser\n## Improvement Report\n- from the summary\n"
    assert friction_of({"improvement.md": note, "summary.md": summary}) == ["from the summary"]
    assert friction_of({"improvement.md": note, "summary.md": "## Changes\n- the parser\n"}) == ["from the note"]
    assert friction_of({"summary.md": "## Changes\n- the parser\n"}) == []


def lessons() -> Lessons:
    return learn(
        "authentication middleware times out",
        runs=RUNS,
        findings=[
            Noted(text="An unread file stays open", severity="MINOR", run="a", at=5),
            Noted(text="The order is saved before it is paid", severity="CRITICAL", run="a", at=4),
        ],
        friction=[Noted(text="Tests need a database", run="a"), Noted(text="Tests need a database.", run="b")],
    )


def test_lessons_become_lines_with_what_is_known_of_them() -> None:
    lines = lines_for("an-agent-of-the-team", lessons())
    assert lines.similar[0] == (
        "fix-auth-timeout (M, completed, 45,000 tokens, 12 min): Requests no longer time out in the auth middleware"
    )
    assert lines.patterns == [
        "[CRITICAL] The order is saved before it is paid",
        "[MINOR] An unread file stays open",
    ]
    assert lines.friction == ["(in 2 runs) Tests need a database"]


def test_each_agent_is_told_what_is_of_use_to_it() -> None:
    learnt = lessons()
    assert lines_for("summarizer", learnt) == ([], [], [])
    architect = lines_for("architect", learnt)
    assert (bool(architect.similar), len(architect.patterns), architect.friction) == (True, 1, [])
    reviewer = lines_for("impl-reviewer", learnt)
    assert (reviewer.similar, len(reviewer.patterns), len(reviewer.friction)) == ([], 2, 1)


def test_what_concerns_the_work_at_hand_comes_first() -> None:
    lines = lines_for("impl-reviewer", lessons(), about="Close every file that is read")
    assert lines.patterns[0] == "[MINOR] An unread file stays open"

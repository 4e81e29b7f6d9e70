"""Scope: the table of rules row by row, reasons, the document's warning, and what two tasks claim together."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.areas import are_around, read_areas
from handrail.domain.journal.scope import (
    areas_warned_of,
    judge,
    overlap,
    verification,
)

TABLE: list[tuple[list[str], str, bool, str]] = [
    (["auth", "api"], "auth.ts", True, "words"),
    (["auth", "api"], "api.ts", True, "words"),
    (["auth", "api"], "utils.ts", False, "none"),
    (["auth"], "src/auth/config.ts", True, "words"),
    (["auth"], "src/middleware/auth.ts", True, "words"),
    (["auth"], "tests/auth.test.ts", True, "words"),
    (["auth"], "src/user-auth/index.ts", True, "words"),
    (["auth"], "src/OAuthCallback.tsx", True, "words"),
    (["auth"], "src/author/list.ts", False, "none"),
    (["auth"], "docs/authoring.md", False, "none"),
    (["api"], "lib/rest_api_client.py", True, "words"),
    (["api"], "src/capital.ts", False, "none"),
    (["api"], "src/apis/v1.ts", True, "words"),
    (["user profile"], "src/UserProfile.tsx", True, "words"),
    (["AUTH"], "src/Auth/x.ts", True, "words"),
    (["auth"], "src/authentication/login.ts", True, "words"),
    (["db"], "src/database/pool.ts", True, "words"),
    (["billing"], "src/payments/x.ts", False, "none"),
    (["src/payments/**"], "src/payments/stripe/hook.ts", True, "path"),
    (["src/payments/**"], "src/payments.ts", False, "none"),
    (["src/payments"], "src/payments/x.ts", True, "path"),
    (["src/payments"], "packages/app/src/payments/x.ts", False, "none"),
    (["**/payments/**"], "packages/app/src/payments/x.ts", True, "path"),
    (["tests/"], "tests/unit/a.py", True, "directory"),
    (["tests/"], "pkg/x/tests/b.py", True, "directory"),
    (["tests/"], "src/tests.py", False, "none"),
    (["/tests/"], "pkg/x/tests/b.py", False, "none"),
    (["*.sql"], "db/migrations/001.sql", True, "path"),
    (["package.json"], "web/package.json", True, "name"),
    ([".env"], ".env", True, "name"),
    ([".env"], "src/environment.ts", False, "none"),
    (["src/**", "!src/generated/**"], "src/generated/x.ts", False, "path"),
    (["src/**", "!src/generated/**"], "src/a.ts", True, "path"),
    (["*"], "anything/at/all.c", True, "everything"),
    (["./src/auth"], "src/auth/x.ts", True, "path"),
    (["src\\auth"], "src/auth/x.ts", True, "path"),
    (["café"], f"src/{unicodedata.normalize('NFD', 'café')}/x.ts", True, "words"),
]


@pytest.mark.parametrize(("areas", "path", "in_scope", "rule"), TABLE)
def test_the_table_holds_row_by_row(areas: list[str], path: str, in_scope: bool, rule: str) -> None:
    found = judge(path, read_areas(areas))
    assert are_around(path, read_areas(areas)) is found.in_scope
    assert (found.in_scope, found.rule) == (in_scope, rule), found.reason


def test_the_table_has_all_its_rows() -> None:
    assert len(TABLE) == 37


@pytest.mark.parametrize(
    ("areas", "path", "in_scope"),
    [
        (["GitHub"], "src/github/client.ts", True),
        (["github"], "src/GitHubClient.ts", True),
        (["java"], "src/javascript/x.ts", False),
        (["UserProfile"], "src/user-profile/x.ts", True),
        (["user profiles"], "src/user_profile.py", True),
        (["profile user"], "src/user_profile.py", False),
        (["a pi"], "src/api/x.ts", False),
        (["api"], "src/a_pi/x.ts", False),
        (["category"], "src/categories/x.ts", True),
        (["class"], "src/classes/x.ts", True),
        (["clas"], "src/class/x.ts", False),
        (["not"], "src/notes/x.ts", False),
        (["as"], "src/a/x.ts", False),
        (["dbs"], "src/database/x.ts", True),
        (["settings"], "src/config.ts", True),
        (["tests"], "src/button.spec.ts", True),
        (["ts"], "src/button.ts", False),
        (["eslintrc"], ".eslintrc.json", True),
        (["makefile"], "Makefile", True),
        ([".github"], ".github/workflows/ci.yml", True),
        (["package.json"], "web/package.json/x", True),
        (["package.json"], "web/package.json.bak", False),
        (["package.json"], "my-package.json", False),
        ([".env"], "web/.env.local", False),
        (["v1.2"], "docs/v1.20/x.md", False),
        (["src/*.ts"], "src/a/b.ts", False),
        (["src/*"], "src/a/b.ts", True),
        (["src/payments/"], "src/payments", False),
        (["app/[id]/page.tsx"], "app/[id]/page.tsx", True),
        (["app/[id]/page.tsx"], "app/i/page.tsx", True),
        (["src/[a"], "src/a", False),
        (["/tests/"], "tests/b.py", True),
        (["/README"], "README", True),
        (["/README"], "docs/README", False),
        (["src/a", "!a", "src/a/keep"], "src/a/keep/x", True),
        (["./"], "anything/at/all.c", True),
        (["auth"], "./src/auth.ts", True),
        (["auth"], "src\\auth\\login.ts", True),
        (["auth"], "src/\udcff/x.ts", False),
        (["src/auth"], '"src/auth/caf\\351.ts"', True),
        (["caf"], '"src/auth/caf\\351.ts"', True),
        (["数据"], "src/数据/x.ts", True),
        (["---"], "src/---/x.ts", False),
        (["../src"], "src/x.ts", False),
    ],
)
def test_the_rules_hold_beyond_the_table(areas: list[str], path: str, in_scope: bool) -> None:
    found = judge(path, read_areas(areas))
    assert are_around(path, read_areas(areas)) is found.in_scope
    assert found.in_scope is in_scope, found


@pytest.mark.parametrize("areas", [[], [""], ["  ", "!"]])
def test_without_areas_everything_is_in_scope(areas: list[str]) -> None:
    found = judge("any/file.c", read_areas(areas))
    assert are_around("any/file.c", read_areas(areas))
    assert (found.in_scope, found.rule, found.reason) == (True, "undeclared", "no areas are declared")


def test_areas_that_only_take_back_leave_the_rest_in_scope() -> None:
    areas = read_areas(["!generated/"])
    assert judge("src/a.ts", areas).in_scope
    assert not judge("src/generated/a.ts", areas).in_scope


@pytest.mark.parametrize(
    ("areas", "path", "reason"),
    [
        (["billing", "auth"], "src/UserAuth.ts", "auth names UserAuth.ts"),
        (["src/**"], "src/a.ts", "src/** covers it"),
        (["tests/"], "a/tests/b.py", "it lies in a directory tests/"),
        (["src/**", "!*.md"], "src/a.md", "!*.md takes it back"),
        (["api"], "src/capital.ts", "api is only part of a word in it"),
        (["src/pay"], "app/src/pay/x.ts", "src/pay starts at the root; **/src/pay would hold at any depth"),
        (["billing"], "src/x.ts", "no area covers it"),
    ],
)
def test_a_verdict_says_which_area_decided_and_how(areas: list[str], path: str, reason: str) -> None:
    assert judge(path, read_areas(areas)).reason == reason


def test_the_warning_is_the_document_s() -> None:
    assert verification(["auth.ts", "api.ts", "utils.ts"], ["auth", "api"], packages_changed=False) == {
        "scope_match": False,
        "unexpected_files": ["utils.ts"],
        "warnings": ["⚠️ 1 file(s) modified outside declared scope (auth, api)"],
    }


def test_the_document_s_flow_is_in_scope_because_packages_were_added() -> None:
    files = ["package.json", "src/middleware/auth.ts", "tests/auth.test.ts"]
    in_scope = {"scope_match": True, "unexpected_files": [], "warnings": []}
    assert verification(files, ["auth", "middleware"], packages_changed=True) == in_scope
    without = verification(files, ["auth", "middleware"], packages_changed=False)
    assert without["unexpected_files"] == ["package.json"]


@pytest.mark.parametrize(
    "name",
    [
        "web/package-lock.json",
        "Cargo.lock",
        "go.sum",
        "requirements-dev.txt",
        "requirements.lock",
        "App.csproj",
        "Gemfile",
    ],
)
def test_package_files_are_in_scope_only_with_packages(name: str) -> None:
    areas = read_areas(["auth"])
    found = judge(name, areas, packages_changed=True)
    assert (found.in_scope, found.rule) == (True, "packages")
    assert not judge(name, areas).in_scope


def test_a_package_file_that_was_taken_back_stays_out() -> None:
    assert not judge("package.json", read_areas(["src", "!package.json"]), packages_changed=True).in_scope


def test_a_file_named_twice_counts_once() -> None:
    assert verification(["x.c", "x.c"], ["auth"], packages_changed=False)["unexpected_files"] == ["x.c"]


@pytest.mark.parametrize(
    ("areas", "others", "shared"),
    [
        (["auth"], ["authentication"], ["auth"]),
        (["auth", "billing"], ["api", "payments"], []),
        (["src/auth/**"], ["auth"], ["src/auth/**"]),
        (["src/"], ["src/auth"], ["src/"]),
        (["src/auth"], ["src/auth/login.ts"], ["src/auth"]),
        (["src/a"], ["src/b"], []),
        (["*.sql"], ["db"], ["*.sql"]),
        (["docs", "*"], ["auth"], ["*"]),
        (["package.json"], ["*.json"], ["package.json"]),
        (["src/**", "!src/auth/**"], ["src/auth/**"], []),
        ([], ["auth"], []),
        (["auth"], [], []),
    ],
)
def test_areas_of_two_tasks_are_compared_before_a_file_is_touched(
    areas: list[str], others: list[str], shared: list[str]
) -> None:
    assert list(dict.fromkeys(found.area for found in overlap(areas, others))) == shared


NAMES = st.sampled_from(["auth", "author", "api", "capital", "UserAuth", "rest_api", "src", "tests", "a", "db", "Café"])
FILES = st.builds(
    lambda folders, name, extension: "/".join([*folders, name + extension]),
    st.lists(NAMES, max_size=3),
    NAMES,
    st.sampled_from(["", ".ts", ".test.ts"]),
)
AREAS = st.one_of(
    NAMES,
    st.builds("{}/".format, NAMES),
    st.builds("{}/{}".format, NAMES, NAMES),
    st.sampled_from(["*.ts", "src/**", "**/auth/**", "*", "[ab]*", "package.json", "?pi"]),
)


@given(st.lists(AREAS, min_size=1, max_size=4), AREAS, st.integers(0, 4), FILES)
def test_one_more_area_never_takes_a_file_out_of_scope(areas: list[str], more: str, at: int, path: str) -> None:
    if judge(path, read_areas(areas)).in_scope:
        assert judge(path, read_areas([*areas[:at], more, *areas[at:]])).in_scope


@given(st.lists(AREAS, min_size=1, max_size=4), AREAS, FILES)
def test_what_is_taken_back_last_is_out_and_nothing_else_changes(areas: list[str], back: str, path: str) -> None:
    taken = judge(path, read_areas([back])).in_scope
    after = judge(path, read_areas([*areas, f"!{back}"])).in_scope
    assert after == (judge(path, read_areas(areas)).in_scope and not taken)


@given(st.text("abcdefgh", min_size=2, max_size=6), st.text("abcdefgh", max_size=3), st.text("abcdefgh", max_size=3))
def test_a_word_inside_a_longer_word_is_never_enough(word: str, before: str, after: str) -> None:
    """There is no s among the letters, so what is added makes no plural."""
    found = judge(f"x/{before}{word}{after}/x", read_areas([word]))
    assert found.in_scope == (not before and not after)


@given(st.lists(AREAS, max_size=3), st.lists(AREAS, max_size=3))
def test_an_overlap_always_has_a_path_that_lies_in_both(areas: list[str], others: list[str]) -> None:
    for found in overlap(areas, others):
        for declared in (areas, others, [found.area], [found.other]):
            assert judge(found.path, read_areas(declared)).in_scope


@given(st.text(max_size=12), st.text(max_size=24))
def test_no_text_is_too_strange_to_be_judged(area: str, path: str) -> None:
    found = judge(path, read_areas([area, f"!{area}x"]))
    assert found.path == path
    assert found.reason


LONG = 20_000


@pytest.mark.parametrize(
    ("area", "path"),
    [
        ("*a" * 500 + "b", "a" * LONG),
        ("**/a/" * 200 + "b", "a/" * (LONG // 2) + "c"),
        ("**/*a*b/" * 100 + "c", "/".join(["ab" * 20] * 400)),
        ("[" * LONG, "x"),
        ("[a-z]*" * 300 + "!", "a" * LONG),
        ("?" * LONG, "a" * (LONG + 1)),
        ("aB" * 128, "/".join(["aB" * 127 + "c"] * 40)),
        ("a " * 127 + "b", "/".join(["a-" * 128] * 40)),
        ("s" * 256, "/".join(["S" * 256] * 40)),
        ("ab", "aB" * LONG),
        ("x/" * LONG + "y", "x/" * LONG + "z"),
    ],
    ids=range(11),
)
def test_hostile_areas_are_answered(area: str, path: str) -> None:
    """Any of these takes hours in an engine that tries every way to cut a path into parts."""
    judge(path, read_areas([area]))


def test_a_glob_that_holds_anywhere_does_not_meet_a_file_of_another_kind() -> None:
    assert overlap(["*.ts"], ["src/fetch.py"]) == []
    assert overlap(["*.md"], ["notes.txt"]) == []
    assert [found.path for found in overlap(["*.py"], ["src/fetch.py"])] == ["src/fetch.py"]
    assert overlap(["*.ts"], ["src"]) != [], "a folder may hold such files"


def test_the_areas_of_a_warning_can_be_told_in_other_words() -> None:
    (warning,) = verification(["utils.ts"], ["auth", "a (b)"], packages_changed=False)["warnings"]
    assert areas_warned_of(warning) == "auth, a (b)"
    assert areas_warned_of("the tests failed") is None

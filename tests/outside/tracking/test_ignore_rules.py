"""Ignore rules: held against git itself, with every sign that a .gitignore can have."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.outside.tracking.ignore_rules import default_rules, is_ignored

PATHS = [
    *("a", "b.log", "build", "dir/a", "dir/b.log", "dir/sub/a", "dir/sub/c.txt", "x/dir/a", "x/y/z/a", "a/b/c"),
    *("foo", "foo/bar", "foo/bar/baz", "x/foo", "x/foo/bar", "#hash", "!bang", "sp ", "sp", "a*b", "aXb", "[x]", "x"),
    *("a-b", "a]b", "A", "Z9", "back\\slash", "tab\t", "new\nline", ".hidden", "dir/.hidden", "a.b.c"),
]


def run_git(root: str, *arguments: str, given: bytes = b"") -> bytes:
    environment = {"PATH": os.environ["PATH"], "HOME": root, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    command = ["git", "-c", "core.excludesFile=/dev/null", *arguments]
    done = subprocess.run(command, cwd=root, input=given, env=environment, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def ignored_by_git(root: str, ignore_files: dict[str, str]) -> set[str]:
    """Of PATHS, what git ignores. It never needs the files themselves, but the folders have to be folders."""
    for folder, text in ignore_files.items():
        place = Path(root, folder)
        place.mkdir(parents=True, exist_ok=True)
        (place / ".gitignore").write_bytes(text.encode())
    listing = "\0".join(PATHS).encode()
    found = run_git(root, "check-ignore", "--no-index", "--stdin", "-z", given=listing)
    for folder in ignore_files:
        Path(root, folder, ".gitignore").unlink()
    return {name.decode() for name in found.split(b"\0") if name}


@pytest.fixture(scope="module")
def repository() -> object:
    with tempfile.TemporaryDirectory() as root:
        run_git(root, "init", "-q")
        yield root


@pytest.mark.parametrize(
    "text",
    [
        "a\n",
        "/a\n",
        "dir/\n",
        "dir/a\n",
        "*.log\n!dir/b.log\n",
        "!a\na\n!a\n",
        "foo/\n!foo/bar\n",
        "foo/*\n!foo/bar\n",
        "foo/**\n",
        "**/foo\n",
        "**/foo/**\n",
        "x/**/a\n",
        "**\n!dir/\n!dir/**\n",
        "/*\n!/dir\n",
        "\\#hash\n\\!bang\n# a comment\n",
        "sp\\ \nx   \n",
        "a\\*b\n",
        "a?b\n",
        "[a-b]\n",
        "[!a-y]\n",
        "[^a]\n",
        "a[]-]b\n",
        "[[:upper:]]\n",
        "[[:alpha:]][[:digit:]]\n",
        "[[:nonsense:]]\n",
        "[\n",
        "a\\\n",
        "[z-a]\n",
        "\\[x]\n",
        "\ufeffa\n",
        "a\r\nb.log\r\n",
        "\n\n  \n/\n//\n!\n",
        "a**\n***\n",
        ".*\n!.hidden\n",
        "back\\\\slash\ntab\t\n",
        "a.*\n*.b.c\n",
        "foo/**/baz\nx/*/z\n",
    ],
)
def test_a_file_s_rules_are_git_s(repository: str, text: str) -> None:
    theirs = ignored_by_git(repository, {"": text})
    assert {path for path in PATHS if is_ignored(path, {"": text})} - {"build"} == theirs - {"build"}


PATTERN = st.lists(
    st.sampled_from(["a", "b", "*", "**", "/", "?", "foo", "dir", "[a-c]", ".log", "x", "\\", "bar", "!", " ", "["]),
    min_size=1,
    max_size=5,
).map("".join)
LINES = st.lists(st.builds(str.__add__, st.sampled_from(["", "", "!", "/"]), PATTERN), max_size=4).map("\n".join)


@settings(max_examples=40)
@given(LINES, st.none() | LINES, st.none() | LINES)
def test_nested_rules_are_git_s(repository: str, top: str, in_dir: str | None, in_foo: str | None) -> None:
    given = {"": top, "dir": in_dir, "x/foo": in_foo}
    texts = {folder: text for folder, text in given.items() if text is not None}
    theirs = ignored_by_git(repository, texts)
    ours = {path for path in PATHS if is_ignored(path, texts)}
    assert ours - {"build"} == theirs - {"build"}


def test_one_sign_stands_for_a_letter_where_git_takes_a_byte() -> None:
    assert is_ignored("é", {"": "?\n"})
    assert is_ignored("é", {"": "[!a]\n"})


@pytest.mark.parametrize(
    "path",
    [
        "node_modules/left/index.js",
        "web/node_modules/x.js",
        "a/__pycache__/b.pyc",
        ".venv/lib/x.py",
        "build/out.o",
        "dist/x.js",
        "target/debug/x",
        ".git/HEAD",
        "sub/.git/HEAD",
        ".handrail/snapshots/plain-1/latest",
        ".handrail/handrail.db",
        ".handrail/handrail.db-wal",
    ],
)
def test_what_is_no_one_s_work_is_passed_over(path: str) -> None:
    assert is_ignored(path, {})


@pytest.mark.parametrize(
    "path", ["src/a.py", "build", ".handrail/guides/review.yaml", "docs/targets.md", "sub/.handrail/handrail.db"]
)
def test_what_only_looks_like_it_is_not(path: str) -> None:
    assert not is_ignored(path, {})


def test_a_project_may_bring_back_a_default_but_not_git_s_folder() -> None:
    texts = {"": "!build/\n!.git\n!.handrail/snapshots\n"}
    assert not is_ignored("build/x.c", texts)
    assert is_ignored(".git/HEAD", texts)
    assert is_ignored(".handrail/snapshots/x", texts)


def test_a_hostile_pattern_is_answered() -> None:
    text = "*a" * 300 + "b\n" + "**/a/" * 200 + "b\n"
    rules = default_rules().below("", text)
    assert not rules.ignores("/".join(["a" * 200] * 20), "a" * 5000, False)

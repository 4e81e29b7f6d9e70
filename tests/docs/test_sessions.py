"""Every command in the documents is typed again, in the order of its page, and must print what the page shows.

This is how README.md's session is a golden transcript: there is no second copy of it to rewrite. After a change of what
Handrail prints, `python -m tests.docs README.md` types a page again and shows all of it, to be put in its place.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.elsewhere import ELSEWHERE
from tests.docs.pages import PAGES, ROOT, SHELLS, Typed, blocks_and_prose, read, relative, typed
from tests.docs.shell import InProcess, Printed, bash, needs_a_shell, type_again, values_in
from tests.store.server import running, schema_of_its_own

PORT = ":8765"
"""With its colon: the digits alone may stand in an id."""
DATABASE = "postgresql://handrail@db.example/handrail"
"""What pages write for the team's PostgreSQL; here it is the tests' own."""


def is_elsewhere(one: Typed) -> bool:
    return one.shown is None and one.file is None and any(one.command.startswith(begin) for begin in ELSEWHERE)


def commands_of(page: Path) -> list[Typed]:
    return [one for block in read(page)[0] for one in typed(block) if not is_elsewhere(one)]


TYPED_PAGES = [page for page in PAGES if any(one.file is None for one in commands_of(page))]


@pytest.fixture
def free_port() -> int:
    """One below those that the system hands out by itself: nobody else gets it between our look and the page's use."""
    for port in itertools.chain(range(20_000 + os.getpid() % 10_000, 32_000), range(20_000, 32_000)):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", port)):
            return port
    raise AssertionError("no port is free")


@pytest.fixture
def stands_for(request: pytest.FixtureRequest, free_port: int) -> Iterator[dict[str, str]]:
    """What pages write, and what it is here: a port that is free, a database that is there."""
    page: Path = request.getfixturevalue("page")
    if DATABASE not in "\n".join(one.command for one in commands_of(page)):
        yield {PORT: f":{free_port}"}
        return
    with running() as server, schema_of_its_own(server, f"docs_{page.stem}_{free_port}") as address:
        yield {PORT: f":{free_port}", DATABASE: address}


@pytest.mark.parametrize("page", TYPED_PAGES, ids=relative)
def test_a_page_prints_what_it_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stands_for: dict[str, str]
) -> None:
    commands = commands_of(page)
    folder = tmp_path / "project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("LOGNAME", "you")
    if not needs_a_shell(commands):
        type_again(InProcess(), commands, folder)
        return
    home = tmp_path / "home"
    home.mkdir()
    with bash(folder, home, stands_for) as shell:
        type_again(shell, commands, folder)


def test_the_session_of_the_readme_is_among_them() -> None:
    assert ROOT / "README.md" in TYPED_PAGES
    assert {"tour.md", "solo.md", "team.md", "pipeline-in-ci.md", "postgresql.md"} <= {
        page.name for page in TYPED_PAGES
    }


def commands_in(text: str) -> list[str]:
    blocks, _ = blocks_and_prose(Path("page.md"), text)
    return [one.command for block in blocks for one in typed(block)]


def test_commands_are_found_in_every_kind_of_block() -> None:
    assert commands_in("```console\n$ cat <<'E'\n> a\n>\n> E\na\n$ ls\n```") == ["cat <<'E'\na\n\nE", "ls"]
    assert commands_in("```sh\n# why\nhandrail x  # so\ngit \\\n  log\n\n```") == ["handrail x  # so", "git \\\n  log"]
    assert commands_in("```\nhandrail x\nsome text\n.venv/bin/python -m y\n```") == [
        "handrail x",
        ".venv/bin/python -m y",
    ]
    assert commands_in("```sh\n#!/bin/sh\nexec handrail x\n```") == []
    assert commands_in("```yaml\nhandrail: x\n```") == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_no_command_hides_in_a_block_of_another_language(page: Path) -> None:
    for block in read(page)[0]:
        if block.language not in ("", "console", *SHELLS) and block.file is None:
            assert not [line for line in block.lines if re.match(r"\$ |handrail ", line)], f"line {block.line}"


class Says:
    """A typist who always gets the same answer."""

    def __init__(self, text: str, status: int = 0) -> None:
        self.printed = Printed(text, status)
        self.typed: list[str] = []

    def type(self, command: str) -> Printed:
        self.typed.append(command)
        return self.printed


def one(command: str, *shown: str) -> Typed:
    return Typed("page.md:1", command, shown)


@pytest.mark.parametrize(
    ("shown", "printed"),
    [(["a…", "…", "z"], "abc\nx\ny\nz\n"), (["a"], "a"), ([], ""), (["…"], "anything\nat all\n"), (["a…c"], "abbbc\n")],
)
def test_what_is_shown_may_leave_things_out(shown: list[str], printed: str) -> None:
    type_again(Says(printed), [one("x", *shown)], Path())


@pytest.mark.parametrize(
    ("shown", "printed"),
    [(["a…", "z"], "abc\nx\nz\n"), (["a"], "b\n"), (["a"], "a\nb\n"), (["a", "…", "b"], "a\n"), ([], "a\n")],
)
def test_a_session_that_prints_something_else_is_noticed(shown: list[str], printed: str) -> None:
    with pytest.raises(AssertionError):
        type_again(Says(printed), [one("x", *shown)], Path())


def test_a_command_that_fails_must_show_it() -> None:
    with pytest.raises(AssertionError):
        type_again(Says("no\n", 1), [one("x", "no")], Path())
    with pytest.raises(AssertionError):
        type_again(Says("no\n", 1), [Typed("page.md:1", "x", None)], Path())
    type_again(Says("refused\n", 1), [one("x", "refused")], Path())


def test_a_program_that_changes_the_machine_is_not_run() -> None:
    typist = Says("")
    with pytest.raises(AssertionError, match=r"elsewhere\.py"):
        type_again(typist, [one("pip install anything")], Path())
    assert typist.typed == []


def test_a_value_that_was_printed_can_be_used() -> None:
    typist = Says('{"task_id": "task_7"}\n')
    type_again(typist, [one("x", "…"), one("show '$task_id' $HOME", "…")], Path())
    assert typist.typed[1] == "show 'task_7' $HOME"
    first, second = "0" * 26, "1" * 26
    assert values_in(f"a task_{first} task_{second} wf_{second}") == {
        "task": f"task_{first}",
        "workflow": f"wf_{second}",
    }


def test_a_file_that_a_page_shows_is_written(tmp_path: Path) -> None:
    blocks, _ = blocks_and_prose(
        tmp_path / "page.md", "Write `a/b.yaml`:\n\n```yaml\nc: 1\n```\n\nNot:\n\n```yaml\n```\n"
    )
    commands = [one for block in blocks for one in typed(block)]
    type_again(Says(""), commands, tmp_path)
    assert (tmp_path / "a" / "b.yaml").read_text(encoding="utf-8") == "c: 1\n"
    assert len(commands) == 1


def test_a_real_shell_keeps_folders_variables_and_jobs(tmp_path: Path) -> None:
    with bash(tmp_path, tmp_path, {"8765": "4711"}) as shell:
        assert shell.type("mkdir a && cd a && name=b") == Printed("", 0)
        assert shell.type("pwd; echo $name") == Printed(f"{tmp_path}/a\nb\n", 0)
        assert shell.type("(exit 3)").status == 3
        assert shell.type("echo $?") == Printed("3\n", 0)
        assert shell.type("cat <<'END'\n  $x\nEND") == Printed("  $x\n", 0)
        assert shell.type("echo 8765 | tee port") == Printed("8765\n", 0)
        assert (tmp_path / "a" / "port").read_text() == "4711\n"
        assert shell.type("sleep 600 & test -t 0").status == 0
        assert shell.type("kill %1; nothing-here").status == 127


def test_a_page_with_more_than_handrail_needs_a_shell() -> None:
    assert not needs_a_shell([one('handrail call x y=\'{"a": [1, "b | c"]}\' z="a & b"')])
    for command in ("git init", "handrail log | head -1", "handrail up &", "a=$(handrail x)", "handrail x > y"):
        assert needs_a_shell([one(command)])

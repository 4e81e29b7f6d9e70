"""`handrail hook` as git and an agent's client run it: real commits in real repositories, real processes, and never in
anybody's way when something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.surfaces.cli.together import hook
from tests.hooks.shop import Shop
from tests.outside.tracking.playground import Playground, environment, make_base, write_global_config
from tests.test_tidy import heavy_among, imported_by

HANDRAIL = [sys.executable, "-m", "handrail", "hook"]


@pytest.fixture
def repo(tmp_path: Path) -> Playground:
    write_global_config()
    return make_base((tmp_path / "shop").resolve())


@pytest.fixture
def shop(repo: Playground) -> Shop:
    return Shop(repo)


def install(repo: Playground, *options: str, **variables: str) -> None:
    """The hook as a person writes it."""
    words = " ".join([*(f"{name}={value}" for name, value in variables.items()), *HANDRAIL, "pre-commit", *options])
    script = Path(repo.git("rev-parse", "--path-format=absolute", "--git-path", "hooks/pre-commit"))
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\nexec env {words}\n", encoding="utf-8")
    script.chmod(0o755)


def commit(repo: Playground, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "commit", "-qm", "work", *arguments]
    return subprocess.run(command, cwd=repo.top, env=environment(), capture_output=True, text=True, check=False)


def committed(repo: Playground) -> str:
    return repo.git("log", "-1", "--name-only", "--format=")


# -- before a commit ---------------------------------------------------------------------------------------------------


def test_a_commit_of_what_another_keeps_is_warned_of_and_made(shop: Shop) -> None:
    anna = shop.keeps("src/", reason="moving things")
    install(shop.repo)
    shop.repo.append("src/app.py")
    shop.repo.append("a.txt")
    shop.repo.git("add", "src", "a.txt")
    done = commit(shop.repo)
    assert done.returncode == 0, done.stderr
    assert f"Anna ({anna}) until " in done.stderr
    assert ", 60 min more: moving things" in done.stderr
    assert "    src/app.py\n" in done.stderr
    assert "a.txt" not in done.stderr
    assert committed(shop.repo).split() == ["a.txt", "src/app.py"]


def test_a_commit_is_refused_where_that_is_wanted(shop: Shop) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.append("src/app.py")
    shop.repo.git("add", "src", "a.txt")
    done = commit(shop.repo)
    assert done.returncode == 1
    assert "nothing is committed" in done.stderr
    assert shop.repo.git("diff", "--cached", "--name-only") == "src/app.py"


def test_what_nobody_keeps_is_committed_without_a_word(shop: Shop) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.append("a.txt")
    shop.repo.append("src/app.py")
    shop.repo.git("add", "a.txt")
    done = commit(shop.repo)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_agent_itself_commits_what_it_keeps(shop: Shop) -> None:
    install(shop.repo, "--refuse", HANDRAIL_AGENT_ID=shop.keeps("src/"))
    shop.repo.append("src/app.py")
    shop.repo.git("add", "src", "a.txt")
    done = commit(shop.repo)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("arguments", [["-a"], ["--", "src/app.py"], ["-i", "--", "src/app.py"]])
def test_a_commit_with_an_index_of_its_own_is_seen_as_it_will_be(shop: Shop, arguments: list[str]) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.append("src/app.py")
    assert commit(shop.repo, *arguments).returncode == 1


def test_what_is_staged_and_not_in_this_commit_does_not_count(shop: Shop) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.append("src/app.py")
    shop.repo.git("add", "src", "a.txt")
    shop.repo.append("a.txt")
    assert commit(shop.repo, "--", "a.txt").returncode == 0
    assert committed(shop.repo) == "a.txt"


def test_files_that_go_or_move_away_count(shop: Shop) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.git("mv", "src/app.py", "app.py")
    done = commit(shop.repo)
    assert done.returncode == 1
    assert "src/app.py" in done.stderr


def test_the_first_commit_of_a_linked_worktree_is_held_against_the_same_reservations(
    shop: Shop, tmp_path: Path
) -> None:
    shop.keeps("src/")
    install(shop.repo, "--refuse")
    shop.repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    side = Playground(tmp_path / "side")
    side.append("src/app.py")
    side.git("add", "-A")
    assert commit(side).returncode == 1
    side.git("reset", "-q", "--hard")
    side.append("a.txt")
    side.git("add", "-A")
    assert commit(side).returncode == 0


def test_names_that_are_no_text_and_words_that_are_no_words_do_no_harm(shop: Shop) -> None:
    shop.keeps("src/", name="An\u202ena", reason="one\nhandrail: all is well\x1b[2J")
    install(shop.repo)
    shop.repo.write(b"src/caf\xe9 \xff.txt")
    shop.repo.git("add", "src", "a.txt")
    done = subprocess.run(
        ["git", "commit", "-qm", "work"], cwd=shop.repo.top, env=environment(), capture_output=True, check=False
    )
    assert done.returncode == 0
    assert rb'"src/caf\351 \377.txt"' in done.stderr
    assert b"\x1b" not in done.stderr
    assert b"\nhandrail: all is well" not in done.stderr


def test_a_long_list_is_cut(shop: Shop) -> None:
    shop.keeps("src/")
    install(shop.repo)
    for number in range(25):
        shop.repo.write(f"src/{number}.txt")
    shop.repo.git("add", "src", "a.txt")
    assert "    and 15 more\n" in commit(shop.repo).stderr


def test_without_a_store_or_with_a_broken_one_a_commit_is_made(repo: Playground) -> None:
    install(repo, "--refuse")
    repo.append("a.txt")
    repo.git("add", "-A")
    done = commit(repo)
    assert (done.returncode, done.stderr) == (0, "")
    assert not repo.path(".handrail").exists(), "looking makes nothing"
    repo.write(".handrail/handrail.db", "no database, and that for more than a page" * 100)
    repo.append("b.txt")
    repo.git("add", "b.txt")
    done = commit(repo)
    assert done.returncode == 0
    assert "nobody knows what is reserved here" in done.stderr


def test_nothing_that_the_repository_names_is_run(shop: Shop, tmp_path: Path) -> None:
    shop.keeps("src/")
    trap = tmp_path / "trap"
    trap.write_text(f"#!/bin/sh\necho run >> {tmp_path}/sprung\nexit 1\n", encoding="utf-8")
    trap.chmod(0o755)
    shop.repo.append("src/app.py")
    shop.repo.git("add", "src", "a.txt")
    shop.repo.git("config", "core.fsmonitor", str(trap))
    shop.repo.git("config", "diff.external", str(trap))
    shop.repo.git("config", "diff.it.textconv", str(trap))
    done = subprocess.run([*HANDRAIL, "pre-commit"], cwd=shop.repo.top, capture_output=True, text=True, check=False)
    assert (done.returncode, "src/app.py" in done.stderr) == (0, True)
    assert not (tmp_path / "sprung").exists()


# -- before an edit ----------------------------------------------------------------------------------------------------


def edit(file: Path | str, cwd: Path, tool: str = "Edit", **more: Any) -> bytes:
    return msgspec.json.encode({"tool_name": tool, "tool_input": {"file_path": str(file)}, "cwd": str(cwd), **more})


def client(given: bytes, cwd: Path, *options: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    command = [*HANDRAIL, "pre-tool-use", *options]
    return subprocess.run(command, cwd=cwd, input=given, capture_output=True, check=False, env={**os.environ, **env})


def test_an_edit_of_what_another_keeps_is_warned_of(shop: Shop) -> None:
    anna = shop.keeps("src/", reason="moving things")
    done = client(edit(shop.repo.path("src/app.py"), shop.repo.top), shop.repo.top)
    assert (done.returncode, done.stderr) == (0, b"")
    told = msgspec.json.decode(done.stdout)
    assert f"src/app.py is kept by Anna ({anna})" in told["systemMessage"]
    assert "moving things" in told["systemMessage"]
    about = told["hookSpecificOutput"]
    assert about["hookEventName"] == "PreToolUse"
    assert told["systemMessage"] in about["additionalContext"]
    assert "permissionDecision" not in about, "a warning decides nothing"


def test_an_edit_is_denied_where_that_is_wanted(shop: Shop) -> None:
    shop.keeps("src/")
    done = client(edit("src/app.py", shop.repo.top), shop.repo.path("src"), "--refuse")
    about = msgspec.json.decode(done.stdout)["hookSpecificOutput"]
    assert (done.returncode, about["permissionDecision"]) == (0, "deny")
    assert "Anna" in about["permissionDecisionReason"]


def test_the_agent_itself_edits_what_it_keeps(shop: Shop) -> None:
    own = shop.keeps("src/")
    done = client(edit("src/app.py", shop.repo.top), shop.repo.top, "--refuse", HANDRAIL_AGENT_ID=own)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    "given",
    [
        b"",
        b"no json",
        b"[]",
        b"{}",
        b'{"tool_input": 7}',
        b'{"tool_name": "Bash", "tool_input": {"command": "ls"}}',
        b"\xff",
    ],
)
def test_what_is_not_expected_is_passed_in_silence(shop: Shop, given: bytes) -> None:
    shop.keeps("**")
    done = client(given, shop.repo.top, "--refuse")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_without_a_store_or_with_a_broken_one_an_edit_is_passed_in_silence(repo: Playground) -> None:
    given = edit("a.txt", repo.top)
    assert client(given, repo.top, "--refuse").stdout == b""
    assert not repo.path(".handrail").exists(), "looking makes nothing"
    repo.write(".handrail/handrail.db", "no database, and that for more than a page" * 100)
    done = client(given, repo.top, "--refuse")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_client_that_never_ends_what_it_says_is_not_waited_for(repo: Playground) -> None:
    with subprocess.Popen(
        [*HANDRAIL, "pre-tool-use"], cwd=repo.top, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stderr is not None
        assert (process.stdout.read(), process.stderr.read()) == (b"", b"")


def test_a_look_that_takes_too_long_is_given_up() -> None:
    import threading

    never = threading.Event()
    assert hook._in_time(0.05, never.wait) is None
    never.set()
    assert hook._in_time(30, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        hook._in_time(30, lambda: 1 // 0)


def test_nothing_heavy_is_imported_by_a_hook_that_has_nothing_to_look_at() -> None:
    found = imported_by("import handrail.surfaces.cli.main, handrail.surfaces.cli.together.hook")
    assert heavy_among(found) == []
    assert "handrail.catalog" not in found

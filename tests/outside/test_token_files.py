"""The user's token: made once, kept private, the same for everybody who asks."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handrail.outside.token_files import TOKEN_FILE, agent_token


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_token_is_made_on_first_use_and_kept(tmp_path: Path) -> None:
    token = agent_token(tmp_path)
    assert len(token) >= 32
    assert token.isascii()
    assert not set(token) & set(" \n\"'\\")
    assert agent_token(tmp_path) == token
    assert (tmp_path / TOKEN_FILE).read_text(encoding="utf-8").strip() == token


def test_every_user_has_their_own(tmp_path: Path) -> None:
    homes = [tmp_path / str(number) for number in range(20)]
    for home in homes:
        home.mkdir()
    assert len({agent_token(home) for home in homes}) == 20


def test_nobody_else_can_read_it(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        agent_token(tmp_path)
    finally:
        os.umask(before)
    assert mode_of(tmp_path / TOKEN_FILE) == 0o600
    assert mode_of((tmp_path / TOKEN_FILE).parent) == 0o700


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o666, 0o604])
def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path, mode: int) -> None:
    token = agent_token(tmp_path)
    (tmp_path / TOKEN_FILE).chmod(mode)
    assert agent_token(tmp_path) == token
    assert mode_of(tmp_path / TOKEN_FILE) == 0o600


def test_a_token_of_the_users_own_choice_is_taken(tmp_path: Path) -> None:
    file = tmp_path / TOKEN_FILE
    file.parent.mkdir()
    file.write_text("  chosen\n", encoding="utf-8")
    assert agent_token(tmp_path) == "chosen"


def test_nothing_but_the_token_is_left_behind(tmp_path: Path) -> None:
    agent_token(tmp_path)
    assert [path.name for path in (tmp_path / TOKEN_FILE).parent.iterdir()] == ["token"]


def test_processes_that_start_at_once_agree_on_one(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from handrail.outside.token_files import agent_token; "
    code += "sys.stdin.read(); print(agent_token(Path(sys.argv[1])))"
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for process in started:  # all are let go together, once they have been started
        assert process.stdin is not None
        process.stdin.close()
        process.stdin = None
    tokens = {process.communicate(timeout=30)[0] for process in started}
    assert tokens == {agent_token(tmp_path) + "\n"}


def test_a_draft_that_a_dead_process_left_does_not_matter(tmp_path: Path) -> None:
    """In a container every start has the process id of the one before."""
    (tmp_path / TOKEN_FILE).parent.mkdir()
    (tmp_path / TOKEN_FILE).with_name(f"token.{os.getpid()}").write_text("half", encoding="utf-8")
    assert len(agent_token(tmp_path)) >= 32


@pytest.mark.parametrize("content", ["", "\n", "  \n\n"])
def test_an_empty_file_is_no_token(tmp_path: Path, content: str) -> None:
    """Or `Authorization: Bearer` would open the server."""
    file = tmp_path / TOKEN_FILE
    file.parent.mkdir()
    file.write_text(content, encoding="utf-8")
    token = agent_token(tmp_path)
    assert len(token) >= 32
    assert agent_token(tmp_path) == token

"""A store that cannot be had, seen from outside: a refusal that says what to do, and the end with 1. Never a traceback,
never "internal error"."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.peer import DEADLINE_S, handrail_serve

TOOL = "workflow_create"
ARGUMENTS = {"name": "Import", "source_type": "prompt", "source_content": "x"}
INTERNAL_ERROR = -32603


def no_folder(folder: Path) -> Path:
    return Path("/proc/nope/x.db")


def a_folder_nobody_may_write(folder: Path) -> Path:
    return Path("/proc/x.db")


def a_folder_in_its_place(folder: Path) -> Path:
    (folder / "store.db").mkdir()
    return folder / "store.db"


def a_file_in_place_of_its_folder(folder: Path) -> Path:
    (folder / "file").touch()
    return folder / "file" / "store.db"


def links_in_a_circle(folder: Path) -> Path:
    (folder / "one.db").symlink_to(folder / "two.db")
    (folder / "two.db").symlink_to(folder / "one.db")
    return folder / "one.db"


def a_folder_in_place_of_its_gate(folder: Path) -> Path:
    (folder / "store.db.gate").mkdir()
    return folder / "store.db"


def a_name_too_long(folder: Path) -> Path:
    return folder / f"{'a' * 300}.db"


def somebodys_notes(folder: Path) -> Path:
    (folder / "notes.md").write_text("Not a database.\n" * 100)
    return folder / "notes.md"


every_place = pytest.mark.parametrize(
    "place",
    [
        no_folder,
        a_folder_nobody_may_write,
        a_folder_in_its_place,
        a_file_in_place_of_its_folder,
        links_in_a_circle,
        a_folder_in_place_of_its_gate,
        a_name_too_long,
        somebodys_notes,
    ],
)
Place = Callable[[Path], Path]


def told(error: dict[str, Any]) -> None:
    assert error["code"] == "STORE_UNUSABLE"
    assert error["message"]
    assert error["hint"]


@every_place
def test_the_command_line_refuses_and_ends_with_1(tmp_path: Path, place: Place) -> None:
    pairs = [f"{name}={value}" for name, value in ARGUMENTS.items()]
    options = ["--profile", "team", "--db", str(place(tmp_path)), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "handrail", "call", TOOL, *pairs, *options],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    told(msgspec.json.decode(done.stdout)["error"])


@every_place
@pytest.mark.parametrize("bare", [False, True], ids=["tools/call", "bare"])
def test_a_server_answers_and_ends_with_1(tmp_path: Path, place: Place, bare: bool) -> None:
    with handrail_serve(tmp_path, "--profile", "team", "--db", str(place(tmp_path))) as server:
        server.initialize()
        if bare:
            reply = server.ask(TOOL, ARGUMENTS)
            assert reply["error"]["code"] != INTERNAL_ERROR
            told(reply["error"]["data"])
        else:
            reply = server.ask("tools/call", {"name": TOOL, "arguments": ARGUMENTS})
            assert reply["result"]["isError"]
            told(reply["result"]["structuredContent"]["error"])
        assert server.wait() == 1
        assert "Traceback" not in server.errors()


def test_a_store_that_is_away_for_a_while_is_refused_and_used_again(tmp_path: Path) -> None:
    """Once it was open, trouble with its files ends no server."""
    path = tmp_path / "store.db"
    gate = tmp_path / "store.db.gate"
    with handrail_serve(tmp_path, "--profile", "team", "--db", str(path)) as server:
        server.initialize()
        call = {"name": TOOL, "arguments": ARGUMENTS}
        assert server.ask("tools/call", call)["result"]["structuredContent"]["id"]
        gate.unlink()
        gate.mkdir()
        for _ in range(2):
            error = server.ask("tools/call", call)["result"]["structuredContent"]["error"]
            assert (error["code"], error["details"]["outcome"]) == ("STORE_AWAY", "nothing")
            assert error["hint"]
        gate.rmdir()
        assert server.ask("tools/call", call)["result"]["structuredContent"]["id"]
        server.end_input()
        assert server.wait() == 0


def test_a_project_whose_folder_cannot_hold_a_store_is_told(tmp_path: Path) -> None:
    (tmp_path / ".handrail").touch()
    with handrail_serve(tmp_path, "--profile", "team") as server:
        server.initialize()
        reply = server.ask("tools/call", {"name": TOOL, "arguments": ARGUMENTS})
        told(reply["result"]["structuredContent"]["error"])
        assert server.wait() == 1

"""An agent names things with text that steers a terminal. On a real terminal no command prints it: JSON has it escaped
and is the same JSON, everything else shows it. In a pipe JSON is what it was, byte for byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import unicodedata
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.peer import INITIALIZE
from tests.process.terminal import printed_on_a_terminal

EVIL = "evil\x1b[8m\x1b]0;owned\x07\u009b31m\u0090\x7f\u202egpj.\u2066\u200b\ufeff\u2028\U000e0041\u3164end"
COLOUR = re.compile(r"\x1b\[(?:0|1|2|3[1-6]|9[1-6])m")
ALLOWED = "\r\n\t"

JSON_VIEWS = [
    ("call", "task_load_context"),
    ("export", "--format", "jsonl", "-o", "-"),
    ("log", "--json"),
    *(pytest.param((name, "--json"), marks=pytest.mark.torture) for name in ("watch", "status")),
]
TEXTS = [
    ("status",),
    ("report",),
    ("export", "--format", "md", "-o", "-"),
    *(pytest.param(argv, marks=pytest.mark.torture) for argv in (("log",), ("search", "evil"))),
]
WRONG = [
    ("approve", EVIL),
    (EVIL,),
    ("call", EVIL, "--json"),
    *(pytest.param(argv, marks=pytest.mark.torture) for argv in (("status", f"--{EVIL}"), ("status", EVIL))),
]


class Ground:
    """A project with a workflow and a task of hostile names."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "project"
        (self.folder / ".handrail").mkdir(parents=True)
        self.environment = {**os.environ, "HOME": str(folder), "TERM": "xterm", "COLUMNS": "100"}
        self.environment.pop("NO_COLOR", None)
        begun = self.piped("call", "start_workflow", f"name={EVIL}", f"description={EVIL}", "plan=[]", "--json")
        workflow = msgspec.json.decode(begun)["workflow_id"]
        given = (f"workflow_id={workflow}", f"name={EVIL}", f"goal={EVIL}")
        self.piped("call", "start_task", *given, "--json")

    def _words(self, argv: tuple[str, ...]) -> list[str]:
        return [sys.executable, "-m", "handrail", *argv]

    def piped(self, *argv: str) -> bytes:
        done = subprocess.run(
            self._words(argv), cwd=self.folder, env=self.environment, capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 0, (argv, done.stdout, done.stderr)
        return done.stdout

    def on_a_terminal(self, *argv: str, typed: bytes = b"") -> str:
        _, printed = printed_on_a_terminal(self._words(argv), self.environment, self.folder, typed)
        return printed.decode()


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    return Ground(tmp_path_factory.mktemp("terminal"))


def steering(printed: str) -> list[str]:
    """What a terminal would obey, or not show."""
    text = COLOUR.sub("", printed)
    unseen = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
    return [hex(ord(sign)) for sign in text if sign not in ALLOWED and unicodedata.category(sign) in unseen]


def documents(printed: str) -> list[Any]:
    """The JSON documents in what was printed: one, or one a line."""
    try:
        return [msgspec.json.decode(printed)]
    except msgspec.DecodeError:
        return [msgspec.json.decode(line) for line in printed.split("\n") if line.strip()]


def texts_in(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value}
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return {text for part in parts for text in texts_in(part)}


@pytest.mark.parametrize("argv", JSON_VIEWS)
def test_json_is_escaped_on_a_terminal_and_the_same_in_a_pipe(ground: Ground, argv: tuple[str, ...]) -> None:
    printed, piped = ground.on_a_terminal(*argv), ground.piped(*argv).decode()
    assert steering(printed) == []
    assert EVIL in texts_in(documents(printed)), "the value is the same"
    assert "\u009b31m" in piped, "in a pipe nothing is escaped that JSON does not demand"
    if argv[0] == "export":  # the others tell how long ago something was
        assert documents(printed) == documents(piped)


@pytest.mark.parametrize("argv", TEXTS)
def test_no_text_steers_a_terminal(ground: Ground, argv: tuple[str, ...]) -> None:
    printed = ground.on_a_terminal(*argv)
    assert "evil" in printed
    assert steering(printed) == []
    assert "\x1b[8m" not in printed


@pytest.mark.parametrize("argv", WRONG)
def test_no_refusal_and_no_mistake_steers_a_terminal(ground: Ground, argv: tuple[str, ...]) -> None:
    printed = ground.on_a_terminal(*argv)
    assert "evil" in printed
    assert steering(printed) == []


def test_a_server_tried_by_hand_does_not_steer_a_terminal(ground: Ground) -> None:
    asked = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": EVIL, "arguments": {}}}
    typed = "".join(f"{json.dumps(line)}\n" for line in (INITIALIZE, asked))
    printed = ground.on_a_terminal("serve", typed=typed.encode() + b"\x04")
    (answer,) = (line for line in printed.split("\r\n") if line.startswith('{"jsonrpc":"2.0","id":2,'))
    assert steering(answer) == []
    assert any(EVIL in text for text in texts_in(msgspec.json.decode(answer)))

"""Where the documents' commands are typed: in this process where a page has nothing but `handrail`, else in a real
bash, in an empty folder with an empty home.

`…` alone on a shown line stands for any lines, elsewhere in a line for any text. `$name` in a command stands for the
value that an earlier command printed as JSON under that name, `$task`, `$workflow`, `$agent` and `$gate` for the first
such id that the last command with one printed; other variables are the shell's own. A command that fails must show that
it does, or be followed by `echo $?`.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, Protocol

import click.testing

from handrail.surfaces.cli.main import cli
from tests.docs.pages import Typed

DEADLINE_S = 120
"""How long one command may take, on a machine that has other things to do too."""
IDS = {"task": "task", "workflow": "wf", "agent": "ag", "gate": "gate"}
SAYS_SO = ("refused", "error:", "Error:", "conflict", "broken")
"""What a page shows where a command fails."""
NEVER = ("apt", "brew", "createdb", "docker", "dropdb", "npm", "npx", "pip", "pipx", "sudo", "uv", "uvx")
"""Programs that change more than a folder: a page's block with one of them has to stand in `elsewhere`."""

_LOOP = r"""
status=0
while IFS= read -r -u "$1" -d '' command; do
  (exit "$status")
  eval "$command" 2>&1
  status=$?
  printf '\036%s\036\n' "$status"
done
"""


class Printed(NamedTuple):
    """What a command printed, and what it ended with."""

    text: str
    status: int


class Typist(Protocol):
    """Somebody who types a command and says what came of it."""

    def type(self, command: str) -> Printed: ...


class InProcess:
    """Types `handrail` lines without starting a process each."""

    def __init__(self) -> None:
        self._runner = click.testing.CliRunner()

    def type(self, command: str) -> Printed:
        done = self._runner.invoke(cli, shlex.split(command)[1:], prog_name="handrail")
        return Printed(done.output, done.exit_code)


class Bash:
    """One bash for a whole page: folders, variables and jobs stay. Its standard input is a terminal nobody types at."""

    def __init__(self, folder: Path, home: Path, stands_for: Mapping[str, str]) -> None:
        self._stands_for = stands_for
        self._ours, theirs = pty.openpty()
        read_end, self._commands = os.pipe()
        self._process = subprocess.Popen(
            ["/bin/bash", "--noprofile", "--norc", "-c", _LOOP, "bash", str(read_end)],
            cwd=folder,
            env=_environment(home),
            stdin=theirs,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=(read_end,),
            start_new_session=True,
        )
        os.close(read_end)
        os.close(theirs)

    def type(self, command: str) -> Printed:
        for shown, real in self._stands_for.items():
            command = command.replace(shown, real)
        os.write(self._commands, command.encode() + b"\0")
        text, status = self._answer(command)
        for shown, real in self._stands_for.items():
            text = text.replace(real, shown)
        return Printed(text, status)

    def _answer(self, command: str) -> tuple[str, int]:
        assert self._process.stdout is not None
        deadline = time.monotonic() + DEADLINE_S
        said = b""
        while not (over := re.search(rb"\x1e(\d+)\x1e\n\Z", said)):
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(left, 0))
            assert ready, f"{command}\ndoes not end:\n{said.decode(errors='replace')}"
            more = os.read(self._process.stdout.fileno(), 65536)
            assert more, f"{command}\nended the shell:\n{said.decode(errors='replace')}"
            said += more
        return said[: over.start()].decode(), int(over[1])

    def close(self) -> None:
        """Ends the shell and all that it started."""
        os.close(self._commands)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)  # a group of our own: nobody else is in it
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
        os.close(self._ours)


def _environment(home: Path) -> dict[str, str]:
    (home / ".gitconfig").write_text(
        "[user]\n\tname = you\n\temail = you@example.org\n[init]\n\tdefaultBranch = main\n", encoding="utf-8"
    )
    nowhere = "http://127.0.0.1:9"  # the discard port: nothing here may need a network
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(home),
        "LOGNAME": "you",
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
        "GIT_CONFIG_NOSYSTEM": "1",
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "no_proxy": "127.0.0.1,localhost",
    }


@contextlib.contextmanager
def bash(folder: Path, home: Path, stands_for: Mapping[str, str]) -> Iterator[Bash]:
    shell = Bash(folder, home, stands_for)
    try:
        yield shell
    finally:
        shell.close()


def needs_a_shell(commands: Iterable[Typed]) -> bool:
    """True when a page has more than plain `handrail` lines."""
    return any(one.file is None and not _is_plain(one.command) for one in commands)


def _is_plain(command: str) -> bool:
    outside_quotes = re.sub(r"'[^']*'|\"[^\"]*\"", "", command)
    return command.startswith("handrail ") and not re.search(r"[|&;<>()`\n\\#]", outside_quotes)


def pattern_of(lines: Iterable[str]) -> str:
    parts = [r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in lines]
    return "".join(parts)


def values_in(text: str) -> dict[str, str]:
    """What later commands may use of what was printed."""
    values = dict(re.findall(r'"([a-z_]+)": ?"([^"]+)"', text))
    for name, prefix in IDS.items():
        found = re.search(rf"\b{prefix}_[0-9a-z]{{26}}\b", text)
        if found:
            values[name] = found[0]
    return values


def type_again(typist: Typist, commands: list[Typed], folder: Path) -> None:
    """Types a page's commands in order; each must print what the page shows. Files of the page go into `folder`."""
    values: dict[str, str] = {}
    for one, following in zip(commands, [*commands[1:], None], strict=True):
        if one.file is not None:
            (folder / one.file).parent.mkdir(parents=True, exist_ok=True)
            (folder / one.file).write_text(one.command, encoding="utf-8")
            continue
        assert one.command.split()[0] not in NEVER, f"{one.where}: {one.command} is not run here; see elsewhere.py"
        command = re.sub(r"\$([a-z_]+)", lambda name: values.get(name[1], name[0]), one.command)
        printed = typist.type(command)
        told = f"{one.where}\n$ {command}\n{printed.text}(ended with {printed.status})"
        if one.shown is not None:
            text = printed.text if printed.text.endswith("\n") or not printed.text else printed.text + "\n"
            assert re.fullmatch(pattern_of(one.shown), text), told
        asked = following is not None and following.command == "echo $?"
        says_so = one.shown is not None and any(word in line for word in SAYS_SO for line in one.shown)
        assert printed.status == 0 or asked or says_so, told
        values.update(values_in(printed.text))

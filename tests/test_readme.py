"""Every console session in the documents is typed again, and must print what the page shows.

`…` alone on a line stands for any lines, at the end or the start of a line for any text. `$name` stands for the value
that an earlier command printed under that name.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click.testing
import pytest

from handrail.surfaces.cli.main import cli

ROOT = Path(__file__).parent.parent
PAGES = [
    page for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if "```console" in page.read_text()
]


def sessions(page: Path) -> Iterator[list[tuple[str, list[str]]]]:
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        session: list[tuple[str, list[str]]] = []
        for line in block.splitlines():
            if line.startswith("$ "):
                session.append((line[2:], []))
            else:
                session[-1][1].append(line)
        yield session


def pattern_of(lines: list[str]) -> str:
    parts = [r"(?:.*\n)*?" if line == "…" else ".*".join(map(re.escape, line.split("…"))) + "\n" for line in lines]
    return "".join(parts)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_session_prints_what_the_page_shows(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = click.testing.CliRunner()
    values: dict[str, str] = {}
    for session in sessions(page):
        for command, shown in session:
            filled = re.sub(r"\$([a-z_]+)", lambda name: values[name[1]], command)
            program, *argv = shlex.split(filled)
            assert program == "handrail", command
            done = runner.invoke(cli, argv, prog_name="handrail")
            assert re.fullmatch(pattern_of(shown), done.output), f"{command}\n{done.output}"
            values.update(re.findall(r'"([a-z_]+)": "([^"]+)"', done.output))


def test_a_session_that_prints_something_else_would_be_noticed() -> None:
    assert re.fullmatch(pattern_of(["a…", "…", "z"]), "abc\nx\ny\nz\n")
    assert not re.fullmatch(pattern_of(["a…", "z"]), "abc\nx\nz\n")
    assert not re.fullmatch(pattern_of(["a"]), "b\n")

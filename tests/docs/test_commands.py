"""Every `handrail …` that the documents name is there: the command, its options, and for `call` the tool and its
arguments."""

from __future__ import annotations

import importlib.util
import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from handrail.catalog import whole_catalog
from handrail.settings import setting_fields
from handrail.surfaces.cli.main import cli
from handrail.surfaces.schemas import request_schema
from tests.docs.elsewhere import ELSEWHERE
from tests.docs.pages import PAGES, ROOT, code_in_prose, read, relative, typed, without_comment
from tests.docs.test_sessions import is_elsewhere

BESIDE = {"idempotency_key", "op_id", "agent_id", "agent_secret"}
"""Arguments that every tool may understand beside its own."""

SETTINGS = {field.name for field in setting_fields()}


def problems_of(line: str) -> list[str]:
    """What is wrong with a `handrail …` line; its capitals, `…` and brackets stand for anything."""
    if line.endswith("=") or re.fullmatch(r"handrail(:| [A-Z…].*)?", line):
        return []
    words = _words(line)
    command: click.Command = cli
    # With the settings of the command line: click keeps the help option of each command as it is first asked for.
    context = click.Context(cli, info_name="handrail", **cli.context_settings)
    while words and isinstance(command, click.Group) and not words[0].startswith("-"):
        name = words.pop(0)
        found = command.get_command(context, name)
        if found is None and (name.isupper() or "…" in name or "|" in name):
            return []
        if found is None:
            return [f"there is no command {name}"]
        command, context = found, click.Context(found, info_name=name, parent=context)
    options = {
        name for parameter in command.get_params(context) for name in (*parameter.opts, *parameter.secondary_opts)
    }
    asked = [word.partition("=")[0] for word in words if word.startswith("-") and len(word) > 1 and word != "--"]
    if type(command).parse_args is not click.Command.parse_args:  # it reads words itself: `search queue -redis`
        asked = [name for name in asked if name.startswith("--")]
    problems = [f"there is no option {name}" for name in asked if name not in options and "…" not in name]
    given = [after.partition("=")[0] for word, after in itertools.pairwise(words) if word == "--set"]
    problems += [f"there is no setting {name}" for name in given if name.islower() and name not in SETTINGS]
    if command.name == "call" and words:
        problems += _problems_of_call(words)
    return problems


def _words(line: str) -> list[str]:
    plain = re.sub(r"[\[\]]", " ", line) if "'" not in line and '"' not in line else line
    try:
        words = shlex.split(plain)
    except ValueError:
        words = plain.split()
    ends = [number for number, word in enumerate(words) if word in ("|", "&&", "||", ";", "&", ">", "2>&1", ">>")]
    return words[1 : ends[0] if ends else len(words)]


def _problems_of_call(words: list[str]) -> list[str]:
    tool, *arguments = [word for word in words if not word.startswith("-")]
    if tool.isupper() or "…" in tool:
        return []
    found = [
        operation
        for operation in whole_catalog()
        if tool in (operation.name, _prefixed(operation.toolset.family, operation.name))
    ]
    if not found:
        return [f"there is no tool {tool}"]
    known = {name for operation in found for name in request_schema(operation)["properties"]} | BESIDE
    named = [word.partition("=")[0] for word in arguments if re.match(r"\w+=", word)]
    return [f"{tool} has no argument {name}" for name in named if name not in known]


def _prefixed(family: str, name: str) -> str:
    return f"{family}_{name}"


def handrail_lines(page: Path) -> Iterator[str]:
    """Every `handrail …` of a page: in blocks of commands and in prose."""
    blocks, prose = read(page)
    for block in blocks:
        for one in typed(block):
            if one.file is None and one.command.startswith("handrail "):
                yield without_comment(one.command.splitlines()[0])
    for code in code_in_prose(prose):
        if code.startswith("handrail ") or code == "handrail":
            yield code


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_command_that_is_named_is_there(page: Path) -> None:
    wrong = {line: problems for line in handrail_lines(page) if (problems := problems_of(line))}
    assert not wrong


@pytest.mark.parametrize(
    "line",
    [
        "handrail staus",
        "handrail db mvoe URL",
        "handrail status --jsn",
        "handrail call workflow_lst",
        "handrail call start_task goals=x",
        "handrail pipeline [lst]",
        "handrail token create NAME --right read",
        "handrail up --set alow_hosts=box.example",
    ],
)
def test_a_command_that_is_not_there_is_noticed(line: str) -> None:
    assert problems_of(line)


@pytest.mark.parametrize(
    "line",
    [
        "handrail status",
        "handrail db path --json",
        "handrail call start_task goal=x",
        "handrail call TOOL",
        "handrail pipeline [list]",
        "handrail log | head -1",
        "handrail reject --say …",
    ],
)
def test_a_command_that_is_there_passes(line: str) -> None:
    assert problems_of(line) == []


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_module_that_prose_asks_to_run_is_there(page: Path) -> None:
    asked = {found[1] for code in code_in_prose(read(page)[1]) if (found := re.match(r"python -m ([a-z_.]+)", code))}
    assert [name for name in asked if not is_module(name)] == []


def is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def test_a_module_that_is_not_there_is_noticed() -> None:
    assert is_module("handrail.surfaces.docs")
    assert not is_module("handrail.surfaces.dcos")
    assert not is_module("hndrail.surfaces.docs")


def test_what_is_run_elsewhere_is_still_in_the_documents_and_its_test_is_there() -> None:
    commands = [one.command for page in PAGES for block in read(page)[0] for one in typed(block) if is_elsewhere(one)]
    commands += [step for page in PAGES for step in steps_of_jobs(page)]
    for begin, (why, test) in ELSEWHERE.items():
        assert any(command.startswith(begin) for command in commands), f"no page has {begin} any more"
        assert why
        file, _, name = test.partition("::")
        assert (ROOT / file).exists(), test
        assert not name or f"def {name}(" in (ROOT / file).read_text(encoding="utf-8"), test


def steps_of_jobs(page: Path) -> Iterator[str]:
    """The commands of jobs that a page shows: `run:` in a block of YAML."""
    for block in read(page)[0]:
        if block.language in ("yaml", "yml"):
            yield from (found[1] for line in block.lines if (found := re.match(r"\s*-? *run: (.*)", line)))


@pytest.mark.parametrize("page", [page for page in PAGES if list(steps_of_jobs(page))], ids=relative)
def test_every_step_of_a_job_is_typed_on_its_page_or_stands_in_the_list(page: Path) -> None:
    shown = [one.command for block in read(page)[0] for one in typed(block)]
    for step in steps_of_jobs(page):
        begin = " ".join(step.split()[:2])
        assert any(command.startswith(begin) for command in shown) or begin in ELSEWHERE, step


def test_what_is_installed_is_there() -> None:
    """`pip install -e '.[…]'` names an extra that our package has."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [code for page in PAGES for code in (*steps_of_jobs(page), *code_in_prose(read(page)[1]))]
    named += [one.command for page in PAGES for block in read(page)[0] for one in typed(block)]
    wanted = [found for code in named if (found := re.search(r"pip install .*?[\"']?([\w.]+)\[(\w+)\]", code))]
    assert len(wanted) >= 3
    for found in wanted:
        assert found[1] == ".", "no registry has Handrail: the name there could be anybody's"
        assert found[2] in project["optional-dependencies"]


def test_the_command_given_to_a_client_serves(tmp_path: Path) -> None:
    """The part after `--`, which the client runs: it answers `initialize` on its standard output."""
    blocks, _ = read(ROOT / "docs" / "clients.md")
    (line,) = [one.command for block in blocks for one in typed(block) if one.command.startswith("claude mcp add")]
    program, *arguments = shlex.split(line.partition(" -- ")[2])
    assert program.endswith(".venv/bin/handrail")
    hello = (
        '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        '"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}\n'
    )
    command = [str(Path(sys.executable).parent / "handrail"), *arguments]
    done = subprocess.run(command, cwd=tmp_path, input=hello, capture_output=True, text=True, timeout=60, check=False)
    assert '"serverInfo"' in done.stdout


def test_every_bench_in_the_documents_can_be_asked() -> None:
    """That the module is there; what it measures is not for here."""
    for page in PAGES:
        for block in read(page)[0]:
            for one in typed(block):
                found = re.match(r"\.venv/bin/python -m (bench[\w.]*)", one.command)
                if found:
                    path = ROOT / found[1].replace(".", "/")
                    assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), one.command

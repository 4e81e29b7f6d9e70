"""The security page: every test it names is there, and so is every module that starts programs or uses a network."""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from handrail.kernel.errors import SettingInvalid
from handrail.settings import load_settings

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src" / "handrail"
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED_TEST = re.compile(r"(tests/[\w/]+\.py)(?:::(test_\w+))?")
PROGRAMS = ("subprocess", "webbrowser", "multiprocessing", "pty")
NETWORK = (
    "socket",
    "ssl",
    "http.client",
    "urllib.request",
    "ftplib",
    "smtplib",
    "uvicorn",
    "psycopg",
    "requests",
    "httpx",
)
GIT = "git"
WATCHED = (
    "socket.connect",
    "socket.getaddrinfo",
    "socket.bind",
    "subprocess.Popen",
    "os.exec",
    "os.posix_spawn",
    "os.system",
)

WATCH = """
import contextlib, io, json, re, sys

seen, values = [], {{}}

def watch(event, args):
    if event in {watched!r}:
        seen.append([event, str(args[0])])

sys.addaudithook(watch)
from handrail.surfaces.cli.main import cli

for words in json.loads(sys.argv[1]):
    said = io.StringIO()
    filled = [re.sub(r"[$]([a-z_]+)", lambda name: values[name[1]], word) for word in words]
    with contextlib.redirect_stdout(said):
        try:
            cli(filled, prog_name="handrail", standalone_mode=False)
        except SystemExit as left:
            assert not left.code, filled
    values.update(re.findall('"([a-z_]+)": "([^"]+)"', said.getvalue()))
with open(sys.argv[2], "w") as kept:
    json.dump(seen, kept)
"""
"""Types commands in one process and tells which programs it started and which sockets it used. `$name` is a value that
an earlier command printed under that name."""

TASK = (
    ["call", "start_workflow", "name=w"],
    ["call", "start_task", "workflow_id=$workflow_id", "name=t", "goal=g"],
)
COMPLETE = ["call", "complete_task", "task_id=$task_id", "status=success", 'outcome={"summary": "done"}']


def missing_tests(text: str) -> list[str]:
    """Tests that a text names and the tree does not have."""
    missing = []
    for path, name in NAMED_TEST.findall(text):
        file = ROOT / path
        if not file.is_file() or (name and f"def {name}(" not in file.read_text(encoding="utf-8")):
            missing.append(f"{path}::{name}" if name else path)
    return missing


def importers(modules: tuple[str, ...]) -> set[str]:
    """Files of the package that import one of these modules, wherever in the file."""
    found = set()
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = (
                [alias.name for alias in node.names]
                if isinstance(node, ast.Import)
                else [node.module or ""]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            if any(name == module or name.startswith(f"{module}.") for name in names for module in modules):
                found.add(str(file.relative_to(SOURCE)))
    return found


def is_named(file: str) -> bool:
    """Whether the page names a file of the package, or a pattern that it fits."""
    return any(fnmatch.fnmatch(file, named) for named in re.findall(r"`([\w/*]+\.py)`", PAGE))


def done_by(project: Path, *commands: list[str]) -> list[tuple[str, str]]:
    """What commands do to the world outside of Python's own files: programs started, sockets used."""
    environment = {**os.environ, "HOME": str(project.parent), "NO_COLOR": "1"}
    code = WATCH.format(watched=WATCHED)
    kept = project.parent / "seen.json"
    done = subprocess.run(
        [sys.executable, "-c", code, msgspec.json.encode(commands).decode(), str(kept)],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [(event, what) for event, what in msgspec.json.decode(kept.read_bytes())]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.txt").write_text("one\n", encoding="utf-8")
    for words in (
        ["init", "-q"],
        ["add", "a.txt"],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"],
    ):
        subprocess.run([GIT, *words], cwd=folder, check=True, capture_output=True)
    return folder


def with_check(project: Path) -> Path:
    """Gives the project a check; the file that is there once it has run."""
    ran = project.parent / "ran"
    config = project / ".handrail" / "config.toml"
    config.parent.mkdir()
    config.write_text(f'[checks]\ntrap = ["touch", "{ran}"]\n', encoding="utf-8")
    return ran


def test_every_test_that_the_page_names_is_there() -> None:
    assert len(NAMED_TEST.findall(PAGE)) >= 40
    assert missing_tests(PAGE) == []


def test_a_test_that_is_gone_would_be_noticed() -> None:
    assert missing_tests("tests/nowhere.py") == ["tests/nowhere.py"]
    here = "tests/docs_claims/test_security_page.py"
    assert missing_tests(f"{here}::test_that_nobody_wrote") == [f"{here}::test_that_nobody_wrote"]


def test_every_claim_has_a_test() -> None:
    table = PAGE.partition("## Claim → test")[2]
    rows = [line for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 20
    assert not [row for row in rows if not NAMED_TEST.search(row)]


@pytest.mark.parametrize("file", sorted(importers(PROGRAMS)))
def test_who_can_start_a_program_is_named(file: str) -> None:
    assert is_named(file)


@pytest.mark.parametrize("file", sorted(importers(NETWORK)))
def test_who_can_use_a_network_is_named(file: str) -> None:
    assert is_named(file)


def test_a_module_that_nobody_named_would_be_noticed() -> None:
    assert is_named("outside/check_runner.py")
    assert not is_named("outside/world.py")


def test_a_module_that_imports_late_is_found() -> None:
    assert "surfaces/cli/serve/up.py" in importers(("webbrowser",))
    assert importers(("requests", "httpx", "urllib.request", "http.client", "ssl", "smtplib", "ftplib")) == set()


def test_everyday_work_starts_git_alone_and_uses_no_socket(project: Path) -> None:
    ran = with_check(project)
    done = done_by(
        project,
        *TASK,
        [*COMPLETE, "verify=false"],
        ["call", "workflow_get_summary", "id=$workflow_id"],
        ["status"],
        ["report", "$workflow_id"],
        ["guide", "list"],
        ["flow", "list"],
        ["db", "verify"],
    )
    assert {(event, Path(what).name) for event, what in done} == {("subprocess.Popen", GIT)}
    assert not ran.exists()


def test_a_check_of_the_project_is_run_where_it_is_asked_for(project: Path) -> None:
    """Without this, a check that nobody could start would prove nothing."""
    ran = with_check(project)
    done = done_by(project, *TASK, ["trust", "--yes"], [*COMPLETE, "verify=true"])
    assert ("subprocess.Popen", "touch") in done
    assert ran.exists()


@pytest.mark.parametrize(("name", "strict", "weak"), [("approvals", "human", "agent"), ("identity", "strict", "open")])
def test_what_the_projects_file_makes_strict_nothing_else_weakens(
    tmp_path: Path, name: str, strict: str, weak: str
) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "config.toml").write_text(f'{name} = "{strict}"\n', encoding="utf-8")
    assert getattr(load_settings(given={}, environ={}, project=tmp_path), name) == strict
    for given, environ in (({name: weak}, {}), ({}, {f"HANDRAIL_{name.upper()}": weak})):
        with pytest.raises(SettingInvalid, match="nothing else may weaken it"):
            load_settings(given=given, environ=environ, project=tmp_path)

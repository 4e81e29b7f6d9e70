"""What every command owes: JSON for programs, lines that fit, no colour where no terminal is, a place in the help."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import click.testing
import msgspec
import pytest

from handrail.surfaces.cli import render
from handrail.surfaces.cli.columns import width
from handrail.surfaces.cli.main import COMMANDS, HEADINGS, cli
from handrail.surfaces.docs import every_leaf
from tests.page.rich import Facts, build

WITHOUT_JSON = {
    ("demo",): "a play to watch; nothing of it is for programs",
    ("hook", "pre-commit"): "git runs it, and hears its exit code",
    ("hook", "pre-tool-use"): "clients run it, and it answers in their own JSON",
}
LOOKS = [
    *("status", "status --all", "next", "log", "agents", "agents --all", "message", "review", "decisions", "journal"),
    *("board", "board show sync", "worktrees", "pipeline", "pipeline show links-that-expire", "approve --show"),
    *("guide", "guide show bug-hunt", "guide validate", "flow", "flow show standard", "flow validate", "token list"),
    *("settings", "tools", "tools --profile all", "call task_claim --arguments", "watch --once"),
    "scope test -a auth -a api src/auth/login.ts src/some/very/long/path/to/a/file/that/goes/on/and/on.ts",
]
NARROW = [
    "status",
    "next",
    "log",
    "agents",
    "message",
    "review",
    "decisions",
    "journal",
    "search retry",
    "watch --once",
]
"""Looks that stay readable in a pane of a split screen."""
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return build(tmp_path_factory.mktemp("rich"))


@pytest.fixture
def on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render, "is_terminal", lambda: True)


def run(
    rich: Facts, line: str, *, columns: int = 80, color: bool = False, env: Mapping[str, str] | None = None
) -> click.testing.Result:
    return run_in(rich.project, rich.home, line, columns=columns, color=color, env=env)


def run_in(
    project: Path,
    home: Path,
    line: str,
    *,
    columns: int = 80,
    color: bool = False,
    env: Mapping[str, str] | None = None,
) -> click.testing.Result:
    variables = {"HOME": str(home), "COLUMNS": str(columns), "NO_COLOR": None, "TERM": "xterm", **(env or {})}
    runner = click.testing.CliRunner(env=variables)
    return runner.invoke(cli, [*line.split(), "--root", str(project)], prog_name="handrail", color=color)


def run_json(rich: Facts, line: str) -> dict[str, object]:
    found: dict[str, object] = msgspec.json.decode(run(rich, f"{line} --json").stdout)
    return found


def named(rich: Facts) -> Iterator[str]:
    """Looks at one thing each, by id."""
    waiting = rich.tasks["Release candidate"]
    yield from (f"show {rich.workflow}", f"why {rich.workflow}", f"status {rich.workflow}", f"journal {waiting}")
    for task in rich.tasks.values():
        yield from (f"show {task}", f"why {task}")


def test_every_command_prints_json_for_programs_or_says_why_not() -> None:
    found = {leaf.path for leaf in every_leaf() if not any("--json" in param.opts for param in leaf.command.params)}
    assert found == set(WITHOUT_JSON)


def test_wrong_use_is_told_in_the_form_that_was_asked_for() -> None:
    for leaf in every_leaf():
        if leaf.path in WITHOUT_JSON:
            continue
        words = [*leaf.path, "--no-such-option"]
        as_json = click.testing.CliRunner().invoke(cli, [*words, "--json"], prog_name="handrail")
        as_text = click.testing.CliRunner().invoke(cli, [*words, "--", "--json"], prog_name="handrail")
        assert as_json.exit_code == as_text.exit_code == 2, leaf.path
        assert as_text.stderr.startswith("Usage: handrail"), leaf.path
        error = msgspec.json.decode(as_json.stdout)["error"]
        assert error["code"] == "INVALID_PARAMS"
        assert "--no-such-option" in error["message"]
        assert error["hint"] == f"handrail {' '.join(leaf.path)} --help shows its use"
    unknown = click.testing.CliRunner().invoke(cli, ["statsu", "--json"], prog_name="handrail")
    assert "did you mean status?" in msgspec.json.decode(unknown.stdout)["error"]["message"]


def test_every_question_has_an_answer_for_programs(rich: Facts, tmp_path: Path) -> None:
    """Nothing is asked where JSON was asked for: the refusal names the option that says yes."""
    copy = tmp_path / "copy.db"
    assert run(rich, f"db backup {copy}").exit_code == 0
    move, completion = f"db move {tmp_path / 'x.db'}", "completion bash --install"
    for line in (move, f"db restore {copy}", "init --client cursor", completion):
        refused = run(rich, f"{line} --json")
        assert refused.exit_code == 2, (line, refused.output)
        assert "add --yes" in msgspec.json.decode(refused.stdout)["error"]["hint"], line


def test_every_option_of_every_command_is_explained() -> None:
    for leaf in every_leaf():
        for param in leaf.command.params:
            if isinstance(param, click.Option):
                assert param.help or isinstance(param.type, click.Choice), (leaf.path, param.opts)


def test_every_command_stands_under_one_heading() -> None:
    listed = [name for commands in HEADINGS.values() for name in commands]
    assert sorted(listed) == sorted(set(listed)) == sorted(COMMANDS)
    shown = click.testing.CliRunner().invoke(cli, ["--help"]).output
    places = [shown.index(f"\n{heading}:\n") for heading in HEADINGS]
    assert places == sorted(places)


@pytest.mark.usefixtures("on_terminal")
@pytest.mark.parametrize("columns", [60, 80, 200])
def test_no_line_is_wider_than_the_terminal(rich: Facts, columns: int) -> None:
    for line in (*LOOKS, *named(rich)):
        done = run(rich, line, columns=columns)
        assert done.exit_code in (0, 1), done.output
        for printed in done.output.splitlines():
            assert width(printed) <= columns, (line, printed)
            assert printed == printed.rstrip(), (line, printed)


@pytest.mark.usefixtures("on_terminal")
def test_in_a_narrow_pane_lines_still_fit_and_names_are_not_cut_away(rich: Facts) -> None:
    for line in (*NARROW, *named(rich)):
        done = run(rich, line, columns=40)
        assert done.exit_code == 0, done.output
        for printed in done.output.splitlines():
            assert width(printed) <= 40, (line, printed)
            assert not re.match(r"\W*(…|,) ", printed), (line, printed)
    name = str(run_json(rich, f"show {rich.workflow}")["name"])
    for line in ("status", "next", f"show {rich.workflow}", f"journal {rich.workflow}"):
        assert name in " ".join(run(rich, line, columns=40).output.split()), line


def test_no_short_help_is_cut_on_a_terminal_of_80_columns() -> None:
    groups = [name for name in COMMANDS if isinstance(cli.get_command(click.Context(cli), name), click.Group)]
    assert {"db", "message", "pipeline"} <= set(groups)
    for name in ("", *groups):
        runner = click.testing.CliRunner(env={"COLUMNS": "80"})
        listed = runner.invoke(cli, [*name.split(), "--help"]).output.partition("-h, --help")[2]
        assert "..." not in listed, name
        assert not re.search(r"^ {10,}\S", listed, re.MULTILINE), f"{name}: a line of help goes on below itself"


def test_in_a_pipe_nothing_is_coloured_and_nothing_of_an_agent_commands_a_terminal(rich: Facts) -> None:
    for line in (*LOOKS, *named(rich), f"report {rich.workflow}"):
        done = run(rich, line)
        assert done.exit_code in (0, 1), done.output
        assert "\x1b" not in done.output, line


def test_on_a_terminal_only_looks_are_set(rich: Facts) -> None:
    coloured = 0
    for line in LOOKS:
        shown = run(rich, line, color=True).output
        coloured += "\x1b" in shown
        assert "\x1b" not in ESCAPE.sub("", shown), line
    assert coloured > 10


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}])
def test_no_colour_where_none_is_wanted(rich: Facts, variables: dict[str, str]) -> None:
    for line in ("status", "guide show bug-hunt", "flow show standard", "show nothing"):
        assert "\x1b" not in run(rich, line, color=True, env=variables).output


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "CLICOLOR_FORCE"])
def test_colour_in_a_pipe_where_it_is_wanted(rich: Facts, variable: str) -> None:
    assert "\x1b[1m" in run(rich, "status", env={variable: "1"}).output
    assert "\x1b" not in run(rich, "status", env={variable: "0"}).output


def test_an_empty_place_says_what_to_do_next(tmp_path: Path) -> None:
    says = {
        "status": "Ask your agent to plan its work",
        "log": "Ask your agent to plan its work",
        "log --actor nobody": "`handrail log` shows all",
        "agents --all": "agent_register",
        "message": "message_send",
        "decisions": "log_decision",
        "board": "bb_set",
        "worktrees": "workspace_create",
        "pipeline": "pipeline_init",
        "token list": "handrail token create NAME",
    }
    for line, words in says.items():
        assert words in " ".join(run_in(tmp_path, tmp_path, line).output.split()), line
    assert list(tmp_path.iterdir()) == []

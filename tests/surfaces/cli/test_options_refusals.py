"""Commands whose surroundings are not as they should be, and commands that were nearly right: told what to do next,
never a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click.testing
import pytest

from handrail.kernel.errors import NotFound
from handrail.surfaces.cli.main import cli
from handrail.surfaces.cli.options import end_refused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str, home: str | None = None) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": home or str(project.parent / "home")})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail")


def handrail(*argv: str, cwd: Path, remove: bool = False, **environ: str) -> subprocess.CompletedProcess[str]:
    """The command as a process; `remove` takes its folder away before it starts."""
    code = "import os, sys; remove = sys.argv.pop(1); remove and os.rmdir(os.getcwd()); "
    code += "from handrail.__main__ import main; main()"
    command = [sys.executable, "-c", code, "x" if remove else "", *argv]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(cwd), **environ}
    return subprocess.run(
        command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30, check=False
    )


# -- places -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["up", "serve"])
def test_a_home_that_cannot_keep_the_token_is_refused_with_a_way_out(project: Path, command: str) -> None:
    home = project.parent / "no-folder"
    home.write_text("a file")
    done = run(project, command, "--http", "127.0.0.1:0", home=str(home))
    assert done.exit_code == 1
    assert "refused PLACE_UNUSABLE" in done.stderr
    assert str(home) in done.stderr
    assert "--token" in done.stderr


def test_a_token_that_is_no_text_is_refused(project: Path) -> None:
    folder = project.parent / "home" / ".handrail"
    folder.mkdir(parents=True)
    (folder / "token").write_bytes(b"\xff\xfe")
    done = run(project, "up", "--http", "127.0.0.1:0")
    assert (done.exit_code, "it is not text" in done.stderr) == (1, True)


@pytest.mark.parametrize("options", [(), ("--root", ".")])
@pytest.mark.parametrize("command", [("guide", "list"), ("serve",), ("settings",)])
def test_a_folder_that_is_gone_is_refused_with_a_way_out(
    tmp_path: Path, command: tuple[str, ...], options: tuple[str, ...]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = handrail(*command, *options, cwd=gone, remove=True, HOME=str(tmp_path))
    assert done.returncode == 1, done.stderr
    assert "the folder this runs in cannot be used" in done.stderr
    assert "--root" in done.stderr


def test_a_person_without_a_home_is_told_to_set_one(tmp_path: Path) -> None:
    """As in a container that runs under a number nobody has given a name."""
    code = "import pwd, sys; pwd.getpwuid = lambda _: (_ for _ in ()).throw(KeyError()); "
    code += "from handrail.__main__ import main; main()"
    command = [sys.executable, "-c", code, "guide", "list"]
    done = subprocess.run(command, cwd=tmp_path, env={}, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 1, done.stderr
    assert "set HOME" in done.stderr


def test_a_guide_that_cannot_be_written_is_refused_by_its_file(project: Path) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "guides").write_text("not a folder")
    done = run(project, "guide", "new", "release-notes")
    assert done.exit_code == 1
    assert f"{project / '.handrail' / 'guides'} cannot be written to: Not a directory" in done.stderr
    assert "make it a folder" in done.stderr


# -- calls ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (("call", "workflow_gte"), "`handrail tools --profile all` lists them"),
        (("call", "mcp_info", "--toolsets", "guide"), "belongs to the toolset introspection"),
        (("call", "mcp_info", "--toolsets", "guide"), "without --profile and --toolsets every tool is on"),
        (("call", "plan_workflow_list", "--toolsets", "workflow"), "here it is called workflow_list"),
        (("call", "workflow_next", "bug-hunt"), "for example workflowId="),
        (("call", "workflow_next", "{"), "or give pairs, such as workflowId="),
        (("call", "workflow_next", "workflow=x"), "unknown argument workflow; did you mean workflowId?"),
        (("call", "workflow_next", "workflow=x"), "`handrail call workflow_next --arguments` explains them"),
        (("call", "workflow_next", "bug-hunt"), "`handrail call workflow_next --arguments` explains them"),
        (("call", "mcp_info", "x"), "for example no arguments at all"),
    ],
)
def test_a_call_that_is_nearly_right_is_told_what_would_be(project: Path, argv: tuple[str, ...], says: str) -> None:
    done = run(project, *argv)
    assert done.exit_code in (1, 2)
    assert says in done.stderr


def test_the_example_in_a_hint_can_be_called(project: Path) -> None:
    import shlex

    hint = run(project, "call", "workflow_next", "bug-hunt").stderr.partition("for example ")[2]
    pairs = shlex.split(hint.partition(";")[0])
    assert run(project, "call", "workflow_next", *pairs).exit_code == 0


# -- what is on -------------------------------------------------------------------------------------------------------


def test_serve_has_every_module_that_a_flag_asks_for_and_says_nothing_of_others(tmp_path: Path) -> None:
    done = handrail("serve", "--enable-tx", "--enable-mcp-introspection", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert handrail("serve", cwd=tmp_path).stderr == ""
    assert handrail("serve", cwd=tmp_path, HANDRAIL_ENABLE="bulk").stderr == ""


def test_a_refusal_that_repeats_an_agents_words_commands_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        end_refused(NotFound('task "\x1b[2J\nx" waits', hint="ask \u202e\x07 again"), as_json=False)
    assert capsys.readouterr().err == 'refused NOT_FOUND: task " [2J x" waits\nhint    ask again\n'

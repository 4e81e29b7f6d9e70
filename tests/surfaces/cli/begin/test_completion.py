"""Completion: a real bash that sources the script and asks for completions; installing it and taking it back."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.setup.shell import SHELLS, shell_files, with_lines, without_lines
from handrail.surfaces.cli.begin.completion import script
from handrail.surfaces.cli.main import COMMANDS, cli
from tests.page.rich import Facts, build

HOSTILE = "$(touch owned); `touch owned`"


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Facts:
    return build(tmp_path_factory.mktemp("rich"))


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path


def completed(project: Path, home: Path, *words: str) -> list[str]:
    """What bash would put in place of the last of these words, as the line would read."""
    program = project / "handrail"
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m handrail "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    asked = f"""
        source {shlex.quote(str(home / "handrail.bash"))}
        COMP_WORDS=({" ".join(shlex.quote(word) for word in ("handrail", *words))})
        COMP_CWORD={len(words)}
        _handrail_completion {shlex.quote(str(program))}
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    (home / "handrail.bash").write_text(script("bash"), encoding="utf-8")
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([bash, "--norc", "-c", asked], capture_output=True, check=True, cwd=project, env=environment)
    assert done.stderr == b""
    return [line for line in done.stdout.decode().splitlines() if line]


def offered(rich: Facts, *words: str) -> list[str]:
    return completed(rich.project, rich.home, *words)


def run(home: Path, *argv: str, asked: str | None = None, **env: str) -> click.testing.Result:
    runner = click.testing.CliRunner(env={"HOME": str(home), "SHELL": "/bin/bash", "ZDOTDIR": None, **env})
    return runner.invoke(cli, ["completion", *argv, "--root", str(home / "project")], input=asked)


def run_json(home: Path, *argv: str) -> Any:
    return msgspec.json.decode(run(home, *argv, "--json").stdout)


# -- in a real bash ---------------------------------------------------------------------------------------------------


def test_commands_and_options_are_completed(rich: Facts) -> None:
    assert offered(rich, "st") == ["status"]
    assert set(offered(rich, "")) == set(COMMANDS)
    assert offered(rich, "status", "--js") == ["--json"]
    assert offered(rich, "pipeline", "sh") == ["show"]


def test_names_with_spaces_are_one_word_as_the_shell_reads_it(rich: Facts) -> None:
    assert offered(rich, "show", "Notes") == ["Notes\\ without\\ a\\ net"]
    assert offered(rich, "show", "Notes\\ w") == ["Notes\\ without\\ a\\ net"]
    assert offered(rich, "show", '"Notes w') == ["Notes without a net"]
    assert "Rotate\\ keys" in offered(rich, "why", "R")


def test_ids_are_completed_where_one_is_begun(rich: Facts) -> None:
    assert rich.workflow in offered(rich, "next", "wf_")
    assert rich.tasks["Rotate keys"] in offered(rich, "why", "task_")
    assert offered(rich, "approve", "gate_") == [rich.gate]


@pytest.mark.parametrize(
    ("words", "one"),
    [
        (("message", "send", "bu"), "builder"),
        (("pipeline", "show", "links"), "links-that-expire"),
        (("guide", "show", "bug"), "bug-hunt"),
        (("flow", "show", "li"), "light"),
        (("call", "task_cl"), "task_claim"),
        (("call", "task_claim", "task"), "task_id="),
        (("tools", "--profile", "so"), "solo"),
        (("tools", "--toolsets", "guide,plan-l"), "guide\\,plan-lifecycle"),
        (("serve", "--set", "profi"), "profile="),
        (("init", "--client", "claude-c"), "claude-code"),
        (("board", "show", "sy"), "sync"),
        (("completion", "z"), "zsh"),
        (("message", "send", "a", "b", "--priority", "ur"), "urgent"),
    ],
)
def test_values_are_completed(rich: Facts, words: tuple[str, ...], one: str) -> None:
    assert offered(rich, *words) == [one]


def test_what_nobody_knows_is_completed_with_nothing_and_without_an_error(rich: Facts) -> None:
    for words in (
        ("nonsense", ""),
        ("call", "nonsense", ""),
        ("show", "--root", "/nowhere", "zzz"),
    ):
        assert offered(rich, *words) == []


def test_completing_makes_no_store(home: Path) -> None:
    project = home / "project"
    for words in (("show", ""), ("message", "read", ""), ("approve", ""), ("token", "revoke", "")):
        assert completed(project, home, *words) == []
    assert [file.name for file in project.iterdir()] == ["handrail"]


def test_a_gate_is_offered_by_the_run_that_waits(rich: Facts) -> None:
    (found,) = offered(rich, "approve", "")
    assert found.endswith("-links-that-expire")
    assert offered(rich, "reject", found[:6]) == [found]


def test_a_line_of_help_is_not_cut(rich: Facts) -> None:
    env = {
        "HOME": str(rich.home),
        "_HANDRAIL_COMPLETE": "zsh_complete",
        "COMP_WORDS": "handrail db ",
        "COMP_CWORD": "2",
    }
    said = click.testing.CliRunner(env=env).invoke(cli, [], prog_name="handrail").stdout
    assert "Check the store for damage and show what takes up room." in said
    assert "..." not in said


def test_fish_takes_a_name_with_a_comma_whole(home: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("there is no fish here")
    folder = home / "bin"
    folder.mkdir()
    (folder / "handrail").write_text('#!/bin/sh\nprintf "plain,Wrap, then test\\tready, task_1\\n"\n', encoding="utf-8")
    (folder / "handrail").chmod(0o755)
    (home / "handrail.fish").write_text(script("fish"), encoding="utf-8")
    asked = f"source {home / 'handrail.fish'}; complete -C 'handrail show '"
    environment = {"HOME": str(home), "PATH": f"{folder}:/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    done = subprocess.run([fish, "--no-config", "-c", asked], capture_output=True, check=True, env=environment)
    assert done.stdout.decode() == "Wrap, then test\tready, task_1\n"


def test_a_name_that_a_shell_would_run_is_offered_by_its_id(home: Path) -> None:
    project = home / "project"
    runner = click.testing.CliRunner(env={"HOME": str(home)})
    given = msgspec.json.encode({"name": HOSTILE, "source_type": "prompt", "source_content": "x"}).decode()
    made = runner.invoke(cli, ["call", "workflow_create", given, "--json", "--root", str(project)])
    assert completed(project, home, "show", "") == [msgspec.json.decode(made.stdout)["id"]]
    assert completed(project, home, "show", "$") == []
    assert not (project / "owned").exists()


def test_a_name_that_reads_as_an_option_is_offered_by_its_id(home: Path) -> None:
    project = home / "project"
    runner = click.testing.CliRunner(env={"HOME": str(home)})
    given = msgspec.json.encode({"name": "-rf x", "source_type": "prompt", "source_content": "x"}).decode()
    made = runner.invoke(cli, ["call", "workflow_create", given, "--json", "--root", str(project)])
    assert completed(project, home, "show", "") == [msgspec.json.decode(made.stdout)["id"]]


def test_a_broken_store_is_completed_with_nothing(home: Path) -> None:
    project = home / "project"
    (project / ".handrail").mkdir()
    (project / ".handrail" / "handrail.db").write_bytes(b"this is no database at all" * 100)
    assert completed(project, home, "show", "") == []


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_take_the_script(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    subprocess.run([program, "-n"], input=script(shell).encode(), check=True)


# -- installed --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_printed_for_people_and_for_programs(home: Path, shell: str) -> None:
    printed = run(home, shell).stdout
    assert "_HANDRAIL_COMPLETE" in printed
    assert run_json(home, shell) == {"shell": shell, "script": printed}


def test_the_shell_is_the_one_that_is_used(home: Path) -> None:
    assert run_json(home)["shell"] == "bash"
    refused = run(home, SHELL="/bin/tcsh")
    assert refused.exit_code == 2
    assert "bash, zsh, fish" in refused.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("there", [None, "", "alias ll='ls -l'\n", "# no newline at the end"])
def test_it_is_shown_asked_written_and_taken_back(home: Path, shell: str, there: str | None) -> None:
    begins_with = shell_files(shell, str(home), {}).begins_with
    if there is not None and begins_with is not None:
        Path(begins_with).write_text(there, encoding="utf-8")
    refused = run(home, shell, "--install", asked="n\n")
    assert refused.exit_code == 1
    assert "Write this?" in refused.output
    assert not Path(shell_files(shell, str(home), {}).script).exists()
    assert run(home, shell, "--install", asked="y\n").exit_code == 0
    assert Path(shell_files(shell, str(home), {}).script).read_text(encoding="utf-8") == script(shell)
    assert "installed already" in run(home, shell, "--install").stdout
    assert run(home, shell, "--remove", "--yes").exit_code == 0
    assert not Path(shell_files(shell, str(home), {}).script).exists()
    if begins_with is not None and there:
        left = Path(begins_with).read_text(encoding="utf-8")
        assert left == (there if there.endswith("\n") else f"{there}\n")
    assert "Nothing of it is there" in run(home, shell, "--remove").stdout


def test_an_installed_bash_completes(home: Path) -> None:
    assert run_json(home, "bash", "--install", "--yes")["wrote"] is True
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    asked = [bash, "--norc", "-c", f". {shlex.quote(str(home / '.bashrc'))}; complete -p handrail"]
    assert b"_handrail_completion" in subprocess.run(asked, capture_output=True, check=True).stdout


def test_programs_are_not_asked(home: Path) -> None:
    refused = run(home, "bash", "--install", "--json")
    assert refused.exit_code == 2
    assert "add --yes" in msgspec.json.decode(refused.stdout)["error"]["hint"]
    assert run(home, "bash", "--install", "--remove").exit_code == 2


def test_marks_that_are_not_whole_are_left_alone() -> None:
    written = with_lines("a\n", "bash", "/x")
    half = written.replace("# <<< handrail completion <<<\n", "")
    assert without_lines(half) == half
    assert without_lines(written) == "a\n"
    assert with_lines(written, "bash", "/x") == written

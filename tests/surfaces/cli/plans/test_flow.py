"""`handrail flow`: what people see of flows, and a new one that can be followed as it is."""

from __future__ import annotations

from pathlib import Path

import click.testing
import msgspec
import pytest

from handrail.outside.flow_files import FlowFiles, standard_flows
from handrail.surfaces.cli.main import cli


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "NO_COLOR": "1"}
    return click.testing.CliRunner(env=home).invoke(cli, ["flow", *argv, "--root", str(project)], prog_name="handrail")


def write(project: Path, name: str, text: str) -> Path:
    file = project / ".handrail" / "flows" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def shelf(project: Path) -> FlowFiles:
    return FlowFiles(standard_flows(home=project.parent / "home", project=project))


@pytest.mark.parametrize("argv", [(), ("list",)])
def test_flows_are_listed_with_their_source_phases_and_skips(project: Path, argv: tuple[str, ...]) -> None:
    write(project, "own.yaml", "name: own\nextends: light\nskip: [phase-7]\n")
    done = run(project, *argv)
    assert done.exit_code == 0
    rows = [line for line in done.stdout.splitlines() if not line.startswith("    ")]
    assert [row.split() for row in rows] == [
        ["flow", "from", "phases"],
        ["full", "bundled", "18"],
        ["light", "bundled", "16"],
        ["own", "project", "15"],
        ["standard", "bundled", "16"],
    ]
    assert "    skips phase-2, phase-3b, phase-7" in done.stdout.splitlines()
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_a_file_with_a_mistake_is_listed_with_it(project: Path) -> None:
    file = write(project, "standard.yaml", "name: standard\nphases:\n  - {id: a, label: A, kind: agent}\n")
    done = run(project)
    assert done.exit_code == 0
    assert "1 file cannot be followed:" in done.stdout
    assert f"{file}:3:5: phase a: a phase of kind agent needs agent" in done.stdout
    told = msgspec.json.decode(run(project, "list", "--json").stdout)
    assert [flow["name"] for flow in told["flows"]] == ["full", "light"]
    assert told["problems"] == [
        {
            "name": "standard",
            "where": f"{file}:3:5",
            "phase": "a",
            "reason": "phase a: a phase of kind agent needs agent",
        }
    ]


def test_a_flow_is_shown_phase_by_phase(project: Path) -> None:
    shown = run(project, "show", "standard").stdout
    for line in (
        "  1  Situation Analysis  [phase-1]",
        "     situation-analyst: request.md → analysis.md",
        "     situation-analyst-investigator where phase-2 is skipped",
        "     the file contains ##",
        "     APPROVE, APPROVE_WITH_NOTES goes on; REVISE goes back to phase-3",
        "     after 2 × REVISE a person is asked",
        "     a person is asked about design.md: approve, reject",
        "     --auto opens it once phase-3b approved",
        "  -  Tasks Review  [phase-4b]  skipped",
        "     for each task implementer: tasks.md, design.md, review-{N}.md if there →",
        "     impl-{N}.md",
        "     gh pr create --head {branch} --title {title} --body {body}",
        "     only for github_issue, gitlab_issue",
        "     only for gitlab_issue",
        "     only where post-to-source was answered post",
        "     not with --nopr",
    ):
        assert line in shown.splitlines(), line


def test_a_flow_that_replaces_another_says_so(project: Path) -> None:
    write(project, "light.yaml", "name: light\nextends: full\n")
    assert "It is followed in place of " in run(project, "show", "light").stdout


def test_a_flow_is_shown_whole_for_programs(project: Path) -> None:
    told = msgspec.json.decode(run(project, "show", "light", "--json").stdout)
    assert (told["name"], told["source"], told["skip"]) == ("light", "bundled", ["phase-2", "phase-3b"])
    assert len(told["flow"]["phases"]) == 18
    assert "extends" not in told["flow"]


@pytest.mark.parametrize("name", ["light", "standard", "full"])
def test_the_whole_flow_as_a_file_is_the_same_flow(project: Path, name: str) -> None:
    effective = shelf(project).find(name)
    write(project, f"{name}.yaml", run(project, "show", name, "--yaml").stdout)
    assert shelf(project).find(name) == msgspec.structs.replace(effective, extends=None)


def test_an_unknown_flow_is_refused_with_the_nearest(project: Path) -> None:
    done = run(project, "show", "standrad")
    assert done.exit_code == 1
    assert "did you mean standard?" in done.stderr
    assert run(project, "new", "own", "--from", "standrad").exit_code == 1


def test_a_broken_flow_is_not_shown(project: Path) -> None:
    write(project, "own.yaml", "name: own\n")
    done = run(project, "show", "own")
    assert (done.exit_code, "own has no phases" in done.stderr) == (1, True)


def test_flows_are_checked_by_file_by_name_and_all_together(project: Path) -> None:
    assert run(project, "validate").stdout == "3 checked, 0 with problems\n"
    assert run(project, "validate", "light", "full").exit_code == 0
    file = project / "draft.yaml"
    file.write_text("name: draft\nextends: full\nskip: [phase-99]\n", encoding="utf-8")
    done = run(project, "validate", "light", str(file))
    assert done.exit_code == 1
    assert f"{file}:3:1: draft skips phase-99, which is not one of its phases" in done.stdout
    assert "2 checked, 1 with problems" in done.stdout
    told = msgspec.json.decode(run(project, "validate", str(file), "--json").stdout)
    assert (told["checked"], told["problems"][0]["name"]) == (1, "draft")


def test_a_flow_that_asks_less_than_the_bundled_one_says_so(project: Path) -> None:
    write(project, "standard.yaml", "name: standard\nextends: full\nskip: [checkpoint-a, phase-4b, checkpoint-b]\n")
    bare = "{id: do, label: Do, kind: tasks, plan: t.md, agent: a, output: 'd-{N}.md'}"
    write(project, "bare.yaml", f"name: bare\nphases:\n  - {bare}\n")
    write(project, "own.yaml", "name: own\nextends: light\nskip: [phase-7]\n")
    for argv in (("list",), ("validate",)):
        done = run(project, *argv)
        assert done.exit_code == 0
        assert "standard asks and judges less than the standard that comes with Handrail:" in done.stdout
        assert "  checkpoint-a (Human Reviews Design) is left out" in done.stdout.splitlines()
        assert "  phase-6 (Code Review) is left out" in done.stdout.splitlines()
        assert "own asks" not in done.stdout
        assert "light asks" not in done.stdout
    told = msgspec.json.decode(run(project, "validate", "standard", "own", "--json").stdout)
    left_out = ["checkpoint-a (Human Reviews Design) is left out"]
    assert told["weaker"] == [{"name": "standard", "than": "standard", "leaves_out": left_out}]
    listed = msgspec.json.decode(run(project, "list", "--json").stdout)["flows"]
    assert {flow["name"]: flow["weaker"] is not None for flow in listed} == {
        "bare": True,
        "full": False,
        "light": False,
        "own": False,
        "standard": True,
    }


def test_a_flow_in_place_of_full_weakens_those_that_extend_it(project: Path) -> None:
    whole = run(project, "show", "full", "--yaml").stdout
    seldom = whole.replace("id: checkpoint-a\n", "id: checkpoint-a\n    only_for: [jira_issue]\n")
    write(project, "full.yaml", seldom)
    told = msgspec.json.decode(run(project, "validate", "--json").stdout)
    assert [(item["name"], item["leaves_out"]) for item in told["weaker"]] == [
        (name, ["checkpoint-a is only for jira_issue"]) for name in ("full", "light", "standard")
    ]


def test_what_is_neither_file_nor_flow_is_refused(project: Path) -> None:
    assert "it is not there" in run(project, "validate", str(project / "no.yaml")).stdout
    missing = run(project, "validate", "standrad")
    assert (missing.exit_code, "did you mean standard?" in missing.stderr) == (1, True)
    other = project / "notes.txt"
    other.write_text("name: x")
    assert run(project, "validate", str(other)).exit_code == 2


@pytest.mark.parametrize("base", ["standard", "light", "full"])
def test_a_new_flow_is_a_copy_that_can_be_followed(project: Path, base: str) -> None:
    done = run(project, "new", "own", "--from", base)
    file = project / ".handrail" / "flows" / "own.yaml"
    assert (done.exit_code, f"wrote {file}" in done.stdout) == (0, True)
    own, copied = shelf(project).find("own"), shelf(project).find(base)
    assert (own.phases, own.skip, own.extends) == (copied.phases, copied.skip, None)
    assert "docs/flows.md" in file.read_text(encoding="utf-8")
    assert run(project, "validate", "own").exit_code == 0


def test_a_new_flow_never_overwrites(project: Path) -> None:
    for name in ("own.yaml", "own.yml", "own.json"):
        file = write(project, name, "mine")
        done = run(project, "new", "own")
        assert (done.exit_code, "is there already" in done.stderr) == (2, True)
        assert file.read_text(encoding="utf-8") == "mine"
        file.unlink()
    link = project / ".handrail" / "flows" / "own.yaml"
    link.symlink_to(project / "elsewhere.yaml")
    assert run(project, "new", "own").exit_code == 2
    assert not (project / "elsewhere.yaml").exists()


@pytest.mark.parametrize("name", ["../own", "Own", "a b", ".own", "own.yaml", ""])
def test_a_name_that_could_be_no_files_is_refused(project: Path, name: str) -> None:
    assert run(project, "new", name).exit_code == 2
    assert not (project / ".handrail").exists()


def test_a_new_flow_says_what_it_replaces(project: Path) -> None:
    assert "it replaces the flow of the same name from bundled" in run(project, "new", "standard").stdout
    assert shelf(project).entry("standard").source == "project"


def test_a_folder_that_cannot_be_written_is_said(project: Path) -> None:
    (project / ".handrail").symlink_to(project / "nowhere" / "at-all")
    done = run(project, "new", "own")
    assert (done.exit_code, "cannot be written" in done.stderr) == (1, True)


WRONG = """name: wrong
description: 5
skips: [a]
phases:
  - {id: a, label: A, kind: agnet, agent: x, output: a.md}
  - {id: b, kind: review, retries: 99, passs: [YES]}
  - label: C
    kind: [gate]
"""


def test_every_mistake_that_stands_by_itself_is_told_at_once(project: Path) -> None:
    file = write(project, "wrong.yaml", WRONG)
    done = run(project, "validate", "wrong")
    assert done.exit_code == 1
    kinds = "agent, review, gate, tasks, task-reviews, exec"
    lines = [line.strip().removeprefix(f"{file}:") for line in done.stdout.splitlines()]
    for line in (
        f"5:23: phase a: there is no kind agnet (kinds: {kinds}); did you mean agent?",
        "2:1: description must be a string, not an integer",
        "3:1: unknown key skips; did you mean skip?",
        "6:27: phase b: retries must be at most 20",
        "6:40: phase b: unknown key passs; did you mean passes?",
        "6:5: phase b: label is required",
        "7:5: phase number 3: id is required",
    ):
        assert line in lines, done.stdout
    assert lines[-1] == "1 checked, 1 with problems"
    told = msgspec.json.decode(run(project, "validate", "wrong", "--json").stdout)
    assert len(told["problems"]) == 8
    assert {problem["phase"] for problem in told["problems"]} == {None, "a", "b", "number 3"}


@pytest.mark.parametrize("text", ["- a\n", "name: [\n", "name: wrong\nphases: 5\n", "name: wrong\nphases: [5]\n"])
def test_what_is_no_flow_at_all_is_told_once(project: Path, text: str) -> None:
    write(project, "wrong.yaml", text)
    told = msgspec.json.decode(run(project, "validate", "wrong", "--json").stdout)
    assert len(told["problems"]) == 1

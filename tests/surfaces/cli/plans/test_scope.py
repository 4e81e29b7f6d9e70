"""`handrail scope test`: files tried on areas, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import click.testing
import msgspec

from handrail.surfaces.cli.main import cli


def run(*argv: str) -> click.testing.Result:
    return click.testing.CliRunner().invoke(cli, ["scope", "test", *argv], prog_name="handrail")


def test_each_file_is_shown_with_the_area_that_decides() -> None:
    done = run("-a", "auth", "-a", "api", "src/auth/login.ts", "api.ts", "utils.ts", "src/capital.ts")
    assert done.exit_code == 1
    assert done.stdout.splitlines() == [
        "✓ in   src/auth/login.ts  auth names auth",
        "✓ in   api.ts             api names api.ts",
        "✗ out  utils.ts           no area covers it",
        "✗ out  src/capital.ts     api is only part of a word in it",
        "⚠️ 2 files lie outside the areas (auth, api)",
    ]


def test_files_that_all_lie_inside_end_well() -> None:
    done = run("-a", "src/**", "-a", "!src/gen/", "src/a.ts")
    assert (done.exit_code, done.stdout) == (0, "✓ in   src/a.ts  src/** covers it\n")


def test_programs_get_the_verification_and_every_verdict() -> None:
    done = run("-a", "auth", "--packages", "--json", "package.json", "x.c")
    assert done.exit_code == 1
    assert msgspec.json.decode(done.stdout) == {
        "scope_match": False,
        "unexpected_files": ["x.c"],
        "warnings": ["⚠️ 1 file(s) modified outside declared scope (auth)"],
        "files": [
            {
                "path": "package.json",
                "in_scope": True,
                "rule": "packages",
                "area": None,
                "reason": "lists packages, and packages were added or removed",
            },
            {"path": "x.c", "in_scope": False, "rule": "none", "area": None, "reason": "no area covers it"},
        ],
    }


def test_without_areas_or_files_the_call_is_wrong() -> None:
    assert run("auth", "x.c").exit_code == 2
    assert run("-a", "auth").exit_code == 2


def test_no_name_commands_the_terminal(tmp_path: Path) -> None:
    done = run("-a", "auth\x1b[2J", "a\x1b[31m\nb.c", "\udcff.c", "--root", str(tmp_path))
    assert done.exit_code == 1
    assert "\x1b" not in done.stdout
    assert len(done.stdout.splitlines()) == 3

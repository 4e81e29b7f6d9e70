"""`handrail doctor`: checks everything a setup needs, and says what is broken and how to fix it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.kernel.errors import InvalidParams
from handrail.kernel.late import late_module
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.options import common_options, place_of
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.cli.terminal import styled
from handrail.surfaces.refusals import EXIT_REFUSED
from handrail.wiring import WorkPlace

if TYPE_CHECKING:
    from handrail import settings
    from handrail.outside import client_files, world
    from handrail.setup import client_checks, findings, place_checks, store_checks, trust_checks
    from handrail.setup.findings import Finding
else:
    settings = late_module("handrail.settings")
    client_files = late_module("handrail.outside.client_files")
    world = late_module("handrail.outside.world")
    findings = late_module("handrail.setup.findings")
    client_checks = late_module("handrail.setup.client_checks")
    place_checks = late_module("handrail.setup.place_checks")
    store_checks = late_module("handrail.setup.store_checks")
    trust_checks = late_module("handrail.setup.trust_checks")

INNER = " " * 7
SHOWN = {"ok": ("ok    ", "green"), "look": ("look  ", "yellow"), "broken": ("broken", "red")}


@click.command()
@click.option("--start", is_flag=True, help="Also start other programs that this project's files name.")
@common_options
def doctor(start: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Find what is wrong with the setup, and say how to fix it. Exits with 1 if anything is wrong.

    Starts every client's server exactly as the client would and asks it for its tools. Nothing is changed. If a file in
    the project names another program, it is not started, since the file may have come with the repository; if you trust
    it, use --start.
    """
    if options.get("db") or options.get("global_store"):
        raise InvalidParams("doctor looks at the store that clients use", hint="leave out --db and --global")
    found = []
    for finding in _findings(place_of(root), starts_all=start):
        found.append(finding)
        if not as_json:
            _print_finding(finding)
    wrong = sum(finding.level == "broken" for finding in found)
    if as_json:
        echo_json({"broken": wrong, "findings": found})
    else:
        click.echo(f"\n{wrong} broken" if wrong else "\nnothing is broken")
    sys.exit(EXIT_REFUSED if wrong else 0)


def _findings(place: WorkPlace, *, starts_all: bool) -> Iterator[Finding]:
    here = Path.cwd()
    below = here != place.project and here.is_relative_to(place.project)
    patient = findings.Patient(
        project=place.project,
        home=place.home,
        environ=place.environ,
        files=client_files.ClientFiles(place.project, client_files.this_machine(place.home, place.environ)),
        now_ms=world.SystemClock().now_ms(),
        starts_all=starts_all,
        below=str(here) if below else "",
    )
    yield from place_checks.check_git(patient)
    yield from store_checks.check_state_folder(patient)
    found = store_checks.settings_of(patient)
    if isinstance(found, settings.Settings):
        yield from store_checks.check_store(patient, found)
        yield from place_checks.check_address(patient, found)
        yield from trust_checks.check_trust(patient)
    else:
        yield found
    yield from client_checks.check_clients(patient)
    yield from client_checks.check_hooks(patient)
    yield from client_checks.check_instructions(patient)


def _print_finding(finding: Finding) -> None:
    word, colour = SHOWN[finding.level]
    first, *more = wrapped(f"{finding.check}: {finding.what}", columns(), INNER)
    click.echo(f"{styled(word, fg=colour)} {first.removeprefix(INNER)}")
    echo_lines(more)
    if finding.fix:
        begin, *rest = wrapped(f"fix: {finding.fix}", columns(), INNER)
        click.echo(f"{INNER}{styled('fix', fg='cyan')}{begin.removeprefix(f'{INNER}fix')}")
        echo_lines(rest)

"""`handrail scope …`: why a file is inside or outside the areas of a task, before one is started. Reads nothing."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.journal.areas import read_areas
from handrail.domain.journal.scope import judge, verification
from handrail.surfaces.cli.columns import columns, counted, dim, pad, paint, widest, wrapped
from handrail.surfaces.cli.options import Commands, common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.refusals import EXIT_REFUSED


@click.group(cls=Commands)
def scope() -> None:
    """Check which files a task's areas cover."""


@scope.command()
@click.option("-a", "--area", "areas", multiple=True, metavar="AREA", help="An area, in order; may be repeated.")
@click.option("--packages", is_flag=True, help="Assume that packages were added or removed.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@common_options
def test(
    areas: tuple[str, ...],
    packages: bool,
    files: tuple[str, ...],
    as_json: bool,
    root: Path | None,  # noqa: ARG001 - every command takes these
    **options: Any,  # noqa: ARG001
) -> None:
    """Check whether the areas cover each FILE, and which area decides.

    Files need not exist; they are named from the project's root. Exits with 1 if a file is outside.

    \b
    An area is         for example       and covers
      words            auth              src/auth/x.ts, UserAuth.tsx, not author.ts
      a name           package.json      files of that name, at any depth
      a directory      tests/            directories of that name, at any depth
      a path           src/payments      that path from the root, and all below
      a glob           src/**/*.sql      as in .gitignore
      taken back       !src/generated/   what an earlier area gave

    \b
    handrail scope test -a auth -a api src/auth/login.ts utils.ts
    """
    if not areas:
        raise click.UsageError("name the areas: handrail scope test -a AREA [-a AREA] FILE...")
    declared = read_areas(areas)
    names = [file.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for file in files]
    verdicts = [judge(name, declared, packages_changed=packages) for name in names]
    found = verification(names, areas, packages_changed=packages)
    if as_json:
        echo_json({**found, "files": msgspec.to_builtins(verdicts)})
    else:
        room = widest(names, columns() // 2)
        for verdict in verdicts:
            mark = paint("✓ in ", "completed") if verdict.in_scope else paint("✗ out", "failed")
            reasons = list(wrapped(verdict.reason, columns() - room - 9))
            click.echo(f"{mark}  {pad(verdict.path, room)}  {dim(reasons[0])}")
            echo_lines(dim(" " * (room + 9) + line) for line in reasons[1:])
        if outside := len(found["unexpected_files"]):
            named = ", ".join(area.declared for area in declared)
            lies = counted(outside, "file lies", "files lie")
            echo_lines(wrapped(f"⚠️ {lies} outside the areas ({named})", columns()))
    sys.exit(0 if found["scope_match"] else EXIT_REFUSED)

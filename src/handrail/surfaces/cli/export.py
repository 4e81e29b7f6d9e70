"""`handrail export`: a workflow's report as a file: one HTML page without any script, Markdown, or JSON.

What it says is `domain/overview/report.py`'s. A file that is there is not replaced unless that is asked for.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.operation import Call
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, workflow_meant
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.report.making import report_data, report_html, report_markdown
from handrail.toolsets.here import workflow_here

NAME = 60
"""Characters of a file's name that are made from the workflow's."""


@click.command()
@click.argument("workflow", required=False)
@click.option(
    "--format",
    "form",
    type=click.Choice(["html", "md", "json"]),
    help="What is written.  [default: by the file's ending, else html]",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), help="The file; `-` is standard output.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@common_options
def export(
    workflow: str | None,
    form: str | None,
    output: Path | None,
    force: bool,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Write WORKFLOW's report: totals, the plan drawn, a timeline, tasks, decisions, who answered what.

    WORKFLOW is an id, the beginning of one, or a name; without it, the only one that is open here. Markdown and JSON go
    to standard output; HTML goes to a file that is named after the workflow, unless the output is redirected.
    """
    wanted = form or _by_ending(output) or ("json" if as_json else "html")
    name, text = in_one_look(root, options, lambda call: _made(call, workflow, wanted))
    target = output or (Path(f"{_file_name(name)}.html") if wanted == "html" and sys.stdout.isatty() else None)
    if target is None or str(target) == "-":
        click.echo(text, nl=False)
        return
    _write(target, text, replace=force)
    echo_json({"output": str(target)}) if as_json else click.echo(f"wrote {target}")


def _by_ending(output: Path | None) -> str | None:
    endings = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md", ".json": "json"}
    return endings.get(output.suffix.lower()) if output is not None else None


def _made(call: Call, workflow: str | None, form: str) -> tuple[str, str]:
    """The workflow's name and its report."""
    meant = workflow_meant(call, workflow) if workflow is not None else workflow_here(call, None)
    if form == "json":
        document = msgspec.json.encode(report_data(call, meant.id))
        return meant.name, msgspec.json.format(document, indent=2).decode() + "\n"
    write = report_html if form == "html" else report_markdown
    return meant.name, write(call, meant.id)


def _file_name(name: str) -> str:
    """A name that every system takes, from one that may say anything."""
    words = re.findall(r"[a-z0-9]+", name.lower())
    return "-".join(words)[:NAME].strip("-") or "report"


def _write(path: Path, text: str, *, replace: bool) -> None:
    try:
        with path.open("w" if replace else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise InvalidParams(f"{path} is there already", hint="add --force to replace it") from None
    except OSError as problem:
        raise PlaceUnusable(
            f"{path} cannot be written: {problem.strerror}", hint="name another file with --output"
        ) from None

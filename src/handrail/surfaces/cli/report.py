"""`handrail report`: a workflow as a Markdown page for people. What it says is `domain/journal/reporting.py`'s."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.domain.journal.reporting import gather_report, markdown
from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.operation import Call
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, workflow_meant
from handrail.surfaces.cli.render import echo_json


@click.command()
@click.argument("workflow")
@click.option("--output", type=click.Path(path_type=Path), help="Write it to this file instead of printing it.")
@click.option("--force", is_flag=True, help="Replace the file if it is there.")
@common_options
def report(workflow: str, output: Path | None, force: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Tell of WORKFLOW in Markdown: its goal and plan, what each task did and changed, what was decided, what is left.

    WORKFLOW is an id, the beginning of one, or a name.
    """
    text = in_one_look(root, options, lambda call: tell(call, workflow))
    if output is None:
        echo_json({"markdown": text}) if as_json else click.echo(text, nl=False)
        return
    _write(output, text, replace=force)
    echo_json({"output": str(output)}) if as_json else click.echo(f"wrote {output}")


def tell(call: Call, workflow: str) -> str:
    """The report of the workflow that is meant."""
    found = gather_report(call.work, workflow_meant(call, workflow))
    return "\n".join(markdown(found)).rstrip() + "\n"


def _write(output: Path, text: str, *, replace: bool) -> None:
    try:
        with output.open("wb" if replace else "xb") as written:
            written.write(text.encode(errors="replace"))
    except FileExistsError:
        raise InvalidParams(f"{output} is there already", hint="choose another name, or --force") from None
    except OSError as problem:
        raise PlaceUnusable(f"{output} cannot be written: {problem.strerror}", hint="choose another file") from None

"""`handrail tools`: what a client would see, and what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from handrail.kernel.tokens import estimate_tokens
from handrail.protocol.wire import encode
from handrail.surfaces.cli.columns import columns, counted, wrapped
from handrail.surfaces.cli.options import common_options, place_of, settings_of, toolset_options
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table
from handrail.surfaces.mcp.tools import for_the_model
from handrail.wiring import assemble, build_server


@click.command()
@toolset_options
@common_options
def tools(root: Path | None, as_json: bool, **options: Any) -> None:
    """List the tools a client sees, and what each costs in tokens.

    With --json: exactly what `tools/list` answers.
    """
    place = place_of(root)
    handrail = assemble(place, settings_of(place, options))
    published = build_server(handrail).offer.tools.published()
    if as_json:
        echo_json({"tools": list(published)})
        return
    costs = [estimate_tokens(encode(for_the_model(tool)).decode()) for tool in published]
    rows = [
        (entry.name, entry.operation.toolset.name, str(cost), entry.operation.summary)
        for entry, cost in zip(handrail.switch.published(), costs, strict=True)
    ]
    echo_table(("tool", "toolset", "tokens", "purpose"), rows)
    click.echo()
    summary = f"{counted(len(rows), 'tool')}, about {sum(costs):,} tokens in a client that loads every schema."
    echo_lines(wrapped(summary, columns()))
    if handrail.selection.missing:
        echo_lines(wrapped(f"Not in this version: {', '.join(handrail.selection.missing)}.", columns()))

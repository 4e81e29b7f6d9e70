"""`handrail settings`: every setting, its value here, and where to change it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from handrail.kernel.late import late_module
from handrail.protocol.wire import encode
from handrail.settings import CONFIG_FILE, setting_fields
from handrail.surfaces.cli.begin.untrusted import waiting_line, waiting_names
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.options import common_options, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table, echo_wrapped

if TYPE_CHECKING:
    from handrail.store import open_engine
else:
    open_engine = late_module("handrail.store.open_engine")


@click.command()
@common_options
def settings(root: Path | None, as_json: bool, **options: Any) -> None:
    """Show every setting and its value here."""
    place = place_of(root)
    values = msgspec.to_builtins(settings_of(place, options))
    if "://" in values["db"]:
        values["db"] = open_engine.shown_address(values["db"], place.project)
    if as_json:
        echo_json(values)
        return
    waiting = waiting_names(place)
    rows = [
        (field.name, encode(values[field.name]).decode(), field.variable, field.description)
        for field in setting_fields()
    ]
    echo_table(("setting", "value", "variable", "meaning"), rows)
    click.echo()
    echo_lines(wrapped(f"Also as --set name=value, or in {place.project / CONFIG_FILE}.", columns()))
    if waiting:
        echo_wrapped(waiting_line(waiting))

"""`handrail log` and `handrail undo`: the ledger for people. When, who, through what, and what they did, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from handrail.domain.overview.deeds import told
from handrail.domain.overview.rows import agent_names
from handrail.kernel.ledger import Event
from handrail.store.unit import Unit
from handrail.surfaces.cli import completing
from handrail.surfaces.cli.columns import columns, moment, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table
from handrail.wiring import assemble, looking_ledger

HOUR_MS = 3_600_000
"""Beyond this, many events would show the same number of hours."""
NOTHING = "Nothing has been written here yet. Ask your agent to plan its work with Handrail, or begin: handrail init"


@click.command()
@click.option(
    "--stream",
    shell_complete=completing.streams,
    metavar="ID",
    help="Only events of one thing, such as a workflow's id.",
)
@click.option(
    "--actor",
    metavar="WHO",
    shell_complete=completing.agent_ids,
    help="Only what one actor did: an agent's id, or a person's name.",
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), metavar="N", default=50, show_default=True, help="Show the newest N."
)
@common_options
def log(stream: str | None, actor: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show who did what, when, and how they connected. Newest last.

    With --json: every event with its number, its exact time and each row that it changed.
    """
    place = place_of(root)
    store = looking_ledger(place, settings_of(place, options)).open()  # reading creates no store
    events = store.newest(limit, stream=stream, actor=actor)
    if as_json:
        echo_json([_document(event) for event in events])
        return
    if not events:
        asked = stream is not None or actor is not None
        echo_lines(wrapped("No event is like that; `handrail log` shows all." if asked else NOTHING, columns()))
        return
    echo_table(("when", "who (through)", "what"), store.run(person(), lambda unit: _rows(unit, events)))


@click.command()
@common_options
def undo(root: Path | None, as_json: bool, **options: Any) -> None:
    """Undo your last write, unless something depends on it.

    Run it again to go one step further back. Answers to gates, claims and tokens cannot be undone, nor anything before
    them.
    """
    place = place_of(root)
    store = assemble(place, settings_of(place, options)).ledger.open()
    event = store.undo(person())
    if as_json:
        echo_json({"undone": _document(event)})
        return
    when, _, what = store.run(person(), lambda unit: _rows(unit, [event]))[0]
    echo_lines(wrapped(f"Took back what you did {when}: {what} ({event.kind}, event {event.position}).", columns()))


def _rows(unit: Unit, events: Sequence[Event]) -> list[tuple[str, str, str]]:
    names, words = agent_names(unit, (event.actor for event in events)), told(unit, events)
    now = unit.now_ms()
    return [
        (
            moment(event.at_ms, now, long_ago_ms=HOUR_MS),
            f"{names[event.actor]} ({event.channel})",
            words[event.position],
        )
        for event in events
    ]


def _document(event: Event) -> dict[str, Any]:
    return {**event._asdict(), "changes": [change._asdict() for change in event.changes]}

"""`handrail log` and `handrail undo`: the ledger for people."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.agent import Agent
from handrail.kernel.ledger import Event
from handrail.store.unit import Unit
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_table
from handrail.wiring import assemble, looking_ledger


@click.command()
@click.option("--stream", help="Only what belongs to one thing, such as a workflow's id.")
@click.option("--actor", help="Only what one actor did.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="The newest N.")
@common_options
def log(stream: str | None, actor: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show who did what, when, through which channel. Newest last."""
    place = place_of(root)
    store = looking_ledger(place, settings_of(place, options)).open()  # who only looks makes no store
    events = store.newest(limit, stream=stream, actor=actor)
    if as_json:
        echo_json([_document(event) for event in events])
        return
    names = store.run(person(), lambda unit: {event.actor: _name(unit, event.actor) for event in events})
    rows = [
        (
            str(event.position),
            _time(event.at_ms),
            names[event.actor],
            event.channel,
            event.kind,
            f"{event.stream} {event.seq}",
        )
        for event in events
    ]
    echo_table(("event", "time (UTC)", "who", "through", "what", "where"), rows)


@click.command()
@common_options
def undo(root: Path | None, as_json: bool, **options: Any) -> None:
    """Take back your last write, while nothing stands on it."""
    place = place_of(root)
    event = assemble(place, settings_of(place, options)).ledger.open().undo(person())
    if as_json:
        echo_json({"undone": _document(event)})
    else:
        click.echo(f"took back {event.kind} ({event.stream} {event.seq}) of {_time(event.at_ms)}")


def _name(unit: Unit, actor: str) -> str:
    """An agent by its name; anybody else by the name they gave."""
    agent = unit.get(Agent, actor)
    return f"{one_line(agent.name)} ({actor[-4:]})" if agent is not None else actor


def _time(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _document(event: Event) -> dict[str, Any]:
    return {**event._asdict(), "changes": [change._asdict() for change in event.changes]}

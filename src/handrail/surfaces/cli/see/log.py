"""`handrail log` and `handrail undo`: the ledger for people. When, who, through what, and what they did, in words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.agent import Agent
from handrail.domain.overview.events import events_about, told
from handrail.domain.overview.rows import agent_names
from handrail.domain.work.task import Task
from handrail.kernel.errors import AgentNotFound, NothingToUndo
from handrail.kernel.ledger import Event, Only
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call
from handrail.store.store import Store
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, thing_meant
from handrail.surfaces.cli.columns import columns, moment, one_line, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of, typed_text
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_table
from handrail.wiring import looking_ledger

HOUR_MS = 3_600_000
"""Beyond this, many events would show the same number of hours."""
NAMESAKES = 100
"""How many agents of one name count as one actor."""
KNOWN = 500
"""How many of the newest events, and of the newest agents, are searched for a name that may have been meant."""
NOTHING = "Nothing has been written here yet. Ask your agent to plan its work with Handrail, or begin: handrail init"


@click.command()
@click.option(
    "--stream",
    shell_complete=completions.streams,
    metavar="THING",
    help="Only events of one thing: a task or workflow by id or name, or any stream that --json shows.",
)
@click.option(
    "--actor",
    metavar="WHO",
    shell_complete=completions.agents,
    help="Only what one actor did: an agent by name or id, or a person by login name.",
)
@click.option(
    "--limit", type=click.IntRange(1, 10_000), metavar="N", default=50, show_default=True, help="Show the newest N."
)
@common_options
def log(stream: str | None, actor: str | None, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show who did what, when, and how they connected. Newest last.

    With --json: every event with its number, its exact time and each row that it changed.
    """
    events, rows = in_one_look(root, options, lambda call: _look(call, stream, actor, limit))
    if as_json:
        echo_json([_document(event) for event in events])
        return
    if not events:
        asked = stream is not None or actor is not None
        echo_lines(wrapped("No event is like that; `handrail log` shows all." if asked else NOTHING, columns()))
        return
    echo_table(("when", "who (through)", "what"), rows)


@click.command()
@common_options
def undo(root: Path | None, as_json: bool, **options: Any) -> None:
    """Undo your last write, unless something depends on it.

    Run it again to go one step further back. Answers to gates, claims, released tasks and tokens cannot be undone, nor
    anything before them. Reading a message is not a write.
    """
    place = place_of(root)
    store = looking_ledger(place, settings_of(place, options)).open()  # where nothing is, nothing is made to undo it
    try:
        event = store.undo(person())
    except NothingToUndo as refused:
        raise undo_refusal_in_words(store, refused) from None
    if as_json:
        echo_json({"undone": _document(event)})
        return
    when, _, what = store.run(person(), lambda unit: _rows(unit, [event]))[0]
    echo_lines(wrapped(f"Took back what you did {when}: {what} ({event.kind}, event {event.position}).", columns()))


def _look(
    call: Call, stream: str | None, actor: str | None, limit: int
) -> tuple[list[Event], list[tuple[str, str, str]]]:
    """The newest events that are meant, oldest first, and what the table says about them."""
    actors = _actors_meant(call.work, typed_text(actor)) if actor is not None else ()
    thing = _stream_meant(call, typed_text(stream)) if stream is not None else None
    if isinstance(thing, Task):
        events = events_about(call.work, thing, Only(actors=actors))[-limit:]
    else:
        events = call.work.newest(limit, Only((thing,) if thing is not None else (), actors))
    return events, _rows(call.work, events)


def _stream_meant(call: Call, text: str) -> str | Task:
    """The stream that has this very name, or that of the workflow meant; a task, whose events are in its workflow's."""
    if call.work.head_seq(text):
        return text
    thing = thing_meant(call, text)
    return thing if isinstance(thing, Task) else thing.id


def _actors_meant(unit: UnitOfWork, text: str) -> tuple[str, ...]:
    """The names in the ledger of whoever is meant: a person's own, an agent's id, the ids of the agents so called."""
    named = unit.select(Agent, Query((("name", text),), ("-created_at", "-id"), NAMESAKES))
    exact = [text] if unit.last_event(text) is not None or unit.get(Agent, text) is not None else []
    if found := (*exact, *(agent.id for agent in named)):
        return found
    wrote = agent_names(unit, (event.actor for event in unit.newest(KNOWN)))
    known = [agent.name for agent in unit.select(Agent, Query((), ("-created_at", "-id"), KNOWN))]
    raise AgentNotFound(
        f"nobody called {one_line(text)} has written here{did_you_mean(text, [*known, *wrote.values()])}",
        hint="`handrail log` shows all, `handrail agents --all` lists the agents",
    )


def undo_refusal_in_words(store: Store, refused: NothingToUndo) -> NothingToUndo:
    """The refusal with the write that it is about in words, as the log has it."""
    position = refused.details.get("position")
    if position is None:
        return refused
    events = store.feed(after=position - 1, limit=1)
    if not events or events[0].position != position:  # a slow writer elsewhere may keep it out of the feed for a while
        return refused
    when, _, what = store.run(person(), lambda unit: _rows(unit, events))[0]
    last = f"your last write cannot be taken back: {when} you {what} ({events[0].kind}, event {position})"
    return NothingToUndo(last, hint=refused.hint, **refused.details)


def _rows(unit: UnitOfWork, events: Sequence[Event]) -> list[tuple[str, str, str]]:
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

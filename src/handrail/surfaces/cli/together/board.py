"""`handrail board`: what agents have left for each other on boards. Read-only; people write messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from handrail.domain.board.board import standing
from handrail.domain.board.entry import BoardEntry, check_board, key_of, snapshot
from handrail.domain.board.queries import BoardSize, EntryQuery, FoundEntries, boards, search
from handrail.domain.crew.agent import Agent
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import NotFound
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look
from handrail.surfaces.cli.columns import bold, columns, counted, dim, fit, one_line, pad, widest, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, typed_text
from handrail.surfaces.cli.render import echo_json, echo_lines

SHOWN = 50
MOST = 500


@click.group(cls=ListFirst)
def board() -> None:
    """Show boards: values that agents share under keys. Without a command, list them."""


@board.command("list")
@common_options
def list_(root: Path | None, as_json: bool, **options: Any) -> None:
    """List the boards that have entries."""
    found = in_one_look(root, options, lambda call: boards(call.work))
    if as_json:
        echo_json({"boards": [one._asdict() for one in found]})
        return
    echo_lines(_listed(found, columns()))


@board.command()
@click.argument("name", shell_complete=completions.boards)
@click.option(
    "--limit",
    type=click.IntRange(1, MOST),
    metavar="N",
    default=SHOWN,
    show_default=True,
    help="Show at most N entries.",
)
@common_options
def show(name: str, limit: int, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show the entries of the board NAME, sorted by key."""
    looked = in_one_look(root, options, lambda call: _read_board(call, name, limit))
    if as_json:
        page = {"entries": [snapshot(entry) for entry in looked.found.entries], "total": looked.found.total}
        echo_json({"namespace": name, **page})
        return
    echo_lines(looked.lines)


@board.command()
@click.argument("key")
@common_options
def get(key: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show the entry under KEY in full.

    A key without a board's name is on the board `default`.
    """
    entry, lines = in_one_look(root, options, lambda call: _read_entry(call, key))
    if as_json:
        echo_json(snapshot(entry))
        return
    echo_lines(lines)


class _BoardRead(NamedTuple):
    """The entries of a board, and the lines that show them."""

    found: FoundEntries
    lines: list[str]


def _read_board(call: Call, name: str, limit: int) -> _BoardRead:
    check_board(name)
    found = search(call.work, EntryQuery(name), limit)
    room = columns()
    lines = [line for entry in found.entries for line in _entry(call, entry, room)]
    if not found.entries:
        others = [one.name for one in boards(call.work)]
        lines = [f"Nothing stands on the board {name}{did_you_mean(name, others)}. `handrail board` lists boards."]
    elif found.total is not None and found.total > len(found.entries):
        lines.append(f"{found.total - len(found.entries)} more; --limit {MOST} shows more of them.")
    return _BoardRead(found, lines)


def _read_entry(call: Call, text: str) -> tuple[BoardEntry, list[str]]:
    key = key_of(typed_text(text))
    entry = standing(call.work, key.id)
    if entry is None:
        raise NotFound(f"nothing stands under {key.id}", hint=f"`handrail board show {key.board}` lists what does")
    return entry, list(_entry_lines(call, entry, columns()))


# -- drawing ----------------------------------------------------------------------------------------------------------


def _listed(found: list[BoardSize], room: int) -> Iterator[str]:
    if not found:
        yield "No board has an entry. Agents set them with bb_set."
    name_room = widest((one.name for one in found), room - 40)
    for one in found:
        entries = counted(one.entries, "entry", "entries")
        yield f"{bold(pad(one.name, name_room))}  {entries}, version {one.version}"


def _entry(call: Call, entry: BoardEntry, room: int) -> Iterator[str]:
    yield bold(fit(entry.id, room))
    yield f"  {fit(msgspec.json.encode(entry.value['value']).decode(), room - 2)}"
    yield dim(f"  {fit(_facts(call, entry), room - 2)}")


def _entry_lines(call: Call, entry: BoardEntry, room: int) -> Iterator[str]:
    yield from (bold(line) for line in wrapped(entry.id, room))
    yield from (dim(line) for line in wrapped(_facts(call, entry), room))
    value = entry.value["value"]
    if isinstance(value, str):
        yield from wrapped(value, room, "  ")
        return
    for line in msgspec.json.format(msgspec.json.encode(value), indent=2).decode().split("\n"):
        yield from wrapped(line, room, "  " + " " * (len(line) - len(line.lstrip(" "))))


def _facts(call: Call, entry: BoardEntry) -> str:
    now = call.work.now_ms()
    agent = call.work.get(Agent, entry.set_by)
    who = f"{one_line(agent.name)} ({agent.id})" if agent is not None else entry.set_by
    facts = [f"version {entry.version}", f"set by {who} {spoken_time(now - entry.updated_at)} ago"]
    if entry.expires_at is not None:
        facts.append(f"runs out in {spoken_time(entry.expires_at - now)}")
    if entry.tags:
        facts.append(f"tags {', '.join(entry.tags)}")
    return ", ".join(facts)

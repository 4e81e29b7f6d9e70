"""`handrail search`: finds words in what was planned, decided, noted, found and written to people, best match first.

`domain/search` defines texts and words; `outside/search_index.py` is the index. This module picks the store and draws
what was found.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from handrail.domain.journal.decision_log import superseded_in
from handrail.domain.search.documents import KINDS
from handrail.domain.search.snippets import found_in, snippet
from handrail.domain.search.words import SearchTerms, understood
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import iso_time
from handrail.kernel.errors import InvalidParams, StoreUnusable
from handrail.kernel.records import UnitOfWork
from handrail.outside.search_index import Hit, SearchHits, SearchIndex, SearchQuery, with_index
from handrail.settings import Settings
from handrail.store.open_engine import DATABASE, POSTGRES, STATE_FOLDER, database_path, make_user_folder
from handrail.store.store import Store
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import workflow_meant
from handrail.surfaces.cli.columns import bold, columns, dim, fit, moment, one_line, pad, width, wrapped
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.progress import progress
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.wiring import WorkPlace, assemble, looking_ledger, store_address

SHOWN_CHARACTERS = 300
"""How much text around a match is given to programs, in characters."""
NARROW = 60
"""With fewer columns, the kind of a text goes above it instead of beside it."""
KIND_COLUMNS = max(map(len, KINDS)) + 2
_SPANS = {"m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_MINUS = "−"


class ShownHit(NamedTuple):
    """A hit with the names of where it was found."""

    hit: Hit
    workflow: str
    task: str
    show: str
    """The id to pass to `handrail show`; for messages `handrail message read`, for reviews `handrail review`."""
    superseded_by: str | None = None
    """The decision that replaced it, if it is one that no longer holds."""


class WordsCommand(click.Command):
    """A command whose words may begin with a minus: `-redis` is a word to leave out, not a set of options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*map(_left_out, args[:end]), *args[end:]])


def _left_out(word: str) -> str:
    is_option = word.startswith("--") or word in ("-", "-h") or not word.startswith("-")
    return word if is_option else _MINUS + word[1:]


@click.command(cls=WordsCommand)
@click.argument("words", nargs=-1, required=True)
@click.option("--kind", type=click.Choice(KINDS), help="Only this kind of text.")
@click.option(
    "--workflow",
    metavar="WORKFLOW",
    shell_complete=completions.workflows,
    help="Only one workflow: its id, the beginning of one, or its name.",
)
@click.option("--since", metavar="7d|DATE", help="Only what was written since then: 30m, 12h, 7d, 2w, or 2026-11-01.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, metavar="N", help="Show the best N."
)
@common_options
def search(
    words: tuple[str, ...],
    kind: str | None,
    workflow: str | None,
    since: str | None,
    limit: int,
    root: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Search workflows, tasks, decisions, checkpoints, findings, gates, changed files and your messages.

    Texts with all WORDS are shown, or if there are none, texts with some of them. '"lost connection"' finds a phrase,
    -redis leaves out texts with that word, retr* finds words that start that way. Case and accents do not matter, and
    retry also finds retry_limit and retryLimit.
    """
    question = understood(" ".join(words))
    place = place_of(root)
    settings = settings_of(place, options)
    looking = looking_ledger(place, settings)
    call = assemble(place, settings, ledger=looking).call
    store = looking.open()  # reading creates no store

    def narrowed(unit: UnitOfWork) -> SearchQuery:
        here = msgspec.structs.replace(call, unit=unit)
        return SearchQuery(
            question,
            kind,
            workflow_meant(here, workflow).id if workflow is not None else None,
            call.here.repository if call.here.shared and workflow is None else None,
            since_ms(since, unit.now_ms()) if since is not None else 0,
            limit,
        )

    sought = store.run(person(), narrowed)
    file = index_file(place, settings) if looking.is_there() else None
    found = with_index(file, lambda index: _search_ledger(index, store, sought), store=store.mark())
    shown, now = store.run(person(), lambda unit: (named(unit, found), unit.now_ms()))
    if as_json:
        echo_json(_document(found, shown, question))
        return
    echo_lines(drawn(found, shown, sought, now, columns()))


def _search_ledger(index: SearchIndex, store: Store, sought: SearchQuery) -> SearchHits:
    with progress("reading the ledger", store.position()) as draw:
        index.catch_up(store.feed, draw)
    return index.search(sought)


def index_file(place: WorkPlace, settings: Settings) -> Path | None:
    """Where the index of this store is kept: beside a file, under names that git ignores together with the store; for a
    database server, in the user's folder. None if there is no such folder."""
    address = store_address(place, settings)
    if not address.startswith(POSTGRES):
        return Path(f"{os.path.realpath(database_path(address, place.project))}-search")
    with contextlib.suppress(StoreUnusable):
        make_user_folder(place.home)
        name = hashlib.blake2b(address.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()
        return place.home / STATE_FOLDER / f"{DATABASE}-search-{name}"
    return None


def since_ms(text: str, now_ms: int) -> int:
    """The time meant by a span before now, or by a date. Raises InvalidParams if it is neither."""
    if found := re.fullmatch(r"(\d{1,6})\s*([mhdw])", text.strip(), flags=re.ASCII):
        return max(1, now_ms - int(found[1]) * _SPANS[found[2]])
    with contextlib.suppress(ValueError):
        return max(1, int(datetime.strptime(text.strip(), "%Y-%m-%d").replace(tzinfo=UTC).timestamp() * 1000))
    raise InvalidParams(f"{one_line(text)} is not a time", hint="write --since 30m, 12h, 7d, 2w, or a day: 2026-11-01")


def named(unit: UnitOfWork, found: SearchHits) -> list[ShownHit]:
    """What was found, with the names of its workflow and its task."""
    shown: list[ShownHit] = []
    decided = [hit.document.workflow_id for hit in found.hits if hit.document.kind == "decision"]
    superseded = superseded_in(unit, {workflow_id for workflow_id in decided if workflow_id is not None})
    for hit in found.hits:
        about = hit.document
        workflow = unit.get(Workflow, about.workflow_id) if about.workflow_id is not None else None
        task = unit.get(Task, about.task_id) if about.task_id is not None else None
        own = hit.source == "message" or (hit.source == "gate" and about.kind == "finding")
        show = hit.key if own else about.task_id or about.workflow_id or hit.key
        names = (workflow.name if workflow else "", task.name if task else "")
        later = superseded.get(hit.key) if about.kind == "decision" else None
        shown.append(ShownHit(hit, *names, show, later.id if later is not None else None))
    return shown


# -- shown ------------------------------------------------------------------------------------------------------------


def drawn(found: SearchHits, shown: list[ShownHit], sought: SearchQuery, now: int, room: int) -> Iterator[str]:
    """What was found as lines of at most `room` columns, two or three per text."""
    if not shown:
        yield from wrapped(_nothing(sought), room)
        return
    if not found.complete:
        yield from wrapped("No text has all of this. These have some of it:", room)
        yield ""
    for number, one in enumerate(shown):
        if number:
            yield ""
        yield from _hit_lines(one, sought.question, now, room)
    if found.total > len(shown):
        yield ""
        yield dim(f"{len(shown):,} of {found.total:,}, the best; --limit shows more")


def _hit_lines(one: ShownHit, question: SearchTerms, now: int, room: int) -> Iterator[str]:
    about = one.hit.document
    indent = " " * KIND_COLUMNS if room >= NARROW else "  "
    inner = room - len(indent)
    ago = f"{'superseded, ' if one.superseded_by is not None else ''}{moment(one.hit.at, now)}"
    title, body = one_line(about.title), one_line(about.body)
    if not title:
        title, body = body, ""
    headline = _with_matches_bold(title, question, inner - width(ago) - 2)
    if room >= NARROW:
        yield f"{pad(about.kind, KIND_COLUMNS)}{headline}  {dim(ago)}"
    else:
        yield f"{about.kind}, {ago}"
        yield indent + _with_matches_bold(title, question, inner)
    if found_in(body, question.wanted):
        yield indent + _with_matches_bold(body, question, inner)
    places = [name for name in _places(one) if name]
    where = fit(" › ".join(places), inner - width(one.show) - 2)
    yield indent + (f"{dim(where)}  " if where else "") + dim(one.show)


def _places(one: ShownHit) -> tuple[str, ...]:
    """The names of where it was found, except its own, which is its title."""
    if one.hit.source == "workflow":
        return ()
    return (one.workflow,) if one.hit.source == "task" else (one.workflow, one.task)


def _with_matches_bold(text: str, question: SearchTerms, room: int) -> str:
    pieces = snippet(text, question.wanted, room, width)
    return "".join(bold(piece.text) if piece.found else piece.text for piece in pieces)


def _nothing(sought: SearchQuery) -> str:
    several = len(sought.question.wanted) > 1
    said = "Nothing has any of these words" if several else "Nothing has this"
    given = (("--kind", sought.kind), ("--workflow", sought.workflow), ("--since", sought.since_ms))
    narrowing = [option for option, value in given if value]
    tries = ["another word", "the beginning of one with a star (retr*)"]
    if narrowing:
        tries.append(f"the same without {' and '.join(narrowing)}")
    return f"{said}. Try {', '.join(tries[:-1])} or {tries[-1]}."


def _document(found: SearchHits, shown: list[ShownHit], question: SearchTerms) -> dict[str, Any]:
    return {
        "total": found.total,
        "complete": found.complete,
        "found": [
            {
                "kind": one.hit.document.kind,
                "id": one.hit.key,
                "show": one.show,
                "title": one.hit.document.title,
                "snippet": _snippet_text(one, question),
                "workflow_id": one.hit.document.workflow_id,
                "workflow_name": one.workflow or None,
                "task_id": one.hit.document.task_id,
                "task_name": one.task or None,
                "superseded_by": one.superseded_by,
                "written_at": iso_time(one.hit.at),
                "score": round(one.hit.score, 9),
            }
            for one in shown
        ],
    }


def _snippet_text(one: ShownHit, question: SearchTerms) -> str:
    body = one_line(one.hit.document.body)
    return "".join(piece.text for piece in snippet(body, question.wanted, SHOWN_CHARACTERS))

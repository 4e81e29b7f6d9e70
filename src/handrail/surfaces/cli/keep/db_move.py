"""`handrail db move` and `release`: moves the store, and reopens the old one."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from handrail import __version__
from handrail.kernel.errors import InvalidParams, PlaceUnusable, StoreUnusable
from handrail.kernel.late import late_module
from handrail.settings import CONFIG_FILE, Settings, said_by_project
from handrail.surfaces.cli.columns import counted, one_line
from handrail.surfaces.cli.keep.db_store import engine_of, store_of, telling, told_to_git, trusted_address
from handrail.surfaces.cli.keep.db_trust import own_file, told_of_strangers
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import confirm, echo_json, echo_wrapped
from handrail.wiring import WorkPlace, has_store, ledger_at

if TYPE_CHECKING:
    from handrail.domain.crew import tokens
    from handrail.outside import config_file, trusted_stores
    from handrail.store import marks, open_engine, store_move
else:
    tokens = late_module("handrail.domain.crew.tokens")
    config_file = late_module("handrail.outside.config_file")
    trusted_stores = late_module("handrail.outside.trusted_stores")
    marks = late_module("handrail.store.marks")
    open_engine = late_module("handrail.store.open_engine")
    store_move = late_module("handrail.store.store_move")


class _Way(NamedTuple):
    """How everybody gets to the store's place from now on. People are asked before the store is touched, and the config
    file is changed before anything is printed: the reader of the output may leave at its first line, as `head` does."""

    by_hand: str
    """What a person has to do, if the config file cannot or may not be changed."""
    done: str = ""
    """What to say once it was changed."""
    db: str | None = None
    """What the config file will say, if it may be changed; empty: nothing any more."""


@click.command()
@click.argument("target", metavar="FILE|URL")
@click.option("--keep", is_flag=True, help="Only copy: the old store stays in use, and no setting is changed.")
@click.option("--yes", is_flag=True, help="Do not ask before moving, nor before writing db to config.toml.")
@common_options
def move(target: str, keep: bool, yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Move the store to another file, or to PostgreSQL or back.

    FILE must not exist yet; a PostgreSQL database must be empty. Writers wait while the store is copied and verified.
    The old store is left as it is, but from then on it refuses anyone who still uses it and names the new place;
    `handrail db release` takes that back.
    """
    place = place_of(root)
    address = _address(target)
    if not has_store(place, settings_of(place, options)):
        raise StoreUnusable(
            "there is no store here yet", hint="set db to where it should be; the first write creates it"
        )
    store = store_of(root, options)
    location, shown = store.info().location, open_engine.shown_address(address, place.project)
    if not yes:
        store_move.check_target(engine_of(store), address, project=place.project, version=__version__)
        what = "Copy" if keep else "Move"
        after = "" if keep else " and the old one refuses them afterwards"
        confirm(f"{what} {location} to {shown}? Writers wait meanwhile{after}.", as_json=as_json)
    way = None if keep else _way_on(place, options, address, yes=yes, quiet=as_json)
    began = time.monotonic()
    with telling(quiet=as_json) as tell:
        moved = store_move.move(
            engine_of(store), address, project=place.project, version=__version__, keep=keep, tell=tell
        )
    waited = round(time.monotonic() - began, 2)
    own_file(place, address)
    config, said = _go(place, way)
    if as_json:
        counts = {"events": moved.events, "rows": moved.rows, "keys": moved.keys}
        echo_json(
            {"moved_to": shown, **counts, "seconds": waited, "kept": keep, "config": str(config) if config else None}
        )
        return
    what = f"{counted(moved.events, 'event')}, {counted(moved.rows, 'row')}"
    echo_wrapped(f"{'copied' if keep else 'moved'} to {shown}: {what}; verified")
    click.echo(f"writers waited for {waited:g} s")
    if "://" not in address and (warning := told_to_git(place, Path(address))):
        echo_wrapped(warning)
    if "://" not in address and (told := told_of_strangers(_strangers_at(place, address))):
        echo_wrapped(told)
    if said:
        echo_wrapped(said)


def _strangers_at(place: WorkPlace, address: str) -> tokens.Strangers:
    """The tokens and agents' secrets in a file that let nobody in here: on a server they may have."""
    chosen = WorkPlace(project=place.project, home=place.home, environ={**place.environ, "HANDRAIL_DB": address})
    return ledger_at(chosen, Settings(db=address)).run(person(), tokens.strangers)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def release(yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Make a store that was moved usable again.

    It is as it was when it was moved. Without --db, this is the project's own store if the one in use was moved from
    there.
    """
    place = place_of(root)
    address = _left_behind(place, options)
    shown, found = open_engine.shown_address(address, place.project), store_move.found_at(address, place.project)
    left = one_line(found.moved_to or "the other place")
    if marks.is_moved(found.schema) and not yes:
        confirm(f"Use {one_line(shown)} again, without what {left} got since?", as_json=as_json)
    way = _way_back(place, address, found.moved_to, yes=yes, quiet=as_json)
    store_move.release(address, place.project)
    config, said = _go(place, way)
    if as_json:
        echo_json({"released": shown, "moved_to": found.moved_to, "config": str(config) if config else None})
        return
    echo_wrapped(f"{shown} can be used again; {left} stays as it is")
    if said:
        echo_wrapped(said)


def _left_behind(place: WorkPlace, options: dict[str, Any]) -> str:
    """The store to release: the one in use or, if the project's config names another that its own moved to, its own."""
    named = options.get("db") or options.get("global_store") or "HANDRAIL_DB" in place.environ
    db = said_by_project(place.project, "db")
    if not named and isinstance(db, str) and db:
        own = str(open_engine.database_path("", place.project))
        if store_move.found_at(own, place.project).moved_to == open_engine.shown_address(db, place.project):
            return own
    return trusted_address(place, options)


def _way_back(place: WorkPlace, address: str, moved_to: str | None, *, yes: bool, quiet: bool) -> _Way | None:
    """What to do about a line that still names the place the store had moved to; None if there is no such line."""
    config, db = place.project / CONFIG_FILE, said_by_project(place.project, "db")
    if not isinstance(db, str) or not db or open_engine.shown_address(db, place.project) != moved_to:
        return None
    by_hand = f"{config} still says db = {json.dumps(moved_to)}: change or remove that line"
    own = os.path.realpath(open_engine.database_path("", place.project))  # Path.resolve would fail on circular links
    if os.path.realpath(open_engine.database_path(address, place.project)) != own:
        return _Way(by_hand)
    asked = f"{config} still names {one_line(moved_to)}. Remove that line, so that this store is used?"
    if not yes and (quiet or not click.confirm(asked, default=True)):
        return _Way(by_hand)
    done = f"{config} no longer names a store, so this one is used; restart anything that uses another"
    return _Way(by_hand, done, db="")


def _address(target: str) -> str:
    """The address as it is stored: a file by its full path, resolved from where the command was run."""
    if target.startswith(open_engine.POSTGRES):
        return target
    if "://" in target:
        raise InvalidParams(
            f"{target.partition('://')[0]} is no store Handrail knows", hint="a file, or postgresql://…"
        )
    return str(Path(target).parent.resolve() / Path(target).name)


def _way_on(place: WorkPlace, options: dict[str, Any], address: str, *, yes: bool, quiet: bool) -> _Way:
    """What to do about the settings that name the old place."""
    shown, config = open_engine.shown_address(address, place.project), place.project / CONFIG_FILE
    restart = "restart anything that still uses the old store"
    if options.get("db") or options.get("global_store"):
        return _Way(
            f"you named the old store on the command line: use --db {shlex.quote(shown)} from now on, and {restart}"
        )
    if "HANDRAIL_DB" in place.environ or "HANDRAIL_GLOBAL_STORE" in place.environ:
        return _Way(f"the environment names the old store: set HANDRAIL_DB to {shown} there, and {restart}")
    if open_engine.holds_password(address, place.project):
        why = f"the address has a password, so it was not written to {CONFIG_FILE}, which git may track"
        return _Way(f"{why}: set HANDRAIL_DB to the address for every agent, and {restart}")
    by_hand = f'write db = "{shown}" into {config} (instead of global_store, if it is there), and {restart}'
    if settings_of(place, options).global_store:
        return _Way(by_hand)
    inside = Path(address).is_relative_to(place.project)
    db = Path(address).relative_to(place.project).as_posix() if inside else address
    if not yes and (quiet or not click.confirm(f'Then write db = "{db}" into {config}?', default=True)):
        return _Way(by_hand)
    return _Way(by_hand, f'{config} now says db = "{db}"; {restart}', db)


def _go(place: WorkPlace, way: _Way | None) -> tuple[Path | None, str]:
    """Changes the config file, if that is the way: the file, if it was changed, and what to say. A file that cannot be
    changed is no refusal: the store has already moved."""
    config = place.project / CONFIG_FILE
    if way is None:
        return None, ""
    try:
        if way.db is None or not (config_file.say_db(config, way.db) if way.db else config_file.drop_db(config)):
            return None, way.by_hand
    except PlaceUnusable as problem:
        return None, f"{problem.message}; {way.by_hand}"
    if way.db:
        trusted_stores.trust(way.db, project=place.project, home=place.home)
    return config, way.done

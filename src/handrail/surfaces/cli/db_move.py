"""`handrail db move`, `release` and `trust`: moves the store, reopens the old one, trusts one that a project names."""

from __future__ import annotations

import json
import os
import shlex
import time
from pathlib import Path
from typing import Any, NamedTuple

import click

from handrail import __version__
from handrail.kernel.errors import InvalidParams, StoreUnusable
from handrail.settings import CONFIG_FILE
from handrail.surfaces.cli.columns import counted, one_line
from handrail.surfaces.cli.db_store import engine_of, store_of, telling, told_to_git, trusted_address
from handrail.surfaces.cli.options import common_options, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_wrapped
from handrail.wiring import Place, has_store


class _Next(NamedTuple):
    """How everybody gets to the new place."""

    written: Path | None
    """The file that now names it."""
    said: str


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
    from handrail.store.moving import check_target  # noqa: PLC0415 - the store, only once something runs
    from handrail.store.moving import move as move_store  # noqa: PLC0415 - as above
    from handrail.store.opening import shown_address  # noqa: PLC0415 - as above

    place = place_of(root)
    address = _address(target)
    if not has_store(place, settings_of(place, options)):
        raise StoreUnusable(
            "there is no store here yet", hint="set db to where it should be; the first write creates it"
        )
    store = store_of(root, options)
    location, shown = store.info().location, shown_address(address, place.project)
    if not yes:
        check_target(engine_of(store), address, project=place.project, version=__version__)
        what = "Copy" if keep else "Move"
        after = "" if keep else " and the old one refuses them afterwards"
        click.confirm(f"{what} {location} to {shown}? Writers wait meanwhile{after}.", abort=True)
    began = time.monotonic()
    with telling(quiet=as_json) as tell:
        moved = move_store(engine_of(store), address, project=place.project, version=__version__, keep=keep, tell=tell)
    waited = round(time.monotonic() - began, 2)
    counts = {"events": moved.events, "rows": moved.rows, "keys": moved.keys}
    if not as_json:
        what = f"{counted(moved.events, 'event')}, {counted(moved.rows, 'row')}"
        echo_wrapped(f"{'copied' if keep else 'moved'} to {shown}: {what}; verified")
        click.echo(f"writers waited for {waited:g} s")
        if "://" not in address and (said := told_to_git(place, Path(address))):
            echo_wrapped(said)
    after_that = None if keep else _go_on(place, options, address, yes=yes, quiet=as_json)
    if as_json:
        told = {"moved_to": shown, **counts, "seconds": waited, "kept": keep}
        echo_json({**told, "config": str(after_that.written) if after_that and after_that.written else None})
    elif after_that is not None:
        echo_wrapped(after_that.said)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def trust(yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Trust the store outside this project that its config names.

    A .handrail/config.toml may come with a repository, so a store elsewhere is used only after you have agreed to it,
    once on each machine.
    """
    from handrail.outside.trusted_stores import lies_outside  # noqa: PLC0415 - only here
    from handrail.outside.trusted_stores import trust as keep_word  # noqa: PLC0415 - as above
    from handrail.settings import said_by_project  # noqa: PLC0415 - as above
    from handrail.store.opening import shown_address  # noqa: PLC0415 - as above

    if options.get("db") or options.get("global_store"):
        raise InvalidParams("a store that you name yourself needs no trust", hint="leave out --db and --global")
    place = place_of(root)
    db = said_by_project(place.project, "db")
    if not isinstance(db, str) or not lies_outside(db, place.project):
        raise InvalidParams(f"{CONFIG_FILE} names no store outside of this project", hint="there is nothing to trust")
    shown = shown_address(db, place.project)
    if not yes:
        click.confirm(f"Record the work of {place.project} in {shown}?", abort=True)
    keep_word(db, project=place.project, home=place.home)
    echo_json({"trusted": shown}) if as_json else echo_wrapped(f"{shown} is used from now on")


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def release(yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Make a store that was moved usable again.

    It is as it was when it was moved.
    """
    from handrail.store.marks import is_moved  # noqa: PLC0415 - the store, only once something runs
    from handrail.store.moving import found_at  # noqa: PLC0415 - as above
    from handrail.store.moving import release as release_store  # noqa: PLC0415 - as above
    from handrail.store.opening import shown_address  # noqa: PLC0415 - as above

    place = place_of(root)
    address = trusted_address(place, options)
    shown, found = shown_address(address, place.project), found_at(address, place.project)
    if is_moved(found.schema) and not yes:
        left = one_line(found.moved_to or "the other place")
        click.confirm(f"Use {one_line(shown)} again, without what {left} got since?", abort=True)
    release_store(address, place.project)
    left = one_line(found.moved_to or "the other place")
    if not as_json:
        echo_wrapped(f"{shown} can be used again; {left} stays as it is")
    after_that = _go_back(place, address, found.moved_to, yes=yes, quiet=as_json)
    if as_json:
        config = after_that.written if after_that else None
        echo_json({"released": shown, "moved_to": found.moved_to, "config": str(config) if config else None})
    elif after_that is not None:
        echo_wrapped(after_that.said)


def _go_back(place: Place, address: str, moved_to: str | None, *, yes: bool, quiet: bool) -> _Next | None:
    """Removes the line that still names the place the store had moved to, or tells the person about it."""
    from handrail.outside.config_file import drop_db  # noqa: PLC0415 - only here
    from handrail.settings import said_by_project  # noqa: PLC0415 - as above
    from handrail.store.opening import database_path, shown_address  # noqa: PLC0415 - as above

    config, db = place.project / CONFIG_FILE, said_by_project(place.project, "db")
    if not isinstance(db, str) or not db or shown_address(db, place.project) != moved_to:
        return None
    still = _Next(
        None, f"{config} still says db = {json.dumps(shown_address(db, place.project))}: change or remove that line"
    )
    own = os.path.realpath(database_path("", place.project))  # Path.resolve would fail on circular links
    if os.path.realpath(database_path(address, place.project)) != own:
        return still
    asked = f"{config} still names {one_line(moved_to)}. Remove that line, so that this store is used?"
    if not yes and (quiet or not click.confirm(asked, default=True)):
        return still
    if not drop_db(config):
        return still
    return _Next(config, f"{config} no longer names a store, so this one is used; restart anything that uses another")


def _address(target: str) -> str:
    """The address as it is stored: a file by its full path, resolved from where the command was run."""
    from handrail.store.opening import POSTGRES  # noqa: PLC0415 - the store, only once something runs

    if target.startswith(POSTGRES):
        return target
    if "://" in target:
        raise InvalidParams(
            f"{target.partition('://')[0]} is no store Handrail knows", hint="a file, or postgresql://…"
        )
    return str(Path(target).absolute())


def _go_on(place: Place, options: dict[str, Any], address: str, *, yes: bool, quiet: bool) -> _Next:
    """Tells people how to get to the new place, or writes it down if allowed."""
    from handrail.outside.config_file import say_db  # noqa: PLC0415 - only here
    from handrail.outside.trusted_stores import trust as keep_word  # noqa: PLC0415 - as above
    from handrail.store.opening import holds_password, shown_address  # noqa: PLC0415 - as above

    shown, config = shown_address(address, place.project), place.project / CONFIG_FILE
    restart = "restart anything that still uses the old store"
    if options.get("db") or options.get("global_store"):
        return _Next(
            None,
            f"you named the old store on the command line: use --db {shlex.quote(shown)} from now on, and {restart}",
        )
    if "HANDRAIL_DB" in place.environ or "HANDRAIL_GLOBAL_STORE" in place.environ:
        return _Next(None, f"the environment names the old store: set HANDRAIL_DB to {shown} there, and {restart}")
    if holds_password(address, place.project):
        why = f"the address has a password, so it was not written to {CONFIG_FILE}, which git may track"
        return _Next(None, f"{why}: set HANDRAIL_DB to the address for every agent, and {restart}")
    by_hand = _Next(
        None, f'write db = "{shown}" into {config} (instead of global_store, if it is there), and {restart}'
    )
    if settings_of(place, options).global_store:
        return by_hand
    inside = Path(address).is_relative_to(place.project)
    value = Path(address).relative_to(place.project).as_posix() if inside else address
    if not yes and (quiet or not click.confirm(f'Write db = "{value}" into {config}?', default=True)):
        return by_hand
    if not say_db(config, value):
        return by_hand
    keep_word(value, project=place.project, home=place.home)
    return _Next(config, f'{config} now says db = "{value}"; {restart}')

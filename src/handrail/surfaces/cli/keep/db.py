"""`handrail db …`: where the store is, its health and its size. Copies are in `db_copies`, moving in `db_move`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.kernel.late import late_module
from handrail.outside.world import SystemClock
from handrail.surfaces.cli.columns import counted, spoken_bytes
from handrail.surfaces.cli.keep.db_copies import backup, rebuild, restore
from handrail.surfaces.cli.keep.db_move import move, release
from handrail.surfaces.cli.keep.db_store import (
    address_of,
    check_there,
    echo_problems,
    engine_of,
    free_name,
    shown_problems,
    store_of,
    store_there,
    telling,
    trusted_address,
)
from handrail.surfaces.cli.keep.db_trust import trust
from handrail.surfaces.cli.options import Commands, common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import echo_json, echo_table, echo_wrapped
from handrail.surfaces.refusals import EXIT_REFUSED
from handrail.wiring import WorkPlace, assemble

if TYPE_CHECKING:
    from handrail.domain.journal import retention
    from handrail.outside import tracking
    from handrail.store import migrations, open_engine, store_move
    from handrail.store.ports import Size
else:
    retention = late_module("handrail.domain.journal.retention")
    tracking = late_module("handrail.outside.tracking")
    migrations = late_module("handrail.store.migrations")
    open_engine = late_module("handrail.store.open_engine")
    store_move = late_module("handrail.store.store_move")


@click.group(cls=Commands)
def db() -> None:
    """Check, back up, restore and move the store."""


@db.command()
@common_options
def path(root: Path | None, as_json: bool, **options: Any) -> None:
    """Print where the store is, without any password. Nothing is opened."""
    place = place_of(root)
    location = open_engine.shown_address(address_of(place, options), place.project)
    echo_json({"path": location}) if as_json else click.echo(location)


@db.command()
@common_options
def check(root: Path | None, as_json: bool, **options: Any) -> None:
    """Check the store for damage and show what takes up room.

    Looks for anything that is not part of a store, has the engine check its files and indexes, and recomputes the
    newest part of the ledger; `handrail db verify` reads all of it. Exits with 1 if there is damage.
    """
    store = store_there(root, options)
    info, engine = store.info(), engine_of(store)
    problems = store.check()
    sizes = [] if problems else engine.sizes()
    snapshots = _snapshot_bytes(place_of(root))
    if as_json:
        shown = {"engine": info.engine, "version": info.version, "schema": info.schema, **shown_problems(problems)}
        listed = [size._asdict() for size in sizes]
        echo_json({**shown, "location": info.location, "sizes": listed, "snapshot_bytes": snapshots})
    else:
        echo_problems(problems, f"{info.engine} {info.version}, schema {info.schema}: sound", whole=False)
        if sizes:
            click.echo(f"{info.location}\n")
            echo_table(("what", "rows", "room"), [_cells(size) for size in sizes])
            click.echo("")
        click.echo(f"snapshots of the working copies: {spoken_bytes(snapshots)}")
    sys.exit(EXIT_REFUSED if problems else 0)


@db.command()
@click.option("--days", type=click.IntRange(0, 3650), help="Instead of the setting snapshot_days.")
@click.option("--count", type=click.IntRange(0, 100_000), help="Instead of the setting snapshot_count.")
@common_options
def prune(days: int | None, count: int | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Delete old snapshots of the working copies.

    Their tasks keep their reports but lose their patches. Snapshots of open tasks are kept, and those of finished tasks
    while they are among the newest (snapshot_count) and not too old (snapshot_days).
    """
    place = place_of(root)
    check_there(place, options)
    settings = settings_of(place, options)
    rule = retention.Keeping(
        settings.snapshot_days if days is None else days, settings.snapshot_count if count is None else count
    )
    handrail = assemble(place, settings)
    worth = handrail.ledger.run(person(), lambda unit: retention.worth_keeping(unit, rule))
    done = retention.prune(handrail.call.world.tracker(), worth)
    if as_json:
        kept = {"open_tasks": worth.open_tasks, "finished_tasks": worth.finished_tasks}
        echo_json({"freed_bytes": done.freed, "left_bytes": done.left, "kept": kept})
        return
    kept_tasks = f"{worth.open_tasks} open and {worth.finished_tasks} finished tasks"
    echo_wrapped(f"freed {spoken_bytes(done.freed)}; kept {spoken_bytes(done.left)}, of {kept_tasks}")


@db.command()
@click.option("--full", is_flag=True, help="PostgreSQL: rewrite the tables while everyone waits.")
@common_options
def vacuum(full: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Reclaim free space and drop expired idempotency keys.

    Writers wait while it runs.
    """
    done = engine_of(store_there(root, options)).vacuum(SystemClock().now_ms(), full=full)
    if as_json:
        echo_json({"before_bytes": done.before, "after_bytes": done.after, "keys": done.keys})
        return
    keys = counted(done.keys, "expired key")
    echo_wrapped(f"{spoken_bytes(done.before)} before, {spoken_bytes(done.after)} now; {keys} deleted")


@db.command()
@common_options
def verify(root: Path | None, as_json: bool, **options: Any) -> None:
    """Prove that the tables and the ledger agree.

    Does what `handrail db check` does, recomputes every hash, rebuilds every row from the events and compares. If
    anything differs it says what is lost and how to get it back, and exits with 1.
    """
    store = store_there(root, options)
    with telling(quiet=as_json) as tell:
        total = store.position()
        problems = store.verify(lambda seen: tell("verifying events", seen, total))
    events = problems or store.feed(after=0, limit=1)
    if as_json:
        echo_json(shown_problems(problems, whole=True))
    else:
        echo_problems(problems, "ledger and tables agree" if events else "the ledger is empty", whole=True)
    sys.exit(EXIT_REFUSED if problems else 0)


@db.command()
@common_options
def upgrade(root: Path | None, as_json: bool, **options: Any) -> None:
    """Bring the store's schema up to date.

    Every command does this when it opens the store; this one also keeps a copy of the older file first.
    """
    place = place_of(root)
    check_there(place, options)
    address = trusted_address(place, options)
    before = store_move.found_at(address, place.project).schema
    kept: Path | None = None
    if 0 < before < migrations.LATEST and not address.startswith(open_engine.POSTGRES):
        file = open_engine.database_path(address, place.project)
        kept = free_name(file.with_name(f"{file.name}.schema-{before}"))
        store_move.copy_before_upgrade(file, kept)
    info = store_of(root, options).info()
    if as_json:
        told = {"schema": info.schema, "from": before, "location": info.location}
        echo_json({**told, "backup": None if kept is None else str(kept)})
    elif before == info.schema:
        click.echo(f"{info.location}: schema {info.schema}, nothing to do")
    else:
        click.echo(f"{info.location}: upgraded from schema {before} to {info.schema}")
        click.echo(f"the old file is kept as {kept}" if kept else "no copy was made; use pg_dump for that")


for _command in (backup, restore, rebuild, move, release, trust):
    db.add_command(_command)


def _snapshot_bytes(place: WorkPlace) -> int:
    return tracking.tracker_at(place.project).disk_use()


def _cells(size: Size) -> tuple[str, str, str]:
    rows = "" if size.rows is None else f"{size.rows:,}"
    return size.what, rows, "" if size.bytes is None else spoken_bytes(size.bytes)

"""`handrail db …`: where the store is, whether it is sound, and copies of it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail import __version__
from handrail.kernel.errors import InvalidParams, StoreRefused
from handrail.surfaces.cli.columns import spoken_bytes
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.refusals import EXIT_REFUSED
from handrail.wiring import Place, assemble, store_address

if TYPE_CHECKING:
    from handrail.store.store import Store


@click.group()
def db() -> None:
    """Look after the store."""


@db.command()
@common_options
def path(root: Path | None, as_json: bool, **options: Any) -> None:
    """Print where the store is. Opens nothing."""
    from handrail.store.opening import POSTGRES, database_path  # noqa: PLC0415 - only here

    place = place_of(root)
    address = store_address(place, settings_of(place, options))
    location = address if address.startswith(POSTGRES) else str(database_path(address, place.project))
    echo_json({"path": location}) if as_json else click.echo(location)


@db.command()
@common_options
def check(root: Path | None, as_json: bool, **options: Any) -> None:
    """Let the engine look for damage in its files, and say what snapshots take. Ends with 1 when there is any."""
    place = place_of(root)
    store = _store(root, options)
    info = store.info()
    problems = store.engine.check()
    snapshots = _snapshot_bytes(place)
    if as_json:
        shown = {"engine": info.engine, "version": info.version, "schema": info.schema, "problems": problems}
        echo_json({**shown, "snapshot_bytes": snapshots})
    else:
        _tell(problems, f"{info.engine} {info.version}, schema {info.schema}: sound")
        click.echo(f"snapshots of the working copies: {spoken_bytes(snapshots)}")
    sys.exit(EXIT_REFUSED if problems else 0)


@db.command()
@click.option("--days", type=click.IntRange(0, 3650), help="In place of the setting snapshot_days.")
@click.option("--count", type=click.IntRange(0, 100_000), help="In place of the setting snapshot_count.")
@common_options
def prune(days: int | None, count: int | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Give up old snapshots of the working copies. Their tasks keep their reports and lose their patches.

    Kept are the snapshots of open tasks, and of finished ones while they are among the newest (snapshot_count) and not
    too old (snapshot_days).
    """
    from handrail.domain.journal.pruning import Keeping, worth_keeping  # noqa: PLC0415 - only here
    from handrail.domain.journal.pruning import prune as give_up  # noqa: PLC0415 - only here

    place = place_of(root)
    settings = settings_of(place, options)
    rule = Keeping(
        settings.snapshot_days if days is None else days, settings.snapshot_count if count is None else count
    )
    handrail = assemble(place, settings)
    worth = handrail.ledger.run(person(), lambda unit: worth_keeping(unit, rule))
    done = give_up(handrail.call.tracker(), worth)
    if as_json:
        kept = {"open_tasks": worth.open_tasks, "finished_tasks": worth.finished_tasks}
        echo_json({"freed_bytes": done.freed, "left_bytes": done.left, "kept": kept})
        return
    kept_tasks = f"{worth.open_tasks} open and {worth.finished_tasks} finished tasks"
    click.echo(f"freed {spoken_bytes(done.freed)}; {spoken_bytes(done.left)} left, of {kept_tasks}")


@db.command()
@common_options
def verify(root: Path | None, as_json: bool, **options: Any) -> None:
    """Prove that tables and ledger agree: rebuild every row from events, check every hash. Ends with 1 otherwise."""
    store = _store(root, options)

    def progress(seen: int) -> None:
        if not as_json and sys.stderr.isatty():
            click.echo(f"\r{seen} events", nl=False, err=True)

    problems = store.verify(progress)
    events = len(store.feed(after=0, limit=1))
    if as_json:
        echo_json({"problems": problems})
    else:
        _tell(problems, "ledger and tables agree" if events else "the ledger is empty")
    sys.exit(EXIT_REFUSED if problems else 0)


@db.command()
@click.argument("target", type=click.Path(path_type=Path))
@common_options
def backup(target: Path, root: Path | None, as_json: bool, **options: Any) -> None:
    """Copy the store to TARGET while it is in use. TARGET must not be there yet."""
    if target.exists():
        raise InvalidParams(f"{target} is there already", hint="choose another name")
    _store(root, options).engine.backup(str(target.absolute()))
    echo_json({"backup": str(target)}) if as_json else click.echo(f"wrote {target}")


@db.command()
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def restore(source: Path, yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Put a backup in the store's place. What is there now is kept beside it first."""
    place = place_of(root)
    store = _store(root, options)
    restoring = getattr(store.engine, "restore", None)
    if restoring is None:
        raise StoreRefused("this engine restores with its own tools", hint="for PostgreSQL: pg_restore")
    problems = _problems_of(source, place.project)
    if problems:
        raise InvalidParams(f"{source} is not a sound backup: {problems[0]}", hint="nothing was changed")
    kept = Path(store.info().location + ".before-restore")
    if not yes:
        click.confirm(f"Replace {store.info().location} with {source}? It is kept as {kept}.", abort=True)
    kept.unlink(missing_ok=True)
    store.engine.backup(str(kept))
    restoring(str(source.absolute()))
    echo_json({"restored": str(source), "kept": str(kept)}) if as_json else click.echo(f"restored; before: {kept}")


@db.command()
@common_options
def upgrade(root: Path | None, as_json: bool, **options: Any) -> None:
    """Bring the store's schema up to date. Every command does so when it opens the store."""
    info = _store(root, options).info()
    if as_json:
        echo_json({"schema": info.schema, "location": info.location})
    else:
        click.echo(f"{info.location}: schema {info.schema}, current")


def _snapshot_bytes(place: Place) -> int:
    from handrail.outside.tracking import tracker_at  # noqa: PLC0415 - only here

    return tracker_at(place.project).disk_use()


def _problems_of(source: Path, project: Path) -> list[str]:
    """What is wrong with a backup, looked at in a copy so that nothing about it changes."""
    import shutil  # noqa: PLC0415 - only here
    import tempfile  # noqa: PLC0415 - only here

    from handrail.outside.world import RandomIds, SystemClock  # noqa: PLC0415 - only here
    from handrail.store.opening import open_engine  # noqa: PLC0415 - only here
    from handrail.store.store import Store  # noqa: PLC0415 - only here

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(source, copy)
        try:
            engine = open_engine(str(copy), project=project, version=__version__, durable=False)
        except StoreRefused as refusal:
            return [refusal.message]
        clock = SystemClock()
        try:
            return [*engine.check(), *Store(engine, clock=clock, ids=RandomIds(clock)).verify()]
        finally:
            engine.close()


def _store(root: Path | None, options: dict[str, Any]) -> Store:
    place = place_of(root)
    return assemble(place, settings_of(place, options)).ledger.open()


def _tell(problems: list[str], sound: str) -> None:
    for problem in problems:
        click.echo(click.style(problem, fg="red"))
    if not problems:
        click.echo(sound)

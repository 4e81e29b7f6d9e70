"""`handrail db backup`, `restore` and `rebuild`: copies the store, replaces it with a copy, or makes it anew from its
ledger."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail import __version__
from handrail.domain.crew.tokens import strangers
from handrail.kernel.errors import InvalidParams, StoreUnusable
from handrail.kernel.late import late_module
from handrail.store_wiring import check_trusted, key_for
from handrail.surfaces.cli.columns import counted, spoken_bytes
from handrail.surfaces.cli.keep.db_store import (
    address_of,
    check_there,
    engine_of,
    free_name,
    store_of,
    store_there,
    telling,
    told_to_git,
    trusted_address,
)
from handrail.surfaces.cli.keep.db_trust import told_of_strangers
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of
from handrail.surfaces.cli.render import confirm, echo_json, echo_wrapped

if TYPE_CHECKING:
    from handrail.store import backups, open_engine, places, postgres
    from handrail.store import rebuild as store_rebuild
    from handrail.store.ports import LastingEngine
    from handrail.store.rebuild import Rebuilt
    from handrail.store.store_copy import Tell
    from handrail.wiring import WorkPlace
else:
    backups = late_module("handrail.store.backups")
    open_engine = late_module("handrail.store.open_engine")
    places = late_module("handrail.store.places")
    postgres = late_module("handrail.store.postgres")
    store_rebuild = late_module("handrail.store.rebuild")


@click.command()
@click.argument("target", type=click.Path(path_type=Path))
@common_options
def backup(target: Path, root: Path | None, as_json: bool, **options: Any) -> None:
    """Copy the store to TARGET while it is in use.

    TARGET must not exist yet. A PostgreSQL store becomes a file too: an ordinary store that can be opened, verified and
    restored anywhere.
    """
    if target.exists():
        raise InvalidParams(f"{target} already exists", hint="choose another name")
    with telling(quiet=as_json) as tell:
        size = _keep(engine_of(store_there(root, options)), target.absolute(), tell)
    if as_json:
        echo_json({"backup": str(target), "bytes": size})
        return
    echo_wrapped(f"wrote {target}, {spoken_bytes(size)}")
    if said := told_to_git(place_of(root), target.absolute()):
        echo_wrapped(said)


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def restore(source: Path, yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Replace the store with a backup.

    The backup is checked completely before anything is touched: that it is a store and holds nothing else, its files,
    its ledger, every row. The current store, unless it is empty, is kept beside it, even if it is damaged.
    """
    named = _Named(place_of(root), root, options, yes=yes, as_json=as_json)
    with ExitStack() as stack:
        with telling(quiet=as_json) as tell:
            copy = stack.enter_context(backups.checked_copy(source.absolute(), version=__version__, tell=tell))
        engine, kept = _made_room(named, source)
        with telling(quiet=as_json) as tell:
            engine.restore(str(copy), tell)
    if as_json:
        echo_json({"restored": str(source), "kept": str(kept) if kept else None})
    else:
        echo_wrapped(f"restored {source}" + (f"; what was there before is kept as {kept}" if kept else ""))
        if told := told_of_strangers(store_of(root, options).run(person(), strangers)):
            echo_wrapped(told)


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def rebuild(yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Make the store anew from its ledger.

    For a store whose tables or indexes are damaged, or that holds something which is not part of a store: every row and
    every index is made again from the events. The store as it is now is kept beside it. A ledger that is damaged itself
    is refused; then a backup is needed.
    """
    place = place_of(root)
    check_there(place, options)
    named = _Named(place, root, options, yes=yes, as_json=as_json)
    address = trusted_address(place, options)
    if address.startswith(open_engine.POSTGRES):
        rebuilt, kept = _rebuilt_server(named)
    else:
        path, key = open_engine.database_path(address, place.project), key_for(place, address)
        kept = free_name(path.with_name(f"{path.name}.before-rebuild"))
        named.ask(f"Make {path} anew from its ledger? It is kept as {kept}.")
        with telling(quiet=as_json) as tell:
            rebuilt = store_rebuild.rebuild_file(
                path, kept, version=__version__, tell=tell, mark=key.mark_name if key is not None else ""
            )
    if as_json:
        echo_json({**rebuilt._asdict(), "kept": str(kept)})
        return
    what = f"{counted(rebuilt.events, 'event')}, {counted(rebuilt.rows, 'row')}, {counted(rebuilt.keys, 'kept answer')}"
    echo_wrapped(f"made anew: {what}; verified. What was there before is kept as {kept}")
    echo_wrapped("restart anything that has it open")


class _Named:
    """The store a command means, and how its user is asked."""

    def __init__(
        self, place: WorkPlace, root: Path | None, options: dict[str, Any], *, yes: bool, as_json: bool
    ) -> None:
        self.place = place
        self._root = root
        self._options = options
        self._yes = yes
        self.as_json = as_json

    def open(self) -> LastingEngine:
        return engine_of(store_of(self._root, self._options))

    def file(self) -> Path:
        check_trusted(self.place, settings_of(self.place, self._options))  # a damaged one cannot be looked into
        return open_engine.database_path(address_of(self.place, self._options), self.place.project)

    def beside(self, engine: LastingEngine, ending: str) -> Path:
        """A free name for what is there now: beside the file, or in the project's folder for a server."""
        info = engine.info()
        own = Path(info.location) if info.engine == "sqlite" else self.place.project / ".handrail" / "handrail.db"
        return free_name(own.with_name(f"{own.name}.{ending}"))

    def ask(self, question: str) -> None:
        if not self._yes:
            confirm(question, as_json=self.as_json)


def _made_room(named: _Named, source: Path) -> tuple[LastingEngine, Path | None]:
    """The store to put a backup into, and what its content is kept as. A file that is damaged is set aside whole."""
    try:
        engine = named.open()
        kept = named.beside(engine, "before-restore")
        if not engine.is_empty():
            size = spoken_bytes(source.stat().st_size)
            named.ask(f"Replace {engine.info().location} with {source} ({size})? It is kept as {kept}.")
        with engine.reading() as reader:
            reader.position()  # it may have moved meanwhile: then nothing is kept either
        if engine.is_empty():  # asked again: somebody may have written while the user was asked
            return engine, None
        kept.parent.mkdir(exist_ok=True)
        with telling(quiet=named.as_json) as tell:
            _keep(engine, kept, tell)
    except StoreUnusable as refusal:
        if not refusal.details.get("damaged"):
            raise
    else:
        return engine, kept
    path = named.file()
    kept = free_name(path.with_name(f"{path.name}.before-restore"))
    named.ask(f"{path} is damaged. Set it aside as {kept}, and put {source} in its place?")
    store_rebuild.set_aside(path, kept)
    return named.open(), kept


def _rebuilt_server(named: _Named) -> tuple[Rebuilt, Path]:
    engine = named.open()
    assert isinstance(engine, postgres.PostgresEngine)
    kept = named.beside(engine, "before-rebuild")
    named.ask(f"Make {engine.info().location} anew from its ledger? A copy of it is kept as {kept}.")
    kept.parent.mkdir(exist_ok=True)
    with telling(quiet=named.as_json) as tell:
        _keep(engine, kept, tell)
        return engine.rebuild(tell), kept


def _keep(engine: LastingEngine, target: Path, tell: Tell) -> int:
    """A copy that gets its name only once it is complete; returns its size."""
    with places.whole_file(target) as part:
        engine.backup(str(part), tell)
    return target.stat().st_size

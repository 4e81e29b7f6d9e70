"""`handrail db backup` and `restore`: copies the store, and replaces it with a copy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail import __version__
from handrail.domain.crew.adopting import strangers
from handrail.kernel.errors import InvalidParams, StoreRefused
from handrail.surfaces.cli.columns import spoken_bytes
from handrail.surfaces.cli.confirming import confirm
from handrail.surfaces.cli.db_store import engine_of, free_name, store_of, store_there, telling, told_to_git
from handrail.surfaces.cli.db_trust import told_of_strangers
from handrail.surfaces.cli.options import common_options, person, place_of
from handrail.surfaces.cli.render import echo_json, echo_wrapped

if TYPE_CHECKING:
    from handrail.store.copying import Tell
    from handrail.store.reading import LastingEngine


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
@click.argument("source", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def restore(source: Path, yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Replace the store with a backup.

    The backup is checked first, and the current store, unless it is empty, is kept beside it.
    """
    place = place_of(root)
    store = store_of(root, options)
    info, engine = store.info(), engine_of(store)
    with telling(quiet=as_json) as tell:
        problems = _problems_of(source, place.project, tell)
    if problems:
        raise InvalidParams(f"{source} is not a sound backup: {problems[0]}", hint="nothing was changed")
    beside = Path(info.location) if info.engine == "sqlite" else place.project / ".handrail" / "handrail.db"
    kept = free_name(beside.with_name(f"{beside.name}.before-restore"))
    if not yes and not engine.is_empty():
        size = spoken_bytes(source.stat().st_size)
        confirm(f"Replace {info.location} with {source} ({size})? It is kept as {kept}.", as_json=as_json)
    store.position()  # it may have moved meanwhile: then nothing is kept either
    keeps = not engine.is_empty()  # asked again: somebody may have written while the user was asked
    with telling(quiet=as_json) as tell:
        if keeps:
            kept.parent.mkdir(exist_ok=True)
            _keep(engine, kept, tell)
        engine.restore(str(source.absolute()), tell)
    if as_json:
        echo_json({"restored": str(source), "kept": str(kept) if keeps else None})
    else:
        echo_wrapped(f"restored {source}" + (f"; what was there before is kept as {kept}" if keeps else ""))
        if told := told_of_strangers(store.run(person(), strangers)):
            echo_wrapped(told)


def _keep(engine: LastingEngine, target: Path, tell: Tell) -> int:
    """A copy that gets its name only once it is complete; returns its size."""
    from handrail.store.places import whole_file  # noqa: PLC0415 - the store, only once something runs

    with whole_file(target) as part:
        engine.backup(str(part), tell)
    return target.stat().st_size


def _problems_of(source: Path, project: Path, tell: Tell) -> list[str]:
    """What is wrong with a backup, checked in a copy so that the backup itself does not change."""
    import shutil  # noqa: PLC0415 - only here
    import tempfile  # noqa: PLC0415 - only here

    from handrail.store.opening import open_engine  # noqa: PLC0415 - only here
    from handrail.store.verifying import problems_in  # noqa: PLC0415 - only here

    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "copy.db"
        shutil.copyfile(source, copy)
        try:
            engine = open_engine(str(copy), project=project, version=__version__, durable=False)
        except StoreRefused as refusal:
            return [refusal.message.replace(str(copy), str(source))]
        try:
            damaged = engine.check()
            if damaged:
                return damaged
            with engine.reading() as reader:
                return problems_in(reader, lambda seen: tell("verifying", seen, 0))
        finally:
            engine.close()

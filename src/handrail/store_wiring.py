"""Where Handrail runs, which store the settings mean there, and whether it may be opened: a part of `wiring.py`. Opens
nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from handrail.kernel.errors import StoreNotTrusted
from handrail.kernel.late import late_module
from handrail.settings import CONFIG_FILE, Settings, said_by_project
from handrail.settings_in_force import check_shared

if TYPE_CHECKING:
    from handrail.kernel.provenance import MachineKey
    from handrail.outside import machine_key, store_files, trusted_stores
    from handrail.store import open_engine, origin
else:
    machine_key = late_module("handrail.outside.machine_key")
    store_files = late_module("handrail.outside.store_files")
    trusted_stores = late_module("handrail.outside.trusted_stores")
    open_engine = late_module("handrail.store.open_engine")
    origin = late_module("handrail.store.origin")


class WorkPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where Handrail runs. `folder` is the working copy it was started in, if that is not the project's own."""

    project: Path
    folder: Path | None = None
    home: Path
    environ: Mapping[str, str]


def store_address(place: WorkPlace, settings: Settings) -> str:
    """The store's address in the form `open_engine` takes: empty for the project's own."""
    return str(open_engine.user_database(place.home)) if settings.global_store else settings.db


def check_trusted(place: WorkPlace, settings: Settings) -> None:
    """Raises StoreNotTrusted for a store that may be a stranger's doing: one outside the project that only the
    project's own file names, or a file that shows signs of having come with a repository. Opens nothing; whether a
    file was made on this machine is seen when it is opened."""
    check_place_of_store(place, settings)
    address = store_address(place, settings)
    if "://" not in address:
        store_files.check_store_files(open_engine.database_path(address, place.project), place.home)


def check_store(place: WorkPlace, settings: Settings) -> None:
    """The same with a look into the file, for who serves many and should refuse once, at the start. Changes nothing."""
    check_trusted(place, settings)
    address = store_address(place, settings)
    key = key_for(place, address)
    if key is None:
        return
    if not address:
        open_engine.check_own(place.project)
    file = open_engine.database_path(address, place.project)
    if file.is_file() and not origin.made_here(file, key):
        raise origin.not_made_here(file)


def check_place_of_store(place: WorkPlace, settings: Settings) -> None:
    """The first half of it: the project's file may have come with a cloned repository, and records would be sent
    wherever it says."""
    check_shared(settings)
    db = "" if settings.global_store else settings.db
    if not trusted_stores.lies_outside(db, place.project) or place.environ.get("HANDRAIL_DB") == db:
        return
    is_theirs = said_by_project(place.project, "db") == db
    if is_theirs and not trusted_stores.is_trusted(db, project=place.project, home=place.home):
        raise StoreNotTrusted(
            f"{CONFIG_FILE} of this project names a store elsewhere: {open_engine.shown_address(db, place.project)}",
            hint="if you trust that file's author, run `handrail db trust` once; else name a store with HANDRAIL_DB",
        )


def key_for(place: WorkPlace, address: str) -> MachineKey | None:
    """What a store at this address is recognised by. None for a server: its users named it, several machines share it,
    and whoever may write to it was let in by the server itself."""
    if "://" in address:
        return None
    return machine_key.machine_key(place.home)

"""Where Handrail runs, which store the settings mean there, and whether it may be opened: a part of `wiring.py`. Opens
nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from handrail.settings import Settings
from handrail.settings_in_force import check_shared

if TYPE_CHECKING:
    from handrail.kernel.provenance import MachineKey


class WorkPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where Handrail runs. `folder` is the working copy it was started in, if that is not the project's own."""

    project: Path
    folder: Path | None = None
    home: Path
    environ: Mapping[str, str]


def store_address(place: WorkPlace, settings: Settings) -> str:
    """The store's address in the form `open_engine` takes: empty for the project's own."""
    from handrail.store.open_engine import user_database  # noqa: PLC0415 - only once something is stored

    return str(user_database(place.home)) if settings.global_store else settings.db


def check_trusted(place: WorkPlace, settings: Settings) -> None:
    """Raises StoreNotTrusted for a store that may be a stranger's doing: one outside the project that only the
    project's own file names, or a file that shows signs of having come with a repository. Opens nothing; whether a
    file was made on this machine is seen when it is opened."""
    check_place_of_store(place, settings)
    address = store_address(place, settings)
    if "://" not in address:
        from handrail.outside.store_files import check_store_files  # noqa: PLC0415 - only once something is stored
        from handrail.store.open_engine import database_path  # noqa: PLC0415 - as above

        check_store_files(database_path(address, place.project), place.home)


def check_store(place: WorkPlace, settings: Settings) -> None:
    """The same with a look into the file, for who serves many and should refuse once, at the start. Changes nothing."""
    check_trusted(place, settings)
    address = store_address(place, settings)
    key = key_for(place, address)
    if key is None:
        return
    from handrail.store.open_engine import check_own, database_path  # noqa: PLC0415 - only once something is stored

    if not address:
        check_own(place.project)
    file = database_path(address, place.project)
    if file.is_file():
        from handrail.store.origin import made_here, not_made_here  # noqa: PLC0415 - as above

        if not made_here(file, key):
            raise not_made_here(file)


def check_place_of_store(place: WorkPlace, settings: Settings) -> None:
    """The first half of it: the project's file may have come with a cloned repository, and records would be sent
    wherever it says."""
    from handrail.kernel.errors import StoreNotTrusted  # noqa: PLC0415 - only once something is stored
    from handrail.outside.trusted_stores import is_trusted, lies_outside  # noqa: PLC0415 - as above
    from handrail.settings import CONFIG_FILE, said_by_project  # noqa: PLC0415 - as above
    from handrail.store.open_engine import shown_address  # noqa: PLC0415 - as above

    check_shared(settings)
    db = "" if settings.global_store else settings.db
    if not lies_outside(db, place.project) or place.environ.get("HANDRAIL_DB") == db:
        return
    if said_by_project(place.project, "db") == db and not is_trusted(db, project=place.project, home=place.home):
        raise StoreNotTrusted(
            f"{CONFIG_FILE} of this project names a store elsewhere: {shown_address(db, place.project)}",
            hint="if you trust that file's author, run `handrail db trust` once; else name a store with HANDRAIL_DB",
        )


def key_for(place: WorkPlace, address: str) -> MachineKey | None:
    """What a store at this address is recognised by. None for a server: its users named it, several machines share it,
    and whoever may write to it was let in by the server itself."""
    if "://" in address:
        return None
    from handrail.outside.machine_key import machine_key  # noqa: PLC0415 - only once something is stored

    return machine_key(place.home)

"""The store: may it be where it is, does it match this version, does somebody keep others from writing, is there only
one? Checks without changing: nothing is created, upgraded or locked for longer than a moment."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from handrail import __version__
from handrail.kernel.errors import (
    PlaceUnusable,
    SettingInvalid,
    StoreBusy,
    StoreNotTrusted,
    StoreRefused,
    StoreUnusable,
)
from handrail.outside.machine_key import known_key
from handrail.outside.store_files import open_signs, way_on
from handrail.outside.trusted_settings import agreed_for
from handrail.settings import CONFIG_FILE, Settings, load_settings
from handrail.setup.findings import Finding, Patient, broken, run_checks, well
from handrail.store.lease_clock import anchor_of, how_far_set, machine_time, off_remark, set_remark
from handrail.store.marks import MOVED_KEY, is_moved, moved
from handrail.store.migrations import LATEST
from handrail.store.open_engine import (
    DATABASE,
    POSTGRES,
    STATE_FOLDER,
    check_own,
    database_path,
    shown_address,
    user_database,
)
from handrail.store.places import network_file_system
from handrail.store.statements import ANCHOR
from handrail.store.write_lock import WriteLock
from handrail.store_wiring import WorkPlace, check_place_of_store

ANSWER_S = 3
"""How long a database server is waited for."""
GATE_S = 1.0
"""Longer than any proper write holds the gate."""
UPGRADE = "handrail db upgrade"
SKIPPED = {".git", "node_modules", ".venv", "venv", STATE_FOLDER}
OF_REPOSITORY = "SELECT count(*) FROM workflow WHERE repository_path = ?"
LOOKED_AT = 2000
"""How many folders are searched for a stray database."""


def settings_of(patient: Patient) -> Settings | Finding:
    """The settings in force, or why there are none."""
    try:
        agreed = agreed_for(patient.project, patient.home)
        return load_settings(given={}, environ=patient.environ, project=patient.project, agreed=agreed)
    except SettingInvalid as problem:
        return broken("settings", problem.message, problem.hint)


def check_state_folder(patient: Patient) -> Iterator[Finding]:
    folder = patient.project / STATE_FOLDER
    if folder.is_symlink():
        yield broken("folder", f"{folder} is a symbolic link", "remove it: Handrail does not follow one there")
    elif not folder.exists():
        if not os.access(patient.project, os.W_OK):
            yield broken("folder", f"{patient.project} cannot be written", "make it writable, or set db")
    elif not folder.is_dir():
        yield broken("folder", f"{folder} is not a folder", "move it away")
    elif not os.access(folder, os.W_OK | os.X_OK):
        yield broken("folder", f"{folder} cannot be written", f"chmod u+rwx {folder}, or make it yours")
    else:
        yield well("folder", f"{folder}: writable")


def check_store(patient: Patient, settings: Settings) -> Iterator[Finding]:
    address = str(user_database(patient.home)) if settings.global_store else settings.db
    if not _is_ours_to_use(patient, settings):
        what = f"{CONFIG_FILE} names a store elsewhere, {shown_address(address, patient.project)}, which nobody trusted"
        command = "handrail trust" if settings.global_store else "handrail db trust"
        yield broken("store", what, f"{command}, if you trust its author; else name a store: HANDRAIL_DB")
        return
    if address.startswith(POSTGRES):
        yield from _server(address)
    else:
        path = database_path(address, patient.project)
        if not address:
            try:
                check_own(patient.project)
            except StoreUnusable as problem:
                yield broken("store", problem.message, problem.hint)
                return
        yield from _place(path)
        if path.is_file():
            found = list(_file(path))
            if not any(one.level == "broken" for one in found):
                strange = list(_strange(path, patient.home))
                done_by_trust = UPGRADE if any("db trust" in one.fix for one in strange) else None
                found = [one for one in found if one.fix != done_by_trust]
                found = [*strange, *(one for one in found if not strange or one.level != "ok")]
            yield from found
            yield from _gate(path)
        elif Path(f"{path}-wal").exists():
            what = f"{path} is gone, but {path.name}-wal is still there"
            yield broken("store", what, "bring the database back; writes that are only in that file are lost with it")
        else:
            yield well("store", f"{path}: made at the first write")
    yield from _other_stores(patient, settings, address)


def _strange(path: Path, home: Path) -> Iterator[Finding]:
    """Why the store is not used before its user trusted it: the same rules as for every other command."""
    signs = open_signs(path, home)
    for sign in signs:
        yield broken("store", f"{sign.what}; it is not used", way_on([sign]))
    if any(not sign.may_be_trusted for sign in signs):  # looking into it would write that file into it
        return
    from handrail.store.origin import made_here, not_made_here  # noqa: PLC0415 - only if there is a file

    try:
        key = known_key(home)
        if key is None or not made_here(path, key):
            told = not_made_here(path)
            yield broken("store", told.message, told.hint)
    except PlaceUnusable as problem:
        yield broken("store", problem.message, problem.hint)
    except StoreRefused:
        return  # said below, in more words


def _is_ours_to_use(patient: Patient, settings: Settings) -> bool:
    """The same rule as for every other command. Opens nothing."""
    place = WorkPlace(project=patient.project, folder=patient.project, home=patient.home, environ=patient.environ)
    try:
        check_place_of_store(place, settings)
    except StoreNotTrusted:
        return False
    return True


def _place(path: Path) -> Iterator[Finding]:
    network = network_file_system(path)
    if network is not None:
        fix = "put it on a local disk: db in .handrail/config.toml, or a postgresql:// address"
        yield broken("store", f"{path} is on {network}, where processes cannot share SQLite safely", fix)


def _file(path: Path) -> Iterator[Finding]:
    import apsw  # noqa: PLC0415 - only if there is a file

    from handrail.store.shapes import strangers  # noqa: PLC0415 - as above
    from handrail.store.sqlite import APPLICATION_ID  # noqa: PLC0415 - as above
    from handrail.store.sqlite_connections import inert  # noqa: PLC0415 - as above

    try:
        connection = inert(str(path), apsw.SQLITE_OPEN_READONLY)
        try:
            schema = int(connection.execute("PRAGMA user_version").get)
            owner = connection.execute("PRAGMA application_id").get
            filled = connection.execute("SELECT count(*) FROM sqlite_schema").get
            needs = connection.execute("SELECT value FROM meta WHERE key = 'needs'").get if schema else ""
            anchor = connection.execute(ANCHOR).get if owner == APPLICATION_ID and schema else None
            moved_to = connection.execute("SELECT value FROM meta WHERE key = ?", (MOVED_KEY,)).get if schema else ""
            odd = strangers(connection, schema) if owner == APPLICATION_ID and schema <= LATEST else []
        finally:
            connection.close()
    except apsw.Error as problem:
        yield broken("store", f"{path} cannot be read: {problem}", "handrail db restore BACKUP, or another file")
        return
    if owner != APPLICATION_ID and filled:
        yield broken("store", f"{path} is a database of something else", "choose another file: db")
    elif is_moved(schema):
        told = moved(str(path), moved_to)
        yield broken("store", told.message, told.hint)
    elif schema > LATEST:
        what = f"{path} has schema {schema}; this Handrail {__version__} knows {LATEST}"
        yield broken("store", what, f"use Handrail {needs} or newer; this one cannot open it")
    elif odd:
        what = f"{path} was changed by something other than Handrail: {odd[0]}"
        yield broken("store", what, "handrail db rebuild, if you trust what it records; else move it away")
    elif schema < LATEST:
        yield run_checks("store", f"{path} has schema {schema}, older than {LATEST}", UPGRADE)
    else:
        yield well("store", f"{path}: schema {schema}")
    yield from _clock(set_remark(how_far_set(anchor_of(anchor), machine_time())))


def _server(address: str) -> Iterator[Finding]:
    """A PostgreSQL: whether it answers, and whether this machine's clock is the same as its own."""
    try:
        from handrail.store.postgres import clock_ahead_ms  # noqa: PLC0415 - its driver is heavy and optional

        ahead_ms = clock_ahead_ms(address, ANSWER_S)
    except StoreRefused as problem:
        yield broken("store", problem.message, problem.hint)
        return
    yield well("store", "PostgreSQL answers; handrail db check looks at what it holds")
    yield from _clock(off_remark(ahead_ms))


def _clock(remark: str | None) -> Iterator[Finding]:
    if remark is not None:
        yield run_checks("clock", remark, "look after its time service: timedatectl shows whether it is synchronised")


def _gate(path: Path) -> Iterator[Finding]:
    file = Path(f"{os.path.realpath(path)}.gate")
    if not file.exists():
        return
    gate = WriteLock(file, GATE_S)
    try:
        with gate.held():
            pass
    except StoreBusy as busy:
        yield broken("lock", busy.message, busy.hint.partition(",")[0])
    except StoreRefused as problem:
        yield broken("lock", problem.message, problem.hint)
    else:
        yield well("lock", "nobody keeps others from writing")
    finally:
        gate.close()


def _other_stores(patient: Patient, settings: Settings, address: str) -> Iterator[Finding]:
    """Reports other stores: work in a store that is not in use is not found."""
    used = address if address.startswith(POSTGRES) else str(database_path(address, patient.project))
    shown = "PostgreSQL" if address.startswith(POSTGRES) else used
    own = database_path("", patient.project)
    is_used = os.path.realpath(own) == os.path.realpath(used)
    if own.is_file() and not is_used and not is_moved(_number(own, "PRAGMA user_version")):
        source = "global_store" if settings.global_store else "db"
        fix = f"handrail db backup to keep it, then remove {own}; or take {source} out of the settings"
        yield broken("stores", f"two stores: {shown} is used, and {own} lies here too", fix)
    everybodys = user_database(patient.home)
    if everybodys.is_file() and os.path.realpath(everybodys) != os.path.realpath(used):
        count = _number(everybodys, OF_REPOSITORY, str(patient.project))
        if count:
            what = f"two stores: {shown} is used, and {everybodys} has {count} workflows of this repository"
            yield broken("stores", what, "set global_store = true to use that one, or end them with --global")
    for stray in _strays(patient.project):
        if os.path.realpath(stray) not in (os.path.realpath(used), os.path.realpath(own)):
            yield run_checks("stores", f"{stray} is a store that nothing here uses", "remove it, or open it with --db")


def _number(path: Path, question: str, *given: str) -> int:
    """A store's answer; 0 for one that cannot be read."""
    import apsw  # noqa: PLC0415 - only if there is a file

    from handrail.store.sqlite_connections import inert  # noqa: PLC0415 - as above

    try:
        with contextlib.closing(inert(str(path), apsw.SQLITE_OPEN_READONLY)) as connection:
            return int(connection.execute(question, given).get)
    except apsw.Error:
        return 0


def _strays(project: Path) -> list[Path]:
    """Databases elsewhere in the project: in its root, or in state folders of its subfolders."""
    found = [project / DATABASE] if (project / DATABASE).is_file() else []
    for folder, names, _ in itertools.islice(os.walk(project), LOOKED_AT):
        if folder != str(project) and STATE_FOLDER in names and (Path(folder) / STATE_FOLDER / DATABASE).is_file():
            found.append(Path(folder) / STATE_FOLDER / DATABASE)
        names[:] = [name for name in names if name not in SKIPPED]
    return found

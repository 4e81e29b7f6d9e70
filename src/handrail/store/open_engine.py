"""From an address to an engine: a file, a postgresql:// address, or nothing, which means the project's own file. Also
where a user's one store for all repositories is."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.domain.setup.state_files import STATE_FILES
from handrail.kernel.errors import StoreUnusable
from handrail.kernel.late import late_module
from handrail.kernel.provenance import MachineKey
from handrail.store.addresses import POSTGRES as POSTGRES  # noqa: PLC0414 - callers that open stores import it from here
from handrail.store.addresses import shown_server
from handrail.store.ports import LastingEngine

if TYPE_CHECKING:
    from handrail.store import postgres, sqlite
else:
    postgres = late_module("handrail.store.postgres")
    sqlite = late_module("handrail.store.sqlite")

STATE_FOLDER = ".handrail"
DATABASE = "handrail.db"
_IGNORED = f"""\
# The database is this machine's; everything else in this folder is the team's to commit.
{STATE_FILES}"""


def database_path(db: str, project: Path) -> Path:
    """The file meant by `db`; relative paths start at the project."""
    return project / db if db else project / STATE_FOLDER / DATABASE


def user_database(home: Path) -> Path:
    """The user's store for many repositories."""
    return home / STATE_FOLDER / DATABASE


def make_user_folder(home: Path) -> None:
    """Makes the user's state folder, which nobody else may look into."""
    folder = home / STATE_FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"{folder} cannot be made: {error.strerror}", hint="choose a file with --db") from None


def shown_address(db: str, project: Path) -> str:
    """An address to show: the file's path, or the server without any password."""
    return shown_server(db) if "://" in db else str(database_path(db, project))


def holds_password(db: str, project: Path) -> bool:
    return db.startswith(POSTGRES) and shown_address(db, project) != db


def open_engine(db: str, *, project: Path, version: str, durable: bool, key: MachineKey | None = None) -> LastingEngine:
    """Opens the engine behind an address. With a key, a file is marked as this machine's when it is made, and refused
    if it is somebody else's; a server is its users' own choice."""
    if db.startswith(POSTGRES):
        return postgres.PostgresEngine(db, version=version)
    if "://" in db:
        raise StoreUnusable(f"{db.partition('://')[0]} is no store Handrail knows", hint="a file, or postgresql://…")
    path = database_path(db, project)
    if not db:
        _make_state_folder(path.parent)
        check_own(project)
    return sqlite.SqliteEngine(path, version=version, durable=durable, key=key)


def check_own(project: Path) -> None:
    """Raises StoreUnusable if a link in place of the project's own store leads out of the project: it may have come
    with the repository, and whatever is recorded would go where it points."""
    path = database_path("", project)
    real = os.path.realpath(path)  # Path.resolve would fail on circular links
    if not Path(real).is_relative_to(os.path.realpath(project)):
        raise StoreUnusable(
            f"{path} is a link that leads out of the project, to {real}",
            hint="remove it; if you want that store, name it with --db or HANDRAIL_DB",
        )


def _make_state_folder(folder: Path) -> None:
    """Makes the project's state folder, with a .gitignore that leaves the team's files alone."""
    if folder.is_symlink():  # it may have come with the repository, and lead anywhere
        raise StoreUnusable(f"{folder} is a symbolic link", hint="remove it, or choose a file with --db")
    try:
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as written:
            written.write(_IGNORED)
    except OSError as error:
        raise StoreUnusable(f"{folder} cannot be made: {error.strerror}", hint="choose a file with --db") from None

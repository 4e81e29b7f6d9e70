"""From an address to an engine: a file, a postgresql:// address, or nothing said, which means the project's own
file. Also where a user's one store for all repositories is."""

from __future__ import annotations

import contextlib
from pathlib import Path

from handrail.kernel.errors import StoreUnusable
from handrail.store.reading import Engine

STATE_FOLDER = ".handrail"
DATABASE = "handrail.db"
_IGNORED = """\
# The database is this machine's; everything else in this folder is the team's to commit.
handrail.db*
*.gate
snapshots/
"""
POSTGRES = ("postgresql://", "postgres://")


def database_path(db: str, project: Path) -> Path:
    """The file meant by `db`; relative ones start at the project."""
    return project / db if db else project / STATE_FOLDER / DATABASE


def user_database(home: Path) -> Path:
    """The user's store for many repositories."""
    return home / STATE_FOLDER / DATABASE


def make_user_folder(home: Path) -> None:
    """The user's folder for state, which nobody else may look into."""
    folder = home / STATE_FOLDER
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreUnusable(f"{folder} cannot be made: {error.strerror}", hint="choose a file with --db") from None


def open_engine(db: str, *, project: Path, version: str, durable: bool) -> Engine:
    """The engine behind an address, opened."""
    if db.startswith(POSTGRES):
        from handrail.store.postgres import PostgresEngine  # noqa: PLC0415 - its driver is heavy and optional

        return PostgresEngine(db, version=version)
    if "://" in db:
        raise StoreUnusable(f"{db.partition('://')[0]} is no store Handrail knows", hint="a file, or postgresql://…")
    from handrail.store.sqlite import SqliteEngine  # noqa: PLC0415 - not needed with PostgreSQL

    path = database_path(db, project)
    if not db:
        _make_state_folder(path.parent)
    return SqliteEngine(path, version=version, durable=durable)


def _make_state_folder(folder: Path) -> None:
    """The project's folder for state, with a .gitignore that leaves the team's files alone."""
    if folder.is_symlink():  # it may have come with the repository, and lead anywhere
        raise StoreUnusable(f"{folder} is a symbolic link", hint="remove it, or choose a file with --db")
    try:
        folder.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError), (folder / ".gitignore").open("x", encoding="utf-8") as written:
            written.write(_IGNORED)
    except OSError as error:
        raise StoreUnusable(f"{folder} cannot be made: {error.strerror}", hint="choose a file with --db") from None

"""Where an event happened: the project, the working copy, and the store that is meant there. Only looks, creates
nothing.

Gives the same answers as `outside/project.py`, `settings.py`, `outside/trusted_stores.py` and `store/open_engine.py`,
without what they load; tests compare them. A store that may be a stranger's doing (`provenance.py`) counts as none, and
so does one elsewhere, on a server or the one of all repositories, that only the project's file names and nobody
trusted.
"""

from __future__ import annotations

import os

from handrail.hooks.event_input import HookInput
from handrail.kernel.late import late_module
from handrail.kernel.limits import CONFIG_FILE_BYTES, GIT_FILE_BYTES
from handrail.kernel.provenance import MachineKey
from handrail.regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    import hashlib

    from handrail.hooks import provenance
    from handrail.kernel import toml_values
else:
    hashlib = late_module("hashlib")
    provenance = late_module("handrail.hooks.provenance")
    toml_values = late_module("handrail.kernel.toml_values")

SERVERS = ("postgresql://", "postgres://")
_STATE = ".handrail"
_DATABASE = "handrail.db"
_TRUE = ("true", "1")


class Options:
    """What follows the event on the command line. Anything unknown raises: it may have been meant to matter."""

    __slots__ = ("client", "db", "global_store", "refuse")

    def __init__(self, words: list[str]) -> None:
        self.client = ""
        """Who runs the hook, as `handrail init` wrote it."""
        self.db = ""
        self.global_store = False
        self.refuse = False
        rest = iter(words)
        for word in rest:
            if word == "--refuse":
                self.refuse = True
            elif word == "--global":
                self.global_store = True
            elif word == "--db":
                self.db = next(rest)
            elif word == "--client":
                self.client = next(rest)
            elif word.startswith("--db="):
                self.db = word[5:]
            else:
                raise ValueError(word)


class Place:
    """Where an event happened."""

    __slots__ = ("agent", "folder", "home", "key", "mark", "project", "server", "shared", "store")

    def __init__(
        self,
        *,
        folder: str,
        project: str,
        store: str,
        shared: bool,
        agent: str,
        home: str = "",
        key: MachineKey | None = None,
    ) -> None:
        self.folder = folder
        self.project = project
        self.home = home
        self.store = store
        """The store's file; for a server, the name beside which notes are kept."""
        self.server = ""
        """The address of a store that is on a server."""
        self.shared = shared
        """Whether the store may also have tasks of other repositories."""
        self.key = key
        """What a file is recognised by."""
        self.mark = ""
        """The mark that it was recognised by, once it is open."""
        self.agent = agent
        """Whose hook this is, if known."""


def here(given: HookInput, environ: os._Environ[str]) -> str:
    """The folder that a client works in."""
    return os.path.realpath(given.cwd or environ.get("CLAUDE_PROJECT_DIR") or os.getcwd())  # noqa: PTH109 - pathlib is heavy


def find_place(folder: str, options: Options, environ: os._Environ[str]) -> Place | None:
    """The place that a folder is in; None if there is no store, or none that may be asked."""
    project = find_project(folder)
    address, is_global, is_theirs = _address(project, options, environ)
    home = os.path.expanduser("~")  # noqa: PTH111 - as above
    agent = environ.get("HANDRAIL_AGENT_ID") or ""
    if "://" in address:
        if not address.startswith(SERVERS) or (is_theirs and not _trusts(project, address, home)):
            return None
        notes = os.path.join(home, _STATE, f"postgresql-{_digest(address)[:16]}")  # noqa: PTH118 - as above
        place = Place(folder=folder, project=project, store=notes, shared=True, agent=agent, home=home)
        place.server = address
        place.mark = f"postgresql {_digest(address)}"
        return place
    store = _store_file(project, home, address, is_global=is_global, is_theirs=is_theirs)
    if store is None or not os.path.isfile(store):  # noqa: PTH113 - as above
        return None
    if is_theirs and not is_global and not _is_within(store, project) and not _trusts(project, address, home):
        return None
    key = provenance.own_key(home)
    if key is None or not provenance.is_believed(store, home):
        return None
    inside = store.startswith(project.rstrip(os.sep) + os.sep)
    shared = is_global or (not address and project == home) or (bool(address) and not inside)
    return Place(folder=folder, project=project, store=store, shared=shared, agent=agent, home=home, key=key)


def _store_file(project: str, home: str, address: str, *, is_global: bool, is_theirs: bool) -> str | None:
    if is_global and is_theirs and not _trusts_shared(project, home):
        return None
    if is_global:
        return os.path.join(home, _STATE, _DATABASE)  # noqa: PTH118 - as above
    if address:
        return os.path.normpath(os.path.join(project, address))  # noqa: PTH118 - as above
    own = os.path.join(project, _STATE)  # noqa: PTH118 - as above
    store = os.path.join(own, _DATABASE)  # noqa: PTH118 - as above
    if os.path.islink(own) or not _is_within(store, project):  # noqa: PTH114 - links that came with the repository
        return None
    return store


def _trusts(project: str, address: str, home: str) -> bool:
    """Whether the user has agreed that this project's records may go to an address."""
    return provenance.is_agreed(f"{os.path.realpath(project)}\0{address}", home)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()


def find_project(folder: str) -> str:
    """The root of git's main worktree; outside git, the folder itself."""
    top = working_copy(folder)
    if top is None:
        return folder
    marker = os.path.join(top, ".git")  # noqa: PTH118 - as above
    return top if os.path.isdir(marker) else _main_worktree(top, marker) or top  # noqa: PTH112 - as above


def working_copy(folder: str) -> str | None:
    """The root of the working copy that contains a folder; None outside git."""
    for above in folders_above(folder):
        marker = os.path.join(above, ".git")  # noqa: PTH118 - as above
        if os.path.isdir(marker) or os.path.isfile(marker):  # noqa: PTH112, PTH113 - as above
            return above
    return None


def folders_above(folder: str) -> list[str]:
    """The folder and its parents."""
    found = [folder]
    while (above := os.path.dirname(found[-1])) != found[-1]:  # noqa: PTH120 - as above
        found.append(above)
    return found


def _main_worktree(top: str, marker: str) -> str | None:
    """The main worktree of the linked worktree whose `.git` file is `marker`; None for a submodule and the like."""
    try:
        git_dir = os.path.realpath(os.path.join(top, _text(marker).removeprefix("gitdir:").strip()))  # noqa: PTH118 - as above
        common = os.path.realpath(os.path.join(git_dir, _text(os.path.join(git_dir, "commondir"))))  # noqa: PTH118 - as above
    except (OSError, UnicodeDecodeError):
        return None
    return os.path.dirname(common) if os.path.basename(common) == ".git" else None  # noqa: PTH119, PTH120 - as above


def _text(path: str) -> str:
    return read_regular(path, GIT_FILE_BYTES).decode().strip()


def _is_within(file: str, folder: str) -> bool:
    """Whether a file is in a folder, following links."""
    return os.path.realpath(file).startswith(os.path.realpath(folder).rstrip(os.sep) + os.sep)


def _trusts_shared(project: str, home: str) -> bool:
    """Whether the user has agreed that this project may choose the store of all repositories."""
    begin = os.path.realpath(project).encode(errors="surrogateescape")
    mark = hashlib.sha256(begin + b'\0["global_store",true]').hexdigest()
    file = os.path.join(home, _STATE, "trusted-settings.json")  # noqa: PTH118 - as above
    try:
        found = os.lstat(file)
        is_private = os.name != "posix" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
        return is_private and mark in _text(file)
    except (OSError, UnicodeDecodeError):
        return False


def _address(project: str, options: Options, environ: os._Environ[str]) -> tuple[str, bool, bool]:
    """The store's address (empty for the project's own), whether it is the user's one store for all repositories, and
    whether the project's file names it. The first place that says anything about either counts: command line,
    environment, project's file."""
    if options.db or options.global_store:
        return options.db, options.global_store, False
    is_global = environ.get("HANDRAIL_GLOBAL_STORE", "").lower() in _TRUE
    if is_global or "HANDRAIL_DB" in environ:
        return "" if is_global else environ["HANDRAIL_DB"], is_global, False
    configured = read_config(project, b"db", b"global_store")
    is_global = str(configured.get("global_store", "")).lower() in _TRUE and "HANDRAIL_GLOBAL_STORE" not in environ
    return "" if is_global else str(configured.get("db", "")), is_global, True


def read_config(project: str, *names: bytes) -> dict[str, object]:
    """What the project's file says, if it may say anything about one of these. Raises whatever is wrong with it: no
    server starts with such a file either."""
    path = os.path.join(project, _STATE, "config.toml")  # noqa: PTH118 - as above
    try:
        written = read_regular(path, CONFIG_FILE_BYTES, within=project)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    # Most files mention none, and parsing TOML takes as long as all the rest. A name may be written with escapes.
    if not any(name in written for name in names) and b"\\" not in written:
        return {}
    return toml_values.parse_toml(written)

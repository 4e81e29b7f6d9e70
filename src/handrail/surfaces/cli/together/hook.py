"""`handrail hook`: run by git before a commit, and by clients before an edit. It reports files that other agents have
reserved, and never gets in the way: if anything is unexpected or slow, it lets them continue.

It reads the store itself rather than through the wiring: a hook needs little of Handrail. What happens before an edit
is the clients' hook program (`hooks/before_edit.py`).
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

from handrail.kernel.late import late_module

if TYPE_CHECKING:
    import handrail
    from handrail import settings as settings_module
    from handrail import wiring
    from handrail.domain.journal import paths
    from handrail.domain.workspaces import reservations
    from handrail.hooks import __main__ as hooks
    from handrail.kernel import ledger
    from handrail.outside import machine_key, project, store_files, trusted_settings, trusted_stores, world
    from handrail.outside.tracking import discovery, git_process
    from handrail.store import open_engine, store
    from handrail.surfaces.cli import columns
else:
    handrail = late_module("handrail")
    columns = late_module("handrail.surfaces.cli.columns")
    discovery = late_module("handrail.outside.tracking.discovery")
    git_process = late_module("handrail.outside.tracking.git_process")
    hooks = late_module("handrail.hooks.__main__")
    ledger = late_module("handrail.kernel.ledger")
    machine_key = late_module("handrail.outside.machine_key")
    open_engine = late_module("handrail.store.open_engine")
    paths = late_module("handrail.domain.journal.paths")
    project = late_module("handrail.outside.project")
    reservations = late_module("handrail.domain.workspaces.reservations")
    settings_module = late_module("handrail.settings")
    store = late_module("handrail.store.store")
    store_files = late_module("handrail.outside.store_files")
    trusted_settings = late_module("handrail.outside.trusted_settings")
    trusted_stores = late_module("handrail.outside.trusted_stores")
    wiring = late_module("handrail.wiring")
    world = late_module("handrail.outside.world")

OWN_AGENT = "HANDRAIL_AGENT_ID"
"""The variable that tells a hook whose edits and commits it sees."""
COMMIT_S = 5.0
EDIT_S = 2.0
"""How long a check may take before it is abandoned."""
SHOWN_FILES = 10
TEXT = 200

ResultT = TypeVar("ResultT")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class ReservedFiles(NamedTuple):
    """Which of some files others have reserved, and when that was checked."""

    kept: list[reservations.ReservedByOther]
    now: int


def _options(command: CommandT) -> CommandT:
    for option in (
        click.option("--global", "global_store", is_flag=True, help="One store for all repositories, in ~/.handrail."),
        click.option("--db", metavar="PATH|URL", help="The store: a file, or a postgresql:// address."),
        click.option("--refuse", is_flag=True, help="Refuse, where else is warned."),
    ):
        command = option(command)
    return command


@click.group()
def hook() -> None:
    """Warn, from a git or client hook, about files that others have reserved.

    Files reserved by the agent in HANDRAIL_AGENT_ID do not count.
    """


@hook.command("pre-commit")
@_options
def pre_commit(refuse: bool, **chosen: Any) -> None:
    """List staged files that others have reserved.

    With --refuse, stop the commit.
    """
    try:
        looked = _in_time(COMMIT_S, lambda: _look_at_staged(chosen))
    except Exception as problem:  # noqa: BLE001 - nothing that fails here may block a commit
        click.echo(f"handrail: nobody knows what is reserved here: {_line(str(problem))}", err=True)
        return
    if looked is None or not looked.kept:
        return
    for line in _warning_lines(looked):
        click.echo(line, err=True)
    if refuse:
        click.echo("handrail: nothing is committed; leave these files out, wait, or ask their agents.", err=True)
        sys.exit(1)


@hook.command("pre-tool-use")
@_options
def pre_tool_use(refuse: bool, **chosen: Any) -> None:
    """Answer a client that is about to edit a file.

    Reads the hook's JSON and prints its answer, or nothing. The same as `python -m handrail.hooks before`, which starts
    faster.
    """
    words = [*(["--refuse"] if refuse else []), *(["--global"] if chosen.get("global_store") else [])]
    words += ["--db", chosen["db"]] if chosen.get("db") else []
    try:
        answer = _in_time(EDIT_S, lambda: hooks.answer(["before", *words], os.environ))
    except Exception:  # noqa: BLE001 - nothing that fails here may stop an agent
        return
    if answer:
        click.echo(answer.decode())


def _look_at_staged(chosen: dict[str, Any]) -> ReservedFiles | None:
    deadline, here = git_process.Deadline(COMMIT_S), Path.cwd()
    repository = discovery.discover(str(here), deadline)
    if repository is None:
        return None
    # A partial commit has an index of its own, which git names to its hooks.
    index = os.environ.get("GIT_INDEX_FILE")
    listed = repository.run(
        *("diff", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z"),
        deadline=deadline,
        environment={"GIT_INDEX_FILE": str(here / index)} if index else None,
    )
    files = [paths.path_text(name) for name in listed.split(b"\0") if name]
    return _reservations_of(project.find_project(Path(repository.top)), files, chosen) if files else None


def _reservations_of(root: Path, files: Sequence[str], chosen: dict[str, Any]) -> ReservedFiles | None:
    """What others have reserved of these files; None if nothing was ever stored."""
    given = {name: value for name, value in chosen.items() if value}
    home = Path.home()
    agreed = trusted_settings.agreed_for(root, home)
    settings = settings_module.load_settings(given=given, environ=os.environ, project=root, agreed=agreed)
    address = str(open_engine.user_database(home)) if settings.global_store else settings.db
    file = None if "://" in address else open_engine.database_path(address, root)
    if file is not None and not file.exists():
        return None
    if settings.global_store or trusted_stores.lies_outside(settings.db, root):
        wiring.check_trusted(wiring.WorkPlace(project=root, home=home, environ=os.environ), settings)
    key = None
    if file is not None:
        store_files.check_store_files(file, home)
        key = machine_key.machine_key(home)
    engine = open_engine.open_engine(
        address, project=root, version=handrail.__version__, durable=settings.durable, key=key
    )
    try:
        looking = store.Store(engine, ids=world.RandomIds(world.SystemClock()))
        own = os.environ.get(OWN_AGENT)
        return looking.run(
            ledger.Actor("handrail", "hook"),
            lambda unit: ReservedFiles(reservations.kept_from(unit, str(root), files, own), unit.now_ms()),
        )
    finally:
        engine.close()


def _in_time(seconds: float, work: Callable[[], ResultT]) -> ResultT | None:
    """What `work` returns or raises; None if it takes longer. It is not waited for then: the process ends anyway."""
    done: list[ResultT] = []
    failed: list[Exception] = []

    def run() -> None:
        try:
            done.append(work())
        except Exception as problem:  # noqa: BLE001 - raised again in the caller
            failed.append(problem)

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    worker.join(seconds)
    if failed:
        raise failed[0]
    return done[0] if done else None


def _warning_lines(looked: ReservedFiles) -> list[str]:
    lines = ["handrail: others keep files for themselves that are in this commit:"]
    for kept in looked.kept:
        lines.append(f"  {_holder_and_reason(kept, looked.now)}")
        lines += [f"    {_line(path)}" for path in kept.files[:SHOWN_FILES]]
        if len(kept.files) > SHOWN_FILES:
            lines.append(f"    and {len(kept.files) - SHOWN_FILES} more")
    return lines


def _holder_and_reason(kept: reservations.ReservedByOther, now: int) -> str:
    """Who reserved it, until when, and why. Names and reasons are agents' own words: kept short and on one line."""
    reservation = kept.reservation
    until = time.strftime("%H:%M", time.localtime(reservation.expires_at / 1000))
    minutes = -((now - reservation.expires_at) // 60_000)
    why = f": {_line(reservation.reason)}" if reservation.reason else ""
    return f"{_line(kept.name)} ({reservation.agent_id}) until {until}, {minutes} min more{why}"


def _line(text: str) -> str:
    return columns.fit(text, TEXT)

"""`handrail hook`: run by git and by agents' clients before a commit or an edit. It reports files that other agents
have reserved, and never gets in the way: if anything is unexpected or slow, it lets them continue.

It reads the store itself rather than through the wiring: a hook runs before every edit and needs little of Handrail.
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

if TYPE_CHECKING:
    from handrail.domain.workspaces.reservations import ReservedByOther

OWN_AGENT = "HANDRAIL_AGENT_ID"
"""The variable that tells a hook whose edits and commits it sees."""
COMMIT_S = 5.0
EDIT_S = 2.0
"""How long a check may take before it is abandoned."""
READING = ("Read", "Glob", "Grep", "LS", "NotebookRead")
"""Clients' tools that change nothing."""
MOST_STDIN = 64 * 1024 * 1024
SHOWN_FILES = 10
TEXT = 200

ResultT = TypeVar("ResultT")
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


class ReservedFiles(NamedTuple):
    """Which of some files others have reserved, and when that was checked."""

    kept: list[ReservedByOther]
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
def pre_commit(refuse: bool, **store: Any) -> None:
    """List staged files that others have reserved.

    With --refuse, stop the commit.
    """
    try:
        looked = _in_time(COMMIT_S, lambda: _look_at_staged(store))
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
def pre_tool_use(refuse: bool, **store: Any) -> None:
    """Answer a client that is about to edit a file.

    Reads the hook's JSON and prints its answer, or nothing.
    """
    try:
        answer = _in_time(EDIT_S, lambda: answer_to(_read_stdin(), refuse=refuse, **store))
    except Exception:  # noqa: BLE001 - nothing that fails here may stop an agent
        return
    if answer is not None:
        import msgspec  # noqa: PLC0415 - only where there is something to say

        click.echo(msgspec.json.encode(answer).decode())


def answer_to(given: bytes, *, refuse: bool, **store: Any) -> dict[str, Any] | None:
    """What to tell the client about the edit it announces; None if nothing."""
    import msgspec  # noqa: PLC0415 - nothing is imported before a hook is chosen

    call = msgspec.json.decode(given)
    asked = call["tool_input"]
    named = asked.get("file_path") or asked.get("notebook_path")
    if call.get("tool_name") in READING or not isinstance(named, str):
        return None
    started = Path(call.get("cwd") or Path.cwd())
    place = _place_of(started / named, started)
    if place is None:
        return None
    project, file = place
    looked = _reservations_of(project, [file], store)
    if looked is None or not looked.kept:
        return None
    words = f"{_line(file)} is kept by {'; and by '.join(_holder_and_reason(kept, looked.now) for kept in looked.kept)}"
    about: dict[str, Any] = {"hookEventName": "PreToolUse"}
    if refuse:
        reason = f"{words}. Work on something else until then, or ask with message_send."
        return {"hookSpecificOutput": {**about, "permissionDecision": "deny", "permissionDecisionReason": reason}}
    told = f"{words}. Leave it alone until then, or ask with message_send first."
    return {"systemMessage": words, "hookSpecificOutput": {**about, "additionalContext": told}}


def _read_stdin() -> bytes:
    """All of standard input. Not through the buffered stream: that cannot be abandoned half-way."""
    found = bytearray()
    while len(found) < MOST_STDIN and (chunk := os.read(0, 1 << 16)):
        found += chunk
    return bytes(found)


def _look_at_staged(store: dict[str, Any]) -> ReservedFiles | None:
    from handrail.domain.journal.paths import path_text  # noqa: PLC0415 - as above
    from handrail.outside.project import find_project  # noqa: PLC0415 - as above
    from handrail.outside.tracking.discovery import discover  # noqa: PLC0415 - as above
    from handrail.outside.tracking.git_process import Deadline  # noqa: PLC0415 - as above

    deadline, here = Deadline(COMMIT_S), Path.cwd()
    repository = discover(str(here), deadline)
    if repository is None:
        return None
    # A partial commit has an index of its own, which git names to its hooks.
    index = os.environ.get("GIT_INDEX_FILE")
    listed = repository.run(
        *("diff", "--cached", "--name-only", "--no-renames", "--no-ext-diff", "-z"),
        deadline=deadline,
        environment={"GIT_INDEX_FILE": str(here / index)} if index else None,
    )
    files = [path_text(name) for name in listed.split(b"\0") if name]
    return _reservations_of(find_project(Path(repository.top)), files, store) if files else None


def _place_of(file: Path, started: Path) -> tuple[Path, str] | None:
    """The project that a file belongs to, and its path within its working copy; None if it is in none."""
    from handrail.domain.journal.paths import path_text  # noqa: PLC0415 - as above
    from handrail.outside.project import find_project  # noqa: PLC0415 - as above

    folder = file.parent.resolve()
    top = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), started.resolve())
    if not folder.is_relative_to(top):
        return None
    name = os.fsencode((folder / file.name).relative_to(top))
    return find_project(top), path_text(name.replace(os.sep.encode(), b"/"))


def _reservations_of(project: Path, files: Sequence[str], store: dict[str, Any]) -> ReservedFiles | None:
    """What others have reserved of these files; None if nothing was ever stored."""
    from handrail import __version__  # noqa: PLC0415 - as above
    from handrail.outside.machine_key import machine_key  # noqa: PLC0415 - as above
    from handrail.outside.store_files import check_store_files  # noqa: PLC0415 - as above
    from handrail.outside.trusted_settings import agreed_for  # noqa: PLC0415 - as above
    from handrail.outside.trusted_stores import lies_outside  # noqa: PLC0415 - as above
    from handrail.settings import load_settings  # noqa: PLC0415 - as above
    from handrail.store.open_engine import database_path, open_engine, user_database  # noqa: PLC0415 - as above

    given = {name: value for name, value in store.items() if value}
    agreed = agreed_for(project, Path.home())
    settings = load_settings(given=given, environ=os.environ, project=project, agreed=agreed)
    address = str(user_database(Path.home())) if settings.global_store else settings.db
    if "://" not in address and not database_path(address, project).exists():
        return None
    if settings.global_store or lies_outside(settings.db, project):
        from handrail.wiring import WorkPlace, check_trusted  # noqa: PLC0415 - only for a store elsewhere

        check_trusted(WorkPlace(project=project, home=Path.home(), environ=os.environ), settings)
    key = None
    if "://" not in address:
        check_store_files(database_path(address, project), Path.home())
        key = machine_key(Path.home())
    from handrail.domain.workspaces.reservations import kept_from  # noqa: PLC0415 - only where there is a store
    from handrail.kernel.ledger import Actor  # noqa: PLC0415 - as above
    from handrail.outside.world import RandomIds, SystemClock  # noqa: PLC0415 - as above
    from handrail.store.store import Store  # noqa: PLC0415 - as above

    engine = open_engine(address, project=project, version=__version__, durable=settings.durable, key=key)
    try:
        looking = Store(engine, ids=RandomIds(SystemClock()))
        own = os.environ.get(OWN_AGENT)
        return looking.run(
            Actor("handrail", "hook"),
            lambda unit: ReservedFiles(kept_from(unit, str(project), files, own), unit.now_ms()),
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


def _holder_and_reason(kept: ReservedByOther, now: int) -> str:
    """Who reserved it, until when, and why. Names and reasons are agents' own words: kept short and on one line."""
    reservation = kept.reservation
    until = time.strftime("%H:%M", time.localtime(reservation.expires_at / 1000))
    minutes = -((now - reservation.expires_at) // 60_000)
    why = f": {_line(reservation.reason)}" if reservation.reason else ""
    return f"{_line(kept.name)} ({reservation.agent_id}) until {until}, {minutes} min more{why}"


def _line(text: str) -> str:
    from handrail.surfaces.cli.columns import fit  # noqa: PLC0415 - only where there is something to say

    return fit(text, TEXT)

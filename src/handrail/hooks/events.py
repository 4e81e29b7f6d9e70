"""What each event does: describe the open task, remind of it, note edited files. How an answer looks to each client is
said in `callers.py`; what happens before an edit, in `before_edit.py`."""

from __future__ import annotations

import os

import apsw

from handrail.hooks import callers
from handrail.hooks.event_input import HookInput
from handrail.hooks.memory import edited_since, not_reminded, note_compaction, note_edits, notes_path, was_compacted
from handrail.hooks.open_tasks import OpenTask, journalled, open_store, open_tasks
from handrail.hooks.place import Options, Place
from handrail.kernel.late import late_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail.hooks import before_edit, context_text
else:
    before_edit = late_module("handrail.hooks.before_edit")
    context_text = late_module("handrail.hooks.context_text")

TOKENS = 1500
LEAST_TOKENS = 300
"""The space that ids, names and the next move need, however long they are."""
MOST_TOKENS = 20_000
OWN_FOLDERS = (".git", ".handrail")
SHOWN_FILES = 200
NAMED = 5
"""How many tasks a reminder names."""
_NAME = 80


def start(place: Place, given: HookInput, environ: os._Environ[str], client: str, now_ms: int) -> bytes:
    """The context of the open task within the budget, or a line for each if there are several."""
    text = start_text(place, environ, now_ms)
    return callers.context(client, given.event or "SessionStart", text) if text else b""


def start_text(place: Place, environ: os._Environ[str], now_ms: int) -> str:
    tokens = budget(environ.get("HANDRAIL_HOOK_TOKENS"))
    connection = open_store(place) if tokens else None
    if connection is None:
        return ""
    try:
        tasks = open_tasks(connection, place, now_ms)
        if not tasks:
            return ""
        if len(tasks) > 1:
            return context_text.tasks_text(tasks, place, tokens)
        return context_text.task_text(connection, tasks[0], place, _files_edited(place, tasks[0]), tokens)
    finally:
        connection.close()


def compacting(place: Place, given: HookInput, client: str, now_ms: int) -> bytes:
    """Notes that a conversation is compacted, for clients that do not start anew after that."""
    is_certain = client != callers.GEMINI or given.trigger == "manual"  # its automatic one comes before every turn
    if client not in callers.STARTS_ANEW and is_certain and _knows(place):
        note_compaction(place, given.session, now_ms)
    return b""


def told_again(place: Place, given: HookInput, environ: os._Environ[str], client: str, now_ms: int) -> bytes:
    """The start's text once more, if the conversation was compacted since."""
    if not _was_compacted(place, given, client):
        return b""
    return start(place, given, environ, client, now_ms)


def stop(place: Place, given: HookInput, client: str, now_ms: int, *, refuse: bool) -> bytes:
    """A reminder of unfinished tasks, once per session; with `refuse` the client is asked to continue, once."""
    if given.again:  # it is already continuing because of a hook
        return b""
    connection = open_store(place)
    if connection is None:
        return b""
    try:
        tasks = open_tasks(connection, place, now_ms, stopping=True)
    finally:
        connection.close()
    if not tasks:
        return b""
    is_part = given.event == "SubagentStop"
    session = f"{given.session or place.agent}{'/part' if is_part else ''}"
    new = not_reminded(place, session, [task.id for task in tasks], now_ms)
    named = [task for task in tasks if task.id in new]
    if not named:
        return b""
    if refuse and not is_part:  # a helper of the agent cannot end what the agent has begun
        reason = (
            f"{_open_tasks_sentence(named)} If the work is done, record that it is completed; if it is not, note where "
            "it stands. Then stop: this is said once."
        )
        return callers.going_on(client, reason)
    return callers.reminder(
        client, f"{_open_tasks_sentence(named)} Nothing is lost: the next conversation here begins with it."
    )


def edited(
    place: Place, given: HookInput, options: Options, environ: os._Environ[str], client: str, now_ms: int
) -> bytes:
    """Notes edited files, and says what the client did not hear before: a warning, or the task after a compaction."""
    if given.is_edit:
        _note_files(place, given.files, now_ms)
    told = [before_edit.warned_after(given, options, environ, client, now_ms)] if client in callers.WARNED_AFTER else []
    if _was_compacted(place, given, client):
        told.append(start_text(place, environ, now_ms))
    text = "\n".join(one for one in told if one)
    return callers.context(client, given.event, text) if text else b""


def _was_compacted(place: Place, given: HookInput, client: str) -> bool:
    if client in callers.STARTS_ANEW or not os.path.isfile(notes_path(place.store)):  # noqa: PTH113 - pathlib is heavy
        return False
    return _knows(place) and was_compacted(place, given.session)


def _knows(place: Place) -> bool:
    """Whether the store can be read here, which also tells its mark."""
    connection = open_store(place)
    if connection is None:
        return False
    connection.close()
    return True


def _note_files(place: Place, files: list[str], now_ms: int) -> None:
    """Notes the files that are in a working copy in which a journalled task is open."""
    there = []
    for file in files:
        folder, name = os.path.split(os.path.join(place.folder, file))  # noqa: PTH118 - pathlib is heavy
        path = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - as above
        if os.path.lexists(path) and {*path.split(os.sep)}.isdisjoint(OWN_FOLDERS):  # noqa: PTH206 - as above
            there.append(path)
    connection = open_store(place) if there else None
    if connection is None:
        return
    noted = []
    try:
        for folder in dict.fromkeys(os.path.dirname(path) for path in there):  # noqa: PTH120 - as above
            watched = {task.directory for task in journalled(connection, folder, now_ms) if task.directory is not None}
            inside = [path for path in there if os.path.dirname(path) == folder]  # noqa: PTH120 - as above
            noted += [
                (directory, os.path.relpath(path, directory).replace(os.sep, "/"))
                for directory in watched
                for path in inside
            ]
    finally:
        connection.close()
    if noted:
        note_edits(place, noted, now_ms)


def budget(given: str | None) -> int:
    """Tokens for the start: what the environment says, within bounds; 0 turns it off."""
    if given is None or not given.isascii() or not given.isdigit():
        return TOKENS
    return min(max(int(given[:9]), LEAST_TOKENS), MOST_TOKENS) if int(given[:9]) else 0


def one_line(text: str, length: int) -> str:
    """Somebody's text as one line, without control characters that a terminal would obey."""
    shown = " ".join(text.split())
    if not shown.isprintable():
        shown = "".join(letter for letter in shown if letter.isprintable())
    return shown if len(shown) <= length else shown[: length - 1] + "…"


def _files_edited(place: Place, task: OpenTask) -> list[str]:
    if task.directory is None:
        return []
    try:
        return edited_since(place, task.directory, task.started_at, SHOWN_FILES)
    except (apsw.Error, ValueError):  # do without the hint, then
        return []


def _open_tasks_sentence(tasks: list[OpenTask]) -> str:
    names = [f'"{one_line(task.name, _NAME)}" ({task.id})' for task in tasks[:NAMED]]
    more = f" and {len(tasks) - NAMED} more" if len(tasks) > NAMED else ""
    what = "task" if len(tasks) == 1 else "tasks"
    return f"Handrail: {what} {', '.join(names)}{more} still open."

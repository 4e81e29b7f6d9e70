"""What each event does: describe the open task, remind of it, note an edited file. Answers are in the form Claude Code
reads: text at the start of a conversation, a JSON object at its end."""

from __future__ import annotations

import os

import apsw

from handrail.hooks.event_input import HookInput
from handrail.hooks.memory import edited_since, not_reminded, note_edit
from handrail.hooks.open_tasks import OpenTask, journalled, open_store, open_tasks
from handrail.hooks.place import Place

TOKENS = 1500
LEAST_TOKENS = 300
"""The space that ids, names and the next move need, however long they are."""
MOST_TOKENS = 20_000
READING = ("Read", "Glob", "Grep", "LS", "NotebookRead")
"""Clients' tools that change nothing."""
OWN_FOLDERS = (".git", ".handrail")
SHOWN_FILES = 200
NAMED = 5
"""How many tasks a reminder names."""
_NAME = 80


def start(place: Place, environ: os._Environ[str], now_ms: int) -> bytes:
    """The context of the open task within the budget, or a line for each if there are several."""
    tokens = budget(environ.get("HANDRAIL_HOOK_TOKENS"))
    connection = open_store(place) if tokens else None
    if connection is None:
        return b""
    try:
        tasks = open_tasks(connection, place, now_ms)
        if not tasks:
            return b""
        from handrail.hooks.context_text import task_text, tasks_text  # noqa: PLC0415 - only if there is something to say

        if len(tasks) > 1:
            return tasks_text(tasks, place, tokens).encode(errors="replace")
        return task_text(connection, tasks[0], place, _files_edited(place, tasks[0]), tokens).encode(errors="replace")
    finally:
        connection.close()


def stop(place: Place, given: HookInput, now_ms: int, *, refuse: bool) -> bytes:
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
            f"{_open_tasks_sentence(named)} If the work is done, record it (complete_task, or task_update_status); "
            "if it is not, note in a checkpoint where it stands. Then stop: this is said once."
        )
        return _json("decision", "block", "reason", reason)
    return _json(
        "systemMessage", f"{_open_tasks_sentence(named)} Nothing is lost: the next conversation here begins with it."
    )


def edited(place: Place, given: HookInput, now_ms: int) -> None:
    """Notes an edited file, if a journalled task is open in its working copy."""
    if not given.file or given.tool in READING:
        return
    file = os.path.join(place.folder, given.file)  # noqa: PTH118 - pathlib is heavy
    folder, name = os.path.split(file)
    path = os.path.join(os.path.realpath(folder), name)  # noqa: PTH118 - as above
    if not os.path.lexists(path) or not {*path.split(os.sep)}.isdisjoint(OWN_FOLDERS):  # noqa: PTH206 - as above
        return
    connection = open_store(place)
    if connection is None:
        return
    try:
        watched = {
            task.directory
            for task in journalled(connection, os.path.dirname(path), now_ms)  # noqa: PTH120 - as above
        }
    finally:
        connection.close()
    for directory in watched:
        if directory is not None:
            inside = os.path.relpath(path, directory).replace(os.sep, "/")
            note_edit(place, directory, inside, now_ms)


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


def _json(*members: str) -> bytes:
    """A JSON object of alternating names and texts, written by SQLite, as it is read (`event_input.py`)."""
    holes = ", ".join("?" * len(members))
    with apsw.Connection(":memory:") as memory:
        text: str = memory.execute(f"SELECT json_object({holes})", members).get
    return text.encode(errors="replace")

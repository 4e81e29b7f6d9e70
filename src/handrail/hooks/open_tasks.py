"""Which tasks are open where an event happened. Reads the store's tables over a connection that cannot write; the
statements are both engines'.

In this order: tasks claimed by the agent that HANDRAIL_AGENT_ID names; tasks journalled in this working copy; tasks
under way in this repository. The first group that has any counts, as in `toolsets/here.py` for a server's callers.
"""

from __future__ import annotations

import os
import time

import apsw

from handrail.hooks.place import Place, folders_above, working_copy
from handrail.kernel.late import late_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    from handrail.hooks import server_reading

    StoreReading: TypeAlias = apsw.Connection | server_reading.ServerReading
else:
    server_reading = late_module("handrail.hooks.server_reading")

BUSY_MS = 500
APPLICATION_ID = 0x48524C31
OLDEST_SCHEMA = 4
"""The first schema that has everything used here."""
MOVED = 1_000_000
"""From this number on, the schema number says that the store has moved."""
UNDER_WAY = ("in_progress", "planning", "paused")
BUSY = ("in_progress", "planning")
"""Somebody is working on it; a paused task was put away on purpose."""
MOST = 50
_TEXT = 500
"""How many characters of a name are read."""

_ANCHOR = "SELECT value FROM meta WHERE key = 'lease_clock'"
_LAST_RENEWED = f"SELECT coalesce(max(renewed_ms), 0) FROM lease WHERE renewed_ms < {2**53}"  # noqa: S608 - a number

_TASK = f"""
SELECT t.id, substr(t.name, 1, {_TEXT}), t.status, t.parent_task_id, t.workflow_id, substr(w.name, 1, {_TEXT}),
  j.directory, j.started_at, CASE WHEN l.expires_ms > :now THEN l.holder END,
  CASE WHEN l.expires_ms > :now THEN (SELECT substr(a.name, 1, {_TEXT}) FROM agent a WHERE a.id = l.holder) END
FROM task t JOIN workflow w ON w.id = t.workflow_id AND w.status NOT IN ('completed', 'abandoned')
LEFT JOIN journal j ON j.id = t.id AND j.completed_at IS NULL LEFT JOIN lease l ON l.id = t.id
WHERE t.status IN ('in_progress', 'planning', 'paused') AND """  # noqa: S608 - our own numbers
_ORDER = f" ORDER BY t.updated_at DESC, t.id DESC LIMIT {MOST}"


class OpenTask:
    """A task that somebody works on."""

    __slots__ = (
        "directory",
        "holder",
        "holder_name",
        "id",
        "name",
        "parent",
        "started_at",
        "status",
        "workflow_id",
        "workflow_name",
    )

    def __init__(self, row: tuple[object, ...]) -> None:
        self.id, self.name, self.status = str(row[0]), str(row[1]), str(row[2])
        self.parent = row[3]
        self.workflow_id, self.workflow_name = str(row[4]), str(row[5])
        self.directory = None if row[6] is None else str(row[6])
        """The working copy it is journalled in."""
        self.started_at = row[7] if isinstance(row[7], int) else 0
        self.holder = row[8]
        """The agent that holds it now."""
        self.holder_name = str(row[9] or row[8] or "")


def open_store(place: Place) -> StoreReading | None:
    """The store, opened for reading in one transaction; None if it is not a store that can be read here, or a file that
    was not made on this machine.

    A file is not opened read-only: the last to close SQLite's log has to remove it.
    """
    if place.server:
        return server_reading.open_server(place.server, oldest=OLDEST_SCHEMA, moved=MOVED)
    path = place.store
    logged = os.path.exists(f"{path}-wal")  # noqa: PTH110 - pathlib is heavy
    connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READWRITE)
    connection.set_busy_timeout(BUSY_MS)
    if logged:  # writers checkpoint the log; a hook has no time for that
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    for option in (apsw.SQLITE_DBCONFIG_ENABLE_TRIGGER, apsw.SQLITE_DBCONFIG_ENABLE_VIEW):
        connection.config(option, 0)  # nothing that the file holds runs here
    for pragma in ("query_only = ON", "trusted_schema = OFF", "cell_size_check = ON"):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    connection.execute("BEGIN")
    ours = connection.execute("PRAGMA application_id").get == APPLICATION_ID
    if ours and OLDEST_SCHEMA <= int(connection.execute("PRAGMA user_version").get) < MOVED:
        key = place.key
        asked = ("SELECT value FROM meta WHERE key = ?", (key.mark_name if key else "",))
        row = connection.execute(*asked).fetchone()
        if row is not None and key is not None and key.is_mark(row[0]):
            place.mark = str(row[0])
            return connection
    connection.close()
    return None


def open_tasks(connection: StoreReading, place: Place, now_ms: int, *, stopping: bool = False) -> list[OpenTask]:
    """The tasks that are meant here, latest change first. A stopping agent is never reminded of another agent's."""
    statuses = BUSY if stopping else UNDER_WAY
    if place.agent:
        own = _select_tasks(connection, "l.holder = :agent", {"now": now_ms, "agent": place.agent})
        if found := _first_state(own, statuses):
            return found
    here = [task for task in journalled(connection, place.folder, now_ms) if _may_be_held_by(task, place.agent)]
    if found := _first_state(here, statuses):
        return found
    around = _select_tasks(
        connection,
        "(:everywhere = 1 OR w.repository_path = :repository)",
        {"now": now_ms, "everywhere": int(not place.shared), "repository": place.project},
    )
    around = [task for task in around if _may_be_held_by(task, place.agent)]
    if stopping:  # not those journalled elsewhere, or held by somebody not known to be this agent
        around = [task for task in around if task.directory is None and task.holder in (None, place.agent)]
    return _first_state(around, statuses)


def journalled(connection: StoreReading, folder: str, now_ms: int) -> list[OpenTask]:
    """The open tasks whose journal watches this folder: begun in its working copy or, without git, above it."""
    top = working_copy(folder)
    folders = [above for above in folders_above(folder) if top is None or len(above) >= len(top)]
    named = {f"f{number}": above for number, above in enumerate(folders)}
    condition = f"j.directory IN ({', '.join(f':{name}' for name in named)})"
    return _select_tasks(connection, condition, {"now": now_ms, **named})


def _select_tasks(connection: StoreReading, condition: str, values: dict[str, str | int]) -> list[OpenTask]:
    values["now"] = lease_time(connection, int(values["now"]))
    return [OpenTask(row) for row in connection.execute(_TASK + condition + _ORDER, values)]


def lease_time(connection: StoreReading, now_ms: int) -> int:
    """The time by which leases are judged, as in `store/lease_clock.py`: it does not jump when the clock is set. A
    server has its own."""
    if not isinstance(connection, apsw.Connection):
        return connection.now_ms
    boot = _this_start()
    if not boot:
        return now_ms
    since_ms = time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    parts = str(connection.execute(_ANCHOR).get).split(" ")
    if len(parts) == 3 and parts[0] == boot and len(parts[1]) < 20 and parts[1].lstrip("-").isdecimal():
        return int(parts[1]) + since_ms
    return max(now_ms, int(connection.execute(_LAST_RENEWED).get))


def _this_start() -> str:
    """Which start of which machine this is; empty if the system does not tell."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:  # noqa: PTH123 - pathlib is heavy
            boot = file.read().decode().strip()
    except (OSError, ValueError):
        return ""
    try:
        return f"{boot}/{os.stat('/proc/self/ns/time').st_ino}"  # noqa: PTH116 - as above
    except OSError:
        return f"{boot}/0"


def _may_be_held_by(task: OpenTask, agent: str) -> bool:
    """Whether it may be this agent's task: a named agent is not told about tasks that others hold."""
    return not agent or task.holder in (None, agent)


def _first_state(tasks: list[OpenTask], statuses: tuple[str, ...]) -> list[OpenTask]:
    """The tasks in the first state that has any, without parents of others among them: the subtask is the one in
    work."""
    for status in statuses:
        found = [task for task in tasks if task.status == status]
        above = {task.parent for task in found}
        if found:
            return [task for task in found if task.id not in above]
    return []

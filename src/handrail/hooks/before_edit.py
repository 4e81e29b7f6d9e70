"""Before an edit: which of the files other agents have reserved, and what the project's rule says about that.

The same answer as `kept_from` in the domain's reservations, from one statement; tests compare the two. How paths are
read is the domain's own (`journal/areas.py`), loaded only if somebody reserved anything here.
"""

from __future__ import annotations

import os
import time

from handrail.hooks import callers
from handrail.hooks.event_input import HookInput
from handrail.hooks.events import one_line
from handrail.hooks.open_tasks import lease_time, open_store
from handrail.hooks.place import Options, Place, find_place, here, read_config, working_copy
from handrail.hooks.provenance import private_text
from handrail.kernel.late import late_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    import json

    from handrail.domain.journal import areas, paths
    from handrail.hooks.open_tasks import StoreReading
else:
    areas = late_module("handrail.domain.journal.areas")
    json = late_module("json")
    paths = late_module("handrail.domain.journal.paths")

RULES = ("warn", "ask", "deny")
"""What happens to an edit of a reserved file, the strictest last."""
MOST_PLACES = 4
MOST_RESERVATIONS = 500
SHOWN_FILES = 5
SHOWN_HOLDERS = 3
TEXT = 200
_DOCUMENT = 200_000
_ADVICE = "Leave it alone until then, unless they agree."
_ASKED = "Edit it all the same?"
_REFUSED = "Work on something else until then, or have them release it."
_LIVE = f"""
SELECT r.agent_id, substr(a.name, 1, {TEXT * 2}), substr(r.reason, 1, {TEXT * 2}), r.expires_at, r.paths
FROM reservation r JOIN lease l ON l.id = r.agent_id AND l.holder IS NOT NULL AND l.expires_ms > :lease
LEFT JOIN agent a ON a.id = r.agent_id
WHERE r.repository = :repository AND r.released_at IS NULL AND r.expires_at > :now AND r.agent_id <> :own
  AND length(r.paths) <= {_DOCUMENT}
ORDER BY r.created_at, r.id LIMIT {MOST_RESERVATIONS}
"""  # noqa: S608 - our own numbers


class ReservedFile:
    """Files that another agent has reserved, and its words about that."""

    __slots__ = ("agent", "files", "minutes", "name", "reason", "until_ms")

    def __init__(self, row: tuple[object, ...], files: list[str], now_ms: int) -> None:
        self.agent = str(row[0])
        self.name = str(row[1] or row[0])
        self.reason = str(row[2] or "")
        self.until_ms = row[3] if isinstance(row[3], int) else 0
        self.minutes = -((now_ms - self.until_ms) // 60_000)
        self.files = files

    @property
    def holder(self) -> str:
        until = time.strftime("%H:%M", time.localtime(self.until_ms / 1000))
        why = f": {one_line(self.reason, TEXT)}" if self.reason else ""
        return f"{one_line(self.name, TEXT)} ({one_line(self.agent, TEXT)}) until {until}, {self.minutes} min more{why}"


def before(given: HookInput, options: Options, environ: os._Environ[str], client: str, now_ms: int) -> bytes:
    """The answer to a client that is about to edit files: nothing, unless somebody else reserved one."""
    found = reserved_files(given, options, environ, now_ms) if given.is_edit else None
    if found is None:
        return b""
    place, kept = found
    words = _words(kept)
    rule = "deny" if options.refuse else rule_of(place, environ)
    if rule != "warn":
        asks = rule == "ask" and client not in callers.CANNOT_ASK
        return callers.decision(client, given.event, rule, words, f"{words}. {_ASKED if asks else _REFUSED}")
    if options.client == callers.CLAUDE_CODE and callers.has_own_hooks(client, place.project):
        return b""  # it is warned by them
    return callers.warning(client, given.event, words, f"{words}. {_ADVICE}")


def warned_after(given: HookInput, options: Options, environ: os._Environ[str], client: str, now_ms: int) -> str:
    """The warning for a client that hears none before an edit; empty if there is nothing to warn of."""
    if client not in callers.WARNED_AFTER or not given.is_edit:
        return ""
    found = reserved_files(given, options, environ, now_ms)
    return "" if found is None else f"{_words(found[1])}. {_ADVICE}"


def reserved_files(
    given: HookInput, options: Options, environ: os._Environ[str], now_ms: int
) -> tuple[Place, list[ReservedFile]] | None:
    """What others have reserved of the event's files, and where; None if nothing."""
    started = here(given, environ)
    for top, names in list(_by_working_copy(given.files, started).items())[:MOST_PLACES]:
        place = find_place(top, options, environ)
        connection = open_store(place) if place is not None else None
        if place is None or connection is None:
            continue
        try:
            kept = kept_from(connection, place, names, now_ms)
        finally:
            connection.close()
        if kept:
            return place, kept
    return None


def kept_from(connection: StoreReading, place: Place, names: list[str], now_ms: int) -> list[ReservedFile]:
    """Which of the files other agents have reserved in this repository. Names are relative to the working copy."""
    lease = lease_time(connection, now_ms)
    now = lease if place.server else now_ms
    asked = {"lease": lease, "now": now, "repository": place.project, "own": place.agent}
    rows = connection.execute(_LIVE, asked).fetchall()
    found = []
    for row in rows:
        declared = areas.read_areas(str(one) for one in json.loads(str(row[4])))
        texts = [paths.path_text(os.fsencode(name)) for name in names]
        files = [text for text in texts if areas.are_around(text, declared)]
        if files:
            found.append(ReservedFile(row, files, now))
    return found


def rule_of(place: Place, environ: os._Environ[str]) -> str:
    """The strictest of what the environment says, the project's file, and what a person has agreed to for it."""
    said = [environ.get("HANDRAIL_RESERVATIONS"), _written(place), _agreed(place)]
    return max((str(one) for one in said if one in RULES), key=RULES.index, default=RULES[0])


def _written(place: Place) -> object:
    try:
        return read_config(place.project, b"reservations").get("reservations")
    except (OSError, ValueError):  # a file that cannot be read says nothing; the warning must come all the same
        return None


def _agreed(place: Place) -> object:
    """What a person agreed to, as `outside/trusted_settings.py` keeps it: the file alone weakens nothing."""
    file = os.path.join(place.home, ".handrail", "trusted-settings.json")  # noqa: PTH118 - pathlib is heavy
    kept = private_text(file) or b""
    if b'"reservations"' not in kept:
        return None
    key = os.fsencode(os.path.realpath(place.project)).decode(errors="backslashreplace")
    try:
        return json.loads(kept)[key]["limits"]["reservations"]
    except (ValueError, LookupError, TypeError):
        return None


def _by_working_copy(files: list[str], started: str) -> dict[str, list[str]]:
    """The files by the root of their working copy, and named from there; without git, by the client's folder."""
    found: dict[str, list[str]] = {}
    for file in files:
        folder, name = os.path.split(os.path.join(started, file))  # noqa: PTH118 - as above
        folder = os.path.realpath(folder)
        top = working_copy(folder) or started
        path = os.path.join(folder, name)  # noqa: PTH118 - as above
        if path.startswith(top.rstrip(os.sep) + os.sep):
            found.setdefault(top, []).append(os.path.relpath(path, top).replace(os.sep, "/"))
    return found


def _words(kept: list[ReservedFile]) -> str:
    files = list(dict.fromkeys(file for one in kept for file in one.files))
    named = ", ".join(one_line(file, TEXT) for file in files[:SHOWN_FILES])
    more = f" and {len(files) - SHOWN_FILES} more" if len(files) > SHOWN_FILES else ""
    holders = "; and by ".join(one.holder for one in kept[:SHOWN_HOLDERS])
    others = f"; and by {len(kept) - SHOWN_HOLDERS} others" if len(kept) > SHOWN_HOLDERS else ""
    return f"{named}{more} {'is' if len(files) == 1 else 'are'} kept by {holders}{others}"

"""The entry point: from a client's event to what is printed. Whatever goes wrong, it exits with 0 and prints nothing.

The modules that an event needs are loaded once it is known: most hooks run when there is nothing to say.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

from handrail.kernel.late import late_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail.hooks import before_edit, callers, event_input, events, place
else:
    before_edit = late_module("handrail.hooks.before_edit")
    callers = late_module("handrail.hooks.callers")
    event_input = late_module("handrail.hooks.event_input")
    events = late_module("handrail.hooks.events")
    place = late_module("handrail.hooks.place")

LIMIT_S = 2.0
"""How long a hook may take. After that it ends, wherever it is."""
SERVER_LIMIT_S = 4.0
"""The same for a store on a server, whose driver alone takes longer to load than all the rest. Clients wait longer."""
EVENTS = ("start", "before", "edited", "stop", "precompact", "prompt")


def main(words: list[str]) -> None:
    """Handles the event and ends the process, always with 0."""
    finished = _thread.allocate_lock()
    finished.acquire()
    _thread.start_new_thread(_end_late, (finished,))
    try:
        said = answer(words, os.environ)
        if said and os.isatty(1):
            said = _seen(said)
        while said:
            said = said[os.write(1, said) :]
    except BaseException:  # noqa: BLE001, S110 - a client must not notice what went wrong here
        pass
    # Exit at once: nothing is left to flush, and shutting down an interpreter takes as long as loading apsw.
    os._exit(0)


def answer(words: list[str], environ: os._Environ[str]) -> bytes:
    """What to print for the event that the words name; empty if there is nothing to say."""
    event, *rest = words
    if event not in EVENTS:  # whatever a newer setup may ask for
        return b""
    options = place.Options(rest)
    given = event_input.read_given()
    client = callers.caller(options.client, given, environ)
    now_ms = time.time_ns() // 1_000_000
    if event == "before":
        return before_edit.before(given, options, environ, client, now_ms)
    folder = place.here(given, environ)
    found = place.find_place(folder, options, environ)
    if found is None:
        return b""
    if event == "start":
        if options.client == callers.CLAUDE_CODE and callers.has_own_hooks(client, found.project):
            return b""  # it is told by them
        return events.start(found, given, environ, client, now_ms)
    if event == "stop":
        return events.stop(found, given, client, now_ms, refuse=options.refuse)
    if event == "precompact":
        return events.compacting(found, given, client, now_ms)
    if event == "prompt":
        return events.told_again(found, given, environ, client, now_ms)
    return events.edited(found, given, options, environ, client, now_ms)


def _seen(said: bytes) -> bytes:
    """What somebody sees who tries a hook by hand: nothing in it steers their terminal."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else f"\\u{ord(letter):04x}"
        for letter in said.decode(errors="replace")
    ).encode()


def _end_late(finished: _thread.LockType) -> None:
    """Ends the process at the limit. Whether a server is asked shows in what is loaded."""
    if finished.acquire(timeout=LIMIT_S):
        return
    if "handrail.hooks.server_reading" not in sys.modules or not finished.acquire(timeout=SERVER_LIMIT_S - LIMIT_S):
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The entry point: from a client's event to what is printed. Whatever goes wrong, it exits with 0 and prints nothing.

The modules that an event needs are loaded once it is known: most hooks run when there is nothing to say.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

LIMIT_S = 2.0
"""How long a hook may take. After that it ends, wherever it is."""


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
    event, *options = words
    if event not in ("start", "stop", "edited"):  # precompact, and whatever a newer setup may ask for
        return b""
    from handrail.hooks.event_input import read_given  # noqa: PLC0415 - see above
    from handrail.hooks.place import Options, find_place  # noqa: PLC0415 - as above

    asked = Options(options)
    given = read_given()
    place = find_place(given, asked, environ)
    if place is None:
        return b""
    from handrail.hooks.events import edited, start, stop  # noqa: PLC0415 - only if there is a store

    now_ms = time.time_ns() // 1_000_000
    if event == "start":
        return start(place, environ, now_ms)
    if event == "stop":
        return stop(place, given, now_ms, refuse=asked.refuse)
    edited(place, given, now_ms)
    return b""


def _seen(said: bytes) -> bytes:
    """What somebody sees who tries a hook by hand: nothing in it steers their terminal."""
    return "".join(
        letter if letter.isprintable() or letter == "\n" else f"\\u{ord(letter):04x}"
        for letter in said.decode(errors="replace")
    ).encode()


def _end_late(finished: _thread.LockType) -> None:
    if not finished.acquire(timeout=LIMIT_S):
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])

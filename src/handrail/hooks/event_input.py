"""What a client says about its event: a JSON object on standard input, a few of whose members are read.

SQLite parses the JSON: it is loaded anyway, and the json module would add half of Python's own start-up time. Names are
Claude Code's, along with those that other clients use for the same.
"""

from __future__ import annotations

import os

import apsw

MOST_BYTES = 64 * 1024 * 1024
_MEMBERS = {
    "cwd": ("$.cwd", "$.workspace_roots[0]"),
    "session": ("$.session_id", "$.conversation_id"),
    "event": ("$.hook_event_name",),
    "again": ("$.stop_hook_active",),
    "tool": ("$.tool_name",),
    "file": (
        "$.tool_input.file_path",
        "$.tool_input.notebook_path",
        "$.tool_input.path",
        "$.file_path",
    ),
}


class HookInput:
    """The members of an event; empty if the client does not give them."""

    __slots__ = ("again", "cwd", "event", "file", "session", "tool")

    def __init__(
        self, cwd: str = "", session: str = "", event: str = "", again: str = "", tool: str = "", file: str = ""
    ) -> None:
        self.cwd = cwd
        self.session = session
        self.event = event
        self.again = again not in ("", "0")
        self.tool = tool
        self.file = file


def read_given() -> HookInput:
    """Parses standard input. Empty input is an event without members; anything but a JSON object raises."""
    if os.isatty(0):  # somebody is trying it by hand
        return HookInput()
    text = _read_stdin().decode()
    return parse(text) if text.strip() else HookInput()


def parse(text: str) -> HookInput:
    paths = [f"json_extract(?1, '{path}')" for members in _MEMBERS.values() for path in members]
    with apsw.Connection(":memory:") as memory:
        kind, *values = memory.execute(f"SELECT json_type(?1), {', '.join(paths)}", (text,)).get
    if kind != "object":
        raise ValueError(kind)
    found = {}
    for name, members in _MEMBERS.items():
        own, values = values[: len(members)], values[len(members) :]
        found[name] = next((str(value) for value in own if value not in (None, "")), "")
    return HookInput(**found)


def _read_stdin() -> bytes:
    """Reads without the buffered stream, which cannot be abandoned half-way."""
    found = bytearray()
    while chunk := os.read(0, 1 << 16):
        found += chunk
        if len(found) > MOST_BYTES:
            raise ValueError(len(found))
    return bytes(found)

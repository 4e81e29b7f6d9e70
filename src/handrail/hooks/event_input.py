"""What a client says about its event: a JSON object on standard input, a few of whose members are read.

SQLite parses the JSON: it is loaded anyway, and the json module would add half of Python's own start-up time. Names are
Claude Code's, along with those that other clients use for the same. Nothing in it is believed: it is bounded, and only
says which files are meant.
"""

from __future__ import annotations

import os

import apsw

MOST_BYTES = 64 * 1024 * 1024
MOST_FILES = 100
"""How many files of one event are looked at."""
PATH_LENGTH = 4096
SHELL_BEGINNING = 1000
EDITING = (
    *("edit", "write", "multiedit", "notebookedit"),  # Claude Code; OpenCode and Copilot CLI use the same words
    *("apply_patch", "applypatch", "patch"),
    *("write_file", "replace"),  # Gemini CLI
    *("create", "str_replace", "insert"),  # Copilot CLI
    *("strreplace", "search_replace", "edit_file", "delete", "delete_file", "tabwrite", "editnotebook"),  # Cursor
)
"""Clients' tools that change a file, in small letters."""
_PATCHING = ("apply_patch", "applypatch", "patch")
_SHELL = ("bash", "shell", "exec_command")
"""Codex applies a patch itself that a shell command would hand to `apply_patch`."""
_PATCH_MARKS = ("*** Add File: ", "*** Update File: ", "*** Delete File: ", "*** Move to: ")
_MEMBERS = {
    "cwd": ("$.cwd", "$.workspace_roots[0]"),
    "session": ("$.session_id", "$.conversation_id", "$.sessionId"),
    "event": ("$.hook_event_name",),
    "again": ("$.stop_hook_active", "$.loop_count"),
    "tool": ("$.tool_name", "$.toolName"),
    "file": (
        "$.tool_input.file_path",
        "$.tool_input.notebook_path",
        "$.tool_input.path",
        "$.tool_input.filePath",
        "$.tool_input.target_file",
        "$.tool_input.target_notebook",
        "$.toolArgs.path",
        "$.file_path",
    ),
    "patch": (
        "$.tool_input.command",
        "$.tool_input.patchText",
        "$.tool_input.patch",
        "$.tool_input.input",
        "$.tool_input",
    ),
    "at": ("$.timestamp",),
    "trigger": ("$.trigger",),
    "turn": ("$.turn_id",),
    "cursor": ("$.cursor_version", "$.workspace_roots[0]", "$.generation_id"),
}


class HookInput:
    """The members of an event; empty if the client does not give them."""

    __slots__ = ("again", "at", "cursor", "cwd", "event", "files", "session", "tool", "trigger", "turn")

    def __init__(self, **given: str) -> None:
        self.cwd = given.get("cwd", "")
        self.session = given.get("session", "")
        self.event = given.get("event", "")
        self.again = given.get("again", "") not in ("", "0")
        self.tool = given.get("tool", "")
        self.at = given.get("at", "")
        self.trigger = given.get("trigger", "")
        self.turn = given.get("turn", "")
        self.cursor = given.get("cursor", "")
        named = [given["file"]] if given.get("file") else []
        patch = given.get("patch", "")
        if self.tool.lower() in _PATCHING or (self.tool.lower() in _SHELL and "apply_patch" in patch[:SHELL_BEGINNING]):
            named += files_of_patch(patch)
        self.files = [name for name in dict.fromkeys(named) if len(name) <= PATH_LENGTH and "\0" not in name]
        """The files that a tool is about, as they are named."""

    @property
    def is_edit(self) -> bool:
        """Whether it is about a file that is changed. An event that names no tool is one of edits alone."""
        return bool(self.files) and self.tool.lower() in ("", *EDITING, *_SHELL)


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


def files_of_patch(patch: str) -> list[str]:
    """The files that a patch in the form of `apply_patch` adds, changes, deletes or moves to."""
    found: list[str] = []
    done = 0
    while (at := patch.find("*** ", done)) >= 0 and len(found) < MOST_FILES:
        begin = max(patch.rfind("\n", done, at) + 1, done)
        end = patch.find("\n", at)
        done = len(patch) if end < 0 else end
        line = patch[at : min(done, at + PATH_LENGTH + 100)].strip()
        mark = next((mark for mark in _PATCH_MARKS if line.startswith(mark)), None)
        if mark is not None and not patch[begin:at].strip() and (name := line[len(mark) :].strip()):
            found.append(name)
    return found


def _read_stdin() -> bytes:
    """Reads without the buffered stream, which cannot be abandoned half-way."""
    found = bytearray()
    while chunk := os.read(0, 1 << 16):
        found += chunk
        if len(found) > MOST_BYTES:
            raise ValueError(len(found))
    return bytes(found)

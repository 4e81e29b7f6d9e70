"""Which client calls, and the form in which it takes an answer. One form per client: Copilot CLI hears only what stands
at the top, Codex drops an answer with a member it does not know, Gemini CLI takes nothing but JSON.

`handrail init` writes the client's name into the command. Clients that run Claude Code's hooks as well, Copilot CLI and
Cursor, are told apart by what they say of themselves.
"""

from __future__ import annotations

import os

import apsw

from handrail.hooks.event_input import HookInput
from handrail.kernel.limits import CLIENT_FILE_BYTES
from handrail.regular_files import read_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

CLAUDE_CODE, CODEX, GEMINI = "claude-code", "codex", "gemini"
COPILOT, CURSOR, OPENCODE = "copilot", "cursor", "opencode"
CALLERS = (CLAUDE_CODE, CODEX, GEMINI, COPILOT, CURSOR, OPENCODE)
OWN_FILES = {COPILOT: ".github/hooks/handrail.json", CURSOR: ".cursor/hooks.json"}
"""Where `handrail init` writes the hooks of the clients that run Claude Code's too."""
STARTS_ANEW = (CLAUDE_CODE, CODEX)
"""These run the start's hook again after a compaction."""
CANNOT_ASK = (CODEX, CURSOR, OPENCODE)
"""These cannot ask a person because a hook says so: what others are asked about is refused."""
WARNED_AFTER = (GEMINI,)
"""What is said to the model before a tool runs is not heard; after it, it is."""
_GEMINI_EVENTS = ("BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "PreCompress")


def caller(named: str, given: HookInput, environ: os._Environ[str]) -> str:
    """The client that runs this hook."""
    if named and named != CLAUDE_CODE:
        return named
    if given.cursor:
        return CURSOR
    if given.event in _GEMINI_EVENTS or (not named and given.at and "GEMINI_SESSION_ID" in environ):
        return GEMINI
    if given.at:  # a moment is what neither Claude Code nor Codex sends
        return COPILOT
    return CODEX if given.turn and not named else CLAUDE_CODE


def has_own_hooks(client: str, project: str) -> bool:
    """Whether a client that runs Claude Code's hooks has its own of ours in this project."""
    try:
        path = os.path.join(project, OWN_FILES[client])  # noqa: PTH118 - pathlib is heavy
        return b"handrail.hooks" in read_regular(path, CLIENT_FILE_BYTES, within=project)
    except (KeyError, OSError):
        return False


def context(client: str, event: str, text: str) -> bytes:
    """A text for the model."""
    if client == GEMINI:
        return as_json({"hookSpecificOutput": {"hookEventName": event, "additionalContext": _inert(text)}})
    if client == COPILOT:
        return as_json({"additionalContext": text})
    if client == CURSOR:
        return as_json({"additional_context": text})
    return text.encode(errors="replace")


def _inert(text: str) -> str:
    """Gemini CLI puts a hook's text before what the user typed, and then the content of a file where it reads `@file`:
    a task's name must not choose one."""
    return text.replace("@", "\\u0040")


def warning(client: str, event: str, words: str, advice: str) -> bytes:
    """For a tool that will run: what the person is shown, and what the model is told."""
    if client == GEMINI:
        return as_json({"systemMessage": words})
    if client in (COPILOT, CURSOR):
        return context(client, event, advice)
    if client == OPENCODE:
        return as_json({"warning": advice})
    nested = {"hookEventName": event or "PreToolUse", "additionalContext": advice}
    return as_json({"systemMessage": words, "hookSpecificOutput": nested})


def decision(client: str, event: str, rule: str, words: str, reason: str) -> bytes:
    """For a tool that must not run before a person agreed (`ask`), or not at all (`deny`)."""
    if client in CANNOT_ASK:
        rule = "deny"
    if client == GEMINI:
        return as_json({"decision": rule, "reason": reason, "systemMessage": words})
    if client == OPENCODE:
        return as_json({"deny": reason})
    if client == CURSOR:
        return as_json({"permission": rule, "user_message": words, "agent_message": reason})
    decided = {"permissionDecision": rule, "permissionDecisionReason": reason}
    if client == COPILOT:
        return as_json(decided)
    return as_json({"hookSpecificOutput": {"hookEventName": event or "PreToolUse", **decided}})


def reminder(client: str, words: str) -> bytes:
    """For the person, at the end of a turn. Cursor shows none."""
    return b"" if client == CURSOR else as_json({"systemMessage": words})


def going_on(client: str, reason: str) -> bytes:
    """Asks an agent to go on instead of stopping."""
    if client == CURSOR:
        return as_json({"followup_message": reason})
    return as_json({"decision": "deny" if client == GEMINI else "block", "reason": reason})


def as_json(members: Mapping[str, object]) -> bytes:
    """A JSON object, written by SQLite, as it is read (`event_input.py`)."""
    with apsw.Connection(":memory:") as memory:
        text = _object(memory, members)
    return text.encode(errors="replace")


def _object(memory: apsw.Connection, members: Mapping[str, object]) -> str:
    parts = [f"{_quoted(memory, name)}:{_value(memory, value)}" for name, value in members.items()]
    return "{" + ",".join(parts) + "}"


def _value(memory: apsw.Connection, value: object) -> str:
    return _object(memory, value) if isinstance(value, dict) else _quoted(memory, str(value))


def _quoted(memory: apsw.Connection, text: str) -> str:
    seen = text.encode(errors="replace").decode()
    quoted: str = memory.execute("SELECT json_quote(?)", (seen,)).get
    return quoted

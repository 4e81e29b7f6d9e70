"""What Claude Code gets besides its server and its commands: hooks, as data. Another hook is another line here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

SETTINGS = ".claude/settings.json"
EDITING = "Edit|Write|MultiEdit|NotebookEdit"


class Hook(NamedTuple):
    """One hook: the client's event, a matcher, and the command's words after the interpreter."""

    event: str
    matcher: str
    words: tuple[str, ...]
    timeout_s: int


HOOKS: tuple[Hook, ...] = (
    Hook("SessionStart", "startup|resume|clear|compact", ("-m", "handrail.hooks", "start"), 10),
    Hook("PreToolUse", EDITING, ("-m", "handrail", "hook", "pre-tool-use"), 5),
    Hook("PostToolUse", EDITING, ("-m", "handrail.hooks", "edited"), 5),
    Hook("Stop", "", ("-m", "handrail.hooks", "stop"), 5),
)


def hook_group(hook: Hook, command: str) -> dict[str, Any]:
    """A hook as an entry in the settings, in the list of its event."""
    run = {"type": "command", "command": command, "timeout": hook.timeout_s}
    return {"matcher": hook.matcher, "hooks": [run]} if hook.matcher else {"hooks": [run]}


def is_ours(command: str) -> bool:
    """Whether a hook's command runs Handrail."""
    return "-m handrail" in command or "handrail hook" in command


def commands_in(settings: Any) -> list[tuple[str, str]]:
    """Every hook's event and command."""
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    found: list[tuple[str, str]] = []
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            runs: Sequence[Any] = group.get("hooks") or () if isinstance(group, dict) else ()
            found += [(event, run["command"]) for run in runs if isinstance(run, dict) and "command" in run]
    return found

"""What Claude Code gets besides its server: hooks and slash commands, as data. Another hook is another line here."""

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


SLASH_COMMANDS: dict[str, str] = {
    ".claude/commands/handrail-resume.md": """\
---
description: Go on with the open task
---
Call `task_load_context` of the server handrail without arguments. Say in two sentences where the work stands and what
you will do next, then go on with it. Where nothing is open, call `workflow_next_tasks` and offer what can be started.
$ARGUMENTS
""",
    ".claude/commands/handrail-plan.md": """\
---
description: Lay out work as a workflow before you begin
argument-hint: what is to be done
---
Plan this: $ARGUMENTS

Read what you need to know first. Then call `start_workflow` of the server handrail with a name, what it is for, and a
plan of a few steps, each with its goal. Show the plan and wait for a word from me before the first `start_task`.
""",
    ".claude/commands/handrail-hand-over.md": """\
---
description: Leave the work so that somebody else can go on
---
Call `task_load_context` of the server handrail. Log what the next one must know and the journal does not say yet: open
choices with `log_decision`, problems with `log_issue`. Where the task is done, call `complete_task`; where it is not,
leave it open. Then call `workflow_get_summary` and show it. $ARGUMENTS
""",
}

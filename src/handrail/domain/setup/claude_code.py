"""What Claude Code gets besides its server and its hooks: slash commands, as data."""

from __future__ import annotations

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

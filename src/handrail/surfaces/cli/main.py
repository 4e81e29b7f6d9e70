"""The `handrail` command: its list of commands, and how each ends. Nothing heavy is imported until a command is
chosen."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import click

from handrail import __version__
from handrail.kernel.nearest import did_you_mean

COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("handrail.surfaces.cli.init:init", "Set up the clients here, after showing what changes; or undo it."),
    "demo": ("handrail.surfaces.cli.demo:demo", "Watch three agents at work on a throw-away repository."),
    "doctor": ("handrail.surfaces.cli.doctor:doctor", "Find what is broken in the set-up, and say how to mend it."),
    "up": ("handrail.surfaces.cli.up:up", "Serve over HTTP and print the line to paste into each client."),
    "serve": ("handrail.surfaces.cli.serve:serve", "Serve MCP on standard input and output, or over HTTP."),
    "status": ("handrail.surfaces.cli.status:status", "Show what is open, under way, failed, and waiting for you."),
    "watch": ("handrail.surfaces.cli.watch:watch", "Watch it as it changes, in this terminal."),
    "next": ("handrail.surfaces.cli.next:next_", "Show what can be started now, the best first."),
    "show": ("handrail.surfaces.cli.show:show", "Show a task, or a workflow with its tasks as a tree."),
    "why": ("handrail.surfaces.cli.why:why", "Say in one sentence what a task or a workflow waits for."),
    "journal": ("handrail.surfaces.cli.journal:journal", "Show what happened, with the files each task changed."),
    "diff": ("handrail.surfaces.cli.diff:diff", "Show exactly what a task changed, as a patch."),
    "report": ("handrail.surfaces.cli.report:report", "Tell of a workflow in Markdown."),
    "export": ("handrail.surfaces.cli.export:export", "Write a workflow's report as one HTML file, Markdown or JSON."),
    "decisions": ("handrail.surfaces.cli.decisions:decisions", "List decisions, or export them as files."),
    "review": ("handrail.surfaces.cli.review:review", "List what you are asked to look at, and close it."),
    "message": ("handrail.surfaces.cli.message:message", "Read what agents wrote to you, and write to them."),
    "agents": (
        "handrail.surfaces.cli.agents:agents",
        "Show who works here, on what, and when they were last heard of.",
    ),
    "release": ("handrail.surfaces.cli.agents:release", "Set free a task that an agent holds."),
    "worktrees": (
        "handrail.surfaces.cli.worktrees:worktrees",
        "Show worktrees: state, conflicts, disk; merge, clear up.",
    ),
    "hook": ("handrail.surfaces.cli.hook:hook", "Warn, from hooks, where others keep files for themselves."),
    "approve": ("handrail.surfaces.cli.deciding:approve", "Open a gate: the work goes on."),
    "reject": ("handrail.surfaces.cli.deciding:reject", "Send work back from a gate, with what is to change."),
    "board": ("handrail.surfaces.cli.board:board", "Look at boards: what agents leave for each other under keys."),
    "pipeline": ("handrail.surfaces.cli.pipeline:pipeline", "List runs of pipelines; pause, resume, fork or end one."),
    "done": ("handrail.surfaces.cli.done:done", "End a workflow: completed, or abandoned."),
    "call": ("handrail.surfaces.cli.call:call", "Call one tool and print its result."),
    "tools": ("handrail.surfaces.cli.tools:tools", "List the tools with what each costs in tokens."),
    "guide": ("handrail.surfaces.cli.guide:guide", "List, show, check and write guides."),
    "flow": ("handrail.surfaces.cli.flow:flow", "List, show, check and write flows, the phases of a pipeline."),
    "scope": ("handrail.surfaces.cli.scope:scope", "Try the areas of a task on files: why is one in or out?"),
    "log": ("handrail.surfaces.cli.log:log", "Show who did what, when, through which channel."),
    "undo": ("handrail.surfaces.cli.log:undo", "Take back your last write, while nothing stands on it."),
    "db": ("handrail.surfaces.cli.db:db", "Look after the store: check, verify, back up, restore, prune."),
    "token": ("handrail.surfaces.cli.token:token", "Make, list and revoke tokens for calls over HTTP."),
    "settings": ("handrail.surfaces.cli.settings:settings", "Show every setting and its value here."),
    "version": ("handrail.surfaces.cli.version:version", "Print the version."),
}
"""Every command: where it lives and its one line of help."""


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="handrail", message="%(prog)s %(version)s")
def cli(**_: Any) -> None:
    """Steps to hold on to, for coding agents.

    Exit codes: 0 done, 1 refused (the message says why and what to do), 2 wrong usage, 70 a bug in Handrail.
    """

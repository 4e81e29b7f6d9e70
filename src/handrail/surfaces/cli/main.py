"""The `handrail` command: its list of commands, and how each ends. Nothing heavy is imported until a command is
chosen."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from handrail import __version__
from handrail.kernel.late import late_module
from handrail.kernel.wording import did_you_mean
from handrail.surfaces.cli.terminal import colour_wanted

if TYPE_CHECKING:
    from click import shell_completion

    from handrail.kernel import errors
    from handrail.surfaces.cli import options
else:
    shell_completion = late_module("click.shell_completion")
    errors = late_module("handrail.kernel.errors")
    options = late_module("handrail.surfaces.cli.options")

AS_JSON = "handrail.as_json"
"""The key under which it is noted that the answer, whatever it is, should be JSON."""
REFUSED, STOPPED, LEFT_ALONE = 1, 130, 141
"""The exit codes of a command that did nothing, and the shells' for one ended by Ctrl-C and for one whose reader went
away first."""
DECLINED = "Nothing was done."
UNANSWERED = "Nobody answered, so nothing was done. If the command has --yes, that answers for you."

HEADINGS: dict[str, dict[str, tuple[str, str]]] = {
    "Begin": {
        "init": ("begin.init:init", "Set up the clients on this machine, or undo that."),
        "demo": ("begin.demo:demo", "Watch three agents at work in a temporary repository."),
        "doctor": ("begin.doctor:doctor", "Find what is wrong with the setup, and how to fix it."),
        "trust": ("begin.trust:trust", "Show what this project's config would run, and follow it."),
        "completion": ("begin.completion:completion", "Print or install completion for your shell."),
    },
    "See": {
        "status": ("see.status:status", "Show what is open, under way, failed, and waiting for you."),
        "next": ("see.next:next_", "Show what can be started now, best first."),
        "show": ("see.show:show", "Show a task, or a workflow with its tasks as a tree."),
        "why": ("see.why:why", "Explain in one sentence what a task or workflow waits for."),
        "log": ("see.log:log", "Show who did what, when, and how they connected."),
        "journal": ("see.journal:journal", "Show what happened, with the files each task changed."),
        "diff": ("see.diff:diff", "Show exactly what a task changed, as a patch."),
        "report": ("see.report:report", "Write a workflow's story in Markdown, for a reviewer."),
        "decisions": ("see.decisions:decisions", "List decisions, or export them as files."),
        "search": ("see.search:search", "Find words in decisions, checkpoints, findings and tasks."),
        "watch": ("see.watch:watch", "Watch all of this live, in this terminal."),
    },
    "Decide": {
        "approve": ("decide.approve:approve", "Approve a gate, so that the work goes on."),
        "reject": ("decide.approve:reject", "Send work back from a gate, saying what to change."),
        "review": ("decide.review:review", "List what you were asked to review, and close it."),
        "done": ("decide.done:done", "Mark a workflow completed or abandoned."),
    },
    "Work together": {
        "agents": ("together.agents:agents", "Show the agents here, and what each works on."),
        "message": ("together.message:message", "Read what agents wrote to you, and write to them."),
        "release": ("together.agents:release", "Take a task back from the agent that holds it."),
        "board": ("together.board:board", "Show boards: values that agents share under keys."),
        "worktrees": ("together.worktrees:worktrees", "Show, merge and clean up worktrees."),
        "hook": ("together.hook:hook", "Warn, from a hook, about files that others have reserved."),
    },
    "Plans and guides": {
        "pipeline": ("plans.pipeline:pipeline", "List pipeline runs; pause, resume, fork or end one."),
        "flow": ("plans.flow:flow", "List, show, check and write flows, the phases of a pipeline."),
        "guide": ("plans.guide:guide", "List, show, check and write guides."),
        "scope": ("plans.scope:scope", "Check which files a task's areas cover, and why."),
    },
    "Move and keep": {
        "import": ("keep.import_:import_", "Import a plan or a guide from another tool's file."),
        "export": ("keep.export:export", "Export a workflow's report or plan to a file."),
        "db": ("keep.db:db", "Look after the store: check, back up, restore, move."),
        "undo": ("see.log:undo", "Undo your last write, unless something depends on it."),
    },
    "Serve": {
        "up": ("serve.up:up", "Serve over HTTP and print the line to paste into each client."),
        "serve": ("serve.serve:serve", "Serve MCP on standard input and output, or over HTTP."),
        "token": ("serve.token:token", "Make, list and revoke tokens for calls over HTTP."),
    },
    "Look up": {
        "call": ("lookup.call:call", "Call one tool and print its result."),
        "tools": ("lookup.tools:tools", "List the tools and what each costs in tokens."),
        "settings": ("lookup.settings:settings", "Show every setting and its current value."),
        "version": ("lookup.version:version", "Print the version."),
    },
}
"""Every command under its heading, in the order of `--help`: where it lives and its one-line help."""

COMMANDS = {name: command for commands in HEADINGS.values() for name, command in commands.items()}


class LazyGroup(click.Group):
    """A group that knows its commands by name and imports one only to run it or to show its own help."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's signature
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        command = getattr(import_module(f"handrail.surfaces.cli.{module}"), attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's signature
        names = max(map(len, COMMANDS))
        for heading, commands in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(names), summary) for name, (_, summary) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[shell_completion.CompletionItem]:
        """Like click's, without importing every command for its line of help."""
        found = [
            shell_completion.CompletionItem(name, help=text)
            for name, (_, text) in COMMANDS.items()
            if name.startswith(incomplete)
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            ctx.fail(f"there is no command {args[0]}{did_you_mean(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        typed = args[: args.index("--")] if "--" in args else args
        ctx.meta[AS_JSON] = "--json" in typed
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            if not ctx.meta[AS_JSON]:
                raise
            _end_misused(error)
        except click.Abort as abort:  # click's word for Ctrl-C at a question, for a closed input, and for a no
            if isinstance(abort.__context__, KeyboardInterrupt):
                _end_stopped()
            unasked = isinstance(abort.__context__, EOFError)
            click.echo(f"{chr(10) if unasked else ''}{UNANSWERED if unasked else DECLINED}", err=True)
            sys.exit(REFUSED)
        except KeyboardInterrupt:
            _end_stopped()
        except BrokenPipeError:  # `handrail log | head -1`: the reader has left, which is fine
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(LEFT_ALONE)


def _end_stopped() -> NoReturn:
    click.echo("\nStopped.", err=True)
    sys.exit(STOPPED)


def _end_misused(error: click.UsageError) -> NoReturn:
    """Ends a command that was typed wrongly by a program, which reads answers and not help texts."""
    command = error.ctx.command_path if error.ctx is not None else "handrail"
    options.end_refused(
        errors.InvalidParams(error.format_message(), hint=f"{command} --help shows its use"), as_json=True
    )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="handrail", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context, /, **_: Any) -> None:
    """Guided steps, durable plans and gates for coding agents.

    Exit codes: 0 done, 1 refused (the message says why and what to do), 2 wrong usage, 70 a bug in Handrail, 130
    stopped with Ctrl-C, 141 the reader of the output went away.
    """
    ctx.color = colour_wanted(os.environ)

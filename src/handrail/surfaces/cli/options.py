"""Options that commands share, and how a refusal ends a command. Contains no command."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import click

from handrail.catalog import ENABLE_FLAGS, PROFILES
from handrail.kernel.errors import InvalidParams, PlaceUnusable, Refusal, SettingInvalid, ToolsetUnknown
from handrail.kernel.late import late_module
from handrail.kernel.ledger import Actor
from handrail.kernel.wording import did_you_mean
from handrail.outside.project import find_project
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.terminal import styled
from handrail.surfaces.refusals import EXIT_REFUSED, EXIT_USAGE, error_object
from handrail.wiring import WorkPlace, settings_at

if TYPE_CHECKING:
    import getpass

    from click import shell_completion

    from handrail.surfaces.cli import columns
else:
    shell_completion = late_module("click.shell_completion")
    getpass = late_module("getpass")
    columns = late_module("handrail.surfaces.cli.columns")

HELP_LINE = 80
"""How many characters of a command's help a shell shows beside it."""
CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def common_options(command: CommandT) -> CommandT:
    """Adds --root, --db, --global and --json, and prints refusals the way every command does."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON for programs."),
        click.option("--global", "global_store", is_flag=True, help="One store for all repositories, in ~/.handrail."),
        click.option("--db", metavar="PATH|URL", help="The store: a file, or a postgresql:// address."),
        click.option(
            "--root",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            envvar="HANDRAIL_ROOT",
            help="The project's folder.  [default: here]",
        ),
    ):
        command = option(command)
    return _ending_well(command)


def toolset_options(command: CommandT) -> CommandT:
    """Adds the options that choose toolsets."""
    for flag, toolset in reversed(ENABLE_FLAGS.items()):
        command = click.option(f"--enable-{flag}", is_flag=True, help=f"Add the toolset {toolset}.")(command)
    for option in (
        click.option(
            "--set",
            "settings",
            multiple=True,
            metavar="NAME=VALUE",
            shell_complete=completions.setting_names,
            help="Override any setting; can be repeated.",
        ),
        click.option("--output-schemas", is_flag=True, help="Include output schemas and examples with every tool."),
        click.option("--dynamic", is_flag=True, help="Add the tools toolset_list and toolset_enable."),
        click.option(
            "--toolsets",
            metavar="A,B",
            shell_complete=completions.toolsets,
            help="Toolsets by name, instead of a profile.",
        ),
        click.option(
            "--profile",
            metavar="NAME",
            shell_complete=completions.profiles,
            help=f"A bundle of toolsets: {', '.join(PROFILES)}.",
        ),
    ):
        command = option(command)
    return command


class Commands(click.Group):
    """A group that helps like `handrail` itself: it suggests the nearest command, and shells show help lines uncut."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[shell_completion.CompletionItem]:
        begun = {name: one for name, one in self.commands.items() if name.startswith(incomplete) and not one.hidden}
        found = [
            shell_completion.CompletionItem(name, help=one.get_short_help_str(HELP_LINE))
            for name, one in sorted(begun.items())
        ]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            ctx.fail(f"there is no command {ctx.info_name} {args[0]}{did_you_mean(args[0], self.commands)}")
        return super().resolve_command(ctx, args)


class ListFirst(Commands):
    """A group that runs `list` if no command is named; options are then those of the listing."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # still being typed: any of the commands may be meant
            return super().parse_args(ctx, args)
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def typed_text(text: str) -> str:
    """What was typed, with a question mark for each byte that is not text: arguments and file names may hold any."""
    return text.encode(errors="replace").decode()


def person() -> Actor:
    """The person at this terminal, by login name."""
    try:
        return Actor(getpass.getuser(), "cli")
    except (KeyError, OSError):  # a container's user without a name
        return Actor("someone", "cli")


def place_of(root: Path | None) -> WorkPlace:
    try:
        folder = (root or Path.cwd()).resolve()
        project = find_project(folder)
    except OSError as problem:
        where = f"the folder {root}" if root and root.is_absolute() else "the folder this runs in"
        raise PlaceUnusable(
            f"{where} cannot be used: {problem.strerror}", hint="go to another folder, or name one with --root"
        ) from None
    try:
        home = Path.home()
    except RuntimeError:
        raise PlaceUnusable("nobody knows your home folder", hint="set HOME to a folder") from None
    return WorkPlace(project=project, folder=folder, home=home, environ=os.environ)


def sits_at_terminal() -> bool:
    """Whether somebody may be typing: only then is anything done that is reserved for people."""
    return sys.stdin is not None and sys.stdin.isatty()


def settings_of(place: WorkPlace, options: dict[str, Any]) -> Settings:
    """Settings from a command's options. An option left out leaves the setting to environment, file and default."""
    given: dict[str, Any] = {}
    for pair in options.get("settings", ()):
        name, equals, value = pair.partition("=")
        if not equals:
            raise SettingInvalid(f"--set {pair} has no value", hint="write --set name=value")
        given[name.strip().replace("-", "_")] = value
    for name in ("db", "profile", "toolsets"):
        if options.get(name) is not None:
            given[name] = options[name]
    for name in ("dynamic", "global_store", "output_schemas"):
        if options.get(name):
            given[name] = True
    enabled = [flag for flag in ENABLE_FLAGS if options.get(f"enable_{flag.replace('-', '_')}")]
    if enabled:
        given["enable"] = enabled
    return settings_at(place, given)


def _ending_well(command: CommandT) -> CommandT:
    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return command(*args, **kwargs)
        except Refusal as refusal:
            end_refused(refusal, as_json=bool(kwargs.get("as_json")))

    return run  # type: ignore[return-value]


def end_refused(refusal: Refusal, *, as_json: bool) -> NoReturn:
    """Prints a refusal and ends the command: exits with 2 if the call was wrong, 1 if it was understood and
    declined."""
    if as_json:
        click.echo(encode({"error": error_object(refusal)}).decode())
    else:
        _print_wrapped("refused", "red", f" {refusal.code}: {refusal.message}")
        if refusal.hint:
            _print_wrapped("hint", "cyan", f"    {refusal.hint}")
    wrong_usage = isinstance(refusal, InvalidParams | SettingInvalid | ToolsetUnknown)
    sys.exit(EXIT_USAGE if wrong_usage else EXIT_REFUSED)


def _print_wrapped(word: str, colour: str, text: str) -> None:
    """A line of a refusal, wrapped to fit. It may repeat what an agent wrote, which must not control the terminal."""
    inner = " " * 8
    gap = text[: len(text) - len(text.lstrip())]
    lines = [inner + columns.one_line(text)]
    if sys.stderr.isatty():
        lines = list(columns.wrapped(text, columns.columns(), inner))
    click.echo(f"{styled(word, fg=colour)}{gap}{lines[0].removeprefix(inner)}", err=True)
    for line in lines[1:]:
        click.echo(line, err=True)

"""Options that commands share, and how a refusal ends a command. No command lives here."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from handrail.catalog import ENABLE_FLAGS, PROFILES
from handrail.kernel.errors import InvalidParams, PlaceUnusable, Refusal, SettingInvalid, ToolsetUnknown
from handrail.kernel.ledger import Actor
from handrail.outside.project import find_project
from handrail.protocol.wire import encode
from handrail.settings import Settings
from handrail.surfaces.refusals import EXIT_REFUSED, EXIT_USAGE, error_object
from handrail.wiring import Place, settings_at

CommandT = TypeVar("CommandT", bound=Callable[..., Any])


def common_options(command: CommandT) -> CommandT:
    """--root, --db, --global and --json, and refusals printed the way every command prints them."""
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
    """Which toolsets are on."""
    for flag, toolset in reversed(ENABLE_FLAGS.items()):
        command = click.option(f"--enable-{flag}", is_flag=True, help=f"Add the toolset {toolset}.")(command)
    for option in (
        click.option("--set", "settings", multiple=True, metavar="NAME=VALUE", help="Any setting; may be repeated."),
        click.option("--output-schemas", is_flag=True, help="List output schemas and examples with every tool."),
        click.option("--dynamic", is_flag=True, help="Add toolset_list and toolset_enable."),
        click.option("--toolsets", metavar="A,B", help="Toolsets by name, in place of a profile."),
        click.option("--profile", metavar="NAME", help=f"A bundle of toolsets: {', '.join(PROFILES)}."),
    ):
        command = option(command)
    return command


class ListFirst(click.Group):
    """A group whose `list` is meant where no command is named; options then are the listing's."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def person() -> Actor:
    """Whoever sits at this terminal, by login name."""
    import getpass  # noqa: PLC0415 - only commands that write need it

    try:
        return Actor(getpass.getuser(), "cli")
    except (KeyError, OSError):  # a container's user without a name
        return Actor("someone", "cli")


def place_of(root: Path | None) -> Place:
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
    return Place(project=project, folder=folder, home=home, environ=os.environ)


def sits_at_terminal() -> bool:
    """Whether somebody may be typing: what only a person does is done here alone."""
    return sys.stdin is not None and sys.stdin.isatty()


def settings_of(place: Place, options: dict[str, Any]) -> Settings:
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
    """Prints a refusal and ends the command: 2 when the call itself was wrong, 1 when it was understood and
    declined."""
    if as_json:
        click.echo(encode({"error": error_object(refusal)}).decode())
    else:
        click.echo(f"{click.style('refused', fg='red')} {refusal.code}: {refusal.message}", err=True)
        if refusal.hint:
            click.echo(f"{click.style('hint', fg='cyan')}    {refusal.hint}", err=True)
    wrong_usage = isinstance(refusal, InvalidParams | SettingInvalid | ToolsetUnknown)
    sys.exit(EXIT_USAGE if wrong_usage else EXIT_REFUSED)

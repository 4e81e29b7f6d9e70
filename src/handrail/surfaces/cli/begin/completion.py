"""`handrail completion`: prints, installs and removes the script that lets a shell complete commands, options and
values. Completion itself is click's machinery with `completing.py`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from handrail.domain.setup.file_plan import FileEdit
from handrail.domain.setup.shell import SHELLS, ShellFiles, shell_files, with_lines, without_lines
from handrail.kernel.errors import InvalidParams
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.surfaces.cli.begin.change_lines import action, change_lines, short
from handrail.surfaces.cli.columns import columns, wrapped
from handrail.surfaces.cli.options import common_options, place_of
from handrail.surfaces.cli.render import confirm, echo_json, echo_lines
from handrail.wiring import WorkPlace

PROGRAM, VARIABLE = "handrail", "_HANDRAIL_COMPLETE"
BASH = f"""\
# Completion of {PROGRAM} for bash. A value is quoted unless you opened quotes yourself.
_{PROGRAM}_completion() {{
    local IFS=$'\\n' kind value typed="${{COMP_WORDS[COMP_CWORD]}}"
    COMPREPLY=()
    while IFS=, read -r kind value; do
        case $kind in
            dir) compopt -o dirnames 2>/dev/null ;;
            file) compopt -o default 2>/dev/null ;;
            plain)
                [[ $value == *= ]] && compopt -o nospace 2>/dev/null
                case $typed in
                    \\"* | \\'*) COMPREPLY+=("$value") ;;
                    *) COMPREPLY+=("$(printf '%q' "$value")") ;;
                esac
                ;;
        esac
    done < <(env COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD="$COMP_CWORD" {VARIABLE}=bash_complete "$1" 2>/dev/null)
}}
complete -F _{PROGRAM}_completion {PROGRAM}
"""


@click.command()
@click.argument("shell", type=click.Choice(SHELLS), required=False)
@click.option("--install", is_flag=True, help="Install it where the shell finds it, after showing what changes.")
@click.option("--remove", is_flag=True, help="Remove what --install wrote.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def completion(
    shell: str | None,
    install: bool,
    remove: bool,
    yes: bool,
    root: Path | None,
    as_json: bool,
    **options: Any,  # noqa: ARG001 - every command takes these
) -> None:
    """Print or install completion for your shell: commands, options, and the names and ids in your store.

    Without SHELL, uses the one in $SHELL. To try it in the current shell only:

    \b
      bash  source <(handrail completion bash)
      zsh   source <(handrail completion zsh)
      fish  handrail completion fish | source
    """
    place = place_of(root)
    meant = shell or _shell_of(place)
    if install and remove:
        raise InvalidParams("--install and --remove are opposites", hint="give one of them")
    if not (install or remove):
        text = script(meant)
        echo_json({"shell": meant, "script": text}) if as_json else click.echo(text, nl=False)
        return
    files = ClientFiles(place.project, this_machine(place.home, place.environ))
    where = shell_files(meant, str(place.home), dict(place.environ))
    changes = _changes(files, where, meant, remove=remove)
    if not as_json:
        for change in changes:
            echo_lines(change_lines(change, place.home))
    if changes and not yes:
        confirm("Take this back?" if remove else "Write this?", as_json=as_json)
    for change in changes:
        files.apply(change)
    if as_json:
        told = [{"file": change.file, "action": action(change)} for change in changes]
        echo_json({"shell": meant, "wrote": bool(changes), "changes": told})
        return
    echo_lines(wrapped(_outcome(meant, place, changes, remove=remove), columns()))


def script(shell: str) -> str:
    """The script for a shell. Bash gets one of ours: click's inserts names with spaces as several words."""
    if shell == "bash":
        return BASH
    from click.shell_completion import get_completion_class  # noqa: PLC0415 - only here

    from handrail.surfaces.cli.main import cli  # noqa: PLC0415 - it knows this module by name

    known = get_completion_class(shell)
    assert known is not None, "click knows these shells"
    source = known(cli, {}, PROGRAM, VARIABLE).source().strip() + "\n"
    # Click's script for fish cuts a name and its description at the first comma.
    return source.replace('string split ","', 'string split -m 1 ","') if shell == "fish" else source


def _shell_of(place: WorkPlace) -> str:
    name = os.path.basename(place.environ.get("SHELL", ""))  # noqa: PTH119 - a word, not a file
    if name not in SHELLS:
        raise InvalidParams("nobody knows which shell is meant", hint=f"name it: {', '.join(SHELLS)}")
    return name


def _changes(files: ClientFiles, where: ShellFiles, shell: str, *, remove: bool) -> list[FileEdit]:
    wanted: dict[str, str | None] = {where.script: None if remove else script(shell)}
    if where.begins_with is not None:
        there = files.read(where.begins_with)
        wanted[where.begins_with] = without_lines(there) if remove else with_lines(there, shell, where.script)
    made = (FileEdit(file=file, before=files.read(file), after=after) for file, after in wanted.items())
    return [change for change in made if change.before != change.after]


def _outcome(shell: str, place: WorkPlace, changes: list[FileEdit], *, remove: bool) -> str:
    if not changes:
        return "Nothing of it is there." if remove else "It is installed already."
    if remove:
        return f"Taken back: {', '.join(short(change.file, place.home) for change in changes)}."
    return f"Installed. A new {shell} completes; `handrail completion {shell} --remove` takes it back."

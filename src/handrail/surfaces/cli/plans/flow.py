"""`handrail flow …`: list, show, check and write flows, the phases a pipeline goes through."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from handrail.domain.pipeline.flow import BY_TASK, Flow, Phase, is_flow_id, phases_kept, weakens
from handrail.domain.pipeline.flow_shelf import BrokenFlow, LoadedFlow
from handrail.kernel.errors import InvalidParams, NotFound, PlaceUnusable
from handrail.kernel.late import late_module
from handrail.outside.flow_files import FOLDER, FlowFiles, refused, standard_flows
from handrail.outside.user_files import foreign_tree, is_written_name, make_folder
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.columns import bold, columns, counted, dim, fit, hanging, packed, table_lines, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, place_of
from handrail.surfaces.cli.render import echo_json, echo_lines, echo_wrapped
from handrail.surfaces.refusals import EXIT_REFUSED

if TYPE_CHECKING:
    import yaml

    from handrail.outside import flow_files
else:
    flow_files = late_module("handrail.outside.flow_files")
    yaml = late_module("yaml")

_HEAD = """\
# A flow: the phases a pipeline goes through, in this order. Every field: docs/flows.md
# It was copied from the flow {base}. Change it, then check it: handrail flow validate {name}
#
# Kinds of phases:
#   agent         an agent writes `output`; over when the file is there (and has `contains` in it)
#   review        an agent writes a verdict into `output`: one of `passes` goes on, one of `fails` sends the work back
#                 to `revises`, at most `retries` times; then a person is asked
#   gate          a person is shown `shows` and answers one of `options`; `reject` goes back to `returns_to`
#   tasks         the tasks listed in `plan` are done, each by an agent that writes its `output`
#   task-reviews  each task's work gets a verdict; what fails is done again
#   exec          `commands` are run, each a list of words, never a shell's line
# {{N}} in the name of a file stands for a task's number. `skip` leaves phases out; to leave out more of another flow
# and change nothing else, write `extends: {base}` in place of `phases`.
"""


ORDINARY = "standard"
"""The bundled flow that a flow with its own name and phases is compared with."""


@click.group(cls=ListFirst)
def flow() -> None:
    """List, show, check and write flows: the phases of a pipeline. Without a command, list them."""


@flow.command("list")
@common_options
def list_flows(root: Path | None, as_json: bool, **_: Any) -> None:
    """List every flow, and any file that cannot be used."""
    flows = flows_of(root)
    entries = flows.entries()
    loaded = sorted((entry for entry in entries if isinstance(entry, LoadedFlow)), key=lambda entry: entry.name)
    broken = [entry for entry in entries if isinstance(entry, BrokenFlow)]
    weaker = _weaker(flows, loaded)
    if as_json:
        told = [{**_entry(item), "weaker": weaker.get(item.file)} for item in loaded]
        echo_json({"flows": told, "problems": [_problem(item) for item in broken]})
        return
    _echo_list(loaded)
    if broken:
        click.echo(f"\n{counted(len(broken), 'file')} cannot be followed:")
        _echo_problems(broken)
    if weaker:
        click.echo()
        _echo_weaker(weaker.values())


@flow.command()
@click.argument("name", shell_complete=completions.flows)
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the whole flow as a YAML file.")
@common_options
def show(name: str, as_yaml: bool, root: Path | None, as_json: bool, **_: Any) -> None:
    """Show one flow, phase by phase."""
    found = flows_of(root).entry(name)
    if isinstance(found, BrokenFlow):
        raise refused(found)
    if as_json:
        echo_json({**_entry(found), "flow": _effective(found.flow)})
    elif as_yaml:
        click.echo(_as_yaml(found.flow), nl=False)
    else:
        _echo_flow(found)


@flow.command()
@click.argument("targets", nargs=-1, metavar="[FILE|NAME]...", shell_complete=completions.flows)
@common_options
def validate(targets: tuple[str, ...], root: Path | None, as_json: bool, **_: Any) -> None:
    """Check flows, by file or by name. Without arguments, check all.

    Exits with 1 if one has a problem. Reports every mistake in a file at once, then mistakes between its phases one by
    one. Where a flow asks or reviews less than the bundled one, that is noted but is not a problem.
    """
    flows = flows_of(root)
    checked = [_check_target(flows, target) for target in targets] if targets else list(flows.entries())
    broken = [item for item in checked if isinstance(item, BrokenFlow)]
    weaker = _weaker(flows, [item for item in checked if isinstance(item, LoadedFlow)])
    told = [mistake for item in broken for mistake in flow_files.mistakes_in(item, flows)]
    if as_json:
        problems = [_problem(item) for item in told]
        echo_json({"checked": len(checked), "problems": problems, "weaker": list(weaker.values())})
    else:
        _echo_problems(told)
        _echo_weaker(weaker.values())
        click.echo(f"{len(checked)} checked, {len(broken)} with problems")
    sys.exit(EXIT_REFUSED if broken else 0)


@flow.command()
@click.argument("name")
@click.option(
    "--from",
    "base",
    default="standard",
    show_default=True,
    metavar="NAME",
    shell_complete=completions.flows,
    help="The flow to copy.",
)
@common_options
def new(name: str, base: str, root: Path | None, as_json: bool, **_: Any) -> None:
    """Create a flow in .handrail/flows, ready to edit."""
    if not is_flow_id(name):
        raise InvalidParams(f"{name} cannot be a flow's name", hint="small letters, digits and hyphens")
    flows = flows_of(root)
    description = f"As {base} was when this was copied from it. Say here what this flow is for."
    copied = msgspec.structs.replace(flows.find(base), name=name, description=description)
    place = place_of(root)
    folder = place.project / FOLDER
    for there in (folder / f"{name}{suffix}" for suffix in (".yaml", ".yml", ".json")):
        if there.exists() or there.is_symlink():
            raise InvalidParams(f"{there} is there already", hint="edit it, or choose another name")
    replaced = [entry for entry in flows.entries() if entry.name == name]
    file = folder / f"{name}.yaml"
    make_folder(folder, foreign_tree(place.project, place.home))
    try:
        with file.open("x", encoding="utf-8", newline="\n") as written:
            written.write(_HEAD.format(base=base, name=name) + _as_yaml(copied))
    except OSError as problem:
        raise PlaceUnusable(
            f"{file} cannot be written: {problem.strerror}", hint="make its folder writable, or choose another --root"
        ) from None
    if as_json:
        echo_json({"file": str(file)})
        return
    click.echo(f"wrote {file}")
    for entry in replaced:
        click.echo(f"it replaces the flow of the same name from {entry.source}")
    click.echo(f"check it: handrail flow validate {name}")


def flows_of(root: Path | None) -> FlowFiles:
    """A project's flows, including the bundled ones and the user's."""
    place = place_of(root)
    return FlowFiles(standard_flows(home=place.home, project=place.project))


def _check_target(flows: FlowFiles, target: str) -> LoadedFlow | BrokenFlow:
    file = Path(target)
    if is_written_name(file.name):
        return flows.checked(Path(os.path.abspath(file)))  # noqa: PTH100 - without `..`, so that its tree is found
    if file.is_file():
        raise InvalidParams(f"{target} is not a flow file", hint="flows are .yaml, .yml or .json files")
    try:
        return flows.entry(target)
    except NotFound as refusal:
        raise NotFound(
            refusal.message.replace("there is no flow", "there is no file and no flow"), hint=refusal.hint
        ) from None


def _entry(item: LoadedFlow) -> dict[str, Any]:
    return {
        "name": item.name,
        "description": item.flow.description,
        "source": item.source,
        "file": item.file,
        "phases": [phase.id for phase in phases_kept(item.flow)],
        "skip": item.flow.skip,
    }


def _echo_list(loaded: Sequence[LoadedFlow]) -> None:
    """The flows in lines that fit, with what each leaves out and is for below it."""
    room = columns()
    header = ("flow", "from", "phases")
    rows = [(item.name, item.source, str(len(phases_kept(item.flow)))) for item in loaded]
    heading, *lines = table_lines(header, rows, None)
    click.echo(heading)
    for line, item in zip(lines, loaded, strict=True):
        click.echo(line)
        skips = f"skips {', '.join(item.flow.skip)}" if item.flow.skip else ""
        for text in (skips, item.flow.description):
            echo_lines(dim(below) for below in wrapped(text, room, "    "))


def _problem(item: BrokenFlow) -> dict[str, Any]:
    return {"name": item.name, "where": item.where, "phase": item.phase, "reason": item.reason}


def _echo_problems(broken: Sequence[BrokenFlow]) -> None:
    for item in broken:
        echo_wrapped(f"{item.where}: {item.reason}", "  ")


def _weaker(flows: FlowFiles, loaded: Sequence[LoadedFlow]) -> dict[str, dict[str, Any]]:
    """Which questions and reviews of the bundled flows these flows leave out, by file."""
    bundled: Callable[[str], Flow | None] = functools.cache(flows.bundled)
    found: dict[str, dict[str, Any]] = {}
    for item in loaded:
        names = (item.name, item.flow.extends or ORDINARY, ORDINARY)
        than = next((flow for name in names if (flow := bundled(name)) is not None), None)
        if than is not None and (less := weakens(item.flow, than)):
            found[item.file] = {"name": item.name, "than": than.name, "leaves_out": less}
    return found


def _echo_weaker(weaker: Iterable[dict[str, Any]]) -> None:
    for item in weaker:
        bundled = f"the {item['than']} that comes with Handrail"
        title = f"{item['name']} asks and judges less than {bundled}:"
        echo_wrapped(title)
        for less in item["leaves_out"]:
            echo_wrapped(less, "  ")


def _effective(flow: Flow) -> dict[str, Any]:
    """The flow as it is followed: with the phases of the flow it extends, instead of that flow's name."""
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(flow, extends=None))
    return plain


def _echo_flow(item: LoadedFlow) -> None:
    flow = item.flow
    room = columns()
    echo_lines(bold(line) for line in wrapped(f"{flow.name} ({item.source}: {item.file})", room))
    echo_lines(wrapped(flow.description, room))
    for file in item.shadows:
        echo_lines(wrapped(f"It is followed in place of {file}.", room))
    number = 0
    for phase in flow.phases:
        skipped = phase.id in flow.skip
        number += not skipped
        place = "  -" if skipped else f"{number:>3}"
        look = dim if skipped else bold
        named = [f"[{phase.id}]", *(["skipped"] if skipped else [])]
        title = packed([fit(phase.label, room - 5), *named], room - 5)
        echo_lines(look(f"{' ' * 3 if below else place}  {line}") for below, line in enumerate(title))
        for text in () if skipped else _lines(phase):
            echo_lines(hanging("", text, room, "     "))


def _lines(phase: Phase) -> list[str]:
    """What is worth saying about a phase, one line each."""
    lines: list[str] = []
    if phase.agent is not None:
        many = "for each task " if phase.kind in BY_TASK else ""
        given = [*phase.inputs, *(f"{name} if there" for name in phase.if_there)]
        reads = f"{', '.join(given)} → " if given else ""
        lines.append(f"{many}{phase.agent}: {reads}{phase.output}")
    lines += [f"the file contains {phase.contains.strip()}"] if phase.contains else []
    lines += [f"{agent} where {skipped} is skipped" for skipped, agent in phase.instead.items()]
    if phase.passes:
        fails = ", ".join(phase.fails)
        lines.append(f"{', '.join(phase.passes)} goes on; {fails} goes back to {phase.revises}")
        lines.append(f"after {phase.retries + 1} × {fails} a person is asked")
    if phase.options:
        shown = f" about {phase.shows}" if phase.shows else ""
        lines.append(f"a person is asked{shown}: {', '.join(phase.options)}")
    lines += [f"reject goes back to {phase.returns_to}"] if phase.returns_to else []
    lines += [f"--auto opens it once {phase.auto_after} approved"] if phase.auto_after else []
    lines += [" ".join(command) for command in phase.commands]
    lines += [f"only for {', '.join(phase.only_for)}"] if phase.only_for else []
    lines += ["not with --nopr"] if "skip_pr" in phase.unless else []
    lines += [f"only where {gate} was answered {answer}" for gate, answer in phase.after_answer.items()]
    return lines


def _as_yaml(flow: Flow) -> str:
    """The flow as a file, with every phase included."""
    plain = _effective(flow)
    lines = [f"{key}: {_inline(plain[key])}" for key in ("name", "description", "skip") if key in plain]
    lines.append("phases:")
    for phase in plain["phases"]:
        commands = phase.pop("commands", [])
        entries = [f"{key}: {_inline(value)}" for key, value in phase.items()]
        if commands:
            entries += ["commands:", *(f"  - {_inline(command)}" for command in commands)]
        lines += [f"{'  - ' if number == 0 else '    '}{entry}" for number, entry in enumerate(entries)]
    return "\n".join(lines) + "\n"


def _inline(value: Any) -> str:
    """A value on one line of YAML."""
    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("\n").removesuffix("\n...")

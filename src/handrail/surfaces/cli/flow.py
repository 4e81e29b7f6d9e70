"""`handrail flow …`: list, show, check and write flows, the phases a pipeline goes through."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from handrail.domain.pipeline.flow import Flow, Phase, is_flow_id, weakens
from handrail.domain.pipeline.flow_shelf import BrokenFlow, LoadedFlow
from handrail.kernel.errors import InvalidParams, NotFound, PlaceUnusable
from handrail.outside.flow_files import FOLDER, FlowFiles, is_flow_name, refused, standard_flows
from handrail.surfaces.cli.columns import bold, columns, dim, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, place_of
from handrail.surfaces.cli.render import echo_json
from handrail.surfaces.refusals import EXIT_REFUSED

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
"""The bundled flow that one with a name and phases of its own is compared with."""


@click.group(cls=ListFirst)
def flow() -> None:
    """List, show, check and write flows: the phases a pipeline goes through."""


@flow.command("list")
@common_options
def list_flows(root: Path | None, as_json: bool, **_: Any) -> None:
    """List every flow, where it comes from, and the files that cannot be followed."""
    flows = _flows(root)
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
        click.echo(f"\n{len(broken)} {'file' if len(broken) == 1 else 'files'} cannot be followed:")
        _echo_problems(broken)
    if weaker:
        click.echo()
        _echo_weaker(weaker.values())


@flow.command()
@click.argument("name")
@click.option("--yaml", "as_yaml", is_flag=True, help="Print the whole flow as a file would have it.")
@common_options
def show(name: str, as_yaml: bool, root: Path | None, as_json: bool, **_: Any) -> None:
    """Show one flow, phase by phase."""
    found = _flows(root).entry(name)
    if isinstance(found, BrokenFlow):
        raise refused(found)
    if as_json:
        echo_json({**_entry(found), "flow": _effective(found.flow)})
    elif as_yaml:
        click.echo(_as_yaml(found.flow), nl=False)
    else:
        _echo_flow(found)


@flow.command()
@click.argument("targets", nargs=-1, metavar="[FILE|NAME]...")
@common_options
def validate(targets: tuple[str, ...], root: Path | None, as_json: bool, **_: Any) -> None:
    """Check flow files, or flows by name; without arguments, every flow there is. Ends with 1 when one has a problem.
    All mistakes of a file are told that stand in one place each; then what is wrong between its phases, one by one.
    What a flow asks and judges less than the bundled one is said, and is no problem."""
    flows = _flows(root)
    checked = [_checked(flows, target) for target in targets] if targets else list(flows.entries())
    broken = [item for item in checked if isinstance(item, BrokenFlow)]
    weaker = _weaker(flows, [item for item in checked if isinstance(item, LoadedFlow)])
    from handrail.outside.flow_mistakes import mistakes_in  # noqa: PLC0415 - it reads YAML, which is slow to import

    told = [mistake for item in broken for mistake in mistakes_in(item)]
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
@click.option("--from", "base", default="standard", show_default=True, metavar="NAME", help="The flow to copy.")
@common_options
def new(name: str, base: str, root: Path | None, as_json: bool, **_: Any) -> None:
    """Write a new flow to the project's .handrail/flows, ready to be edited."""
    if not is_flow_id(name):
        raise InvalidParams(f"{name} cannot be a flow's name", hint="small letters, digits and hyphens")
    flows = _flows(root)
    description = f"As {base} was when this was copied from it. Say here what this flow is for."
    copied = msgspec.structs.replace(flows.find(base), name=name, description=description)
    folder = place_of(root).project / FOLDER
    for there in (folder / f"{name}{suffix}" for suffix in (".yaml", ".yml", ".json")):
        if there.exists() or there.is_symlink():
            raise InvalidParams(f"{there} is there already", hint="edit it, or choose another name")
    replaced = [entry for entry in flows.entries() if entry.name == name]
    file = folder / f"{name}.yaml"
    try:
        folder.mkdir(parents=True, exist_ok=True)
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


def _flows(root: Path | None) -> FlowFiles:
    place = place_of(root)
    return FlowFiles(standard_flows(home=place.home, project=place.project))


def _checked(flows: FlowFiles, target: str) -> LoadedFlow | BrokenFlow:
    file = Path(target)
    if is_flow_name(file.name):
        return flows.checked(file.absolute())
    if file.is_file():
        raise InvalidParams(f"{target} is not a flow file", hint="flows are .yaml, .yml or .json files")
    try:
        return flows.entry(target)
    except NotFound as refusal:
        raise NotFound(
            refusal.message.replace("there is no flow", "there is no file and no flow"), hint=refusal.hint
        ) from None


def _kept(flow: Flow) -> list[Phase]:
    return [phase for phase in flow.phases if phase.id not in flow.skip]


def _entry(item: LoadedFlow) -> dict[str, Any]:
    return {
        "name": item.name,
        "description": item.flow.description,
        "source": item.source,
        "file": item.file,
        "phases": [phase.id for phase in _kept(item.flow)],
        "skip": item.flow.skip,
    }


def _echo_list(loaded: Sequence[LoadedFlow]) -> None:
    """The flows in lines that fit: which there are, and below each what it leaves out and is for."""
    room = columns()
    header = ("flow", "from", "phases")
    rows = [(item.name, item.source, str(len(_kept(item.flow)))) for item in loaded]
    names, sources, _ = (max(len(row[column]) for row in (header, *rows)) for column in range(3))
    click.echo(bold(f"{header[0].ljust(names)}  {header[1].ljust(sources)}  {header[2]}"))
    for (name, source, phases), item in zip(rows, loaded, strict=True):
        click.echo(f"{name.ljust(names)}  {source.ljust(sources)}  {phases}")
        skips = f"skips {', '.join(item.flow.skip)}" if item.flow.skip else ""
        for text in (skips, item.flow.description):
            for line in wrapped(text, room, "    "):
                click.echo(dim(line))


def _problem(item: BrokenFlow) -> dict[str, Any]:
    return {"name": item.name, "where": item.where, "phase": item.phase, "reason": item.reason}


def _echo_problems(broken: Sequence[BrokenFlow]) -> None:
    for item in broken:
        click.echo(f"  {click.style(f'{item.where}: ', fg='red')}{item.reason}")


def _weaker(flows: FlowFiles, loaded: Sequence[LoadedFlow]) -> dict[str, dict[str, Any]]:
    """What flows leave out of the questions and reviews of those that come with Handrail, by file."""
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
        click.echo(click.style(f"{item['name']} asks and judges less than {bundled}:", fg="yellow"))
        for less in item["leaves_out"]:
            click.echo(f"  {less}")


def _effective(flow: Flow) -> dict[str, Any]:
    """The flow as it is followed: with the phases of the one it extends in place of that one's name."""
    plain: dict[str, Any] = msgspec.to_builtins(msgspec.structs.replace(flow, extends=None))
    return plain


def _echo_flow(item: LoadedFlow) -> None:
    flow = item.flow
    click.echo(click.style(f"{flow.name}  ({item.source}: {item.file})", bold=True))
    for line in wrapped(flow.description, columns()):
        click.echo(line)
    for file in item.shadows:
        click.echo(f"It is followed in place of {file}.")
    number = 0
    for phase in flow.phases:
        skipped = phase.id in flow.skip
        number += not skipped
        place = "  -" if skipped else f"{number:>3}"
        title = click.style(f"{place}  {phase.label}  [{phase.id}]", bold=not skipped, dim=skipped)
        click.echo(f"{title}  skipped" if skipped else title)
        for line in () if skipped else _lines(phase):
            click.echo(f"     {line}")


def _lines(phase: Phase) -> list[str]:
    """What is worth saying of a phase, a line each."""
    lines: list[str] = []
    if phase.agent is not None:
        many = "for each task " if phase.kind in ("tasks", "task-reviews") else ""
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
    """The flow as a file, with every phase in it."""
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
    import yaml  # noqa: PLC0415 - slow to import; listing JSON flows never pays

    text: str = yaml.safe_dump(value, default_flow_style=True, sort_keys=False, allow_unicode=True, width=sys.maxsize)
    return text.removesuffix("\n").removesuffix("\n...")

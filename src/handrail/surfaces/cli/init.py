"""`handrail init`: shows what each client here needs to use Handrail, asks, and writes it; and takes all of it back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from handrail.catalog import PROFILES
from handrail.domain.setup.clients import CLIENTS, Client
from handrail.domain.setup.planning import Change, Manifest, Plan, plan, removal
from handrail.domain.setup.steps import CONFIG, IGNORE, Wanted, steps_for
from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.kernel.nearest import did_you_mean
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.surfaces.cli.approvals import approvals_wanted, said_approvals, write_changes
from handrail.surfaces.cli.options import common_options, place_of
from handrail.surfaces.cli.render import echo_json
from handrail.wiring import Place

NAMES = {client.name: client for client in CLIENTS}


@click.command()
@click.option("--client", "clients", multiple=True, metavar="NAME", help=f"Only these: {', '.join(NAMES)}.")
@click.option("--all", "every", is_flag=True, help="Every client, also those that are not here.")
@click.option("--profile", metavar="NAME", help=f"A bundle of toolsets: {', '.join(PROFILES)}.  [default: solo]")
@click.option("--approvals", type=click.Choice(["human", "agent"]), help="Who may answer a gate.  [default: asks]")
@click.option("--yes", is_flag=True, help="Do not ask; gates are for people.")
@click.option("--print", "only_print", is_flag=True, help="Show what would be written, and write nothing.")
@click.option("--remove", is_flag=True, help="Take back what init wrote, to the byte.")
@common_options
def init(root: Path | None, as_json: bool, yes: bool, only_print: bool, remove: bool, **options: Any) -> None:
    """Set up the clients of this machine for this project: shows the changes, asks, writes.

    Files keep what is in them, to the byte; what is added is noted, and --remove takes it back. A file that cannot be
    understood is left alone. Clients are those that leave signs here, or the ones you name.
    """
    place = place_of(root)
    _check(place, options)
    files = ClientFiles(place.project, this_machine(place.home, place.environ))
    known = files.manifest()
    chosen: list[Client] = []
    if remove:
        todo = removal(known, files.read, _kept(place.project))
    else:
        chosen = _chosen(files, options)
        asks = not (yes or only_print or as_json)
        todo = plan(steps_for(_wanted(files, known, chosen, options, asks=asks)), files.read)
    if not as_json:
        _show(todo, place.project, remove=remove)
    has_work = bool(todo.changes or (remove and known.files))
    writes = has_work and not only_print
    if writes and not yes:
        if as_json:
            raise InvalidParams("--json asks nothing", hint="add --yes to write, or --print to look")
        click.confirm("Take this back?" if remove else "Write this?", abort=True)
    if writes:
        _remove(files, known, todo) if remove else write_changes(files, known, todo)
    if as_json:
        _tell_json(todo, chosen, wrote=writes)
    elif not remove:
        _tell_next(chosen, wrote=writes)


def _check(place: Place, options: dict[str, Any]) -> None:
    if options.get("db") or options.get("global_store"):
        raise InvalidParams(
            "init does not write --db or --global into clients: server, hooks and command line would not agree",
            hint=f"write db = … or global_store = true into {CONFIG}, then run init",
        )
    if place.project == place.home.resolve():
        raise PlaceUnusable("this is your home folder, not a project", hint="go to a project, or name it with --root")
    profile = options.get("profile")
    if profile is not None and profile not in PROFILES:
        raise InvalidParams(
            f"there is no profile {profile}{did_you_mean(profile, PROFILES)}", hint=f"profiles: {', '.join(PROFILES)}"
        )


def _chosen(files: ClientFiles, options: dict[str, Any]) -> list[Client]:
    if options["every"]:
        return list(CLIENTS)
    for name in options["clients"]:
        if name not in NAMES:
            raise InvalidParams(
                f"there is no client {name}{did_you_mean(name, NAMES)}", hint=f"clients: {', '.join(NAMES)}"
            )
    return [NAMES[name] for name in dict.fromkeys(options["clients"])] or files.present()


def launch() -> tuple[str, ...]:
    """The words that start this very Handrail. -P: a folder called handrail where a client happens to be must not be
    taken for it."""
    if not sys.executable:
        raise PlaceUnusable("nobody knows where this Python is", hint="run init with an interpreter's full path")
    return (sys.executable, "-P", "-m", "handrail")


def _wanted(
    files: ClientFiles, known: Manifest, chosen: list[Client], options: dict[str, Any], *, asks: bool
) -> Wanted:
    profile = options.get("profile")
    return Wanted(
        project=str(files.project),
        launch=launch(),
        options=("--profile", profile) if profile else (),
        clients=tuple((client, files.file_of(client)) for client in chosen),
        named=frozenset(options["clients"]),
        approvals=approvals_wanted(said_approvals(files), options.get("approvals"), asks=asks),
        instructions=tuple(files.instruction_files()),
        ours={written.file: written.after for written in known.files},
    )


def _kept(project: Path) -> dict[str, str]:
    """What --remove does not take away: while there is a database, it stays out of everybody's commits."""
    has_database = (project / ".handrail" / "handrail.db").exists()
    return {f"{project}/{IGNORE}": "the database beside it is still there"} if has_database else {}


def _remove(files: ClientFiles, known: Manifest, todo: Plan) -> None:
    for change in todo.changes:
        files.apply(change)
    stuck = {left.file for left in todo.left} - set(_kept(files.project))
    files.keep(Manifest(tuple(written for written in known.files if written.file in stuck)))
    files.drop_folders([folder for written in known.files for folder in written.folders])


def _show(todo: Plan, project: Path, *, remove: bool) -> None:
    for change in todo.changes:
        click.echo(click.style(_short(change.file, project), bold=True) + _about(change))
        for line in _diff(change, project):
            colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
            click.echo(click.style(line, fg=colour) if colour else line)
        click.echo()
    for left in todo.left:
        click.echo(f"{click.style('left alone', fg='yellow')} {_short(left.file, project)}: {left.why}")
    if not todo.changes:
        click.echo("nothing to take back" if remove else "nothing to do: everything is set up")


def _about(change: Change) -> str:
    if change.purposes:
        return f"  {'; '.join(change.purposes)}"
    return "  deleted" if change.after is None else ""


def _diff(change: Change, project: Path) -> list[str]:
    import difflib  # noqa: PLC0415 - only here

    name = _short(change.file, project)
    old = (change.before or "").splitlines(keepends=True)
    new = (change.after or "").splitlines(keepends=True)
    before = "/dev/null" if change.before is None else name
    after = "/dev/null" if change.after is None else name
    lines: list[str] = []
    for line in difflib.unified_diff(old, new, before, after):
        lines.append(line.rstrip("\r\n"))
        if line[:1] in "+- " and not line.endswith(("\n", "\r")):
            lines.append("\\ no newline at the end")
    return lines


def _short(file: str, project: Path) -> str:
    return file.removeprefix(f"{project}/")


def _tell_next(chosen: list[Client], *, wrote: bool) -> None:
    if not chosen:
        click.echo(f"No client was found here. Name one with --client ({', '.join(NAMES)}), or take --all.")
    if not wrote:
        return
    for client in chosen:
        if client.note:
            click.echo(f"{client.title}: {client.note}.")
    click.echo("`handrail doctor` tries everything; `handrail init --remove` takes it back.")
    click.echo("`handrail up` serves the page: what your agents do, and what waits for you.")


def _tell_json(todo: Plan, chosen: list[Client], *, wrote: bool) -> None:
    changes = [{"file": change.file, "action": _action(change), "purposes": change.purposes} for change in todo.changes]
    left = [{"file": one.file, "why": one.why} for one in todo.left]
    echo_json({"wrote": wrote, "clients": [c.name for c in chosen], "changes": changes, "left_alone": left})


def _action(change: Change) -> str:
    return "delete" if change.after is None else "make" if change.before is None else "change"

"""`handrail init`: shows what each client here needs to use Handrail, asks, and writes it; can undo all of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from handrail.catalog import PROFILES
from handrail.domain.setup.clients import CLIENTS, Client, is_decided
from handrail.domain.setup.file_plan import SetupManifest, SetupPlan, plan, removal
from handrail.domain.setup.hook_files import hook_notes
from handrail.domain.setup.steps import CONFIG, IGNORE, InitOptions, steps_for
from handrail.kernel.errors import InvalidParams, PlaceUnusable
from handrail.kernel.wording import did_you_mean
from handrail.outside.client_files import ClientFiles, this_machine
from handrail.outside.installation import launch
from handrail.outside.trusted_settings import agreed_for, forget
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.begin.approvals import approvals_wanted, keep_word, said_approvals, write_changes
from handrail.surfaces.cli.begin.change_lines import action, change_lines, short
from handrail.surfaces.cli.begin.untrusted import waiting_line, waiting_names
from handrail.surfaces.cli.options import common_options, place_of
from handrail.surfaces.cli.render import confirm, echo_json, echo_lines, echo_wrapped
from handrail.surfaces.cli.terminal import styled
from handrail.wiring import WorkPlace

NAMES = {client.name: client for client in CLIENTS}


@click.command()
@click.option(
    "--client",
    "clients",
    multiple=True,
    metavar="NAME",
    shell_complete=completions.clients,
    help=f"Only these: {', '.join(NAMES)}.",
)
@click.option("--all", "every", is_flag=True, help="Every client, even those that are not installed.")
@click.option(
    "--profile",
    metavar="NAME",
    shell_complete=completions.profiles,
    help=f"A bundle of toolsets: {', '.join(PROFILES)}.  [default: solo]",
)
@click.option("--approvals", type=click.Choice(["human", "agent"]), help="Who may answer a gate.  [default: asks]")
@click.option(
    "--allow-tools/--no-allow-tools",
    "allows",
    default=None,
    help="Let the clients call Handrail's tools without asking each time.  [default: asks; no with --yes]",
)
@click.option("--yes", is_flag=True, help="Do not ask; only people may answer gates.")
@click.option("--print", "only_print", is_flag=True, help="Show what would be written without writing anything.")
@click.option("--remove", is_flag=True, help="Remove what init wrote, to the byte.")
@common_options
def init(root: Path | None, as_json: bool, yes: bool, only_print: bool, remove: bool, **options: Any) -> None:
    """Set up the clients on this machine for this project. Shows the changes and asks before it writes.

    Existing files keep every byte that is in them; additions are recorded, and --remove takes them out again. A file
    that cannot be parsed is left alone. By default it sets up the clients it finds on this machine; name others with
    --client.
    """
    place = place_of(root)
    _check(place, options)
    files = ClientFiles(place.project, this_machine(place.home, place.environ))
    known = files.manifest()
    chosen: list[Client] = []
    wanted: InitOptions | None = None
    if remove:
        todo = removal(known, files.read, _files_to_keep(files, known))
    else:
        chosen = _chosen(files, options)
        asks = not (yes or only_print or as_json)
        wanted = _wanted(files, known, chosen, {**options, "agreed": agreed_for(place.project, place.home)}, asks=asks)
        todo = plan(steps_for(wanted), files.read)
    if not as_json:
        if not (chosen or remove):
            click.echo(f"No client was found here. Name one with --client ({', '.join(NAMES)}), or take --all.")
        _show(todo, place.project, remove=remove)
    has_work = bool(todo.changes or (remove and known.files))
    writes = has_work and not only_print
    if writes and not yes:
        confirm("Take this back?" if remove else "Write this?", as_json=as_json, look="--print")
    if writes:
        _remove(files, known, todo) if remove else write_changes(files, known, todo)
    if wanted is not None and wanted.approvals is not None and not only_print:
        keep_word(place, wanted.approvals, todo)
    if writes and remove and said_approvals(files, agreed_for(place.project, place.home)) is None:
        forget(place.project, place.home, ("approvals",))
    waiting = waiting_names(place)
    if as_json:
        _tell_json(todo, chosen, wrote=writes, waiting=waiting)
    elif wanted is not None:
        _tell_next(files, chosen, wanted, wrote=writes)
        if waiting:
            echo_wrapped(waiting_line(waiting))


def _check(place: WorkPlace, options: dict[str, Any]) -> None:
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


def _wanted(
    files: ClientFiles, known: SetupManifest, chosen: list[Client], options: dict[str, Any], *, asks: bool
) -> InitOptions:
    profile = options.get("profile")
    named = frozenset(options["clients"])
    # A plugin brings the server, the hooks and the commands: a second server of the same name would help nobody.
    written = [client for client in chosen if client.name in named or not files.has_plugin(client)]
    return InitOptions(
        project=str(files.project),
        launch=launch(),
        options=("--profile", profile) if profile else (),
        clients=tuple((client, files.file_of(client)) for client in written),
        named=named,
        approvals=approvals_wanted(said_approvals(files, options["agreed"]), options.get("approvals"), asks=asks),
        allows=_allows(files, written, options["allows"], asks=asks),
        instructions=tuple(files.instruction_files(chosen)),
        ours={written.file: written.after for written in known.files},
    )


def _asking(files: ClientFiles, clients: Sequence[Client]) -> list[Client]:
    """The clients that ask their user before each call and could be told not to."""
    asking = []
    for client in clients:
        allowance = client.allowance
        file = f"{files.project}/{allowance.file}" if allowance and allowance.file else files.file_of(client)
        if not is_decided(client, files.parsed_as(client.form, file)):
            asking.append(client)
    return asking


def _allows(files: ClientFiles, clients: Sequence[Client], told: bool | None, *, asks: bool) -> bool:
    """Whether to write the permissions: asked at most once, for all clients together, and never assumed."""
    asking = _asking(files, clients)
    for client in clients if told is False else ():
        if client.allowance is not None and client not in asking:
            stays = f"{client.title}: its file says already how it asks ({client.allowance.says}), and that stays"
            click.echo(f"{stays}: take it out there, or everything with --remove", err=True)
    if told is not None or not asks or not asking:
        return bool(told)
    click.echo("These ask before each call of a Handrail tool, unless a setting says otherwise:")
    for client in asking:
        click.echo(f"  {client.title}: {client.allowance.says if client.allowance else ''}")
    click.echo("The tools keep plans and notes in Handrail's own store; some make worktrees, merges and documents.")
    return click.confirm("May they call them without asking each time?", False)


def _files_to_keep(files: ClientFiles, known: SetupManifest) -> dict[str, str]:
    """What --remove does not touch, and why: the database must stay out of everybody's commits while it is there, and a
    manifest that came with a repository must not reach files that init never writes."""
    ours = {written.file for written in files.own_part(known).files}
    strange = [written.file for written in known.files if written.file not in ours]
    kept = dict.fromkeys(strange, "it is not known on this machine that init wrote it")
    if (files.project / ".handrail" / "handrail.db").exists():
        kept[f"{files.project}/{IGNORE}"] = "the database beside it is still there"
    return kept


def _remove(files: ClientFiles, known: SetupManifest, todo: SetupPlan) -> None:
    for change in todo.changes:
        files.apply(change)
    kept = _files_to_keep(files, known)
    stuck = {left.file for left in todo.left} - set(kept)
    files.keep(SetupManifest(tuple(written for written in known.files if written.file in stuck)))
    # Only folders that a file of ours lay in: the manifest may have come with the repository.
    ours = [one for one in known.files if one.file not in kept]
    files.drop_folders([folder for one in ours for folder in one.folders if Path(one.file).is_relative_to(folder)])


def _show(todo: SetupPlan, project: Path, *, remove: bool) -> None:
    for change in todo.changes:
        echo_lines(change_lines(change, project))
    for left in todo.left:
        click.echo(f"{styled('left alone', fg='yellow')} {short(left.file, project)}: {left.why}")
    if not todo.changes:
        click.echo("nothing to take back" if remove else "nothing to do: everything is set up")


def _tell_next(files: ClientFiles, chosen: list[Client], wanted: InitOptions, *, wrote: bool) -> None:
    written = [client for client, _ in wanted.clients]
    for client in chosen:
        if client not in written:
            click.echo(f"{client.title}: its plugin brings the server; --client {client.name} writes one here anyway.")
    if not wrote:
        return
    for client in written:
        for said in _still_to_do(files, client):
            click.echo(f"{client.title}: {said}.")
    asking = _asking(files, written)
    if asking:
        names = ", ".join(client.title for client in asking)
        echo_wrapped(f"Before each call of a tool you are asked by {names}; `handrail init --allow-tools` ends that.")
    click.echo("`handrail doctor` tries everything; `handrail init --remove` takes it back.")
    click.echo("`handrail up` serves the page: what your agents do, and what waits for you.")


def _still_to_do(files: ClientFiles, client: Client) -> Iterator[str]:
    """What a person has to know: what the client waits for, and where it must be started."""
    if client.note and files.trusts_folder(client) is not True:
        yield client.note
    hooks = hook_notes([client.name]).get(client.title)
    if hooks:
        yield hooks
    if client.subfolder:
        yield f"start it in {files.project}; in a folder below, {client.subfolder}"


def _tell_json(todo: SetupPlan, chosen: list[Client], *, wrote: bool, waiting: list[str]) -> None:
    changes = [{"file": change.file, "action": action(change), "purposes": change.purposes} for change in todo.changes]
    left = [{"file": one.file, "why": one.why} for one in todo.left]
    shown = {"wrote": wrote, "clients": [c.name for c in chosen], "changes": changes, "left_alone": left}
    echo_json({**shown, "waiting_for_trust": waiting})

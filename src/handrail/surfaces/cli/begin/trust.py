"""`handrail trust`: shows what a project's own file would run, reach or loosen, and asks once before it is followed.

Only what was shown is agreed to: a value that changes later waits again. What restricts needs no trust; it is kept
here too, so that the file alone cannot weaken it later.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.kernel.errors import InvalidParams, NotAllowed
from handrail.outside.trusted_settings import agreed_for
from handrail.settings import CONFIG_FILE, FileLayer, said_by_project
from handrail.settings_in_force import file_at
from handrail.strictness import CAUTIONS, Obeyed, Waiting, ascii_json
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import common_options, place_of, sits_at_terminal
from handrail.surfaces.cli.render import confirm, echo_json, echo_table, echo_wrapped
from handrail.wiring import WorkPlace

EFFECTS = {
    "checks": "runs, as you, when a task is verified or a workspace merged",
    "db": "records the work of this project there",
    "global_store": "records it in the store of all your repositories, which agents here then read",
    "http": "`handrail up` serves at this address",
    "allow_hosts": "clients may call it by these host names",
}
"""What following a setting does. Any other only weakens what holds now."""


@click.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--list", "listing", is_flag=True, help="Show what waits here, and what is trusted in every project.")
@click.option("--remove", is_flag=True, help="Trust nothing of this project any more.")
@common_options
def trust(yes: bool, listing: bool, remove: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show what this project's config would run, reach or loosen, and follow it from now on.

    A .handrail/config.toml may come with a repository. Until you have trusted it, it starts no program, opens no
    address and weakens no rule; what makes Handrail stricter applies at once. You are asked again when one of these
    values changes. Your own options and variables need no trust.
    """
    if options.get("db") or options.get("global_store"):
        raise InvalidParams("a store that you name yourself needs no trust", hint="leave out --db and --global")
    if listing and remove:
        raise InvalidParams("--list shows and --remove changes", hint="use one of them")
    place = place_of(root)
    if listing:
        _list(place, as_json=as_json)
    elif remove:
        _remove(place, yes=yes, as_json=as_json)
    else:
        _trust(place, yes=yes, as_json=as_json)


def _trust(place: WorkPlace, *, yes: bool, as_json: bool) -> None:
    layer = file_at(place.project, place.home)
    if not as_json:
        _show(place, layer)
    if layer.waiting and not yes:
        _check_person("trusts what a repository brought along")
        confirm("Follow this from now on?", as_json=as_json, look="--list")
    _agree(place, layer)
    names = [one.name for one in layer.waiting]
    if as_json:
        echo_json({"project": str(place.project), "trusted": names})
    elif names:
        click.echo("trusted; a running server follows checks at once, the rest when it is started again")
    else:
        click.echo("nothing waits for your trust here")


def _check_person(does: str) -> None:
    if not sits_at_terminal():
        raise NotAllowed(f"only a person at a terminal {does}", hint="run it in a terminal of your own; or add --yes")


def _show(place: WorkPlace, layer: FileLayer) -> None:
    """All of it, to the last character: this is what is agreed to."""
    if layer.waiting:
        click.echo(f"{place.project / CONFIG_FILE} says, and nobody here has trusted it:")
    for one in layer.waiting:
        for line in _lines(place, one):
            click.echo(f"  {line}")


def _lines(place: WorkPlace, one: Waiting) -> Iterator[str]:
    if one.name == "checks":
        for name, command in one.said.items():
            yield f"check {ascii_json(name)}: {ascii_json(command)}"
    elif one.said is None:
        yield f"{one.name}: nothing any more"
    else:
        yield f"{one.name} = {_shown(place, one)}"
    yield f"  {EFFECTS.get(one.name) or f'weaker than {ascii_json(one.in_force)}, which holds until you trust it'}"


def _shown(place: WorkPlace, one: Waiting) -> str:
    if one.name != "db":
        return ascii_json(one.said)
    from handrail.store.open_engine import shown_address  # noqa: PLC0415 - only for a store elsewhere

    return ascii_json(shown_address(one.said, place.project))


def _agree(place: WorkPlace, layer: FileLayer) -> None:
    """Records what was shown, and what restricts."""
    from handrail.outside.trusted_settings import agree, forget  # noqa: PLC0415 - not to show help
    from handrail.outside.trusted_stores import trust as trust_store  # noqa: PLC0415 - as above

    waiting = {one.name: one.said for one in layer.waiting}
    if "db" in waiting:
        trust_store(waiting["db"], project=place.project, home=place.home)
    values = {
        name: value for name, value in layer.said.items() if name in waiting or CAUTIONS[name].obeyed is Obeyed.STRICTER
    }
    gone = [name for name in agreed_for(place.project, place.home).limits if name not in values]
    if gone:
        forget(place.project, place.home, gone)
    if values:
        agree(place.project, place.home, values, now_ms=time.time_ns() // 1_000_000)


def _list(place: WorkPlace, *, as_json: bool) -> None:
    from handrail.outside.trusted_settings import all_agreed  # noqa: PLC0415 - not to show help
    from handrail.outside.trusted_stores import agreements  # noqa: PLC0415 - as above

    layer, known = file_at(place.project, place.home), all_agreed(place.home)
    stores = [one.shown or "one that an older Handrail kept" for one in agreements(place.home)]
    if as_json:
        waiting = [{"name": one.name, "says": _json_of(place, one), "in_force": one.in_force} for one in layer.waiting]
        trusted = [
            {"project": project, "follows": sorted(kept.marks), "never_weaker": kept.limits, "at": kept.at}
            for project, kept in sorted(known.items())
        ]
        echo_json({"project": str(place.project), "waiting": waiting, "trusted": trusted, "stores": stores})
        return
    _show(place, layer)
    if not layer.waiting:
        click.echo("nothing waits for your trust here")
    if known:
        rows = [
            (one_line(project), ", ".join(sorted(kept.marks)) or "-", one_line(_words(kept.limits)) or "-")
            for project, kept in sorted(known.items())
        ]
        click.echo()
        echo_table(("project", "trusted", "not to be weakened by its file"), rows)
    if stores:
        click.echo()
        echo_table(("trusted store", "how"), [(one_line(store), "handrail db trust") for store in stores])


def _json_of(place: WorkPlace, one: Waiting) -> Any:
    return _shown(place, one) if one.name == "db" else one.said


def _words(limits: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {ascii_json(value)}" for name, value in sorted(limits.items()))


def _remove(place: WorkPlace, *, yes: bool, as_json: bool) -> None:
    from handrail.outside.trusted_settings import forget  # noqa: PLC0415 - not to show help
    from handrail.outside.trusted_stores import agreed_in, withdraw  # noqa: PLC0415 - as above

    agreed = agreed_for(place.project, place.home)
    db = said_by_project(place.project, "db")
    stores = agreed_in(place.project, place.home, db if isinstance(db, str) else "")
    if not (agreed.marks or agreed.limits or stores):
        raise InvalidParams(
            "nothing of this project is trusted", hint="`handrail trust --list` shows where something is"
        )
    if not yes:
        kept = f", nor keep {_words(dict(agreed.limits))} if the file says otherwise" if agreed.limits else ""
        _check_person("takes trust back")
        confirm(f"Follow nothing of {place.project / CONFIG_FILE} that needs trust{kept}?", as_json=as_json)
    forget(place.project, place.home)
    for store in stores:
        withdraw(store, place.home)
    names = sorted({*agreed.marks, *agreed.limits} | ({"db"} if stores else set()))
    echo_json({"removed": names}) if as_json else echo_wrapped(f"no longer trusted: {', '.join(names)}")

"""`handrail db trust`: a person says that a store is all right which Handrail does not use unasked. Also what other
commands say about tokens and secrets that were not made on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from handrail.domain.crew.tokens import Strangers, let_in, strangers
from handrail.kernel.errors import InvalidParams, NotAllowed, StoreNotTrusted
from handrail.kernel.late import late_module
from handrail.settings import CONFIG_FILE, Settings, said_by_project
from handrail.surfaces.cli.columns import counted, one_line
from handrail.surfaces.cli.options import common_options, person, place_of, settings_of, sits_at_terminal
from handrail.surfaces.cli.render import confirm, echo_json, echo_wrapped
from handrail.wiring import WorkPlace, has_store, key_for, ledger_at, store_address

if TYPE_CHECKING:
    from handrail.kernel.provenance import Sign
    from handrail.outside import machine_key, snapshot_origin, store_files, trusted_stores
    from handrail.store import open_engine, origin
else:
    machine_key = late_module("handrail.outside.machine_key")
    snapshot_origin = late_module("handrail.outside.snapshot_origin")
    store_files = late_module("handrail.outside.store_files")
    trusted_stores = late_module("handrail.outside.trusted_stores")
    open_engine = late_module("handrail.store.open_engine")
    origin = late_module("handrail.store.origin")

SHOWN = 10
"""How many tokens and agents are named."""


class _Waiting(NamedTuple):
    """What about a store waits for a person."""

    place_named: str | None
    """An address elsewhere that the project's file names."""
    file: Path | None
    signs: list[Sign]
    is_unmarked: bool
    snapshots: bool
    """Whether the snapshots of the working copies were made elsewhere."""

    @property
    def anything(self) -> bool:
        return bool(self.place_named or self.signs or self.is_unmarked or self.snapshots)


@click.command()
@click.option("--credentials", is_flag=True, help="Also let in its tokens and agents' secrets. Only at a terminal.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@common_options
def trust(credentials: bool, yes: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Trust a store that may have come with a repository.

    A store is not used unasked if this machine did not make it, if git tracks it, if another user owns it or may read
    it, or if .handrail/config.toml names one outside the project. Trusting it closes it to other users. Its tokens and
    agents' secrets still let nobody in, unless you add --credentials: their owners may be anybody.
    """
    if credentials and not sits_at_terminal():
        raise NotAllowed(
            "whoever has one of those tokens acts in somebody's name, so only a person lets them in, at a terminal",
            hint="run it yourself in a terminal of your own; without --credentials the records alone are trusted",
        )
    place = place_of(root)
    settings = settings_of(place, options)
    waiting = _waiting(place, settings)
    if not waiting.anything and not credentials:
        raise InvalidParams("there is nothing to trust: the store is used as it is", hint="handrail db path names it")
    if waiting.anything:
        shown = _shown_store(place, settings)
        if not yes:
            confirm(f"{_question(waiting, place, shown)}", as_json=as_json)
        _accept(waiting, place, settings, shown)
    trusted = {"trusted": _shown_store(place, settings)}
    found = _let_in(place, settings, yes=yes, as_json=as_json) if credentials else None
    left = None if credentials else strangers_in(place, settings)
    if as_json:
        said = found or left
        counts = {"tokens": len(said.tokens), "agents": len(said.agents)} if said else {"tokens": 0, "agents": 0}
        echo_json({**trusted, "credentials": {"trusted": credentials, **counts}})
        return
    echo_wrapped(f"{trusted['trusted']} is used from now on")
    if found is not None:
        echo_wrapped(f"{_counted(found)} let in from now on" if any(found) else "it has no credentials from elsewhere")
    elif told := told_of_strangers(left):
        echo_wrapped(told)


def strangers_in(place: WorkPlace, settings: Settings) -> Strangers | None:
    """The credentials in a store that let nobody in here; None if there is no store."""
    return ledger_at(place, settings).run(person(), strangers) if has_store(place, settings) else None


def told_of_strangers(found: Strangers | None) -> str:
    """What to say about them; empty if there are none."""
    if found is None or not any(found):
        return ""
    if len(found.tokens) + len(found.agents) == 1:
        said, them = "was not made on this machine and lets nobody in: make a new one", "it"
    else:
        said, them = "were not made on this machine and let nobody in: make new ones", "them"
    return f"{_counted(found)} in it {said}, or run `handrail db trust --credentials` if you know who has {them}"


def own_file(place: WorkPlace, address: str) -> None:
    """Marks a store that this machine has just copied from its own as made here."""
    key = key_for(place, address)
    if key is not None:
        origin.adopt_file(open_engine.database_path(address, place.project), key, lapse=False)


def _waiting(place: WorkPlace, settings: Settings) -> _Waiting:
    address = store_address(place, settings)
    named = said_by_project(place.project, "db")
    is_theirs = named == address and place.environ.get("HANDRAIL_DB") != address
    waits = isinstance(named, str) and is_theirs and trusted_stores.lies_outside(address, place.project)
    elsewhere = (
        address if waits and not trusted_stores.is_trusted(address, project=place.project, home=place.home) else None
    )
    snapshots = snapshot_origin.is_foreign(
        snapshot_origin.snapshot_folder(place.project), machine_key.machine_key(place.home)
    )
    if "://" in address:
        return _Waiting(elsewhere, None, [], is_unmarked=False, snapshots=snapshots)
    file = open_engine.database_path(address, place.project)
    if not address:
        open_engine.check_own(place.project)
    unmarked = _is_unmarked(place, address, file)
    return _Waiting(
        elsewhere, file, store_files.open_signs(file, place.home), is_unmarked=unmarked, snapshots=snapshots
    )


def _is_unmarked(place: WorkPlace, address: str, file: Path) -> bool:
    key = key_for(place, address)
    return key is not None and file.is_file() and not origin.made_here(file, key)


def _question(waiting: _Waiting, place: WorkPlace, shown: str) -> str:
    reasons = [sign.what for sign in waiting.signs]
    if waiting.place_named is not None:
        reasons.append(f"{CONFIG_FILE} names it, and it is outside the project")
    if waiting.is_unmarked:
        reasons.append("it was not made on this machine, or an older Handrail made it")
    if waiting.snapshots:
        reasons.append("nor were the snapshots in .handrail/snapshots")
    return f"{one_line(shown)}: {'; '.join(map(one_line, reasons))}. Record the work of {place.project} there?"


def _accept(waiting: _Waiting, place: WorkPlace, settings: Settings, shown: str) -> None:
    if stubborn := [sign for sign in waiting.signs if not sign.may_be_trusted]:
        raise StoreNotTrusted("; ".join(sign.what for sign in stubborn), hint=store_files.way_on(stubborn))
    if waiting.file is not None:
        if {sign.kind for sign in waiting.signs} == {"mode"} or not any(s.kind == "owner" for s in waiting.signs):
            store_files.close_to_others(waiting.file)
        for sign in store_files.open_signs(waiting.file, place.home):
            trusted_stores.agree(
                trusted_stores.about_file(waiting.file, sign.kind), place.home, f"{waiting.file} ({sign.kind})"
            )
        key = key_for(place, store_address(place, settings))
        if waiting.is_unmarked and key is not None:
            origin.adopt_file(waiting.file, key)
    if waiting.snapshots:
        snapshot_origin.mark_snapshots(
            snapshot_origin.snapshot_folder(place.project), machine_key.machine_key(place.home)
        )
    if waiting.place_named is not None:
        trusted_stores.trust(waiting.place_named, project=place.project, home=place.home, shown=shown)


def _let_in(place: WorkPlace, settings: Settings, *, yes: bool, as_json: bool) -> Strangers | None:
    found = strangers_in(place, settings)
    if found is None or not any(found):
        return found
    if not yes:
        tokens = [f"{one_line(one.name)} ({', '.join(one.rights)})" for one in found.tokens]
        listed = ", ".join([*tokens, *(f"agent {one_line(one.name)}" for one in found.agents)][:SHOWN])
        more = len(found.tokens) + len(found.agents) - SHOWN
        after = f" and {more} more" if more > 0 else ""
        confirm(f"Let in whoever has the secrets of: {listed}{after}?", as_json=as_json)
    return ledger_at(place, settings).run(person(), let_in)


def _shown_store(place: WorkPlace, settings: Settings) -> str:
    return open_engine.shown_address(store_address(place, settings), place.project)


def _counted(found: Strangers) -> str:
    parts = [
        counted(len(found.tokens), "token") if found.tokens else "",
        f"the {'secret' if len(found.agents) == 1 else 'secrets'} of {counted(len(found.agents), 'agent')}"
        if found.agents
        else "",
    ]
    return " and ".join(part for part in parts if part)

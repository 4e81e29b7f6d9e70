"""What a shell may suggest for a value being typed: names and ids from the store, and known words.

Completers are passed to click's `shell_complete=`. None of them ever fails, prints or creates a store; each loads what
it needs when a shell asks, and what is found in the store is in `stored_names.py`. A name is suggested only if no shell
can take it for more than a word, because an agent may call a task anything. `completion.py` is the command that
installs all this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeAlias

import click

from handrail.catalog import PROFILES, TOOLSETS, operation_named, operations_of
from handrail.kernel.late import by_name, late_module
from handrail.settings import setting_fields
from handrail.surfaces.schemas import request_schema

if TYPE_CHECKING:
    from click import shell_completion
    from click.shell_completion import CompletionItem

    from handrail.domain.setup import clients as known_clients
    from handrail.operation import Call
    from handrail.surfaces.cli import chosen, columns
    from handrail.surfaces.cli.plans import flow as flow_command
    from handrail.surfaces.cli.plans import guide as guide_command
else:
    shell_completion = late_module("click.shell_completion")
    known_clients = late_module("handrail.domain.setup.clients")
    chosen = late_module("handrail.surfaces.cli.chosen")
    columns = late_module("handrail.surfaces.cli.columns")
    flow_command = late_module("handrail.surfaces.cli.plans.flow")
    guide_command = late_module("handrail.surfaces.cli.plans.guide")

MOST = 200
"""How many values are suggested; nobody reads more."""
Offer: TypeAlias = tuple[str, str]
"""A value, and its description for shells that show one."""
Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem]]"

_SAFE = frozenset(" -_.,:/+@%")


def _offering(find: Callable[[click.Context, str], Iterable[Offer]]) -> Completer:
    """A completer that suggests what `find` returns, filtered by what was typed."""

    @functools.wraps(find)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = [
                shell_completion.CompletionItem(value, help=columns.one_line(about) or None)
                for value, about in find(ctx, incomplete)
                if value.startswith(incomplete) and is_safe(value)
            ]
        except Exception:  # noqa: BLE001 - a request for completion must not end in an error
            return []
        return found[:MOST]

    return complete


def is_safe(value: str) -> bool:
    """Whether every shell reads a value as plain words, once its spaces are quoted."""
    plain = value.removesuffix("=")
    return bool(plain) and not plain.startswith("-") and all(one.isalnum() or one in _SAFE for one in plain)


def words(*known: str) -> Completer:
    """A completer of fixed words."""
    return _offering(lambda _ctx, _incomplete: [(word, "") for word in known])


# -- from the store ---------------------------------------------------------------------------------------------------


def _ask_store(ctx: click.Context, work: Callable[[Call], list[Offer]]) -> list[Offer]:
    options = {name: ctx.params.get(name) for name in ("db", "global_store")}
    return chosen.in_one_look(ctx.params.get("root"), options, work)


def _from_store(find: Callable[[Call, str], Iterable[Offer]]) -> Completer:
    return _offering(lambda ctx, incomplete: _ask_store(ctx, lambda call: list(find(call, incomplete))))


workflows = _from_store(by_name("handrail.surfaces.cli.stored_names:workflows"))
tasks = _from_store(by_name("handrail.surfaces.cli.stored_names:tasks"))
things = _from_store(by_name("handrail.surfaces.cli.stored_names:things"))
agents = _from_store(by_name("handrail.surfaces.cli.stored_names:agents"))
agent_ids = _from_store(by_name("handrail.surfaces.cli.stored_names:agent_ids"))
runs = _from_store(by_name("handrail.surfaces.cli.stored_names:runs"))
gates = _from_store(by_name("handrail.surfaces.cli.stored_names:gates"))
reviews = _from_store(by_name("handrail.surfaces.cli.stored_names:reviews"))
messages = _from_store(by_name("handrail.surfaces.cli.stored_names:messages"))
boards = _from_store(by_name("handrail.surfaces.cli.stored_names:boards"))
workspaces = _from_store(by_name("handrail.surfaces.cli.stored_names:workspaces"))
tokens = _from_store(by_name("handrail.surfaces.cli.stored_names:tokens"))
streams = _from_store(by_name("handrail.surfaces.cli.stored_names:streams"))


# -- what is known without a store ------------------------------------------------------------------------------------


def _guides(ctx: click.Context, _: str) -> Iterator[Offer]:
    found = guide_command.guides_of(ctx.params.get("root"), {}).guides()
    return ((item.guide.id, item.guide.name) for item in found)


def _flows(ctx: click.Context, _: str) -> Iterator[Offer]:
    return ((entry.name, entry.source) for entry in flow_command.flows_of(ctx.params.get("root")).entries())


def _tools(_ctx: click.Context, _: str) -> Iterator[Offer]:
    return ((one.name, one.summary) for toolset in TOOLSETS for one in operations_of(toolset.name))


def _arguments(ctx: click.Context, _: str) -> Iterator[Offer]:
    """Arguments of the tool being called, except those already given."""
    given = tuple(ctx.params.get("arguments") or ())
    operation = operation_named(ctx.params.get("tool") or "")
    if operation is None or given[-1:] == ("=",):  # bash treats each `=` as a word
        return
    there = {pair.partition("=")[0] for pair in given}
    for name, member in request_schema(operation)["properties"].items():
        if name not in there:
            yield f"{name}=", member.get("description", "")


def _setting_names(_ctx: click.Context, _: str) -> Iterator[Offer]:
    return ((f"{field.name}=", field.description) for field in setting_fields())


def _profiles(_ctx: click.Context, _: str) -> Iterator[Offer]:
    return ((name, "") for name in PROFILES)


def _toolsets(_ctx: click.Context, incomplete: str) -> Iterator[Offer]:
    """Completes the last item of a comma-separated list and keeps the others."""
    before = incomplete.rpartition(",")[0]
    there = before.split(",") if before else []
    for toolset in TOOLSETS:
        if toolset.name not in there:
            yield ",".join((*there, toolset.name)), toolset.purpose


def _clients(_ctx: click.Context, _: str) -> Iterator[Offer]:
    return ((client.name, client.title) for client in known_clients.CLIENTS)


guides, flows, tools, arguments = map(_offering, (_guides, _flows, _tools, _arguments))
setting_names, profiles, toolsets, clients = map(_offering, (_setting_names, _profiles, _toolsets, _clients))

"""Completes arguments of resource templates and prompts by prefix: ids, versions, transactions, boards and guides.

Ids come newest first. Versions and transactions can be completed once the graph is known, from what the client says it
has already filled in. A template is completed only while its toolset is on, a prompt only while it is available.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

from handrail.domain.board.queries import boards
from handrail.domain.crew.agent import Agent
from handrail.domain.graphs.plan_graph import versions_of
from handrail.domain.graphs.records import SharedGraph, Transaction
from handrail.domain.registry.addresses import LONGEST_ID
from handrail.domain.registry.graphs import tx_of_version
from handrail.domain.registry.index import newest_ids
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import Refusal
from handrail.kernel.records import LAST, Query, UnitOfWork
from handrail.operation import Call
from handrail.protocol.exchange import Exchange
from handrail.protocol.features import COMPLETIONS_SHOWN
from handrail.surfaces.mcp import inboxes, registry_resources
from handrail.surfaces.mcp.prompts import CatalogPrompts
from handrail.surfaces.mcp.tools import actor_of, rpc_error_for

_MOST = COMPLETIONS_SHOWN + 1
"""One more than is shown, so that the client learns that there are more."""
_TASKS_LOOKED_AT = 1000
"""How many tasks are searched for those of this repository."""
PROMPT = "ref/prompt"


class ArgumentCompletions:
    """Behind the protocol's `Completions` port."""

    def __init__(self, call: Call, prompts: CatalogPrompts) -> None:
        self._call = call
        self._prompts = prompts

    def complete(self, exchange: Exchange, reference: Mapping[str, Any], argument: Mapping[str, Any]) -> Sequence[str]:
        template, name, typed = reference.get("uri"), argument.get("name"), argument.get("value")
        if reference.get("type") == PROMPT:
            return self._for_prompt(exchange, reference.get("name"), name, typed)
        if not isinstance(template, str) or not self._offers(template):
            return ()
        if f"{{{name}}}" not in template or not _is_id(typed):
            return ()
        return self._find(exchange, self._finder(name, typed, _filled_in(exchange)))

    def _for_prompt(self, exchange: Exchange, prompt: Any, name: Any, typed: Any) -> Sequence[str]:
        """Values for a prompt's argument."""
        if not isinstance(name, str) or name not in self._prompts.arguments_of(prompt) or not _is_id(typed):
            return ()
        here = self._call.here.only
        match name:
            case "guide":
                found = (loaded.guide.id for loaded in self._call.world.guides().guides())
                return [guide_id for guide_id in found if guide_id.startswith(typed)]
            case "task":
                return self._find(exchange, lambda unit: _tasks(unit, typed, here))
            case "workflow":
                return self._find(exchange, lambda unit: newest_ids(unit, Workflow, typed, here, _MOST))
            case "to":
                return self._find(exchange, lambda unit: newest_ids(unit, Agent, typed, None, _MOST))
            case _:
                return [choice for choice in _CHOICES.get(name, ()) if choice.casefold().startswith(typed.casefold())]

    def _find(self, exchange: Exchange, find: Callable[[UnitOfWork], list[str]]) -> list[str]:
        try:
            return self._call.ledger.run(actor_of(exchange), find)
        except Refusal as refusal:
            raise rpc_error_for(exchange, refusal) from refusal

    def _offers(self, template: str) -> bool:
        if template == inboxes.TEMPLATE:
            return inboxes.is_on(self._call)
        return template in registry_resources.TEMPLATES and registry_resources.is_on(self._call)

    def _finder(self, name: Any, typed: str, known: Mapping[str, str]) -> Callable[[UnitOfWork], list[str]]:
        here = self._call.here.only
        match name:
            case "graph_id":
                return lambda unit: [
                    *newest_ids(unit, SharedGraph, typed, here, _MOST),
                    *newest_ids(unit, Workflow, typed, here, _MOST),
                ][:_MOST]
            case "run_id":
                return lambda unit: newest_ids(unit, Workflow, typed, here, _MOST)
            case "child_id" | "agent_id":
                return lambda unit: newest_ids(unit, Agent, typed, None, _MOST)
            case "namespace":
                return lambda unit: [size.name for size in boards(unit) if size.name.startswith(typed)]
            case "version":
                return lambda unit: _versions(unit, known, typed, str)
            case _:
                return lambda unit: [*_versions(unit, known, typed, tx_of_version), *_transactions(unit, known, typed)]


_CHOICES = {"budget": ("1000", "2000", "4000", "8000"), "effort": ("S", "M", "L")}
"""What is worth suggesting for prompt arguments that name nothing in the store."""


def _tasks(unit: UnitOfWork, typed: str, here: str | None) -> list[str]:
    """Tasks whose ids have this prefix, newest first. In a store of many repositories, only this one's."""
    if here is None:
        return newest_ids(unit, Task, typed, None, _MOST)
    begin_so = Query((("id >", typed), ("id <", typed + LAST)), ("-id",), _TASKS_LOOKED_AT)
    found = [*unit.select(Task, Query((("id", typed),))), *unit.select(Task, begin_so)]
    homes = {workflow_id: unit.get(Workflow, workflow_id) for workflow_id in {task.workflow_id for task in found}}
    ours = {key for key, workflow in homes.items() if workflow is not None and workflow.repository_path == here}
    return [task.id for task in found if task.workflow_id in ours][:_MOST]


def _versions(unit: UnitOfWork, known: Mapping[str, str], typed: str, written: Callable[[int], str]) -> list[str]:
    """The versions of the graph that was filled in, newest first."""
    shared = unit.get(SharedGraph, known.get("graph_id", ""))
    there = versions_of(unit, known.get("graph_id", "")) if shared is None else range(1, shared.version + 1)
    versions = reversed(there)
    return [text for text in map(written, versions) if text.startswith(typed)]


def _transactions(unit: UnitOfWork, known: Mapping[str, str], typed: str) -> list[str]:
    """The transactions of the graph that was filled in, newest first."""
    newest = Query((("graph_id", known.get("graph_id", "")),), ("-started_at", "-id"), _MOST)
    return [tx.id for tx in unit.select(Transaction, newest) if tx.id.startswith(typed)]


def _filled_in(exchange: Exchange) -> dict[str, str]:
    """The template's other arguments, as far as the client has filled them in."""
    context = exchange.params.get("context")
    arguments = context.get("arguments") if isinstance(context, dict) else None
    return {name: value for name, value in arguments.items() if _is_id(value)} if isinstance(arguments, dict) else {}


def _is_id(value: Any) -> TypeGuard[str]:
    """Whether this can be looked up in a store."""
    return isinstance(value, str) and len(value) <= LONGEST_ID and value.isprintable()

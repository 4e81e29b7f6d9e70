"""What a shell may suggest for a value being typed: names and ids from the store, and known words.

Completers are passed to click's `shell_complete=`. None of them ever fails, prints or creates a store; each imports
what it needs when a shell asks. A name is suggested only if no shell can take it for more than a word, because an agent
may call a task anything. `completion.py` is the command that installs all this.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from handrail.domain.gates.gate import Gate
    from handrail.domain.work.task import Task
    from handrail.operation import Call

MOST = 200
"""How many values are suggested; nobody reads more."""
Offer: TypeAlias = tuple[str, str]
"""A value, and its description for shells that show one."""
Completer: TypeAlias = "Callable[[click.Context, click.Parameter, str], list[CompletionItem]]"

_SAFE = frozenset(" -_.,:/+@%")
_IDS = ("wf_", "task_")


def _offering(find: Callable[[click.Context, str], Iterable[Offer]]) -> Completer:
    """A completer that suggests what `find` returns, filtered by what was typed."""

    @functools.wraps(find)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem  # noqa: PLC0415 - only to complete

        from handrail.surfaces.cli.columns import one_line  # noqa: PLC0415 - as above

        try:
            found = [
                CompletionItem(value, help=one_line(about) or None)
                for value, about in find(ctx, incomplete)
                if value.startswith(incomplete) and _is_safe(value)
            ]
        except Exception:  # noqa: BLE001 - a request for completion must not end in an error
            return []
        return found[:MOST]

    return complete


def _is_safe(value: str) -> bool:
    """Whether every shell reads a value as plain words, once its spaces are quoted."""
    plain = value.removesuffix("=")
    return bool(plain) and not plain.startswith("-") and all(one.isalnum() or one in _SAFE for one in plain)


def words(*known: str) -> Completer:
    """A completer of fixed words."""
    return _offering(lambda _ctx, _incomplete: [(word, "") for word in known])


# -- from the store ---------------------------------------------------------------------------------------------------


def _ask_store(ctx: click.Context, work: Callable[[Call], list[Offer]]) -> list[Offer]:
    from handrail.surfaces.cli.chosen import in_one_look  # noqa: PLC0415 - as above

    options = {name: ctx.params.get(name) for name in ("db", "global_store")}
    return in_one_look(ctx.params.get("root"), options, work)


def _from_store(find: Callable[[Call, str], Iterable[Offer]]) -> Completer:
    return _offering(lambda ctx, incomplete: _ask_store(ctx, lambda call: list(find(call, incomplete))))


def _offer(key: str, name: str, about: str, incomplete: str) -> Offer:
    """By id if one is being typed or the name is not plain words; otherwise by name."""
    by_id = incomplete.startswith(_IDS) or not _is_safe(name)
    return (key, f"{name}, {about}") if by_id else (name, f"{about}, {key}")


def _workflows(call: Call, incomplete: str) -> Iterator[Offer]:
    from handrail.toolsets.here import open_workflows  # noqa: PLC0415 - as above

    for one in open_workflows(call, MOST):
        yield _offer(one.id, one.name, one.status.replace("_", " "), incomplete)


def _tasks(call: Call, incomplete: str) -> Iterator[Offer]:
    from handrail.domain.work.blockers import status_or_ready  # noqa: PLC0415 - as above
    from handrail.domain.work.task import FINISHED  # noqa: PLC0415 - as above
    from handrail.toolsets.here import open_workflows  # noqa: PLC0415 - as above

    for workflow in open_workflows(call, 50):
        found = _tasks_of(call, workflow.id, incomplete)
        found.sort(key=lambda task: task.status in FINISHED)  # open ones are meant more often
        for task in found:
            about = f"{status_or_ready(task).replace('_', ' ')} in {workflow.name}"
            yield _offer(task.id, task.name, about, incomplete)


def _tasks_of(call: Call, workflow_id: str, incomplete: str) -> list[Task]:
    from handrail.domain.work.task import Task  # noqa: PLC0415 - as above
    from handrail.kernel.query import LAST, Query  # noqa: PLC0415 - as above

    conditions: tuple[tuple[str, Any], ...] = (("workflow_id", workflow_id),)
    if incomplete:
        column = "id" if incomplete.startswith(_IDS) else "name"
        conditions = (*conditions, (f"{column} >", incomplete[:-1]), (f"{column} <", incomplete + LAST))
        return call.work.select(Task, Query(conditions, (column,), MOST))
    return call.work.select(Task, Query(conditions, ("sequence",), MOST))


def _things(call: Call, incomplete: str) -> Iterator[Offer]:
    yield from _workflows(call, incomplete)
    yield from _tasks(call, incomplete)


def _agents(call: Call, incomplete: str) -> Iterator[Offer]:
    from handrail.domain.crew.agent import Agent  # noqa: PLC0415 - as above
    from handrail.kernel.query import Query  # noqa: PLC0415 - as above

    for agent in call.work.select(Agent, Query((), ("-created_at", "-id"), MOST)):
        by_id = incomplete.startswith("ag_") or not _is_safe(agent.name)
        yield (agent.id, agent.name) if by_id else (agent.name, agent.id)


def _agent_ids(call: Call, _: str) -> Iterator[Offer]:
    return _agents(call, "ag_")


def _runs(call: Call, incomplete: str) -> Iterator[Offer]:
    from handrail.domain.pipeline.controls import name_in  # noqa: PLC0415 - as above
    from handrail.domain.pipeline.run import PipelineRun  # noqa: PLC0415 - as above
    from handrail.kernel.query import Query  # noqa: PLC0415 - as above

    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), MOST)
    for run in call.work.select(PipelineRun, newest):
        folder = run.workspace.rpartition("/")[2]
        for name in (name_in(run.workspace), folder, run.workspace, run.id):
            if name.startswith(incomplete):
                yield name, run.title
                break


def _gates(call: Call, incomplete: str) -> Iterator[Offer]:
    """By the waiting run's folder, which says more than an id; by id if one is being typed."""
    from handrail.domain.pipeline.run import PipelineRun  # noqa: PLC0415 - as above

    for gate in _open_gates(call, "decision"):
        run = call.work.get(PipelineRun, gate.workflow_id)
        if run is None or run.repository_path != call.here.repository:
            continue  # not something that is approved here
        folder = run.workspace.rpartition("/")[2]
        about = f"{gate.question}: {run.title}"
        yield (gate.id, about) if incomplete.startswith("gate_") else (folder, f"{about}, {gate.id}")


def _reviews(call: Call, _: str) -> Iterator[Offer]:
    return ((gate.id, gate.question) for gate in _open_gates(call, "review"))


def _open_gates(call: Call, kind: str) -> list[Gate]:
    from handrail.domain.gates.gate import GATE_MACHINE, Gate  # noqa: PLC0415 - as above
    from handrail.kernel.query import Query  # noqa: PLC0415 - as above

    conditions = (("kind", kind), ("status", GATE_MACHINE.initial))
    return call.work.select(Gate, Query(conditions, ("created_at",), MOST))


def _messages(call: Call, _: str) -> Iterator[Offer]:
    from handrail.domain.crew.message import Message  # noqa: PLC0415 - as above
    from handrail.domain.crew.outbox import HUMAN  # noqa: PLC0415 - as above
    from handrail.kernel.query import Query  # noqa: PLC0415 - as above

    mine = Query((("recipient_id", HUMAN),), ("-created_at", "-id"), MOST)
    for message in call.work.select(Message, mine):
        yield message.id, message.subject or ""


def _boards(call: Call, _: str) -> Iterator[Offer]:
    from handrail.domain.board.queries import boards  # noqa: PLC0415 - as above

    return ((one.name, f"version {one.version}") for one in boards(call.work))


def _workspaces(call: Call, _: str) -> Iterator[Offer]:
    from handrail.domain.workspaces.workspace import Workspace  # noqa: PLC0415 - as above
    from handrail.kernel.query import Query  # noqa: PLC0415 - as above

    active = Query((("status", "active"),), ("-created_at", "-id"), MOST)
    return ((space.id, space.branch) for space in call.work.select(Workspace, active))


def _tokens(call: Call, _: str) -> Iterator[Offer]:
    from handrail.domain.crew.tokens import listed  # noqa: PLC0415 - as above

    return ((one.id, one.name) for one in listed(call.work) if one.revoked_at is None)


def _streams(call: Call, incomplete: str) -> Iterator[Offer]:
    yield from _things(call, incomplete)
    yield from _agents(call, "ag_")


workflows, tasks, things = _from_store(_workflows), _from_store(_tasks), _from_store(_things)
agents, agent_ids, runs = _from_store(_agents), _from_store(_agent_ids), _from_store(_runs)
gates, reviews, messages = _from_store(_gates), _from_store(_reviews), _from_store(_messages)
boards, workspaces, tokens, streams = map(_from_store, (_boards, _workspaces, _tokens, _streams))


# -- what is known without a store ------------------------------------------------------------------------------------


def _guides(ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.surfaces.cli.plans.guide import guides_of  # noqa: PLC0415 - as above

    found = guides_of(ctx.params.get("root"), {}).guides()
    return ((item.guide.id, item.guide.name) for item in found)


def _flows(ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.surfaces.cli.plans.flow import flows_of  # noqa: PLC0415 - as above

    return ((entry.name, entry.source) for entry in flows_of(ctx.params.get("root")).entries())


def _tools(_ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.catalog import TOOLSETS, operations_of  # noqa: PLC0415 - as above

    return ((one.name, one.summary) for toolset in TOOLSETS for one in operations_of(toolset.name))


def _arguments(ctx: click.Context, _: str) -> Iterator[Offer]:
    """Arguments of the tool being called, except those already given."""
    from handrail.catalog import operation_named  # noqa: PLC0415 - as above
    from handrail.surfaces.schemas import request_schema  # noqa: PLC0415 - as above

    given = tuple(ctx.params.get("arguments") or ())
    operation = operation_named(ctx.params.get("tool") or "")
    if operation is None or given[-1:] == ("=",):  # bash treats each `=` as a word
        return
    there = {pair.partition("=")[0] for pair in given}
    for name, member in request_schema(operation)["properties"].items():
        if name not in there:
            yield f"{name}=", member.get("description", "")


def _setting_names(_ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.settings import setting_fields  # noqa: PLC0415 - as above

    return ((f"{field.name}=", field.description) for field in setting_fields())


def _profiles(_ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.catalog import PROFILES  # noqa: PLC0415 - as above

    return ((name, "") for name in PROFILES)


def _toolsets(_ctx: click.Context, incomplete: str) -> Iterator[Offer]:
    """Completes the last item of a comma-separated list and keeps the others."""
    from handrail.catalog import TOOLSETS  # noqa: PLC0415 - as above

    before = incomplete.rpartition(",")[0]
    there = before.split(",") if before else []
    for toolset in TOOLSETS:
        if toolset.name not in there:
            yield ",".join((*there, toolset.name)), toolset.purpose


def _clients(_ctx: click.Context, _: str) -> Iterator[Offer]:
    from handrail.domain.setup.clients import CLIENTS  # noqa: PLC0415 - as above

    return ((client.name, client.title) for client in CLIENTS)


guides, flows, tools, arguments = map(_offering, (_guides, _flows, _tools, _arguments))
setting_names, profiles, toolsets, clients = map(_offering, (_setting_names, _profiles, _toolsets, _clients))

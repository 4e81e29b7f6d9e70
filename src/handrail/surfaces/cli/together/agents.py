"""`handrail agents` and `handrail release`: who works here, with evidence, and freeing what an agent holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.claims.claim import give_up
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.outbox import HUMAN, post_released
from handrail.domain.overview.events import told
from handrail.domain.work.lease import claim_of
from handrail.domain.work.task import Task
from handrail.kernel.errors import AgentNotFound, NotFound
from handrail.kernel.records import Query, UnitOfWork
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import in_one_look, thing_meant
from handrail.surfaces.cli.columns import as_words, bold, columns, counted, dim, fit, moment, one_line, width, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.toolsets.plan.agent import ListAgents, agent_list

MOST = 200
NAMED = 10
NOBODY = "no agent has come here yet; `handrail init` makes Handrail known to yours"


@click.command()
@click.option("--all", "everybody", is_flag=True, help="Include those that are gone.")
@common_options
def agents(everybody: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show the agents that are here: what each works on, and when it was last heard from."""
    request = ListAgents(limit=MOST) if everybody else ListAgents(status=["online", "busy"], limit=MOST)
    found, holding, words, now = in_one_look(root, options, lambda call: _read_agents(call, request))
    if as_json:
        echo_json([*found, *holding])
        return
    if not found and not holding:
        nobody = (
            "No agent has registered yet. An agent does it with agent_register; `handrail init` sets one up."
            if everybody
            else "No agent is here. `handrail agents --all` shows those that were."
        )
        echo_lines(wrapped(nobody, columns()))
    for agent in (*found, *holding):
        echo_lines(_lines(agent, words.get(agent["id"], ""), now, columns()))


@click.command()
@click.argument("task", shell_complete=completions.tasks)
@click.option("--reason", metavar="TEXT", help="A reason, told to the agent that held it.")
@common_options
def release(task: str, reason: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Take TASK back from the agent that holds it.

    The agent is told, and others can take the task. TASK is an id, the beginning of one, or the name of a task in an
    open workflow.
    """
    freed = in_one_look(root, options, lambda call: _free_task(call, task, reason))
    if as_json:
        echo_json(freed)
        return
    told_to = f'"{freed["name"]}" is {as_words(freed["status"])} and free; {freed["from"]} is told.'
    echo_lines(wrapped(told_to, columns()))


def _read_agents(
    call: Call, request: ListAgents
) -> tuple[tuple[dict[str, Any], ...], list[dict[str, Any]], dict[str, str], int]:
    """The requested agents; of the others, those that still hold something, because somebody should know; and what each
    did last, in words."""
    found = agent_list(call, request).agents
    gone = agent_list(call, ListAgents(status=["offline"], limit=MOST)).agents
    shown = {agent["id"] for agent in found}
    deserted = [agent for agent in gone if agent["id"] not in shown and agent["current_task_id"] is not None]
    last = [event for agent in (*found, *deserted) if (event := call.work.last_event(agent["id"])) is not None]
    words = told(call.work, last)
    return found, deserted, {event.actor: words[event.position] for event in last}, call.work.now_ms()


def _lines(agent: dict[str, Any], did: str, now: int, room: int) -> Iterator[str]:
    seen = agent["liveness"]
    last_call = seen["last_call"]
    heard = f"last heard from {moment(last_call, now)}" if last_call else "never heard from since"
    name = fit(agent["name"], min(40, room // 2))
    about = f"{seen['state']}, {agent['runtime']} {agent['role']}, {heard}"
    if width(name) + 2 + width(about) <= room:
        yield f"{bold(name)}  {about}"
    else:
        yield bold(name)
        yield from wrapped(about, room, "  ")
    if "current_task" in agent:
        task = agent["current_task"]
        state = f"({as_words(task['status'])})"
        yield f"  on     {fit(task['name'], room - 10 - width(state))} {state}"
        yield f"         {dim(agent['current_task_id'])}"
    if (progress := seen.get("last_progress")) is not None:
        ago = f", {moment(progress['at'], now)}"
        yield f"  last   {fit(did or progress['kind'], room - 9 - width(ago))}{ago}"
    if agent["workspace_path"]:
        yield f"  in     {fit(agent['workspace_path'], room - 9)}"
    if agent.get("unproven_calls"):
        writes = counted(agent["unproven_calls"], "write")
        lines = wrapped(f"{writes} in its name came without its secret", room, " " * 9)
        yield from (f"  note   {line.strip()}" if number == 0 else line for number, line in enumerate(lines))
    yield dim(f"  {agent['id']}")


def _free_task(call: Call, text: str, reason: str | None) -> dict[str, Any]:
    task = thing_meant(call, text, exact=True)
    if not isinstance(task, Task):
        raise NotFound(f"{one_line(task.name)} is a workflow; agents hold tasks", hint="`handrail agents` shows whose")
    lease = claim_of(call.work, task)
    if lease.holder is None:
        hint = "any agent can take it as it is; `handrail agents` shows who has what"
        raise NotFound(f"nobody holds {one_line(task.name)}", hint=hint)
    freed = give_up(call.work, task, lease, reason)
    holder = call.work.get(Agent, lease.holder)
    post_released(call.work, HUMAN, lease.holder, task, reason)
    name = holder.name if holder is not None else lease.holder
    return {"id": task.id, "name": task.name, "status": freed.shown_status, "from": name}


def unknown_agent(unit: UnitOfWork, unknown: AgentNotFound) -> AgentNotFound:
    """The refusal for an unknown agent, in a person's terms: it names the command that lists known ones."""
    newest = unit.select(Agent, Query((), ("-created_at", "-id"), NAMED))
    names = ", ".join(one_line(agent.name) for agent in newest)
    hint = f"`handrail agents` lists them; newest: {names}" if names else NOBODY
    meant = did_you_mean(str(unknown.details.get("id", "")), [agent.name for agent in newest])
    return AgentNotFound(f"{unknown.message}{one_line(meant)}", hint=hint, **unknown.details)

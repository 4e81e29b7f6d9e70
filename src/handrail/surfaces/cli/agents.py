"""`handrail agents` and `handrail release`: who works here, with the evidence, and setting free what somebody holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from handrail.domain.crew.agent import Agent
from handrail.domain.crew.claiming import claim_of, give_up
from handrail.domain.crew.posting import HUMAN, post_released
from handrail.domain.work.task import Task
from handrail.kernel.clock import spoken_time
from handrail.kernel.errors import NotFound
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, columns, dim, fit, one_line, said, wrapped
from handrail.surfaces.cli.options import common_options
from handrail.surfaces.cli.plan import in_one_look, thing_meant
from handrail.surfaces.cli.render import echo_json
from handrail.toolsets.agent import ListAgents, agent_list

MOST = 200


@click.command()
@click.option("--all", "everybody", is_flag=True, help="Also those that are gone.")
@common_options
def agents(everybody: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Show the agents that are here: what each works on, and when it was last heard of."""
    request = ListAgents(limit=MOST) if everybody else ListAgents(status=["online", "busy"], limit=MOST)
    found, holding, now = in_one_look(root, options, lambda call: _looked(call, request))
    if as_json:
        echo_json([*found, *holding])
        return
    if not found and not holding:
        nobody = (
            "No agent has registered yet." if everybody else "No agent is here. `handrail agents --all` shows more."
        )
        click.echo(nobody)
    for agent in (*found, *holding):
        for line in _lines(agent, now, columns()):
            click.echo(line)


@click.command()
@click.argument("task")
@click.option("--reason", metavar="TEXT", help="Told to the agent that held it.")
@common_options
def release(task: str, reason: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Set TASK free: whoever holds it is told, and it is on offer again.

    TASK is an id, the beginning of one, or the name of a task in an open workflow.
    """
    freed = in_one_look(root, options, lambda call: _freed(call, task, reason))
    if as_json:
        echo_json(freed)
        return
    for line in wrapped(f'"{freed["name"]}" is {said(freed["status"])} and free; {freed["from"]} is told.', columns()):
        click.echo(line)


def _looked(call: Call, request: ListAgents) -> tuple[tuple[dict[str, Any], ...], list[dict[str, Any]], int]:
    """Those asked for; and of the others those that still have something, because somebody should know."""
    found = agent_list(call, request).agents
    gone = agent_list(call, ListAgents(status=["offline"], limit=MOST)).agents
    shown = {agent["id"] for agent in found}
    deserted = [agent for agent in gone if agent["id"] not in shown and agent["current_task_id"] is not None]
    return found, deserted, call.work.now_ms()


def _lines(agent: dict[str, Any], now: int, room: int) -> Iterator[str]:
    seen = agent["liveness"]
    last_call = seen["last_call"]
    heard = f"last heard of {spoken_time(now - last_call)} ago" if last_call else "never heard of since"
    yield f"{bold(fit(agent['name'], 40))}  {seen['state']}, {agent['runtime']} {agent['role']}, {heard}"
    if "current_task" in agent:
        task = agent["current_task"]
        yield f"  on     {fit(task['name'], room - 40)} ({said(task['status'])}) {dim(agent['current_task_id'])}"
    if (progress := seen.get("last_progress")) is not None:
        yield f"  wrote  {progress['kind']}, {spoken_time(now - progress['at'])} ago"
    if agent["workspace_path"]:
        yield f"  in     {fit(agent['workspace_path'], room - 9)}"
    if agent.get("unproven_calls"):
        yield f"  note   {agent['unproven_calls']} writes in its name came without its secret"
    yield dim(f"  {agent['id']}")


def _freed(call: Call, text: str, reason: str | None) -> dict[str, Any]:
    task = thing_meant(call, text)
    lease = claim_of(call.work, task) if isinstance(task, Task) else None
    if not isinstance(task, Task) or lease is None or lease.holder is None:
        raise NotFound(f"nobody holds {one_line(task.name)}", hint="`handrail agents` shows who has what")
    freed = give_up(call.work, task, lease, reason)
    holder = call.work.get(Agent, lease.holder)
    post_released(call.work, HUMAN, lease.holder, task, reason)
    name = holder.name if holder is not None else lease.holder
    return {"id": task.id, "name": task.name, "status": freed.shown_status, "from": name}

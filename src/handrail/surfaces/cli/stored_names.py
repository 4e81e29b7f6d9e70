"""What completers find in the store: names and ids that a shell may suggest. `completions.py` names these functions and
loads them when a shell asks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handrail.domain.board.queries import boards as all_boards
from handrail.domain.crew.agent import Agent
from handrail.domain.crew.message import Message
from handrail.domain.crew.outbox import HUMAN
from handrail.domain.crew.tokens import listed
from handrail.domain.gates.gate import GATE_MACHINE, Gate
from handrail.domain.pipeline.controls import name_in
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.blockers import status_or_ready
from handrail.domain.work.task import FINISHED, Task
from handrail.domain.workspaces.records import Workspace
from handrail.kernel.records import LAST, Query
from handrail.operation import Call
from handrail.surfaces.cli.completions import MOST, Offer, is_safe
from handrail.toolsets.here import open_workflows

_IDS = ("wf_", "task_")


def _offer(key: str, name: str, about: str, incomplete: str) -> Offer:
    """By id if one is being typed or the name is not plain words; otherwise by name."""
    by_id = incomplete.startswith(_IDS) or not is_safe(name)
    return (key, f"{name}, {about}") if by_id else (name, f"{about}, {key}")


def workflows(call: Call, incomplete: str) -> Iterator[Offer]:
    for one in open_workflows(call, MOST):
        yield _offer(one.id, one.name, one.status.replace("_", " "), incomplete)


def tasks(call: Call, incomplete: str) -> Iterator[Offer]:
    for workflow in open_workflows(call, 50):
        found = _tasks_of(call, workflow.id, incomplete)
        found.sort(key=lambda task: task.status in FINISHED)  # open ones are meant more often
        for task in found:
            about = f"{status_or_ready(task).replace('_', ' ')} in {workflow.name}"
            yield _offer(task.id, task.name, about, incomplete)


def _tasks_of(call: Call, workflow_id: str, incomplete: str) -> list[Task]:
    conditions: tuple[tuple[str, Any], ...] = (("workflow_id", workflow_id),)
    if incomplete:
        column = "id" if incomplete.startswith(_IDS) else "name"
        conditions = (*conditions, (f"{column} >", incomplete[:-1]), (f"{column} <", incomplete + LAST))
        return call.work.select(Task, Query(conditions, (column,), MOST))
    return call.work.select(Task, Query(conditions, ("sequence",), MOST))


def things(call: Call, incomplete: str) -> Iterator[Offer]:
    yield from workflows(call, incomplete)
    yield from tasks(call, incomplete)


def agents(call: Call, incomplete: str) -> Iterator[Offer]:
    for agent in call.work.select(Agent, Query((), ("-created_at", "-id"), MOST)):
        by_id = incomplete.startswith("ag_") or not is_safe(agent.name)
        yield (agent.id, agent.name) if by_id else (agent.name, agent.id)


def agent_ids(call: Call, _: str) -> Iterator[Offer]:
    return agents(call, "ag_")


def runs(call: Call, incomplete: str) -> Iterator[Offer]:
    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), MOST)
    for run in call.work.select(PipelineRun, newest):
        folder = run.workspace.rpartition("/")[2]
        for name in (name_in(run.workspace), folder, run.workspace, run.id):
            if name.startswith(incomplete):
                yield name, run.title
                break


def gates(call: Call, incomplete: str) -> Iterator[Offer]:
    """By the waiting run's folder, which says more than an id; by id if one is being typed."""
    for gate in _open_gates(call, "decision"):
        run = call.work.get(PipelineRun, gate.workflow_id)
        if run is None or run.repository_path != call.here.repository:
            continue  # not something that is approved here
        folder = run.workspace.rpartition("/")[2]
        about = f"{gate.question}: {run.title}"
        yield (gate.id, about) if incomplete.startswith("gate_") else (folder, f"{about}, {gate.id}")


def reviews(call: Call, _: str) -> Iterator[Offer]:
    return ((gate.id, gate.question) for gate in _open_gates(call, "review"))


def _open_gates(call: Call, kind: str) -> list[Gate]:
    conditions = (("kind", kind), ("status", GATE_MACHINE.initial))
    return call.work.select(Gate, Query(conditions, ("created_at",), MOST))


def messages(call: Call, _: str) -> Iterator[Offer]:
    mine = Query((("recipient_id", HUMAN),), ("-created_at", "-id"), MOST)
    for message in call.work.select(Message, mine):
        yield message.id, message.subject or ""


def boards(call: Call, _: str) -> Iterator[Offer]:
    return ((one.name, f"version {one.version}") for one in all_boards(call.work))


def workspaces(call: Call, _: str) -> Iterator[Offer]:
    active = Query((("status", "active"),), ("-created_at", "-id"), MOST)
    return ((space.id, space.branch) for space in call.work.select(Workspace, active))


def tokens(call: Call, _: str) -> Iterator[Offer]:
    return ((one.id, one.name) for one in listed(call.work) if one.revoked_at is None)


def streams(call: Call, incomplete: str) -> Iterator[Offer]:
    yield from things(call, incomplete)
    yield from agents(call, "ag_")

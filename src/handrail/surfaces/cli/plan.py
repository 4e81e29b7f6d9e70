"""What the commands about plans share: one look at the store, and which task or workflow a person means.

No command lives here, and nothing is printed. A store that is not there yet is not made by looking.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import NotFound, RunNotFound, SeveralOpen
from handrail.kernel.nearest import did_you_mean
from handrail.kernel.query import Query
from handrail.operation import Call, ResultT
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import person, place_of, settings_of
from handrail.toolsets.here import SHOWN, open_workflows
from handrail.wiring import assemble, looking_ledger

ThingT = TypeVar("ThingT", bound=Task | Workflow)

LOOKED_THROUGH = 50
"""Workflows that are looked through for a name."""
_PREFIXES = ("wf_", "task_")
_LAST = "\U0010ffff"
"""After everything that begins the same."""


def in_one_look(root: Path | None, options: dict[str, Any], work: Callable[[Call], ResultT]) -> ResultT:
    """What `work` makes of the store, in one unit of work of the person who asks."""
    place = place_of(root)
    settings = settings_of(place, options)
    call = assemble(place, settings, ledger=looking_ledger(place, settings)).call
    return call.ledger.run(person(), lambda unit: work(msgspec.structs.replace(call, unit=unit)))


def thing_meant(call: Call, text: str) -> Task | Workflow:
    """The task or workflow a person means: by its id, the beginning of its id, or its name in what is open here."""
    text = _storable(text)
    for search in _SEARCHES:
        found = search(call, text)
        if found:
            return _only(found, text)
    raise NotFound(
        f"there is no task or workflow {one_line(text)}{did_you_mean(text, _names(call))}",
        hint="`handrail status` shows what is open",
    )


def workflow_meant(call: Call, text: str) -> Workflow:
    """The workflow a person means, in the same ways; never a task."""
    text = _storable(text)
    for search in _SEARCHES:
        found = [thing for thing in search(call, text) if isinstance(thing, Workflow)]
        if found:
            return _only(found, text)
    names = [workflow.name for workflow in open_workflows(call, LOOKED_THROUGH)]
    raise RunNotFound(
        f"there is no workflow {one_line(text)}{did_you_mean(text, names)}",
        hint="`handrail status` shows what is open",
    )


def _storable(text: str) -> str:
    """What was typed, without bytes that are no text."""
    return text.encode(errors="replace").decode()


def _only(found: Sequence[ThingT], text: str) -> ThingT:
    if len(found) == 1:
        return found[0]
    shown = found[:SHOWN]
    listed = ", ".join(f"{thing.id} ({one_line(thing.name)})" for thing in shown)
    raise SeveralOpen(
        f"{one_line(text)} could mean any of {len(found) if len(found) <= SHOWN else f'more than {SHOWN}'}",
        hint=f"say which by its id: {listed}{' …' if len(found) > SHOWN else ''}",
        open=[{"id": thing.id, "name": thing.name} for thing in shown],
    )


def _by_id(call: Call, text: str) -> list[Task | Workflow]:
    found = (call.work.get(Workflow, text), call.work.get(Task, text))
    return [thing for thing in found if thing is not None]


def _by_name(call: Call, text: str) -> list[Task | Workflow]:
    workflows = open_workflows(call, LOOKED_THROUGH)
    found: list[Task | Workflow] = [workflow for workflow in workflows if workflow.name == text]
    for workflow in workflows:
        found += call.work.select(Task, Query((("workflow_id", workflow.id), ("name", text)), ("name",), 1))
    return found


def _by_id_beginning(call: Call, text: str) -> list[Task | Workflow]:
    if not text.startswith(_PREFIXES):
        return []
    beginning = Query((("id >", text), ("id <", text + _LAST)), ("id",), SHOWN + 1)
    return [*call.work.select(Workflow, beginning), *call.work.select(Task, beginning)]


def _by_name_beginning(call: Call, text: str) -> list[Task | Workflow]:
    workflows = open_workflows(call, LOOKED_THROUGH)
    found: list[Task | Workflow] = [workflow for workflow in workflows if workflow.name.startswith(text)]
    for workflow in workflows:
        beginning = (("workflow_id", workflow.id), ("name >", text), ("name <", text + _LAST))
        found += call.work.select(Task, Query(beginning, ("name",), SHOWN + 1))
    return found


def _workflow_by_name(call: Call, text: str) -> list[Task | Workflow]:
    """Also what has ended, while it is among the newest."""
    newest = call.work.select(Workflow, Query((), ("-updated_at", "-id"), LOOKED_THROUGH))
    return [workflow for workflow in newest if workflow.name == text]


def _names(call: Call) -> list[str]:
    """Names that could have been meant."""
    workflows = open_workflows(call, SHOWN)
    names = [workflow.name for workflow in workflows]
    for workflow in workflows:
        first = call.work.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), LOOKED_THROUGH))
        names += [task.name for task in first]
    return names


_SEARCHES = (_by_id, _by_name, _by_id_beginning, _by_name_beginning, _workflow_by_name)
"""The ways to mean something, the surest first."""

"""What the commands about plans share: reading the store once, and finding the task or workflow a person means.

Contains no command and prints nothing. Reading does not create a store.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from handrail.domain.overview.explanations import explain_workflow
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import workflow_of
from handrail.domain.work.workflow import CLOSED, Workflow
from handrail.kernel.errors import InvalidParams, NotFound, NothingOpen, RunNotFound, SeveralOpen
from handrail.kernel.records import LAST, Query, UnitOfWork
from handrail.kernel.wording import did_you_mean
from handrail.operation import Call, ResultT
from handrail.surfaces.cli.columns import as_words, fit, one_line
from handrail.surfaces.cli.options import person, place_of, settings_of, typed_text
from handrail.surfaces.cli.plans.runs import run_sentence
from handrail.toolsets.here import SHOWN, open_workflows, workflow_here
from handrail.wiring import WorkPlace, assemble, looking_ledger

ThingT = TypeVar("ThingT", bound=Task | Workflow)

LOOKED_THROUGH = 50
"""How many workflows are searched for a name."""
NAME_COLUMNS = 40
"""How much of a name a refusal repeats."""
_PREFIXES = ("wf_", "task_")
_WHERE = "`handrail status` shows what is open, `handrail search WORDS` finds the rest"
_BEGIN = "ask your agent to plan its work with Handrail, or `handrail import FILE`"


def in_one_look(root: Path | None, options: dict[str, Any], work: Callable[[Call], ResultT]) -> ResultT:
    """Runs `work` in one unit of work of the person who asks."""
    return read_once(looking_call(place_of(root), options), work)


def read_once(call: Call, work: Callable[[Call], ResultT]) -> ResultT:
    """Runs `work` in one unit of work of the person who asks. What is an operation is invoked instead."""
    return call.ledger.run(person(), lambda unit: work(msgspec.structs.replace(call, unit=unit)))


def looking_call(place: WorkPlace, options: dict[str, Any]) -> Call:
    """A call for reading only: it does not create a store."""
    settings = settings_of(place, options)
    return assemble(place, settings, ledger=looking_ledger(place, settings)).call


def thing_meant(call: Call, text: str, *, exact: bool = False) -> Task | Workflow:
    """The task or workflow a person means, by id, name, or the beginning of either; open ones come before ended ones.
    `exact`, for commands that change it: the beginning of a name is not enough."""
    text = _given(text)
    for search in _EXACT_SEARCHES if exact else _SEARCHES:
        found = search(call, text)
        if found:
            return _only(call, found, text)
    raise NotFound(
        f"there is no task or workflow {one_line(text)}{did_you_mean(text, _names(call))}",
        hint=_WHERE,
    )


def workflow_meant(call: Call, text: str, *, exact: bool = False) -> Workflow:
    """The workflow a person means, found in the same ways; never a task."""
    text = _given(text)
    for search in _EXACT_SEARCHES if exact else _SEARCHES:
        found = [thing for thing in search(call, text) if isinstance(thing, Workflow)]
        if found:
            return _only(call, found, text)
    task = call.work.get(Task, text)
    if task is not None:
        raise RunNotFound(f"{task.id} is a task, not a workflow", hint=f"it is part of {task.workflow_id}")
    names = [one.name for some in (open_workflows, ended_workflows) for one in some(call, LOOKED_THROUGH)]
    raise RunNotFound(f"there is no workflow {one_line(text)}{did_you_mean(text, names)}", hint=_WHERE)


def _given(text: str) -> str:
    """What was typed. Nothing at all, as from a variable that is not set, must not mean anything."""
    text = typed_text(text)
    if not text.strip():
        raise InvalidParams("The name is empty.", hint=_WHERE)
    return text


def workflow_meant_or_open(call: Call, text: str | None) -> Workflow:
    """The workflow a person means; if they name none, the only open one. If none is, the refusal names the last to
    end."""
    if text is not None:
        return workflow_meant(call, text)
    if open_workflows(call, 1):
        return workflow_here(call, None)
    ended = ended_workflows(call, SHOWN)
    if not ended:
        elsewhere = "; `handrail status --all` shows other repositories of this store" if call.here.shared else ""
        raise NothingOpen("there is no workflow here yet", hint=f"{_BEGIN}{elsewhere}")
    listed = ", ".join(f'{workflow.id} ("{one_line(workflow.name)}")' for workflow in ended)
    raise NothingOpen("no workflow is open here any more", hint=f"name the one that you mean; ended last: {listed}")


def ended_workflows(call: Call, limit: int) -> list[Workflow]:
    """The workflows that have ended here, the last one first."""
    conditions: list[tuple[str, object]] = [("status", CLOSED)]
    if call.here.shared:
        conditions.append(("repository_path", call.here.repository))
    return call.work.select(Workflow, Query(tuple(conditions), ("-updated_at", "-id"), limit))


def how_it_stands(unit: UnitOfWork, workflow: Workflow) -> str:
    """How a workflow stands, in a sentence for people: what would move it is named as a command."""
    return run_sentence(unit, workflow.id) or explain_workflow(unit, workflow, completed_by=done_by(workflow)).sentence


def done_by(workflow: Workflow) -> str:
    """The command by which a person completes a workflow."""
    return f"`handrail done {workflow.id}`"


def _only(call: Call, found: Sequence[ThingT], text: str) -> ThingT:
    if len(found) == 1:
        return found[0]
    shown = found[:SHOWN]
    listed = ", ".join(f"{thing.id} ({_told_apart(call, thing, text)})" for thing in shown)
    raise SeveralOpen(
        f"{one_line(text)} could mean any of {len(found) if len(found) <= SHOWN else f'more than {SHOWN}'}",
        hint=f"say which by its id: {listed}{' …' if len(found) > SHOWN else ''}",
        open=[{"id": thing.id, "name": thing.name} for thing in shown],
    )


def _told_apart(call: Call, thing: Task | Workflow, text: str) -> str:
    """What tells a thing from others of its name: its state, and the workflow it is part of."""
    name = "" if thing.name == text else f"{fit(thing.name, NAME_COLUMNS)}, "
    if not isinstance(thing, Task):
        return f"{name}workflow, {as_words(thing.status)}"
    return f'{name}{as_words(thing.shown_status)}, in "{fit(workflow_of(call.work, thing).name, NAME_COLUMNS)}"'


def _by_id(call: Call, text: str) -> list[Task | Workflow]:
    found = (call.work.get(Workflow, text), call.work.get(Task, text))
    return [thing for thing in found if thing is not None]


def _by_name(call: Call, text: str) -> list[Task | Workflow]:
    return _named_in(call, open_workflows(call, LOOKED_THROUGH), text)


def _by_id_beginning(call: Call, text: str) -> list[Task | Workflow]:
    if not text.startswith(_PREFIXES):
        return []
    beginning = Query((("id >", text), ("id <", text + LAST)), ("id",), SHOWN + 1)
    return [*call.work.select(Workflow, beginning), *call.work.select(Task, beginning)]


def _by_name_beginning(call: Call, text: str) -> list[Task | Workflow]:
    return _beginning_in(call, open_workflows(call, LOOKED_THROUGH), text)


def _ended_by_name(call: Call, text: str) -> list[Task | Workflow]:
    """Includes ended ones, while they are among the newest."""
    return _named_in(call, ended_workflows(call, LOOKED_THROUGH), text)


def _ended_by_name_beginning(call: Call, text: str) -> list[Task | Workflow]:
    return _beginning_in(call, ended_workflows(call, LOOKED_THROUGH), text)


def _named_in(call: Call, workflows: Sequence[Workflow], text: str) -> list[Task | Workflow]:
    """Which of these workflows, and of their tasks, have this name."""
    found: list[Task | Workflow] = [workflow for workflow in workflows if workflow.name == text]
    for workflow in workflows:
        found += call.work.select(Task, Query((("workflow_id", workflow.id), ("name", text)), ("name",), 1))
    return found


def _beginning_in(call: Call, workflows: Sequence[Workflow], text: str) -> list[Task | Workflow]:
    """Which of these workflows, and of their tasks, have a name that begins with this."""
    found: list[Task | Workflow] = [workflow for workflow in workflows if workflow.name.startswith(text)]
    for workflow in workflows:
        beginning = (("workflow_id", workflow.id), ("name >", text), ("name <", text + LAST))
        found += call.work.select(Task, Query(beginning, ("name",), SHOWN + 1))
    return found


def _names(call: Call) -> list[str]:
    """Names that may have been meant."""
    workflows = [*open_workflows(call, SHOWN), *ended_workflows(call, SHOWN)]
    names = [workflow.name for workflow in workflows]
    for workflow in workflows:
        first = call.work.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), LOOKED_THROUGH))
        names += [task.name for task in first]
    return names


def _as_shown(call: Call, text: str) -> list[Task | Workflow]:
    """By the name as it is shown: line breaks and how an accent is written do not show, and case is easily missed."""
    wanted = _plain(text)
    workflows = [*open_workflows(call, LOOKED_THROUGH), *ended_workflows(call, LOOKED_THROUGH)]
    found: list[Task | Workflow] = [workflow for workflow in workflows if _plain(workflow.name) == wanted]
    for workflow in workflows:
        first = call.work.select(Task, Query((("workflow_id", workflow.id),), ("sequence",), LOOKED_THROUGH))
        found += [task for task in first if _plain(task.name) == wanted]
    return found


def _plain(name: str) -> str:
    return " ".join(unicodedata.normalize("NFC", one_line(name)).casefold().split())


_EXACT_SEARCHES = (_by_id, _by_name, _by_id_beginning, _ended_by_name, _as_shown)
"""The ways to find what is meant without guessing."""
_SEARCHES = (
    *(_by_id, _by_name, _by_id_beginning, _by_name_beginning, _ended_by_name, _ended_by_name_beginning),
    _as_shown,
)
"""All ways to find what is meant, the most certain first."""

"""Templates: texts with `{{variables}}` that become a plan once values are filled in.

`{{name}}` and `{{ name }}` are the same variable. `\\{{` is a literal `{{`, and a backslash before a variable is
written twice. A value is plain text: braces in it have no meaning. Not the record (`template.py`), and not the rules
for plans (`plan.py`), which apply both before and after filling in.

The port through which templates in files reach the tools, and the entries on that shelf. Reads no files:
`outside/template_files.py` is the shelf used in practice.

Turns a workflow's tasks back into a plan that can be laid again: results are left out, the work itself stays. Skipped
tasks are dropped, and what waited for them waits for what they waited for.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from handrail.domain.work.plan import LIST_FIELDS, MOST_TASKS, PlanTask, check_plan, entry_fields
from handrail.domain.work.task import Task
from handrail.domain.work.template import Template
from handrail.kernel.errors import InvalidParams, InvalidPlan, InvalidTemplate, MissingVariables
from handrail.kernel.limits import MESSAGE_BYTES
from handrail.kernel.wording import did_you_mean

NAME_PATTERN = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
MOST_VARIABLES = 100
TEXT_LIMITS: Mapping[str, int] = {"name": 200, "description": 200_000, "parallel_group": 200, "parent": 200}
LIST_LIMITS: Mapping[str, int] = dict.fromkeys(LIST_FIELDS, 4000)
"""Every text field of a task that may contain variables, and its maximum length once they are filled in."""

# Backslashes, then two braces, then, if it is a variable, its name and two closing braces. Kept as text: only templates
# need it, and compiling here would slow down every start.
_BRACES = rf"(?<!\\)(\\*)\{{\{{(?:\s*({NAME_PATTERN})\s*\}}\}})?"
_SHOWN_BRACES = 40


class Variable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A blank in a template. If it is neither required nor has a default, it is filled with empty text."""

    name: Annotated[str, Meta(pattern=rf"^{NAME_PATTERN}\Z")]
    description: Annotated[str, Meta(max_length=2000)] = ""
    required: bool = True
    default: Annotated[str, Meta(max_length=20_000)] | None = None

    @property
    def must_be_given(self) -> bool:
        return self.required and self.default is None


class Blueprint(msgspec.Struct, frozen=True):
    """A sound template, wherever it is stored: every variable it uses is declared."""

    name: str
    description: str | None
    tasks: tuple[PlanTask, ...]
    variables: tuple[Variable, ...]


class Filled(NamedTuple):
    """A template with values filled in."""

    description: str | None
    tasks: list[PlanTask]
    values: dict[str, str]


def blueprint_of(template: Template) -> Blueprint:
    """The blueprint of a stored template, which was checked when it was created."""
    return Blueprint(
        template.name,
        template.description,
        tuple(PlanTask(**task) for task in template.tasks),
        tuple(Variable(**variable) for variable in template.variables),
    )


def task_entry(task: PlanTask) -> dict[str, Any]:
    """A task as it is stored: the mandatory fields, and those that differ from the default."""
    must = ("name", "description", "sequence")
    entry: dict[str, Any] = msgspec.to_builtins(task)
    return {key: value for key, value in entry.items() if key in must or value != getattr(_PLAIN_TASK, key)}


_PLAIN_TASK = PlanTask("-", "", 0)


# -- reading ----------------------------------------------------------------------------------------------------------


def read_blueprint(
    name: str, description: str | None, tasks: Sequence[PlanTask], variables: Sequence[Variable]
) -> Blueprint:
    """The template, fully checked, or InvalidTemplate. A variable used but not declared is added as a required one."""
    if not tasks:
        raise InvalidTemplate("the template has no tasks", hint="give it at least one")
    if len(tasks) > MOST_TASKS:
        raise InvalidTemplate(f"the template has {len(tasks)} tasks; at most {MOST_TASKS} fit", hint="make it two")
    declared: dict[str, Variable] = {}
    for variable in variables:
        if variable.name in declared:
            raise InvalidTemplate(f"the variable {variable.name} is declared twice", hint="keep one")
        declared[variable.name] = variable
    for used in used_variables(description, tasks):
        declared.setdefault(used, Variable(used))
    if len(declared) > MOST_VARIABLES:
        raise InvalidTemplate(f"the template has more than {MOST_VARIABLES} variables", hint="make it several")
    _check_as_plan(tasks, declared)
    return Blueprint(name, description, tuple(tasks), tuple(declared.values()))


def used_variables(description: str | None, tasks: Iterable[PlanTask]) -> list[str]:
    """The variables in a template's texts, in order of first use."""
    found = {name: None for _, name in _pieces(description or "", "the description") if name}
    for task in tasks:
        for place, text in _texts(task):
            found |= {name: None for _, name in _pieces(text, place) if name}
    return list(found)


def unused_variables(blueprint: Blueprint) -> list[str]:
    used = used_variables(blueprint.description, blueprint.tasks)
    return [variable.name for variable in blueprint.variables if variable.name not in used]


def templated(tasks: Iterable[PlanTask]) -> list[PlanTask]:
    """Tasks of a plan as tasks of a template: `{{name}}` becomes a variable, everything else stays literal."""
    return [_mapped(task, lambda _, text: _guarded(text)) for task in tasks]


def _guarded(text: str) -> str:
    return re.sub(_BRACES, lambda met: met[1] * 2 + ("" if met[2] else "\\") + met[0][len(met[1]) :], text)


def _check_as_plan(tasks: Sequence[PlanTask], declared: Iterable[str]) -> None:
    """Checks a template against the rules for plans, with each variable standing for itself. Whether a reference that
    contains a variable names a task is only known once it is filled in."""
    blanks = {name: f"{{{{{name}}}}}" for name in declared}
    tidied = [_mapped(task, lambda _, text: _join(text, blanks)) for task in tasks]
    open_references = {
        _join(text, blanks)
        for task in tasks
        for text in (*task.depends_on, task.parent or "")
        if any(name for _, name in _pieces(text, "a reference"))
    }
    try:
        check_plan(tidied, open_references)
    except InvalidPlan as problem:
        raise InvalidTemplate(problem.message, hint=problem.hint, **problem.details) from None


def _texts(task: PlanTask) -> Iterator[tuple[str, str]]:
    """Every text of a task, with a description of its place."""
    for field in TEXT_LIMITS:
        yield f'{field} of task "{task.name}"', getattr(task, field) or ""
    for field in LIST_LIMITS:
        for text in getattr(task, field):
            yield f'{field} of task "{task.name}"', text


def _pieces(text: str, place: str) -> Iterator[tuple[str, str]]:
    """Literal texts, each with the variable that follows it; the last has none."""
    end = 0
    for met in re.finditer(_BRACES, text):
        slashes, name = met[1], met[2]
        literal = text[end : met.start()] + "\\" * (len(slashes) // 2)
        if len(slashes) % 2:
            yield literal + "{{", ""
            end = met.start() + len(slashes) + 2
        elif name is None:
            shown = text[met.start() + len(slashes) :][:_SHOWN_BRACES]
            raise InvalidTemplate(
                f'{place} has "{shown}", which is no variable',
                hint=r"a variable is {{name}}, of letters, digits, _ and -; write \{{ for braces that mean themselves",
            )
        else:
            yield literal, name
            end = met.end()
    yield text[end:], ""


def _join(text: str, values: Mapping[str, str]) -> str:
    return "".join(literal + (values[name] if name else "") for literal, name in _pieces(text, "a text"))


# -- filling in -------------------------------------------------------------------------------------------------------


def fill(blueprint: Blueprint, given: Mapping[str, str]) -> Filled:
    """The template with these values. Refuses unknown variables, and names all missing ones. The tasks are not yet
    checked as a plan: two names may have become the same."""
    values = _values(blueprint, given)
    room = MESSAGE_BYTES

    def filled(field: str, text: str) -> str:
        nonlocal room
        limit = TEXT_LIMITS.get(field) or LIST_LIMITS[field]
        pieces = list(_pieces(text, field))
        length = sum(len(literal) + (len(values[name]) if name else 0) for literal, name in pieces)
        room -= length
        if length > limit:
            raise InvalidPlan(
                f"with these values a {field} has {length} characters; at most {limit} fit",
                hint=f"it is: {text[:200]}",
            )
        if room < 0:
            raise InvalidPlan(
                f"with these values the plan has more than {MESSAGE_BYTES} characters", hint="give shorter values"
            )
        return "".join(literal + (values[name] if name else "") for literal, name in pieces)

    description = None if blueprint.description is None else filled("description", blueprint.description)
    tasks = []
    for task in blueprint.tasks:
        done = _mapped(task, filled)
        if not done.name.strip():
            raise InvalidPlan(
                f'with these values the task "{task.name}" has no name',
                hint="give its variables values",
                task=task.name,
            )
        tasks.append(done)
    return Filled(description, tasks, values)


def _values(blueprint: Blueprint, given: Mapping[str, str]) -> dict[str, str]:
    known = [variable.name for variable in blueprint.variables]
    for name in given:
        if name not in known:
            raise InvalidParams(
                f'template "{blueprint.name}" has no variable {name[:100]}{did_you_mean(name, known)}',
                hint=f"its variables: {', '.join(known)}" if known else "it has none",
            )
    missing = [one for one in blueprint.variables if one.must_be_given and one.name not in given]
    if missing:
        listed = ", ".join(f"{one.name} ({one.description})" if one.description else one.name for one in missing)
        raise MissingVariables(
            f'template "{blueprint.name}" needs: {listed}',
            hint="pass each in variables, as text",
            missing=[{"name": one.name, "description": one.description} for one in missing],
        )
    return {one.name: given.get(one.name, one.default or "") for one in blueprint.variables}


def _mapped(task: PlanTask, change: Callable[[str, str], str]) -> PlanTask:
    """The task with every text changed. Optional texts that become empty are dropped."""
    changed: dict[str, Any] = {
        "name": change("name", task.name),
        "description": change("description", task.description),
    }
    for field in ("parallel_group", "parent"):
        text = getattr(task, field)
        changed[field] = None if text is None else change(field, text) or None
    for field in LIST_LIMITS:
        changed[field] = [done for text in getattr(task, field) if (done := change(field, text))]
    return msgspec.structs.replace(task, **changed)


FILE_PREFIX = "file:"
"""Ids of templates in files start with this, followed by the file's stem."""


class FileTemplate(msgspec.Struct, frozen=True):
    """A usable template, and where it comes from: project, user or bundled."""

    stem: str
    source: str
    file: str
    created_at: int
    """When the file was last changed."""
    blueprint: Blueprint

    @property
    def id(self) -> str:
        return FILE_PREFIX + self.stem

    def answers_to(self, key: str) -> bool:
        return key in (self.id, self.stem, self.blueprint.name)


class BrokenTemplate(msgspec.Struct, frozen=True):
    """A file, or a folder of files, that cannot be used. Its stem is empty if it cannot stand for any one template."""

    stem: str
    source: str
    where: str
    reason: str

    @property
    def id(self) -> str:
        return FILE_PREFIX + self.stem if self.stem else ""

    def answers_to(self, key: str) -> bool:
        return bool(self.stem) and key in (self.id, self.stem)


class TemplateShelf(Protocol):
    """All templates currently available in files."""

    def entries(self) -> Sequence[FileTemplate | BrokenTemplate]:
        """Nearest first: project, user, bundled. Of files with the same stem only the nearest counts, broken or not."""
        ...


def plan_again(tasks: Sequence[Task]) -> list[PlanTask]:
    """The tasks as plan entries, without skipped ones, in the order they are given."""
    return _Copy(tasks).entries()


class _Copy:
    """The tasks of one workflow, indexed for every lookup needed here."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self._tasks = tasks
        self._by_id = {task.id: task for task in tasks}
        self._by_name = {task.name: task for task in tasks}
        self._parts: dict[str, list[str]] = defaultdict(list)
        for task in tasks:
            if task.parent_task_id is not None:
                self._parts[task.parent_task_id].append(task.name)

    def entries(self) -> list[PlanTask]:
        return [self._entry(task) for task in self._tasks if task.status != "skipped"]

    def _entry(self, task: Task) -> PlanTask:
        needs = list(task.depends_on)
        above = self._by_id.get(task.parent_task_id or "")
        while above is not None and above.status == "skipped":
            needs += above.depends_on  # being part of it, the task waited for these too
            above = self._by_id.get(above.parent_task_id or "")
        parent = None if above is None else above.name
        return PlanTask(**entry_fields(task, depends_on=self._without_skipped(needs), parent=parent))

    def _without_skipped(self, needs: Iterable[str]) -> list[str]:
        """These names, with each skipped task replaced by what it waited for: its dependencies, those of its enclosing
        tasks, and its parts."""
        kept: dict[str, None] = {}
        seen: set[str] = set()
        pending = list(needs)[::-1]
        while pending:
            name = pending.pop()
            task = self._by_name.get(name)
            if task is None or name in seen:
                continue
            seen.add(name)
            if task.status == "skipped":
                pending.extend([*self._waited_for(task), *self._parts[task.id]][::-1])
            else:
                kept[name] = None
        return list(kept)

    def _waited_for(self, task: Task) -> list[str]:
        needs: list[str] = []
        current: Task | None = task
        while current is not None:
            needs += current.depends_on
            current = self._by_id.get(current.parent_task_id or "")
        return needs

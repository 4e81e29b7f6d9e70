"""Toolset `template`: plan.md's templates. Keep a plan that worked, or write one with blanks, and apply it again.

Templates are kept in the store or in files (`docs/templates.md`); the domain (`templating.py`) defines what they
contain and how blanks are filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from handrail.domain.reply_size import within
from handrail.domain.work.apply_plan import lay_plan
from handrail.domain.work.lookup import find_workflow
from handrail.domain.work.plan import MOST_TASKS, Name, PlanTask, Text
from handrail.domain.work.plan_edit import PlanEdit
from handrail.domain.work.task import Task
from handrail.domain.work.template import Template
from handrail.domain.work.templates import (
    MOST_VARIABLES,
    Blueprint,
    BrokenTemplate,
    FileTemplate,
    Variable,
    blueprint_of,
    fill,
    plan_again,
    read_blueprint,
    task_entry,
    templated,
    unused_variables,
)
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import (
    DuplicateTemplate,
    InvalidParams,
    InvalidPlan,
    InvalidTemplate,
    MissingVariables,
    RunNotFound,
    TemplateNotFound,
)
from handrail.kernel.records import Query, where
from handrail.kernel.wording import did_you_mean, shortened
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.plan.repository import repository_at
from handrail.toolsets.shown import cut
from handrail.toolsets.vocabulary import TEMPLATE

PAGE = 50
PAGE_BYTES = 5 * 1024
"""Bytes for templates in a reply without a requested limit."""
PROBLEM_BYTES = 2 * 1024
"""Bytes for unusable files in any reply."""
SHOWN_TEXT = 300
SHOWN_VALUE = 100
SHOWN_NAMES = 20
WHOLE = "template_list with its template_id shows them"
"""How to get the rest of a template's text."""
LOOKED_AT = 200
"""How many stored names are searched for the one that may have been meant."""


class Definition(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tasks with {{variables}} in their texts."""

    tasks: Annotated[list[PlanTask], Meta(min_length=1, max_length=MOST_TASKS)]
    variables: Annotated[list[Variable], Meta(max_length=MOST_VARIABLES)] = []


class CreateTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name, and where the tasks come from: a workflow or a definition, not both."""

    name: Name
    description: Text | UnsetType = UNSET
    from_workflow_id: str | UnsetType = UNSET
    template: Definition | UnsetType = UNSET


class CreatedTemplate(msgspec.Struct, frozen=True, omit_defaults=True):
    """The new template, with every variable it found."""

    id: str
    task_count: int
    variables: tuple[str, ...]
    warnings: tuple[str, ...] = ()


class ListTemplates(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A page of templates, or one of them whole."""

    template_id: Annotated[str, Meta(max_length=300, description="Only this one, with its tasks")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=500)] | UnsetType = UNSET
    offset: Annotated[int, Meta(ge=0, le=2**53)] = 0


class WorkflowTemplate(msgspec.Struct, frozen=True):
    """One template; `source` is store, project, user or bundled."""

    id: str
    name: str
    description: str | None
    variables: tuple[Variable, ...]
    task_count: int
    created_at: int
    source: str
    tasks: tuple[dict[str, Any], ...] | UnsetType = UNSET


class UnreadableTemplate(msgspec.Struct, frozen=True):
    """A template file that is there and cannot be used."""

    id: str
    file: str
    reason: str


class TemplateList(msgspec.Struct, frozen=True, omit_defaults=True):
    """Templates, the nearest first: the project's files, the user's, the store's by name, the bundled ones."""

    templates: tuple[WorkflowTemplate, ...]
    total: int
    next_offset: int | UnsetType = UNSET
    """Where the next page begins, when there is one."""
    unreadable: tuple[UnreadableTemplate, ...] = ()


class ApplyTemplate(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A template, a name for what it makes, and values for its variables."""

    template_id: Annotated[str, Meta(max_length=300, description="Its id or name")]
    workflow_name: Name
    variables: Annotated[dict[str, Text], Meta(description="Texts by name")] = {}
    repository_path: Annotated[str, Meta(max_length=4096)] | UnsetType = UNSET
    max_parallel_tasks: Annotated[int, Meta(ge=1, le=100)] = 1


class AppliedTemplate(msgspec.Struct, frozen=True):
    """The workflow it made, ready to be worked on."""

    workflow_id: str
    status: str
    tasks_created: int


# -- making -----------------------------------------------------------------------------------------------------------


def template_create(call: Call, request: CreateTemplate) -> CreatedTemplate:
    blueprint = _blueprint(call, request)
    _check_name(call, request.name)
    template = Template(
        id=call.work.new_id("tmpl"),
        name=blueprint.name,
        description=blueprint.description,
        tasks=[task_entry(task) for task in blueprint.tasks],
        variables=[msgspec.to_builtins(variable) for variable in blueprint.variables],
        created_at=call.work.now_ms(),
    )
    call.work.record("template.created", template)
    return CreatedTemplate(
        id=template.id,
        task_count=len(template.tasks),
        variables=tuple(variable.name for variable in blueprint.variables),
        warnings=tuple(f"the variable {name} is declared and never used" for name in unused_variables(blueprint)),
    )


def _blueprint(call: Call, request: CreateTemplate) -> Blueprint:
    if (request.from_workflow_id is UNSET) is (request.template is UNSET):
        both = request.template is not UNSET
        raise InvalidParams(
            "a template is made from_workflow_id or from template, not from both"
            if both
            else "from_workflow_id or template is required: what the template is made from",
            hint="give exactly one of from_workflow_id and template",
        )
    description = None if request.description is UNSET else request.description
    if request.template is not UNSET:
        return read_blueprint(request.name, description, request.template.tasks, request.template.variables)
    assert request.from_workflow_id is not UNSET
    workflow = find_workflow(call.work, request.from_workflow_id)
    tasks = plan_again(call.work.select(Task, Query((("workflow_id", workflow.id),), ("sequence",))))
    if not tasks:
        raise InvalidTemplate(
            f"workflow {workflow.id} has no tasks to make a template of",
            hint="workflow_set_plan adds some; skipped tasks do not count",
        )
    return read_blueprint(request.name, description, templated(tasks), ())


def _check_name(call: Call, name: str) -> None:
    """A name means one template; only the bundled ones can be overridden."""
    for known in call.work.select(Template, where(name=name)):
        raise DuplicateTemplate(
            f'a template "{name}" is already there ({known.id})', hint="choose another name", id=known.id
        )
    for entry in call.world.templates().entries():
        if entry.source != "bundled" and entry.answers_to(name):
            raise DuplicateTemplate(
                f'a template "{name}" is already there ({_file_of(entry)})', hint="choose another name", id=entry.id
            )


# -- listing ----------------------------------------------------------------------------------------------------------


def template_list(call: Call, request: ListTemplates) -> TemplateList:
    if request.template_id is not UNSET:
        return TemplateList((_shown(_find(call, request.template_id), whole=True),), 1)
    entries = call.world.templates().entries()
    near = [entry for entry in entries if isinstance(entry, FileTemplate) and entry.source != "bundled"]
    bundled = [entry for entry in entries if isinstance(entry, FileTemplate) and entry.source == "bundled"]
    stored = call.work.count(Template, Query())
    total = len(near) + stored + len(bundled)
    start, end = request.offset, request.offset + (PAGE if request.limit is UNSET else request.limit)
    page: list[FileTemplate | Template] = [*near[start:end]]
    after = max(0, start - len(near))
    if end > len(near) and after < stored:
        page += call.work.select(Template, Query((), ("name",), end - max(start, len(near)), after))
    before_bundled = len(near) + stored
    page += bundled[max(0, start - before_bundled) : max(0, end - before_bundled)]
    shown = [_shown(found, whole=False) for found in page]
    if request.limit is UNSET:
        shown = within(shown, PAGE_BYTES)
    reached = start + len(shown)
    return TemplateList(
        templates=tuple(shown),
        total=total,
        next_offset=reached if reached < total else UNSET,
        unreadable=_unreadable([entry for entry in entries if isinstance(entry, BrokenTemplate)]),
    )


def _unreadable(broken: Sequence[BrokenTemplate]) -> tuple[UnreadableTemplate, ...]:
    all_of_them = [UnreadableTemplate(entry.id, entry.where, shortened(entry.reason, SHOWN_TEXT)) for entry in broken]
    shown = within(all_of_them, PROBLEM_BYTES)
    if len(shown) < len(broken):
        shown.append(UnreadableTemplate("", "", f"and {len(broken) - len(shown)} more"))
    return tuple(shown)


def _shown(found: FileTemplate | Template, *, whole: bool) -> WorkflowTemplate:
    blueprint = found.blueprint if isinstance(found, FileTemplate) else blueprint_of(found)
    description = blueprint.description
    return WorkflowTemplate(
        id=found.id,
        name=blueprint.name,
        description=description if whole or description is None else cut(description, SHOWN_TEXT, rest=WHOLE),
        variables=blueprint.variables if whole else tuple(map(_brief, blueprint.variables)),
        task_count=len(blueprint.tasks),
        created_at=found.created_at,
        source=found.source if isinstance(found, FileTemplate) else "store",
        tasks=tuple(task_entry(task) for task in blueprint.tasks) if whole else UNSET,
    )


def _brief(variable: Variable) -> Variable:
    default = variable.default
    return msgspec.structs.replace(
        variable,
        description=cut(variable.description, SHOWN_VALUE, rest=WHOLE),
        default=None if default is None else cut(default, SHOWN_VALUE, rest=WHOLE),
    )


# -- applying ---------------------------------------------------------------------------------------------------------


def template_apply(call: Call, request: ApplyTemplate) -> AppliedTemplate:
    found = _find(call, request.template_id)
    blueprint = found.blueprint if isinstance(found, FileTemplate) else blueprint_of(found)
    filled = fill(blueprint, request.variables)
    now = call.work.now_ms()
    description = filled.description or f"Template {blueprint.name}"
    workflow = Workflow(
        id=call.work.new_id("wf"),
        name=request.workflow_name,
        status="ready",
        source_type="custom",
        source_ref=f"template:{found.id}",
        source_content=description,
        repository_path=repository_at(call, request.repository_path),
        plan={
            "summary": description,
            "approach": f"As in the template {blueprint.name}",
            "risks": [],
            "assumptions": [],
            "variables": filled.values,
        },
        max_parallel_tasks=request.max_parallel_tasks,
        auto_create_workspaces=False,
        created_at=now,
        updated_at=now,
    )
    edit = PlanEdit(call.work, workflow)
    tasks = lay_plan(call.work, edit, filled.tasks)
    edit.record("workflow.created", data={"template_id": found.id})
    return AppliedTemplate(workflow.id, workflow.status, len(tasks))


def _find(call: Call, key: str) -> FileTemplate | Template:
    """The template with this id or name. If several share a name, the nearest: the project's files, the user's, the
    store's, the bundled ones."""
    stored = call.work.get(Template, key)
    if stored is not None:
        return stored
    entries = call.world.templates().entries()
    near = next((one for one in entries if one.source != "bundled" and one.answers_to(key)), None)
    if near is not None:
        return _usable(near)
    for named in call.work.select(Template, where(name=key)):
        return named
    bundled = next((one for one in entries if one.answers_to(key)), None)
    if bundled is not None:
        return _usable(bundled)
    names = [template.name for template in call.work.select(Template, Query((), ("name",), LOOKED_AT))]
    names += [entry.blueprint.name for entry in entries if isinstance(entry, FileTemplate)]
    raise TemplateNotFound(
        f"there is no template {key}{did_you_mean(key, names)}",
        hint=f"templates: {', '.join(sorted(set(names))[:SHOWN_NAMES])}; template_list shows all",
        id=key,
    )


def _usable(entry: FileTemplate | BrokenTemplate) -> FileTemplate:
    if isinstance(entry, BrokenTemplate):
        raise InvalidTemplate(f"{entry.where}: {entry.reason}", hint="fix the file; the next call reads it again")
    return entry


def _file_of(entry: FileTemplate | BrokenTemplate) -> str:
    return entry.file if isinstance(entry, FileTemplate) else entry.where


# -- declarations -----------------------------------------------------------------------------------------------------

_DEFINITION = {
    "variables": [{"name": "service", "description": "The service to move", "required": True}],
    "tasks": [
        {"name": "move {{service}}", "description": "Move {{service}} to the new cluster", "sequence": 1},
        {
            "name": "check {{service}}",
            "description": "Compare its answers with the old one's",
            "sequence": 2,
            "depends_on": ["move {{service}}"],
        },
    ],
}
_CREATE = {"name": "move-service", "description": "Move {{service}}", "template": _DEFINITION}
_CREATED = (("template_create", _CREATE),)
_UNSOUND = {"tasks": [{"name": "one", "description": "-", "sequence": 1, "depends_on": ["two"]}]}
_APPLY = {"template_id": "move-service", "workflow_name": "Move billing", "variables": {"service": "billing"}}
_TWINS = {
    "name": "twins",
    "template": {
        "tasks": [
            {"name": "{{one}}", "description": "-", "sequence": 1},
            {"name": "{{other}}", "description": "-", "sequence": 2},
        ]
    },
}

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="template_create",
        toolset=TEMPLATE,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Makes a template from a workflow, or from tasks with {{variables}} in their texts",
        request=CreateTemplate,
        response=CreatedTemplate,
        handler=template_create,
        refusals=(DuplicateTemplate, InvalidTemplate, RunNotFound),
        examples=(
            Example(
                title="a template of two tasks with a variable",
                request=_CREATE,
                response={"id": "tmpl_...", "task_count": 2, "variables": ["service"]},
            ),
            Example(title="a name means one template", given=_CREATED, request=_CREATE, refused=DuplicateTemplate),
            Example(
                title="a template is held to the rules of plans",
                request={"name": "unsound", "template": _UNSOUND},
                refused=InvalidTemplate,
            ),
            Example(
                title="an unknown workflow is refused",
                request={"name": "copy", "from_workflow_id": "wf_9"},
                refused=RunNotFound,
            ),
        ),
    ),
    Operation(
        name="template_list",
        toolset=TEMPLATE,
        effect=Effect.READ,
        stored=True,
        summary="Lists the templates with their variables, nearest first",
        request=ListTemplates,
        response=TemplateList,
        handler=template_list,
        refusals=(TemplateNotFound, InvalidTemplate),
        examples=(
            Example(
                title="what was made, and what comes with Handrail",
                given=_CREATED,
                request={},
                response={
                    "templates": [
                        {
                            "id": "tmpl_1",
                            "name": "move-service",
                            "description": "Move {{service}}",
                            "variables": [{"name": "service", "required": True}],
                            "task_count": 2,
                            "source": "store",
                        },
                        {"id": "file:bugfix", "source": "bundled"},
                    ]
                },
            ),
            Example(title="an unknown template is refused", request={"template_id": "nope"}, refused=TemplateNotFound),
            Example(
                title="a broken file is refused by name",
                request={"template_id": "file:broken-template"},
                refused=InvalidTemplate,
            ),
        ),
    ),
    Operation(
        name="template_apply",
        toolset=TEMPLATE,
        effect=Effect.WRITE,
        stored=True,
        summary="Makes a workflow, with its tasks, from a template",
        request=ApplyTemplate,
        response=AppliedTemplate,
        handler=template_apply,
        refusals=(TemplateNotFound, InvalidTemplate, MissingVariables, InvalidPlan),
        examples=(
            Example(
                title="a workflow that is ready",
                given=_CREATED,
                request=_APPLY,
                response={"workflow_id": "wf_...", "status": "ready", "tasks_created": 2},
            ),
            Example(
                title="an unknown template is refused",
                request={"template_id": "nope", "workflow_name": "x"},
                refused=TemplateNotFound,
            ),
            Example(
                title="a broken file is refused",
                request={"template_id": "broken-template", "workflow_name": "x"},
                refused=InvalidTemplate,
            ),
            Example(
                title="missing variables are named",
                given=_CREATED,
                request={"template_id": "tmpl_1", "workflow_name": "x"},
                refused=MissingVariables,
            ),
            Example(
                title="two tasks may not come out with one name",
                given=(("template_create", _TWINS),),
                request={"template_id": "twins", "workflow_name": "x", "variables": {"one": "a", "other": "a"}},
                refused=InvalidPlan,
            ),
        ),
    ),
)

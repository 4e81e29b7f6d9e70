"""Toolset `workspace`: plan.md's workspaces. Worktrees in which tasks are done separately, and merging them.

With `create`, `merge` and `remove` git does it; without them only the record is kept, for callers that manage worktrees
themselves. What takes git time happens before the unit of work. Paths that agents reserve are in `reservations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET

from handrail.domain.claims.claim import check_writer
from handrail.domain.journal.journal import LOOKING
from handrail.domain.work.lookup import find_task, find_workflow
from handrail.domain.work.task import Task
from handrail.domain.work.transitions import check_open, workflow_of
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.lifecycle import (
    BRANCHES,
    FOLDER,
    check_free,
    check_same_workflow,
    end_workspace,
    find_workspace,
    in_order,
    name_for,
    put_into,
    record_workspace,
    tasks_of,
    waits_for,
    workspaces_in,
)
from handrail.domain.workspaces.records import WORKSPACE_MACHINE, Workspace
from handrail.domain.workspaces.worktrees import Clash, MadeWorktree, MergeDone, Removal, Worktrees, WorktreeState
from handrail.kernel.errors import (
    ClaimHeld,
    IllegalTransition,
    InvalidParams,
    InvalidPlan,
    MergeOrder,
    Refusal,
    RunNotFound,
    SettingNotTrusted,
    TaskNotFound,
    WorkflowClosed,
    WorkspaceNotFound,
    WorktreeRefused,
    WouldLoseWork,
)
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import task_to_write
from handrail.toolsets.plan.workflow import ABANDONED, CREATED, HELD, PLANNED, Done
from handrail.toolsets.plan.workspace_shapes import (
    AssignWorkspace,
    CreatedWorkspace,
    CreateWorkspace,
    ListWorkspaces,
    UpdatedWorkspace,
    UpdateWorkspace,
    WorkspacesFound,
)
from handrail.toolsets.vocabulary import WORKSPACE

SHOWN_CLASHES = 10
SHOWN_PATHS = 5


class WorkspaceReading(NamedTuple):
    """What git said before the unit of work."""

    looked: Mapping[str, WorktreeState]
    clashes: Sequence[Clash] = ()
    problem: str | None = None


class Ended(NamedTuple):
    """What git did before the unit of work."""

    merged: MergeDone | None = None
    removed: Removal | None = None


# -- create -----------------------------------------------------------------------------------------------------------


def make_worktree(call: Call, request: CreateWorkspace) -> MadeWorktree:
    """The worktree, created if requested."""
    if not request.create:
        if request.path is None or request.branch is None:
            raise InvalidParams(
                "a workspace that is only recorded has a path and a branch",
                hint="pass both, or pass create to have them made",
            )
        path = request.path if PurePath(request.path).is_absolute() else str(PurePath(call.here.folder, request.path))
        return MadeWorktree(path=path, branch=request.branch, base_branch=request.base_branch, base_commit="")

    def checked(unit: UnitOfWork) -> tuple[Workflow, list[Task], str]:
        workflow = find_workflow(unit, request.workflow_id)
        check_open(workflow, starting=False)
        tasks = [find_task(unit, task_id) for task_id in request.task_ids]
        for task in tasks:
            check_same_workflow(task, workflow.id)
        if request.path is not None:
            check_free(unit, request.path)
        others = len(workspaces_in(unit, workflow.id, WORKSPACE_MACHINE.states))
        return workflow, tasks, f"-{others + 1}" if others else ""

    workflow, tasks, nth = call.ledger.run(LOOKING, checked)
    repository = workflow.repository_path or call.here.repository
    name = name_for(tasks[0].name, tasks[0].id) if tasks else f"{name_for(workflow.name, workflow.id)}{nth}"
    return call.world.worktrees(repository).make(
        request.path or str(PurePath(repository, FOLDER, name)),
        request.branch or f"{BRANCHES}/{name}",
        request.base_branch,
    )


def workspace_create(call: Call, request: CreateWorkspace) -> CreatedWorkspace:
    workflow = find_workflow(call.work, request.workflow_id)
    check_open(workflow, starting=False)
    tasks = [task_to_write(call, task_id) for task_id in dict.fromkeys(request.task_ids)]
    space = record_workspace(call.work, workflow, call.prepared, tasks, managed=request.create)
    return CreatedWorkspace(space.id, space.path, space.branch, space.base_branch, space.base_commit)


# -- update -----------------------------------------------------------------------------------------------------------


def let_git_do_it(call: Call, request: UpdateWorkspace) -> Ended:
    """Merges and removes, if requested."""
    if request.merge and request.status != "merged":
        raise InvalidParams("merge goes with status merged", hint='set "status" to "merged"')
    if request.remove and request.status not in ("merged", "abandoned"):
        raise InvalidParams("remove goes with status merged or abandoned", hint="set status to one of them")
    if not (request.merge or request.remove):
        return Ended()

    def checked(unit: UnitOfWork) -> tuple[Workspace, Workflow]:
        space = find_workspace(unit, request.id)
        _check_end(msgspec.structs.replace(call, unit=unit), space, request)
        return space, find_workflow(unit, space.workflow_id)

    space, workflow = call.ledger.run(LOOKING, checked)
    trees = call.world.worktrees(workflow.repository_path or call.here.repository)
    merged = _merge(call, trees, space, workflow) if request.merge else None
    removed = None
    if request.remove:
        removed = trees.remove(
            space.path,
            base=space.base_branch,
            delete_branch=request.status == "merged" and space.managed,
            ignored=False,
            dry_run=False,
        )
    return Ended(merged, removed)


def _check_end(call: Call, space: Workspace, request: UpdateWorkspace) -> None:
    """Raises if the workspace may not end this way: before git does anything, and again when it is recorded."""
    if request.status is not None and request.status != space.status:
        WORKSPACE_MACHINE.check(f"workspace {space.id}", space.status, request.status)
        for task in tasks_of(call.work, space.id):
            if not task.is_finished:
                check_writer(call.work, task, call.writer, call.crew)
    if request.merge and space.status == "active":
        _check_order(call.work, space)


def _merge(call: Call, trees: Worktrees, space: Workspace, workflow: Workflow) -> MergeDone:
    if space.base_branch is None:
        raise WorktreeRefused(
            f"workspace {space.id} has no base branch to be merged into",
            hint="create workspaces with base_branch",
        )
    checks = call.world.checks()

    def verdicts(folder: str) -> list[dict[str, Any]]:
        return [{**result, "passed": result["exit_code"] == 0} for result in checks.run(folder)]

    there = trees.look({space.path: space.base_branch})[space.path]
    if there.exists and there.branch != space.branch:
        raise WouldLoseWork(
            f"{space.path} is on {there.branch or 'no branch'}, not on {space.branch}, which would be merged",
            hint="bring its commits to the branch first, and check the branch out there",
        )
    message = f"Merge {space.branch}: {workflow.name}"
    return trees.merge(space.branch, space.base_branch, message=message, checks=verdicts)


def _check_order(unit: UnitOfWork, space: Workspace) -> None:
    active = workspaces_in(unit, space.workflow_id)
    first = waits_for(unit, active).get(space.id, ())
    if first:
        names = ", ".join(f"{other.id} ({other.branch})" for other in active if other.id in first)
        raise MergeOrder(
            f"tasks of workspace {space.id} depend on tasks in {names}",
            hint="merge those first, or abandon them",
            first=list(first),
        )


def workspace_update(call: Call, request: UpdateWorkspace) -> UpdatedWorkspace:
    space = find_workspace(call.work, request.id)
    _check_end(call, space, request)
    ended: Ended = call.prepared
    commit = ended.merged.commit if ended.merged is not None else request.merge_commit
    values = {"merge_commit": commit} if commit is not None else {}
    status = request.status or space.status
    if status != space.status or values:
        space = end_workspace(call.work, space, status, **values)
    return UpdatedWorkspace(
        True,
        space.status,
        space.merge_commit,
        tuple(dict(check) for check in ended.merged.checks) if ended.merged is not None else (),
        msgspec.to_builtins(ended.removed) if ended.removed is not None else None,
    )


# -- list -------------------------------------------------------------------------------------------------------------


def look_at_worktrees(call: Call, request: ListWorkspaces) -> WorkspaceReading:
    """What git says about the workspaces, and which of them would not merge."""
    if not request.look:
        return WorkspaceReading({})

    def found(unit: UnitOfWork) -> tuple[Workflow, list[Workspace]]:
        return find_workflow(unit, request.workflow_id), _workspaces_asked_for(unit, request)

    workflow, spaces = call.ledger.run(LOOKING, found)
    if not spaces:
        return WorkspaceReading({})
    return read_workspaces(call, workflow.repository_path or call.here.repository, spaces)


def read_workspaces(call: Call, repository: str, spaces: Sequence[Workspace]) -> WorkspaceReading:
    """What git says about these workspaces of one repository. If git is missing, that is reported."""
    try:
        trees = call.world.worktrees(repository)
        looked = trees.look({space.path: space.base_branch for space in spaces})
        clashes: list[Clash] = []
        problems: list[str] = []
        for base in dict.fromkeys(space.base_branch for space in spaces if space.base_branch is not None):
            there = {
                space.id: space.path
                for space in spaces
                if space.status == "active" and space.base_branch == base and looked[space.path].exists
            }
            if there:
                foreseen = trees.foresee(there, base)
                clashes += foreseen.clashes
                problems += [f"{name or 'no conflict was foreseen'}: {why}" for name, why in foreseen.problems.items()]
    except Refusal as refusal:
        return WorkspaceReading({}, problem=refusal.message)
    return WorkspaceReading(looked, clashes, "; ".join(problems) or None)


def workspace_list(call: Call, request: ListWorkspaces) -> WorkspacesFound:
    find_workflow(call.work, request.workflow_id)
    spaces = _workspaces_asked_for(call.work, request)
    seen: WorkspaceReading = call.prepared
    active = workspaces_in(call.work, request.workflow_id)
    before = waits_for(call.work, active)
    return WorkspacesFound(
        workspaces=tuple(shown_workspace(call.work, space, seen.looked.get(space.path), before) for space in spaces),
        conflicts=tuple(shown_clash(clash) for clash in seen.clashes[:SHOWN_CLASHES]),
        conflicts_total=len(seen.clashes) if len(seen.clashes) > SHOWN_CLASHES else None,
        merge_order=tuple(space.id for space in in_order(active, before)) if len(active) > 1 else (),
        problem=seen.problem,
    )


def _workspaces_asked_for(unit: UnitOfWork, request: ListWorkspaces) -> list[Workspace]:
    states = WORKSPACE_MACHINE.states if request.status is UNSET else tuple(request.status)
    return workspaces_in(unit, request.workflow_id, states)


def shown_workspace(
    unit: UnitOfWork, space: Workspace, looked: WorktreeState | None, before: dict[str, tuple[str, ...]]
) -> dict[str, Any]:
    """The workspace in the shape of plan.md's type, with what git says about it."""
    shown: dict[str, Any] = msgspec.to_builtins(space)
    shown["task_ids"] = [task.id for task in tasks_of(unit, space.id)]
    if looked is not None:
        always = {"dirty_count": looked.dirty_count, "ahead": looked.ahead, "behind": looked.behind}
        shown["state"] = {**msgspec.to_builtins(looked), **always}
        del shown["state"]["path"]
    if before.get(space.id):
        shown["merge_after"] = list(before[space.id])
    return shown


def shown_clash(clash: Clash) -> dict[str, Any]:
    shown: dict[str, Any] = {"one": clash.one or "base", "other": clash.other or "base"}
    shown["paths"] = list(clash.paths[:SHOWN_PATHS])
    if len(clash.paths) > SHOWN_PATHS:
        shown["more_paths"] = len(clash.paths) - SHOWN_PATHS
    return shown


# -- assign -----------------------------------------------------------------------------------------------------------


def task_assign_workspace(call: Call, request: AssignWorkspace) -> Done:
    task = task_to_write(call, request.task_id)
    space = find_workspace(call.work, request.workspace_id)
    workflow = workflow_of(call.work, task)
    check_open(workflow, starting=False)
    put_into(call.work, workflow, task, space)
    return Done(True)


_SPACE = {"workflow_id": "wf_1", "path": "/srv/copies/one", "branch": "fix/one", "base_branch": "main"}
_MADE = (*PLANNED, ("workspace_create", _SPACE))
_MERGED = (*_MADE, ("workspace_update", {"id": "ws_1", "status": "merged", "merge_commit": "4f1c"}))
_OTHER = (*_MADE, ("workflow_create", {**CREATED[0][1], "name": "Other"}))
_WORKED_IN = (
    *PLANNED,
    ("workspace_create", {**_SPACE, "task_ids": ["task_1"]}),
    *HELD[len(PLANNED) :],
)
_UNKNOWN_WORKFLOW = "an unknown workflow is refused"
_UNKNOWN_SPACE = "an unknown workspace is refused"
_OTHERS = "a task that another holds is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="workspace_create",
        toolset=WORKSPACE,
        effect=Effect.WRITE,
        stored=True,
        summary="Records a worktree for parallel work, or creates one",
        request=CreateWorkspace,
        response=CreatedWorkspace,
        prepare=make_worktree,
        handler=workspace_create,
        refusals=(RunNotFound, TaskNotFound, WorkflowClosed, WorktreeRefused, InvalidPlan, ClaimHeld),
        examples=(
            Example(
                title="a worktree that its owner manages is only recorded",
                given=PLANNED,
                request={**_SPACE, "task_ids": ["task_1"]},
                response={"id": "ws_...", "path": "/srv/copies/one", "branch": "fix/one"},
            ),
            Example(title="a place that is taken is refused", given=_MADE, request=_SPACE, refused=WorktreeRefused),
            Example(title=_UNKNOWN_WORKFLOW, request=_SPACE, refused=RunNotFound),
            Example(
                title="an unknown task is refused",
                given=PLANNED,
                request={**_SPACE, "task_ids": ["task_9"]},
                refused=TaskNotFound,
            ),
            Example(
                title="a task of another workflow is refused",
                given=_OTHER,
                request={**_SPACE, "workflow_id": "wf_2", "path": "/srv/copies/two", "task_ids": ["task_1"]},
                refused=InvalidPlan,
            ),
            Example(
                title="a workflow that has ended is refused", given=ABANDONED, request=_SPACE, refused=WorkflowClosed
            ),
            Example(title=_OTHERS, given=HELD, request={**_SPACE, "task_ids": ["task_1"]}, refused=ClaimHeld),
        ),
    ),
    Operation(
        name="workspace_update",
        toolset=WORKSPACE,
        effect=Effect.DESTRUCTIVE,
        stored=True,
        summary="Ends a workspace: merged or abandoned; its commits stay",
        request=UpdateWorkspace,
        response=UpdatedWorkspace,
        prepare=let_git_do_it,
        handler=workspace_update,
        refusals=(WorkspaceNotFound, IllegalTransition, ClaimHeld, WorktreeRefused, SettingNotTrusted),
        examples=(
            Example(
                title="a merge that its owner made is recorded",
                given=_MADE,
                request={"id": "ws_1", "status": "merged", "merge_commit": "4f1c"},
                response={"success": True, "status": "merged", "merge_commit": "4f1c"},
            ),
            Example(
                title="what is merged stays merged",
                given=_MERGED,
                request={"id": "ws_1", "status": "abandoned"},
                refused=IllegalTransition,
            ),
            Example(title=_UNKNOWN_SPACE, request={"id": "ws_9", "status": "merged"}, refused=WorkspaceNotFound),
            Example(
                title="where another works at a task nothing is ended",
                given=_WORKED_IN,
                request={"id": "ws_1", "status": "abandoned"},
                refused=ClaimHeld,
            ),
            Example(
                title="what git cannot merge is refused",
                given=_MADE,
                request={"id": "ws_1", "status": "merged", "merge": True},
                refused=WorktreeRefused,
            ),
            Example(
                title="checks that came with the repository wait for trust, and nothing is merged unchecked",
                given=_MADE,
                files={".handrail/config.toml": '[checks]\ntests = ["pytest"]\n'},
                request={"id": "ws_1", "status": "merged", "merge": True},
                refused=SettingNotTrusted,
            ),
        ),
    ),
    Operation(
        name="workspace_list",
        toolset=WORKSPACE,
        effect=Effect.READ,
        stored=True,
        summary="Lists a workflow's workspaces: state, foreseen conflicts, merge order",
        request=ListWorkspaces,
        response=WorkspacesFound,
        prepare=look_at_worktrees,
        handler=workspace_list,
        refusals=(RunNotFound,),
        examples=(
            Example(
                title="those that are active, without asking git",
                given=(*_MADE, ("task_assign_workspace", {"task_id": "task_1", "workspace_id": "ws_1"})),
                request={"workflow_id": "wf_1", "status": ["active"], "look": False},
                response={"workspaces": [{"id": "ws_1", "branch": "fix/one", "task_ids": ["task_1"]}]},
            ),
            Example(title=_UNKNOWN_WORKFLOW, request={"workflow_id": "wf_9"}, refused=RunNotFound),
        ),
    ),
    Operation(
        name="task_assign_workspace",
        toolset=WORKSPACE,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Assigns a task to a workspace",
        request=AssignWorkspace,
        response=Done,
        handler=task_assign_workspace,
        refusals=(TaskNotFound, WorkspaceNotFound, WorktreeRefused, WorkflowClosed, InvalidPlan, ClaimHeld),
        examples=(
            Example(
                title="a task is put into a workspace",
                given=_MADE,
                request={"task_id": "task_1", "workspace_id": "ws_1"},
                response={"success": True},
            ),
            Example(
                title="nothing more is done in one that is merged",
                given=_MERGED,
                request={"task_id": "task_1", "workspace_id": "ws_1"},
                refused=WorktreeRefused,
            ),
            Example(
                title="a workspace of another workflow is refused",
                given=(*_OTHER, ("workspace_create", {**_SPACE, "workflow_id": "wf_2", "path": "/srv/copies/two"})),
                request={"task_id": "task_1", "workspace_id": "ws_2"},
                refused=InvalidPlan,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=(*_MADE, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"})),
                request={"task_id": "task_1", "workspace_id": "ws_1"},
                refused=WorkflowClosed,
            ),
            Example(
                title="an unknown task is refused",
                given=_MADE,
                request={"task_id": "task_9", "workspace_id": "ws_1"},
                refused=TaskNotFound,
            ),
            Example(
                title=_UNKNOWN_SPACE,
                given=PLANNED,
                request={"task_id": "task_1", "workspace_id": "ws_9"},
                refused=WorkspaceNotFound,
            ),
            Example(
                title=_OTHERS,
                given=(*HELD, ("workspace_create", _SPACE)),
                request={"task_id": "task_1", "workspace_id": "ws_1"},
                refused=ClaimHeld,
            ),
        ),
    ),
)

"""Toolset `journal`: journal.md's six tools. What was done, what was decided, exactly what changed.

Journalled tasks are tasks and their notes are checkpoints, so plans, context bundles and the page show them too. The
tracker (`domain/journal/ports.py`) looks at the working copy; the plan's rules move a task.
"""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

import msgspec

from handrail.domain.claims.claim import check_writer
from handrail.domain.journal import journal
from handrail.domain.journal.journal import Beginning, Ending
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.lookup import find_task, find_workflow
from handrail.domain.work.transitions import check_open
from handrail.domain.work.workflow import Workflow
from handrail.kernel.clock import iso_time
from handrail.kernel.errors import (
    ClaimHeld,
    IllegalTransition,
    InvalidParams,
    InvalidPlan,
    RunNotFound,
    SettingNotTrusted,
    TaskBlocked,
    TaskNotFound,
    TasksOpen,
    WorkflowClosed,
)
from handrail.operation import Call, Effect, Example, Operation
from handrail.toolsets.here import may_finish, task_to_write
from handrail.toolsets.journal.shapes import (
    CompletedTask,
    CompleteTask,
    LogDecision,
    Logged,
    LogIssue,
    LogMilestone,
    StartedTask,
    StartedWorkflow,
    StartTask,
    StartWorkflow,
)
from handrail.toolsets.plan.workflow import HELD
from handrail.toolsets.vocabulary import JOURNAL


def start_workflow(call: Call, request: StartWorkflow) -> StartedWorkflow:
    now = call.work.now_ms()
    steps = [{"step": step.step, "goal": step.goal} for step in request.plan]
    workflow = Workflow(
        id=call.work.new_id("wf"),
        name=request.name,
        status="ready",
        source_type="prompt",
        source_ref=None,
        source_content=request.description or request.name,
        repository_path=call.here.repository,
        plan={"summary": "", "approach": "", "steps": steps} if steps else None,
        max_parallel_tasks=1,
        auto_create_workspaces=False,
        created_at=now,
        updated_at=now,
    )
    call.work.record("workflow.created", workflow)
    return StartedWorkflow(workflow.id, iso_time(now))


def look_before(call: Call, request: StartTask) -> Beginning:
    """The working copy as the task finds it."""
    workflow = call.ledger.run(journal.LOOKING, lambda unit: find_workflow(unit, request.workflow_id))
    directory = request.directory or _where_done(call, workflow)
    if not PurePath(directory).is_absolute():
        raise InvalidParams(f"directory must be absolute, not {directory}", hint="give the working copy's whole path")
    check_open(workflow, starting=False)
    return Beginning(call.world.tracker().snapshot(directory))


def _where_done(call: Call, workflow: Workflow) -> str:
    """The working copy the call is made in; for a workflow of another repository, that repository."""
    elsewhere = workflow.repository_path
    return call.here.folder if elsewhere in (None, call.here.repository) else str(elsewhere)


def start_task(call: Call, request: StartTask) -> StartedTask:
    workflow = find_workflow(call.work, request.workflow_id)
    parent = find_task(call.work, request.parent_task_id) if request.parent_task_id is not None else None
    if (known := journal.to_take_up(call.work, workflow.id, request.name)) is not None:
        check_writer(call.work, known, call.writer, call.crew)
    beginning: Beginning = call.prepared
    work = journal.Intent(request.name, request.goal, list(request.areas), request.plan_step)
    task, warnings = journal.begin(call.work, workflow, beginning, work, parent)
    snapshot = beginning.snapshot
    return StartedTask(task.id, snapshot.shown_id, snapshot.kind, iso_time(call.work.now_ms()), tuple(warnings))


def log_decision(call: Call, request: LogDecision) -> Logged:
    task = task_to_write(call, request.task_id)
    detail = {
        "category": request.category,
        "question": request.question,
        "options_considered": list(request.options_considered),
        "chosen": request.chosen,
        "reasoning": request.reasoning,
        "trade_offs": request.trade_offs,
        "supersedes": request.supersedes,
    }
    summary = f"{request.question} {request.chosen}: {request.reasoning}"
    return _logged(*journal.note(call.work, task, "decision", summary, _without_none(detail)))


def log_issue(call: Call, request: LogIssue) -> Logged:
    task = task_to_write(call, request.task_id)
    detail = {
        "type": request.type,
        "description": request.description,
        "resolution": request.resolution,
        "requires_human_review": request.requires_human_review,
    }
    summary = f"{request.description} Resolved: {request.resolution}"
    review = f"{task.name}: {request.description}" if request.requires_human_review else None
    return _logged(*journal.note(call.work, task, "error", summary, detail, review=review))


def log_milestone(call: Call, request: LogMilestone) -> Logged:
    task = task_to_write(call, request.task_id)
    detail = {"milestone": True, "progress": request.progress, "metadata": request.metadata or None}
    return _logged(*journal.note(call.work, task, "progress", request.message, _without_none(detail)))


def look_after(call: Call, request: CompleteTask) -> Ending:
    """The working copy as the task leaves it, what changed, and the results of the project's checks."""
    status = journal.ends_as(request.status)
    standing = call.ledger.run(
        journal.LOOKING, lambda unit: journal.check_ending(unit, find_task(unit, request.task_id), status)
    )
    checks = call.world.checks().run(standing.directory or call.here.folder) if request.verify else None
    return journal.look_after(call.world.tracker(), standing, checks)


def complete_task(call: Call, request: CompleteTask) -> CompletedTask:
    task = task_to_write(call, request.task_id)
    claims = journal.OutcomeClaims(
        status=request.status,
        outcome=msgspec.to_builtins(request.outcome),
        metadata=_without_none(msgspec.to_builtins(request.metadata)),
        checks=msgspec.to_builtins(request.checks),
    )
    done = journal.complete(call.work, task, call.prepared, claims, may_finish)
    shown = journal.shown_files(done.report)
    return CompletedTask(
        task_id=task.id,
        duration_seconds=done.duration_s,
        files_changed=shown.files,
        verification=done.verification,
        renamed=done.report["renamed"][: journal.SHOWN_FILES],
        external=done.report["external"][: journal.SHOWN_FILES],
        overlaps=done.report["overlaps"],
        checks=done.report["checks"],
        review_id=done.review_id,
        files_left_out=shown.left_out,
        partial=done.report["partial"],
    )


def _logged(checkpoint: Checkpoint, warnings: list[str]) -> Logged:
    return Logged(checkpoint.id, checkpoint.task_id, iso_time(checkpoint.created_at), tuple(warnings))


def _without_none(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


_WORKFLOW = (("start_workflow", {"name": "Add authentication"}),)
_TASK = {"workflow_id": "wf_1", "name": "Setup JWT middleware", "goal": "Verify JWT tokens", "areas": ["auth"]}
_STARTED = (*_WORKFLOW, ("start_task", _TASK))
_OUTCOME = {"summary": "JWT middleware created and tested", "achievements": ["Tests pass"], "limitations": []}
_COMPLETE = {"task_id": "task_1", "status": "success", "outcome": _OUTCOME}
_COMPLETED = (*_STARTED, ("complete_task", _COMPLETE))
_UNKNOWN = "an unknown task is refused"
_OTHERS = "a task that another holds is refused"
_CLAIMED = (*HELD[:-1], ("task_claim", {"task_id": "task_1", "agent_id": "ag_1"}))
_OVER = "a task that is over is refused"

OPERATIONS: tuple[Operation[Any, Any], ...] = (
    Operation(
        name="start_workflow",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        stored=True,
        summary="Initialize a new workflow tracking session",
        request=StartWorkflow,
        response=StartedWorkflow,
        handler=start_workflow,
        examples=(
            Example(
                title="a workflow with a plan in words",
                request={
                    "name": "Migration NextAuth v5",
                    "plan": [{"step": "1", "goal": "Install NextAuth v5"}],
                },
                response={"workflow_id": "wf_...", "created_at": "...Z"},
            ),
        ),
    ),
    Operation(
        name="start_task",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        stored=True,
        summary="Start a new task and create a Git snapshot",
        request=StartTask,
        response=StartedTask,
        handler=start_task,
        prepare=look_before,
        refusals=(RunNotFound, TaskNotFound, WorkflowClosed, InvalidPlan, TaskBlocked, ClaimHeld),
        examples=(
            Example(
                title="a task begins with what is there",
                given=_WORKFLOW,
                request=_TASK,
                response={"task_id": "task_...", "snapshot_type": "checksum", "warnings": []},
            ),
            Example(title="an unknown workflow is refused", request=_TASK, refused=RunNotFound),
            Example(
                title="an unknown parent is refused",
                given=_WORKFLOW,
                request={**_TASK, "parent_task_id": "task_9"},
                refused=TaskNotFound,
            ),
            Example(
                title="a part of a task that is over is refused",
                given=_COMPLETED,
                request={**_TASK, "parent_task_id": "task_1", "name": "more"},
                refused=InvalidPlan,
            ),
            Example(
                title="a workflow that has ended is refused",
                given=(*_WORKFLOW, ("workflow_update_status", {"id": "wf_1", "status": "abandoned"})),
                request=_TASK,
                refused=WorkflowClosed,
            ),
            Example(
                title="a task of the plan that waits for another is refused",
                given=(
                    *_WORKFLOW,
                    (
                        "workflow_add_tasks",
                        {
                            "id": "wf_1",
                            "tasks": [
                                {"name": "first", "description": "-", "sequence": 1},
                                {"name": "second", "description": "-", "sequence": 2, "depends_on": ["first"]},
                            ],
                        },
                    ),
                ),
                request={**_TASK, "name": "second"},
                refused=TaskBlocked,
            ),
            Example(
                title=_OTHERS,
                given=_CLAIMED,
                request={"workflow_id": "wf_1", "name": "wrap", "goal": "-", "areas": []},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="log_decision",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        stored=True,
        summary="Log an important architectural decision",
        request=LogDecision,
        response=Logged,
        handler=log_decision,
        refusals=(TaskNotFound, IllegalTransition, ClaimHeld),
        examples=(
            Example(
                title="a library was chosen",
                given=_STARTED,
                request={
                    "task_id": "task_1",
                    "category": "library_choice",
                    "question": "Which JWT library?",
                    "options_considered": ["jsonwebtoken", "jose"],
                    "chosen": "jose",
                    "reasoning": "It is maintained and typed",
                },
                response={"task_id": "task_1", "warnings": []},
            ),
            Example(
                title=_UNKNOWN,
                request={
                    "task_id": "task_9",
                    "category": "other",
                    "question": "?",
                    "chosen": "-",
                    "reasoning": "-",
                },
                refused=TaskNotFound,
            ),
            Example(
                title=_OVER,
                given=_COMPLETED,
                request={
                    "task_id": "task_1",
                    "category": "other",
                    "question": "?",
                    "chosen": "-",
                    "reasoning": "-",
                },
                refused=IllegalTransition,
            ),
            Example(
                title=_OTHERS,
                given=HELD,
                request={"task_id": "task_1", "category": "other", "question": "?", "chosen": "-", "reasoning": "-"},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="log_issue",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        stored=True,
        summary="Log an issue encountered during execution",
        request=LogIssue,
        response=Logged,
        handler=log_issue,
        refusals=(TaskNotFound, IllegalTransition, ClaimHeld),
        examples=(
            Example(
                title="documentation was missing",
                given=_STARTED,
                request={
                    "task_id": "task_1",
                    "type": "documentation_gap",
                    "description": "The callbacks are not documented",
                    "resolution": "Used the official examples",
                },
                response={"task_id": "task_1", "warnings": []},
            ),
            Example(
                title=_UNKNOWN,
                request={"task_id": "task_9", "type": "other", "description": "-", "resolution": "-"},
                refused=TaskNotFound,
            ),
            Example(
                title=_OVER,
                given=_COMPLETED,
                request={"task_id": "task_1", "type": "other", "description": "-", "resolution": "-"},
                refused=IllegalTransition,
            ),
            Example(
                title=_OTHERS,
                given=HELD,
                request={"task_id": "task_1", "type": "other", "description": "-", "resolution": "-"},
                refused=ClaimHeld,
            ),
        ),
    ),
    Operation(
        name="log_milestone",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        stored=True,
        summary="Log a milestone for real-time UI updates",
        request=LogMilestone,
        response=Logged,
        handler=log_milestone,
        refusals=(TaskNotFound, IllegalTransition, ClaimHeld),
        examples=(
            Example(
                title="tests are running",
                given=_STARTED,
                request={"task_id": "task_1", "message": "Running tests...", "progress": 75},
                response={"task_id": "task_1", "warnings": []},
            ),
            Example(title=_UNKNOWN, request={"task_id": "task_9", "message": "-"}, refused=TaskNotFound),
            Example(
                title=_OVER, given=_COMPLETED, request={"task_id": "task_1", "message": "-"}, refused=IllegalTransition
            ),
            Example(title=_OTHERS, given=HELD, request={"task_id": "task_1", "message": "-"}, refused=ClaimHeld),
        ),
    ),
    Operation(
        name="complete_task",
        toolset=JOURNAL,
        effect=Effect.WRITE,
        idempotent=True,
        stored=True,
        summary="Complete a task and compute file changes via Git diff",
        request=CompleteTask,
        response=CompletedTask,
        handler=complete_task,
        prepare=look_after,
        refusals=(TaskNotFound, IllegalTransition, TasksOpen, ClaimHeld, SettingNotTrusted),
        examples=(
            Example(
                title="a task that changed nothing stayed in scope",
                given=_STARTED,
                request=_COMPLETE,
                response={
                    "task_id": "task_1",
                    "files_changed": {"added": [], "modified": [], "deleted": []},
                    "verification": {"scope_match": True, "unexpected_files": [], "warnings": []},
                },
            ),
            Example(title=_UNKNOWN, request={**_COMPLETE, "task_id": "task_9"}, refused=TaskNotFound),
            Example(title=_OVER, given=_COMPLETED, request=_COMPLETE, refused=IllegalTransition),
            Example(
                title="a task with open parts is refused",
                given=(
                    *_STARTED,
                    ("start_task", {**_TASK, "name": "part", "parent_task_id": "task_1"}),
                ),
                request=_COMPLETE,
                refused=TasksOpen,
            ),
            Example(title=_OTHERS, given=HELD, request=_COMPLETE, refused=ClaimHeld),
            Example(
                title="checks that came with the repository wait for the person's trust",
                given=_STARTED,
                files={".handrail/config.toml": '[checks]\ntests = ["pytest"]\n'},
                request={**_COMPLETE, "verify": True},
                refused=SettingNotTrusted,
            ),
        ),
    ),
)

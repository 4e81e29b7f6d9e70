"""`handrail worktrees`: the working copies of parallel tasks for people: their state, what will not merge, their size,
and cleaning up, which says first what it would do."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import msgspec

from handrail.catalog import operation_named
from handrail.domain.journal.journal import LOOKING
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.lifecycle import end_workspace, find_workspace, in_order, tasks_of, waits_for
from handrail.domain.workspaces.records import Workspace
from handrail.domain.workspaces.worktrees import Removal, WorktreeState
from handrail.kernel.errors import ClaimHeld, WorkspaceNotFound, WorktreeRefused
from handrail.kernel.records import Query
from handrail.operation import Call
from handrail.surfaces.cli import completions
from handrail.surfaces.cli.chosen import looking_call
from handrail.surfaces.cli.columns import bold, columns, counted, dim, fit, one_line, spoken_bytes, width, wrapped
from handrail.surfaces.cli.options import ListFirst, common_options, person, place_of, settings_of
from handrail.surfaces.cli.progress import progress
from handrail.surfaces.cli.render import echo_json, echo_lines
from handrail.surfaces.invocation import invoke
from handrail.toolsets.plan.workspace import WorkspaceReading, read_workspaces, shown_clash
from handrail.wiring import assemble

MOST = 500
SHOWN_FILES = 5


class ListedWorkspaces(NamedTuple):
    """The workspaces of this repository, with their workflows and task names."""

    spaces: list[Workspace]
    workflows: dict[str, str]
    tasks: dict[str, list[str]]
    before: dict[str, tuple[str, ...]]


@click.group(cls=ListFirst)
def worktrees() -> None:
    """Show, merge and clean up worktrees; no commit is ever lost. Without a command, list them."""


@worktrees.command("list")
@click.option("--all", "everything", is_flag=True, help="Include those that are merged or abandoned.")
@common_options
def list_(everything: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """List worktrees with their state, conflicts and disk use."""
    call = looking_call(place_of(root), {**options, "profile": "all"})
    found = _read_worktrees(call, everything=everything)
    seen = read_workspaces(call, call.here.repository, found.spaces) if found.spaces else WorkspaceReading({})
    if as_json:
        echo_json(_document(found, seen))
        return
    echo_lines(_lines(found, seen, columns()))


@worktrees.command()
@click.argument("workspace", required=False, shell_complete=completions.workspaces)
@common_options
def merge(workspace: str | None, root: Path | None, as_json: bool, **options: Any) -> None:
    """Merge WORKSPACE, or every active one in order.

    Those that others build on come first. The project's checks run on each result before it counts. It stops at the
    first conflict or failed check; what was merged before stays merged.
    """
    call = _call(root, options)
    if workspace is not None:
        order = [workspace]
    else:
        found = _read_worktrees(call, everything=False)
        order = [space.id for space in in_order(found.spaces, found.before)]
    update = operation_named("workspace_update")
    assert update is not None, "the catalog has it"
    done: list[dict[str, Any]] = []
    passed_over: list[dict[str, str]] = []
    for number, space_id in enumerate(order):
        try:
            with progress("merging and checking", len(order), quiet=as_json) as tell:
                tell(number)
                answer = invoke(update, call, {"id": space_id, "status": "merged", "merge": True}, actor=person())
        except (ClaimHeld, WorktreeRefused) as refusal:
            if workspace is None and (isinstance(refusal, ClaimHeld) or "base branch" in refusal.message):
                passed_over.append({"id": space_id, "because": refusal.message})
                if not as_json:
                    echo_lines(wrapped(f"passed over {space_id}: {refusal.message}", columns()))
                continue
            if as_json:
                echo_json({"merged": done})
            raise
        done.append({"id": space_id, **answer})
        if not as_json:
            click.echo(f"merged {space_id} as {answer['merge_commit'][:12]}")
    if as_json:
        echo_json({"merged": done, "passed_over": passed_over})
    elif not done and not passed_over:
        click.echo("There is nothing to merge.")


@worktrees.command()
@click.option("--yes", is_flag=True, help="Do it. Without this, only say what it would do.")
@click.option(
    "--ignored", is_flag=True, help="Also remove folders with files that git ignores; those files are deleted."
)
@common_options
def clean(yes: bool, ignored: bool, root: Path | None, as_json: bool, **options: Any) -> None:
    """Remove the folders of merged or abandoned worktrees.

    Only says what it would do, unless --yes is given. Nothing is lost: uncommitted work is committed to its branch
    first, and a branch is deleted only when its base has all of it.
    """
    call = _call(root, options)
    found = _read_worktrees(call, everything=True)
    trees = call.world.worktrees(call.here.repository)
    over = [space for space in found.spaces if space.status != "active" and space.managed]
    there = trees.look({space.path: space.base_branch for space in over}) if over else {}
    over = [space for space in over if there[space.path].exists]
    done: list[tuple[Workspace, Removal]] = []
    with progress("clearing up" if yes else "looking", len(over), quiet=as_json) as tell:
        for space in over:
            tell(len(done))
            whole = space.status == "merged"
            removal = trees.remove(
                space.path, base=space.base_branch, delete_branch=whole, ignored=ignored, dry_run=not yes
            )
            done.append((space, removal))
    if as_json:
        echo_json([{"id": space.id, **msgspec.to_builtins(removal)} for space, removal in done])
        return
    if not done:
        click.echo("There is nothing to clear up.")
    for space, removal in done:
        echo_lines(wrapped(_removal_words(space, removal, yes=yes), columns()))
    if done and not yes:
        click.echo("Nothing was done. `handrail worktrees clean --yes` does it.")


@worktrees.command()
@click.argument("workspace", shell_complete=completions.workspaces)
@common_options
def abandon(workspace: str, root: Path | None, as_json: bool, **options: Any) -> None:
    """Give up WORKSPACE. Its branch and folder stay; `clean` removes the folder."""
    call = _call(root, options)

    def end(space_id: str) -> Workspace:
        return call.ledger.run(person(), lambda unit: end_workspace(unit, find_workspace(unit, space_id), "abandoned"))

    try:
        space = end(workspace)
    except WorkspaceNotFound as unknown:
        hint = "`handrail worktrees` lists those there are"
        raise WorkspaceNotFound(unknown.message, hint=hint, **unknown.details) from None
    if as_json:
        echo_json({"id": space.id, "status": space.status})
    else:
        click.echo(f"{space.id} is abandoned; its work stays on the branch {one_line(space.branch)}.")


def _call(root: Path | None, options: dict[str, Any]) -> Call:
    place = place_of(root)
    return assemble(place, settings_of(place, {**options, "profile": "all"})).call


def _read_worktrees(call: Call, *, everything: bool) -> ListedWorkspaces:
    return call.ledger.run(
        LOOKING, lambda unit: _worktrees_in(msgspec.structs.replace(call, unit=unit), everything=everything)
    )


def _worktrees_in(call: Call, *, everything: bool) -> ListedWorkspaces:
    conditions: tuple[tuple[str, Any], ...] = () if everything else (("status", "active"),)
    newest = call.work.select(Workspace, Query(conditions, ("-created_at", "-id"), MOST))
    workflows = {space.workflow_id: call.work.get(Workflow, space.workflow_id) for space in newest}
    here = [space for space in newest if _is_here(call, workflows[space.workflow_id])]
    active = [space for space in here if space.status == "active"]
    names = {key: workflow.name for key, workflow in workflows.items() if workflow is not None}
    tasks = {space.id: [task.name for task in tasks_of(call.work, space.id)] for space in here}
    return ListedWorkspaces(here, names, tasks, waits_for(call.work, active))


def _is_here(call: Call, workflow: Workflow | None) -> bool:
    repository = workflow.repository_path if workflow is not None else None
    return not call.here.shared or repository == call.here.repository


def _document(found: ListedWorkspaces, seen: WorkspaceReading) -> dict[str, Any]:
    return {
        "workspaces": [
            {
                **msgspec.to_builtins(space),
                "tasks": found.tasks[space.id],
                "state": msgspec.to_builtins(seen.looked.get(space.path)),
                "merge_after": list(found.before.get(space.id, ())),
            }
            for space in found.spaces
        ],
        "conflicts": [shown_clash(clash) for clash in seen.clashes],
        "problem": seen.problem,
    }


def _lines(found: ListedWorkspaces, seen: WorkspaceReading, room: int) -> Iterator[str]:
    if not found.spaces:
        yield "There is no worktree here. An agent makes one with workspace_create."
        return
    branches = {space.id: space.branch for space in found.spaces}
    for space in found.spaces:
        looked = seen.looked.get(space.path)
        yield from _title_lines(space.branch, f"{space.status}{_ahead_and_behind(space, looked)}", room)
        yield from (dim(line) for line in wrapped(space.path, room, "  "))
        yield f"  {fit(', '.join(found.tasks[space.id]) or found.workflows[space.workflow_id], room - 2)}"
        for line in _state(looked):
            yield from wrapped(line, room, "  ")
        if first := found.before.get(space.id):
            yield f"  merge after {', '.join(one_line(branches.get(other, other)) for other in first)}"
        yield dim(f"  {space.id}")
    for clash in seen.clashes:
        one, other = (one_line(branches.get(side, side)) or "its base" for side in (clash.one, clash.other))
        paths = ", ".join(map(one_line, clash.paths[:SHOWN_FILES]))
        yield from wrapped(f"{one} and {other} will not merge: {paths}", room)
    if seen.problem:
        yield from wrapped(f"git could not be asked: {seen.problem}", room)


def _title_lines(name: str, about: str, room: int) -> Iterator[str]:
    """A name and what to say about it, on one line if both fit."""
    line = one_line(name)
    if width(line) + 2 + width(about) <= room:
        yield f"{bold(line)}  {about}"
    else:
        yield bold(fit(line, room))
        yield from wrapped(about, room, "  ")


def _ahead_and_behind(space: Workspace, looked: WorktreeState | None) -> str:
    if looked is None or not looked.exists:
        return ""
    return f", {looked.ahead} ahead and {looked.behind} behind {one_line(space.base_branch or 'its base')}"


def _state(looked: WorktreeState | None) -> Iterator[str]:
    if looked is None:
        return
    if not looked.exists:
        yield "the folder is gone"
    if looked.dirty_count:
        names = ", ".join(map(one_line, looked.dirty[:SHOWN_FILES]))
        yield f"{counted(looked.dirty_count, 'file')} not committed: {names}"
    if looked.bytes_used is not None:
        ignored = f", {counted(looked.ignored_count, 'file')} of it ignored by git" if looked.ignored_count else ""
        yield f"{spoken_bytes(looked.bytes_used)} on disk{ignored}"
    if looked.problem:
        yield looked.problem


def _removal_words(space: Workspace, removal: Removal, *, yes: bool) -> str:
    """What was done with one worktree, or would be."""
    if removal.kept_because:
        return f"{space.branch} {'stays' if yes else 'would stay'}: {removal.kept_because}"
    words = [f"{space.branch}: the folder {'is gone' if yes else 'would go'}"]
    if removal.bytes_freed:
        words.append(f"{spoken_bytes(removal.bytes_freed)} {'freed' if yes else 'would be freed'}")
    if removal.ignored_files:
        ignored = counted(removal.ignored_files, "ignored file")
        words.append(f"{ignored} {'went' if yes else 'would go'} with it")
    if removal.kept_commit:
        words.append(f"what was not committed is on the branch as {removal.kept_commit[:12]}")
    branch = "its branch too, which is merged" if removal.branch_deleted else "its branch stays"
    return "; ".join((*words, branch))

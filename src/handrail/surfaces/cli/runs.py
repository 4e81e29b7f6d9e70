"""Runs of pipelines, for the commands that speak of them: which one a person means, and where it stands, in words.

No command lives here, and nothing is printed.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from handrail.domain.pipeline.asking import SPECS
from handrail.domain.pipeline.engine import BUDGET
from handrail.domain.pipeline.gatekeeping import open_gate
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import find_run, run_at, why_stopped
from handrail.domain.pipeline.state import present_phase
from handrail.domain.pipeline.steering import name_in
from handrail.kernel.errors import InvalidParams, RunNotFound, SeveralOpen
from handrail.kernel.query import Query
from handrail.kernel.records import UnitOfWork
from handrail.operation import Call
from handrail.surfaces.cli.columns import one_line

LOOKED_THROUGH = 500
"""Runs that are looked through for a part of a name."""
SHOWN = 10


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run stands."""

    workspace: str
    title: str
    flow: str
    phase: str | None
    """The phase it is at, or that comes next; None once it is over."""
    label: str | None
    under_way: bool
    """Whether the phase was handed out."""
    ended: str | None
    stopped: str | None
    waits_at: str | None
    gate_id: str | None


def workspace_of(text: str) -> str:
    """The workspace that somebody names by it, or by its folder alone."""
    text = text.rstrip("/")
    return text if text.startswith(f"{SPECS}/") else f"{SPECS}/{text}"


def run_meant(call: Call, text: str) -> PipelineRun:
    """The run a person means: by its workspace or the folder's name, by its workflow's id, by the name without the day,
    or by the last words of it where no other run ends so."""
    text = text.encode(errors="replace").decode().rstrip("/")
    call.specs(call.here.repository)  # what a run is read back into is made known there
    exact = run_at(call.work, call.here.repository, workspace_of(text))
    if exact is not None:
        return exact
    newest = Query((("repository_path", call.here.repository),), ("-updated_at", "-id"), LOOKED_THROUGH)
    runs = call.work.select(PipelineRun, newest)
    for fits in _WAYS:
        found = [run for run in runs if text and fits(run, text)]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f'{run.workspace} ("{one_line(run.title)}")' for run in found[:SHOWN])
            raise SeveralOpen(f"{one_line(text)} could mean any of {len(found)} runs", hint=f"say which: {listed}")
    return _unknown(call, workspace_of(text))


def _unknown(call: Call, workspace: str) -> PipelineRun:
    """Raises RunNotFound; for a workspace that was copied here, with the way to take it over."""
    try:
        copied = call.specs(call.here.repository).state(workspace) is not None
    except InvalidParams:  # no name of a workspace at all
        copied = False
    if copied:
        raise RunNotFound(
            f"{workspace} is there, but no run of it is known here; it may have been copied",
            hint=f"`handrail pipeline import {workspace}` takes it over",
            workspace=workspace,
        )
    return find_run(call.work, call.here.repository, workspace)


def fits_run(run: PipelineRun, text: str) -> bool:
    """Whether a run can be meant by this, in any of the ways there are."""
    text = text.rstrip("/")
    return run.workspace == workspace_of(text) or any(fits(run, text) for fits in _WAYS)


def _by_id(run: PipelineRun, text: str) -> bool:
    return run.id == text


def _by_name(run: PipelineRun, text: str) -> bool:
    return name_in(run.workspace) == text


def _by_last_words(run: PipelineRun, text: str) -> bool:
    return run.workspace.endswith(f"-{text.removeprefix('-')}")


_WAYS: tuple[Callable[[PipelineRun, str], bool], ...] = (_by_id, _by_name, _by_last_words)
"""The surest first."""


def standing(unit: UnitOfWork, run: PipelineRun) -> Standing:
    flow, state, gate = run.flow_followed(), run.run_state(), open_gate(unit, run.id)
    handed_out = run.action_handed_out()
    present = present_phase(flow, state, run.facts(humans_decide=False)) if state.ended is None else None
    if state.ended is None and handed_out is not None and flow.knows(handed_out.phase):
        present = flow.phase(handed_out.phase)
    return Standing(
        workspace=run.workspace,
        title=run.title,
        flow=run.flow["name"],
        phase=present.id if present is not None else None,
        label=present.label if present is not None else None,
        under_way=handed_out is not None,
        ended=state.ended,
        stopped=why_stopped(unit, run) if state.ended is None else None,
        waits_at=gate.question if gate is not None else None,
        gate_id=gate.id if gate is not None else None,
    )


def spoken(one: Standing) -> str:
    """Where a run stands, as the end of a sentence about it."""
    if one.ended is not None:
        return one.ended
    if one.waits_at is not None:
        return f"waits for you at {one.waits_at}{f', {one.stopped}' if one.stopped else ''}"
    if one.stopped is not None:
        return f"stands still ({one.stopped}){f' before {one.phase}' if one.phase else ''}"
    if one.phase is None:
        return "at its end"
    return f"at {one.phase}" if one.under_way else f"before {one.phase}"


def run_sentence(unit: UnitOfWork, workflow_id: str) -> str | None:
    """How the run of a workflow stands and what would move it; None for a workflow that is no run."""
    run = unit.get(PipelineRun, workflow_id)
    if run is None:
        return None
    one = standing(unit, run)
    words = f"The pipeline {one.flow} {_as_verb(one)}"
    if one.waits_at is not None:
        return f"{words}: `handrail approve {one.workspace.removeprefix(f'{SPECS}/')}` shows it and asks."
    if one.stopped is not None:
        more = " --limit …" if one.stopped == BUDGET else ""
        return f"{words}: `handrail pipeline resume {one.workspace}{more}`."
    return f"{words}." if one.ended else f"{words}; its agent goes on with pipeline_next_action."


def _as_verb(one: Standing) -> str:
    said = spoken(one)
    label = f" ({one_line(one.label)})" if one.label and one.waits_at is None and one.stopped is None else ""
    return f"{said}{label}" if said.startswith(("waits", "stands")) else f"is {said}{label}"

"""Finds the pipeline run that a person means. `domain/pipeline/run_status.py` says, in words, where a run is.

Contains no command and prints nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from handrail.domain.pipeline.controls import name_in
from handrail.domain.pipeline.request import SPECS
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_status import RunPosition, run_sentence, spoken, standing
from handrail.domain.pipeline.turns import find_run, run_at
from handrail.kernel.errors import InvalidParams, RunNotFound, SeveralOpen
from handrail.kernel.records import Query
from handrail.operation import Call
from handrail.surfaces.cli.columns import one_line
from handrail.surfaces.cli.options import typed_text
from handrail.surfaces.runs import know_runs

__all__ = ["RunPosition", "fits_run", "run_meant", "run_sentence", "spoken", "standing", "workspace_of"]

LOOKED_THROUGH = 500
"""How many runs are searched for part of a name."""
SHOWN = 10


def workspace_of(text: str) -> str:
    """The workspace named by its path or just by its folder."""
    text = text.rstrip("/")
    return text if text.startswith(f"{SPECS}/") else f"{SPECS}/{text}"


def run_meant(call: Call, text: str) -> PipelineRun:
    """The run a person means: by its workspace or the folder's name, by its workflow's id, by the name without the
    date, or by the last words of it if no other run ends like that."""
    text = typed_text(text).rstrip("/")
    know_runs()
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
    return _refuse_unknown(call, workspace_of(text))


def _refuse_unknown(call: Call, workspace: str) -> PipelineRun:
    """Raises RunNotFound; for a workspace that was copied here, with the way to take it over."""
    try:
        copied = call.world.specs(call.here.repository).state(workspace) is not None
    except InvalidParams:  # not the name of a workspace at all
        copied = False
    if copied:
        raise RunNotFound(
            f"{workspace} is there, but no run of it is known here; it may have been copied",
            hint=f"`handrail pipeline import {workspace}` takes it over",
            workspace=workspace,
        )
    return find_run(call.work, call.here.repository, workspace)


def fits_run(run: PipelineRun, text: str) -> bool:
    """Whether this can mean the run, in any of these ways."""
    text = text.rstrip("/")
    return run.workspace == workspace_of(text) or any(fits(run, text) for fits in _WAYS)


def _by_id(run: PipelineRun, text: str) -> bool:
    return run.id == text


def _by_name(run: PipelineRun, text: str) -> bool:
    return name_in(run.workspace) == text


def _by_last_words(run: PipelineRun, text: str) -> bool:
    return run.workspace.endswith(f"-{text.removeprefix('-')}")


_WAYS: tuple[Callable[[PipelineRun, str], bool], ...] = (_by_id, _by_name, _by_last_words)
"""The most certain first."""

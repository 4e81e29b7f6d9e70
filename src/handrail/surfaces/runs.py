"""A person lets a run continue, for every surface a person uses. Documents are read before a unit of work and passed
in; nothing is printed here. What steering does to a run is defined in `domain/pipeline/controls.py`.

The types that a pipeline run is read back into, made known to the validator before several threads use them.
"""

from __future__ import annotations

from collections.abc import Mapping

from handrail.domain.pipeline.controls import Going, resume_run
from handrail.domain.pipeline.engine import UNTIL, Action
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.lessons import Lessons
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import open_gate
from handrail.domain.pipeline.run_status import stop_ahead
from handrail.domain.pipeline.state import RunState
from handrail.domain.pipeline.state_import import CopiedState
from handrail.domain.pipeline.turns import RunRules, facts_of, why_stopped
from handrail.kernel.errors import IllegalTransition
from handrail.kernel.records import UnitOfWork
from handrail.known_types import make_known


def resumed(unit: UnitOfWork, run: PipelineRun, going: Going, files: Mapping[str, str], rules: RunRules) -> PipelineRun:
    """The run as it continues. Raises IllegalTransition, and changes nothing, if it would stop again at once."""
    _check_stands(unit, run, going)
    kept = resume_run(unit, run, going, facts_of(unit, run, rules))
    if (stop := stop_ahead(unit, kept, files, rules)) is not None:
        further = f"--until {stop.before_phase} or a later phase; or --until end"
        raise IllegalTransition(
            f"{kept.workspace} would stop again at once, before {stop.before_phase}: {stop.why}; nothing is changed",
            hint=further if stop.reason == UNTIL else stop.command,
        )
    return kept


def _check_stands(unit: UnitOfWork, run: PipelineRun, going: Going) -> None:
    """Raises IllegalTransition if the run is not stopped and nothing new is asked of it."""
    if going != Going() or run.run_state().ended is not None or why_stopped(unit, run) is not None:
        return
    gate = open_gate(unit, run.id)
    hint = "its agent goes on with pipeline_next_action; --from sends it back to a phase"
    raise IllegalTransition(
        f"{run.workspace} is not stopped{f'; it waits for you at {gate.question}' if gate else ''}",
        hint=f"`handrail approve {gate.id}`, or `handrail reject {gate.id} --say …`" if gate else hint,
    )


def know_runs() -> None:
    make_known(Action, CopiedState, Flow, Lessons, RunState)

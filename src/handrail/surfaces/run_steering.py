"""A person lets a run go on, for every door a person comes through. Documents are read before a unit of work and handed
in; nothing is printed here. What steering does to a run is `domain/pipeline/steering.py`'s."""

from __future__ import annotations

from collections.abc import Mapping

from handrail.domain.pipeline.engine import UNTIL
from handrail.domain.pipeline.gatekeeping import open_gate
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import Rules, facts_of, why_stopped
from handrail.domain.pipeline.steering import Going, resume_run
from handrail.domain.pipeline.stopping import stop_ahead
from handrail.kernel.errors import IllegalTransition
from handrail.kernel.records import UnitOfWork


def resumed(unit: UnitOfWork, run: PipelineRun, going: Going, files: Mapping[str, str], rules: Rules) -> PipelineRun:
    """The run as it goes on. Raises IllegalTransition, and changes nothing, where it would stand where it stood."""
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
    """Raises IllegalTransition where nothing is asked for that the run does not do already."""
    if going != Going() or run.run_state().ended is not None or why_stopped(unit, run) is not None:
        return
    gate = open_gate(unit, run.id)
    hint = "its agent goes on with pipeline_next_action; --from sends it back to a phase"
    raise IllegalTransition(
        f"{run.workspace} does not stand still{f'; it waits for you at {gate.question}' if gate else ''}",
        hint=f"`handrail approve {gate.id}`, or `handrail reject {gate.id} --say …`" if gate else hint,
    )

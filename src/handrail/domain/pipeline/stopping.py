"""Why a run has stopped, in words, and how to resume it: for the agent that drives it, and for a person who resumes it
and needs to know whether that helps. Changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from handrail.domain.pipeline.budget import exceeded, reached, spent
from handrail.domain.pipeline.engine import BUDGET, PAUSED, UNTIL, Action, decide
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.running import Rules, facts_of, limits_of
from handrail.kernel.records import UnitOfWork

_WHY = {
    PAUSED: "it is paused",
    UNTIL: "it has gone as far as it was to go",
    BUDGET: "it has spent what it may",
}


class Stop(NamedTuple):
    """Why one run has stopped."""

    reason: str
    """paused, until or budget."""
    before_phase: str
    why: str
    command: str
    """What a person runs to resume it."""

    @property
    def go_on_with(self) -> str:
        person = f"a person runs: {self.command}"
        return f"pipeline_next_action with until, or: {self.command}" if self.reason == UNTIL else person


def stop_told(run: PipelineRun, action: Action, rules: Rules) -> Stop:
    """Puts an action that says the run has stopped into words."""
    reason = action.stopped or PAUSED
    why, command = _WHY[reason], f"handrail pipeline resume {run.workspace}"
    if reason == BUDGET:
        have, limits = spent(run.log, rules.prices), limits_of(run, rules)
        over = reached(have, limits, "hard")
        why = f"{why}: {exceeded(have, limits, 'hard')}"
        command = " ".join((command, *(f"--limit {name}=N" for name in over)))
        command += f" (N above {', '.join(_plain(amount) for amount in over.values())})"
    return Stop(reason, action.phase, why, command)


def stop_ahead(unit: UnitOfWork, run: PipelineRun, files: Mapping[str, str], rules: Rules) -> Stop | None:
    """Why this run would stop again right away if asked for its next action; None if it would go on."""
    action = decide(run.flow_followed(), run.run_state(), facts_of(unit, run, rules), files)
    return stop_told(run, action, rules) if action.stopped is not None else None


def _plain(amount: float) -> str:
    """An amount in the form an option takes."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")

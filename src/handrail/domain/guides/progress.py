"""Which step is next. A pure function of the guide and of what the caller reports as done; it keeps no state.

It never calls a guide complete while a step is open: if no open step's condition holds, it says which values to set.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from handrail.domain.guides.conditions import Incomparable, describe, holds, value_text, variables
from handrail.domain.guides.definition import Guide, Step
from handrail.kernel.errors import StepNotFound
from handrail.kernel.wording import did_you_mean


class GuideProgress(Struct, frozen=True):
    """The step to do now and what to tell the agent. `step` is None at the end, or if no open step applies."""

    step: Step | None
    prompt: str
    is_complete: bool
    ignored: tuple[str, ...] = ()
    """Ids in completedSteps that this guide does not have."""


def next_step(
    guide: Guide, *, completed: Sequence[str], current: str | None, context: Mapping[str, Any]
) -> GuideProgress:
    """The first open step whose condition holds, but the current one again while that is open and applies."""
    known = {step.id for step in guide.steps}
    here = find_step(guide, current) if current is not None else None
    done = set(completed)
    ignored = tuple(dict.fromkeys(step_id for step_id in completed if step_id not in known))
    notes = _ignored_note(ignored)
    if here is not None and current not in done and _applies(here, context):
        notes = (f'You are still on this step: add "{current}" to completedSteps when it is done.', *notes)
        return _at_step(guide, here, notes, ignored)
    remaining = [step for step in guide.steps if step.id not in done]
    for step in remaining:
        if _applies(step, context):
            return _at_step(guide, step, notes, ignored)
    if remaining:
        return GuideProgress(
            None, _text(_nothing_applies(remaining, context), notes), is_complete=False, ignored=ignored
        )
    return GuideProgress(None, _text("All steps of this guide are done.", notes), is_complete=True, ignored=ignored)


def find_step(guide: Guide, step_id: str) -> Step:
    """The step with this id, or a refusal that lists the existing steps."""
    found = next((step for step in guide.steps if step.id == step_id), None)
    if found is not None:
        return found
    ids = [step.id for step in guide.steps]
    raise StepNotFound(
        f"guide {guide.id} has no step {step_id}{did_you_mean(step_id, ids)}",
        hint=f"its steps: {', '.join(ids)}",
        stepId=step_id,
    )


def _applies(step: Step, context: Mapping[str, Any]) -> bool:
    try:
        return holds(step.run_condition, context)
    except Incomparable as problem:
        raise problem.as_refusal(f'step "{step.id}"') from None


def _at_step(guide: Guide, step: Step, notes: tuple[str, ...], ignored: tuple[str, ...]) -> GuideProgress:
    body = "\n\n".join(("\n".join(step.guidance), step.prompt)) if step.guidance else step.prompt
    own: list[str] = []
    if step.ask_for_files:
        own.append("Ask the user for the files this step needs before you start.")
    if step.require_confirmation:
        own.append("When it is done, stop and ask the user to confirm before the next step.")
    if step.validation_criteria:
        own.append(
            f'Check the output with workflow_validate (workflowId "{guide.id}", stepId "{step.id}") before going on.'
        )
    return GuideProgress(step, _text(body, (*own, *notes)), is_complete=False, ignored=ignored)


def _nothing_applies(remaining: Sequence[Step], context: Mapping[str, Any]) -> str:
    lines = ["Steps are open, but none of their conditions holds in this context:"]
    wanted: dict[str, None] = {}
    for step in remaining:
        names = variables(step.run_condition)
        wanted.update(dict.fromkeys(names))
        state = ", ".join(f"{name} is {value_text(context[name]) if name in context else 'not set'}" for name in names)
        lines.append(f'- "{step.id}" runs when {describe(step.run_condition)}' + (f" (now {state})" if state else ""))
    if wanted:
        lines.append(f"To go on, set in context: {', '.join(wanted)}.")
    ids = ", ".join(f'"{step.id}"' for step in remaining)
    lines.append(f"To finish without these steps, add their ids to completedSteps: {ids}.")
    return "\n".join(lines)


def _ignored_note(ignored: tuple[str, ...]) -> tuple[str, ...]:
    if not ignored:
        return ()
    return (f"Ignored in completedSteps, because this guide has no such steps: {', '.join(map(value_text, ignored))}.",)


def _text(body: str, notes: tuple[str, ...]) -> str:
    """The body unchanged, then the notes, one per line."""
    return "\n\n".join((body, "\n".join(notes))) if notes else body

"""A pipeline run as it is stored: next to its workflow, with the flow it follows pinned. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.pipeline.budget import LIMITS
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.state import Facts, RunState

FOR_PEOPLE = "humans_decide"
"""The flag of a run that says only people open its gates."""


class PipelineRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. It shares its id with its workflow."""

    id: str
    repository_path: str
    workspace: str
    """The folder of its documents, relative to the repository: `.specs/…`."""
    spec_name: str
    title: str
    request: str
    """The request, in words."""
    source_type: str
    source_url: str | None
    source_id: str | None
    effort: str
    branch: str | None
    flow: dict[str, Any]
    """As it was when the run began: editing the file does not affect runs under way."""
    flags: dict[str, Any]
    state: dict[str, Any]
    task_ids: dict[str, Any]
    """The plan's task id for each number in the task list."""
    dispatched: dict[str, Any] | None
    """The last action handed out, until it is reported or answered."""
    log: list[dict[str, Any]]
    """The reported cost of each action."""
    findings: list[dict[str, Any]]
    """What its reviews found, for later runs to learn from."""
    friction: list[str]
    """What made its work hard, according to its own notes."""
    lessons: dict[str, Any]
    """What earlier runs taught when it began. Looked up once, so that a turn costs the same with any number of runs."""
    created_at: int
    updated_at: int
    limits: dict[str, Any] = {}
    """How far it goes (`until`) and what it may spend (`soft_tokens` …), as set at its start or later by a person."""
    holder: dict[str, Any] | None = None
    """Who drives it, if known."""
    forked_from: str | None = None
    """The run it was forked from."""

    @property
    def stream(self) -> str:
        return self.id

    def flow_followed(self) -> Flow:
        return msgspec.convert(self.flow, Flow)

    def run_state(self) -> RunState:
        return msgspec.convert(self.state, RunState)

    def action_handed_out(self) -> Action | None:
        return msgspec.convert(self.dispatched, Action) if self.dispatched is not None else None

    def tasks_handed_out(self) -> list[str]:
        """The plan's tasks that the last handed-out action covers."""
        numbers = map(str, (self.dispatched or {}).get("tasks") or ())
        return [self.task_ids[number] for number in numbers if number in self.task_ids]

    def budget_limits(self) -> dict[str, float]:
        return {name: value for name, value in self.limits.items() if name in LIMITS}

    @property
    def for_people(self) -> bool:
        """True if only people opened gates when it began. A later change of that setting does not affect the run."""
        return bool(self.flags.get(FOR_PEOPLE))

    def facts(self, *, humans_decide: bool) -> Facts:
        return Facts(
            source_type=self.source_type,
            auto=bool(self.flags.get("auto")),
            skip_pr=bool(self.flags.get("skip_pr")),
            humans_decide=humans_decide or self.for_people,
        )

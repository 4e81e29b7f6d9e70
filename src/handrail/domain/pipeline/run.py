"""A run of a pipeline as it is stored: beside the workflow it is, with the flow it follows pinned. No behaviour."""

from __future__ import annotations

from typing import Any

import msgspec

from handrail.domain.pipeline.budget import LIMITS
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.state import Facts, RunState

FOR_PEOPLE = "humans_decide"
"""Among a run's flags: that only people open its gates."""


class PipelineRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. Its id is its workflow's."""

    id: str
    repository_path: str
    workspace: str
    """The folder of its documents, relative to the repository: `.specs/…`."""
    spec_name: str
    title: str
    request: str
    """What was asked for, in words."""
    source_type: str
    source_url: str | None
    source_id: str | None
    effort: str
    branch: str | None
    flow: dict[str, Any]
    """As it was when the run began: a changed file changes no run that is under way."""
    flags: dict[str, Any]
    state: dict[str, Any]
    task_ids: dict[str, Any]
    """The plan's task for each number of the task list."""
    dispatched: dict[str, Any] | None
    """The action that was handed out last and has not been reported or answered."""
    log: list[dict[str, Any]]
    """What each action cost, as it was reported."""
    findings: list[dict[str, Any]]
    """What its reviews found, for later runs to learn from."""
    friction: list[str]
    """What made its work hard, as its own notes say."""
    lessons: dict[str, Any]
    """What earlier runs taught when it began: looked up once, so that a turn costs the same however many there are."""
    created_at: int
    updated_at: int
    limits: dict[str, Any] = {}
    """How far it goes (`until`) and what it may spend (`soft_tokens` …), as it was begun with or a person allowed."""
    holder: dict[str, Any] | None = None
    """Who drives it, where that can be told."""
    forked_from: str | None = None
    """The run that it is a fork of."""

    @property
    def stream(self) -> str:
        return self.id

    def flow_followed(self) -> Flow:
        return msgspec.convert(self.flow, Flow)

    def run_state(self) -> RunState:
        return msgspec.convert(self.state, RunState)

    def action_handed_out(self) -> Action | None:
        return msgspec.convert(self.dispatched, Action) if self.dispatched is not None else None

    def budget_limits(self) -> dict[str, float]:
        return {name: value for name, value in self.limits.items() if name in LIMITS}

    @property
    def for_people(self) -> bool:
        """True where only people opened gates when it began: whoever changes the settings later changes no run that is
        under way."""
        return bool(self.flags.get(FOR_PEOPLE))

    def facts(self, *, humans_decide: bool) -> Facts:
        return Facts(
            source_type=self.source_type,
            auto=bool(self.flags.get("auto")),
            skip_pr=bool(self.flags.get("skip_pr")),
            humans_decide=humans_decide or self.for_people,
        )

"""The types that a pipeline run is read back into, made known to the validator before several threads use them."""

from __future__ import annotations

from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow
from handrail.domain.pipeline.lessons import Lessons
from handrail.domain.pipeline.state import RunState
from handrail.domain.pipeline.state_import import CopiedState
from handrail.known_types import make_known


def know_runs() -> None:
    make_known(Action, CopiedState, Flow, Lessons, RunState)

"""The play, act by act, on a throw-away repository."""

from __future__ import annotations

from handrail.demo.ground import Ground, lay_out
from handrail.demo.play import Play, Stage
from handrail.demo.run import ending, pipeline
from handrail.demo.work import claims, foresight, journals, plan

ACTS = (plan, claims, foresight, journals, pipeline, ending)


def perform(ground: Ground, stage: Stage) -> None:
    """All of it, from an empty folder to the last line."""
    lay_out(ground)
    play = Play(ground, stage)
    try:
        for act in ACTS:
            act(play)
    finally:
        play.handrail.ledger.open().engine.close()

"""The play, act by act, on a throw-away repository."""

from __future__ import annotations

from handrail.demo.ground import Ground, lay_out
from handrail.demo.next import what_comes_next
from handrail.demo.play import Play, Stage
from handrail.demo.run import ending, pipeline
from handrail.demo.work import claims, foresight, journals, plan
from handrail.wiring import LazyLedger

ACTS = (plan, claims, foresight, journals, pipeline, what_comes_next, ending)


def perform(ground: Ground, stage: Stage, ledger: LazyLedger | None = None) -> None:
    """Runs all of it, from an empty folder to the last line; uses the project's own store unless another is given."""
    lay_out(ground)
    play = Play(ground, stage, ledger)
    try:
        for act in ACTS:
            act(play)
    finally:
        play.handrail.ledger.open().engine.close()

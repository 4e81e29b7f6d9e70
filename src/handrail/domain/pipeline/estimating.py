"""What a run will probably cost, judging by earlier ones of the same effort: half of them stayed below the first
figure, nine in ten below the second. Pure; without earlier runs there is no estimate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

FIGURES = (("p50", 0.5), ("p90", 0.9))


class Cost(NamedTuple):
    """What one finished run cost."""

    tokens: int
    duration_ms: int
    money: float | None = None


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed: always one that actually occurred."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def estimate(costs: Sequence[Cost]) -> dict[str, Any] | None:
    """The estimate as shown; None if nothing is known. Runs that reported no cost are ignored."""
    known = [cost for cost in costs if cost.tokens or cost.duration_ms]
    if not known:
        return None
    shown: dict[str, Any] = {
        "runs": len(known),
        "tokens": {name: int(percentile([cost.tokens for cost in known], share)) for name, share in FIGURES},
        "minutes": {
            name: round(percentile([cost.duration_ms for cost in known], share) / 60_000, 1) for name, share in FIGURES
        },
    }
    priced = [cost.money for cost in known if cost.money is not None]
    if priced:
        shown["money"] = {name: round(percentile(priced, share), 2) for name, share in FIGURES}
    return shown

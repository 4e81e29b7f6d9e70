"""The telling: medians, ratios and aims as Markdown. Measures nothing.

A ratio is the median of the rounds' own ratios, each against the baseline measured in the same round.
"""

from __future__ import annotations

import statistics

from bench.protocol.contestants import BASELINE, HANDRAIL
from bench.protocol.rounds import Measure, Results

RATIO_AIMS = (("start, CPU", "start_cpu_ms", 0.12), ("CPU per call", "call_cpu_us", 0.20))
RESIDENT_AIM_MB = 25.0

_HEADINGS = (
    "server",
    "start CPU ms",
    "x",
    "start wall ms",
    "RSS / PSS MB",
    "first call CPU ms",
    "CPU µs per call",
    "x",
    "p50 µs",
    "RSS MB after",
)


def table(results: Results) -> list[str]:
    lines = [f"| {' | '.join(_HEADINGS)} |", "|---" + "|--:" * (len(_HEADINGS) - 1) + "|"]
    for name, measures in results.items():
        cells = (
            name,
            f"{median(measures, 'start_cpu_ms'):.0f}",
            times(ratio(results, name, "start_cpu_ms")),
            f"{median(measures, 'start_wall_ms'):.0f}",
            f"{median(measures, 'start_rss_mb'):.1f} / {median(measures, 'start_pss_mb'):.1f}",
            f"{median(measures, 'first_call_cpu_ms'):.1f}",
            f"{median(measures, 'call_cpu_us'):.0f}",
            times(ratio(results, name, "call_cpu_us")),
            f"{median(measures, 'call_p50_us'):.0f}",
            f"{median(measures, 'end_rss_mb'):.1f}",
        )
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def aims(results: Results) -> list[str]:
    """What Handrail aims at and whether this run met it."""
    if HANDRAIL not in results:
        return []
    lines = []
    for what, field, aim in RATIO_AIMS:
        reached = ratio(results, HANDRAIL, field)
        if reached is not None:
            lines.append(f"- {what}: {times(reached)} of {BASELINE}, aim ≤ {aim}x: {verdict(reached <= aim)}")
    for when, field in (("once initialized", "start_rss_mb"), ("after the calls", "end_rss_mb")):
        resident = median(results[HANDRAIL], field)
        met = verdict(resident <= RESIDENT_AIM_MB)
        lines.append(f"- resident {when}: {resident:.1f} MB, aim ≤ {RESIDENT_AIM_MB:.0f} MB: {met}")
    return lines


def median(measures: list[Measure], field: str) -> float:
    return statistics.median(getattr(measure, field) for measure in measures)


def ratio(results: Results, name: str, field: str) -> float | None:
    if BASELINE not in results:
        return None
    pairs = zip(results[name], results[BASELINE], strict=True)
    return statistics.median(getattr(one, field) / getattr(base, field) for one, base in pairs)


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def verdict(met: bool) -> str:
    return "met" if met else "missed"

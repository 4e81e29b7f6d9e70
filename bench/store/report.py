"""The telling: medians, ratios and aims as Markdown. Measures nothing.

A ratio is the median of the rounds' own ratios, each against the reference measured in the same round; above 1 is
better than the reference.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from bench.store.contestants import Contestant
from bench.store.crews import Slice

Results = dict[str, list[Slice]]
LONGEST_WAIT_AIM_S = 0.5
HEADINGS = ("step", "CPU µs", "p50 µs", "per s", "against", "x p50", "x rate", "longest ms", "min/max", "errors")


def table(contestants: Sequence[Contestant], results: Results) -> list[str]:
    lines = [f"| {' | '.join(HEADINGS)} |", "|---" + "|--:" * (len(HEADINGS) - 1) + "|"]
    for contestant in contestants:
        if contestant.name in results:
            lines.append(f"| {' | '.join(_cells(contestant, results))} |")
    return lines


def _cells(contestant: Contestant, results: Results) -> list[str]:
    slices = results[contestant.name]
    several = any(one.fairness < 1 for one in slices)
    return [
        contestant.name,
        f"{_median(slices, 'cpu_us'):.0f}",
        f"{_median(slices, 'p50_us'):.0f}",
        f"{_median(slices, 'per_s'):.0f}",
        contestant.against or "",
        _times(ratio(contestant, results, "p50_us")) if contestant.by == "p50_us" else "",
        _times(ratio(contestant, results, "per_s")),
        f"{longest_s(slices) * 1000:.0f}",
        f"{_median(slices, 'fairness'):.2f}" if several else "",
        str(sum(errors_of(slices).values())),
    ]


def aims(contestants: Sequence[Contestant], results: Results) -> list[str]:
    lines = []
    for contestant in contestants:
        if contestant.name not in results:
            continue
        slices = results[contestant.name]
        reached = ratio(contestant, results, contestant.by)
        if contestant.aim is not None and reached is not None:
            met = _verdict(reached >= contestant.aim)
            lines.append(f"- {contestant.name}: {reached:.2f}x of {contestant.against}, aim ≥ {contestant.aim}x: {met}")
        if any(one.fairness < 1 for one in slices):
            longest = longest_s(slices)
            met = _verdict(longest <= LONGEST_WAIT_AIM_S)
            lines.append(f"- {contestant.name}: longest wait {longest:.3f} s, aim ≤ {LONGEST_WAIT_AIM_S} s: {met}")
        lines += [f"- {contestant.name}: {count} times {error}" for error, count in errors_of(slices).items()]
    return lines


def ratio(contestant: Contestant, results: Results, field: str) -> float | None:
    """How many times as good as the reference: shorter, or more a second."""
    reference = results.get(contestant.against or "")
    if reference is None:
        return None
    mine = results[contestant.name]
    pairs = [(getattr(one, field), getattr(base, field)) for one, base in zip(mine, reference, strict=True)]
    if not all(one and base for one, base in pairs):
        return None
    return float(statistics.median(one / base if field == "per_s" else base / one for one, base in pairs))


def longest_s(slices: Sequence[Slice]) -> float:
    return max(one.longest_s for one in slices)


def errors_of(slices: Sequence[Slice]) -> Counter[str]:
    return sum((Counter(one.errors) for one in slices), Counter())


def _median(slices: Sequence[Slice], field: str) -> float:
    return float(statistics.median(getattr(one, field) for one in slices))


def _times(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _verdict(met: bool) -> str:
    return "met" if met else "missed"

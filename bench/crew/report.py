"""The telling: medians, ratios and losses as Markdown. Measures nothing.

A ratio is the median of the rounds' own ratios, each against what was measured in the same round; above 1 is more.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from bench.crew.burst import percentile
from bench.crew.delivery import Delivery
from bench.crew.messages import Round

MESSAGES = ("server", "per s", "x floor", "x of handrail", "p50 ms", "p99 ms", "acknowledged", "lost", "refused")
DELIVERY = ("store", "own reply p50 ms", "delivered p50 ms", "x", "delivered p99 ms", "messages")


def message_table(results: Mapping[str, Sequence[Round]], floors: Mapping[str, str | None], ours: str) -> list[str]:
    """`floors` names the bare writer each is held against; `ours` the one that peers are held against."""
    lines = _head(MESSAGES)
    for name, rounds in results.items():
        floor = floors.get(name)
        acknowledged, refused = sum(one.written for one in rounds), sum(one.refused.total() for one in rounds)
        cells = [
            name,
            f"{_median([one.per_s for one in rounds]):.0f}",
            times(rate_ratio(results, name, floor)) if floor else "",
            times(rate_ratio(results, name, ours)) if name != ours else "1",
            f"{_median([one.p50_ms for one in rounds]):.1f}",
            f"{_median([one.p99_ms for one in rounds]):.1f}",
            str(acknowledged),
            loss(rounds),
            str(refused),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def loss(rounds: Sequence[Round]) -> str:
    """How much was lost, and what else is wrong, over all rounds."""
    acknowledged, gone = sum(one.written for one in rounds), sum(one.findings.lost for one in rounds)
    said = [f"{gone} ({gone / acknowledged:.0%})" if gone else "0"]
    unreadable = sum(one.findings.problem is not None for one in rounds)
    if unreadable:
        said.append(f"store unreadable after {unreadable} of {len(rounds)} rounds")
    for what, count in (
        ("doubled", sum(one.findings.doubled for one in rounds)),
        ("out of order", sum(one.findings.out_of_order for one in rounds)),
    ):
        said += [f"{count} {what}"] if count else []
    return ", ".join(said)


def message_notes(results: Mapping[str, Sequence[Round]], ours: Sequence[str]) -> list[str]:
    """What Handrail kept, and the refusals by their first words."""
    lines = []
    for name in ours:
        if rounds := results.get(name):
            sound = not any(one.findings.lost or one.findings.doubled or one.findings.out_of_order for one in rounds)
            lines.append(f"- {name}: nothing lost, order kept per inbox and thread: {verdict(sound)}")
    for name, rounds in results.items():
        refused: Counter[str] = sum((one.refused for one in rounds), Counter())
        lines += [f"- {name}: {count} times {text!r}" for text, count in refused.most_common(3)]
        problems = Counter(one.findings.problem for one in rounds if one.findings.problem)
        lines += [f"- {name}: {count} times {problem}" for problem, count in problems.items()]
    return lines


def rate_ratio(results: Mapping[str, Sequence[Round]], name: str, against: str) -> float | None:
    """How many times as much a second."""
    if len(results.get(against, ())) != len(results[name]):
        return None
    pairs = zip(results[name], results[against], strict=True)
    return _median([one.per_s / base.per_s for one, base in pairs if base.per_s])


def delivery_table(results: Mapping[str, Sequence[Delivery]]) -> list[str]:
    lines = _head(DELIVERY)
    for name, rounds in results.items():
        cells = [
            name,
            f"{_median([percentile(one.sent_ms, 0.5) for one in rounds]):.2f}",
            f"{_median([percentile(one.delivered_ms, 0.5) for one in rounds]):.2f}",
            times(_median([one.ratio for one in rounds])),
            f"{_median([percentile(one.delivered_ms, 0.99) for one in rounds]):.2f}",
            str(sum(len(one.delivered_ms) for one in rounds)),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _head(headings: Sequence[str]) -> list[str]:
    return [f"| {' | '.join(headings)} |", "|---" + "|--:" * (len(headings) - 1) + "|"]


def _median(values: Sequence[float]) -> float:
    return float(statistics.median(values)) if values else 0.0


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def verdict(met: bool) -> str:
    return "met" if met else "missed"

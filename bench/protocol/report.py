"""The telling: medians, ratios and aims as Markdown. Measures nothing.

A ratio is the median of the rounds' own ratios, each against the baseline measured in the same round.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from bench.protocol.contestants import BASELINE, HANDRAIL
from bench.protocol.conversation import STATELESS
from bench.protocol.rounds import Results

START_AIM, STDIO_CALL_AIM, HTTP_CALL_AIM = 0.12, 0.20, 0.35
RESIDENT_AIM_MB = 25.0

Cell = Callable[[Results[Any], str], str]


class Column(msgspec.Struct, frozen=True):
    """A heading, and what stands under it for one contestant."""

    heading: str
    cell: Cell


def number(heading: str, field: str, digits: int = 0, scale: float = 1) -> Column:
    return Column(heading, lambda results, name: f"{median(results[name], field) / scale:.{digits}f}")


def pair(heading: str, first: str, second: str, digits: int, scale: float = 1) -> Column:
    def cell(results: Results[Any], name: str) -> str:
        return " / ".join(f"{median(results[name], field) / scale:.{digits}f}" for field in (first, second))

    return Column(heading, cell)


def against_baseline(field: str) -> Column:
    return Column("x", lambda results, name: times(ratio(results, name, field)))


_PROCESS = (
    number("start CPU ms", "start_cpu_ms"),
    against_baseline("start_cpu_ms"),
    number("start wall ms", "start_wall_ms"),
    pair("RSS / PSS MB", "start_rss_mb", "start_pss_mb", 1),
    number("first call CPU ms", "first_call_cpu_ms", 1),
)
_STDIO = (
    *_PROCESS,
    number("CPU µs per call", "call_cpu_us"),
    against_baseline("call_cpu_us"),
    number("p50 µs", "call_p50_us"),
    number("RSS MB after", "end_rss_mb", 1),
)
_HTTP_PROCESS = (*_PROCESS, number("RSS MB after", "end_rss_mb", 1))


def _http_calls(prefix: str, calls_per_s: str) -> tuple[Column, ...]:
    return (
        number("CPU µs per call", f"{prefix}_cpu_us"),
        against_baseline(f"{prefix}_cpu_us"),
        number("p50 ms", f"{prefix}_p50_us", 2, scale=1000),
        number("p99 ms", f"{prefix}_p99_us", 2, scale=1000),
        number("calls/s", calls_per_s),
    )


def stdio_report(results: Results[Any]) -> list[str]:
    return [*table("server", _STDIO, results), "", *stdio_aims(results)]


def http_report(results: Results[Any]) -> list[str]:
    return [
        *table("1 client", _http_calls("call", "calls_per_s"), results),
        "",
        *table("16 clients", _http_calls("crowd", "crowd_calls_per_s"), results),
        "",
        *table("process", _HTTP_PROCESS, results),
        "",
        *http_aims(results),
    ]


def table(corner: str, columns: Sequence[Column], results: Results[Any]) -> list[str]:
    lines = [
        f"| {' | '.join((corner, *(column.heading for column in columns)))} |",
        "|---" + "|--:" * len(columns) + "|",
    ]
    lines += [f"| {' | '.join((name, *(column.cell(results, name) for column in columns)))} |" for name in results]
    return lines


# -- aims ------------------------------------------------------------------------------------------------------------


def stdio_aims(results: Results[Any]) -> list[str]:
    """What Handrail aims at on stdio and whether this run met it."""
    if HANDRAIL not in results:
        return []
    lines = [
        *_ratio_aim(results, HANDRAIL, "start, CPU", "start_cpu_ms", START_AIM),
        *_ratio_aim(results, HANDRAIL, "CPU per call", "call_cpu_us", STDIO_CALL_AIM),
    ]
    for when, field in (("once initialized", "start_rss_mb"), ("after the calls", "end_rss_mb")):
        resident = median(results[HANDRAIL], field)
        met = verdict(resident <= RESIDENT_AIM_MB)
        lines.append(f"- resident {when}: {resident:.1f} MB, aim ≤ {RESIDENT_AIM_MB:.0f} MB: {met}")
    return lines


def http_aims(results: Results[Any]) -> list[str]:
    """What Handrail aims at on HTTP, in both eras."""
    return [
        line
        for name in (HANDRAIL, f"{HANDRAIL} {STATELESS}")
        for line in _ratio_aim(results, name, f"{name}, CPU per call, 1 client", "call_cpu_us", HTTP_CALL_AIM)
    ]


def _ratio_aim(results: Results[Any], name: str, what: str, field: str, aim: float) -> list[str]:
    reached = ratio(results, name, field) if name in results else None
    if reached is None:
        return []
    return [f"- {what}: {times(reached)}x of {BASELINE}, aim ≤ {aim}x: {verdict(reached <= aim)}"]


# -- numbers ---------------------------------------------------------------------------------------------------------


def median(measures: list[Any], field: str) -> float:
    return float(statistics.median(getattr(measure, field) for measure in measures))


def ratio(results: Results[Any], name: str, field: str) -> float | None:
    if BASELINE not in results:
        return None
    pairs = zip(results[name], results[BASELINE], strict=True)
    return float(statistics.median(getattr(one, field) / getattr(base, field) for one, base in pairs))


def times(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def verdict(met: bool) -> str:
    return "met" if met else "missed"

"""What earlier runs teach the next one: runs that were about the same, what reviews keep finding, what made work hard.

Pure: records in, ranked lists out, the same for the same records. Similar runs are ranked by BM25 over their texts;
findings that say the same in other words are one pattern, told by their edit distance. How much of it fits into a
prompt is `prompt.py`'s question.

It takes time in proportion to the records, all of which are bounded here: learn once when a run begins, and keep what
was learnt with the run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import msgspec

RUNS = 1000
"""Earlier runs that are compared, the newest."""
NOTES = 500
"""Findings and friction points each that are looked at, the newest."""
TEXT_CHARACTERS = 2000
"""Of a text that count: what it is about stands at its beginning."""
COMPARED_CHARACTERS = 200
"""Of a finding that are compared."""
COMPARISONS = 2000
"""Pairs whose edit distance is counted. Beyond them only the same words are the same finding."""
APART = 0.3
"""Two findings are one where fewer than three characters in ten differ."""
SIMILAR, PATTERNS, FRICTION = 3, 12, 8
"""How many of each are kept. Prompts seldom have room for more."""
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b, at their usual values."""

# Plain texts, not compiled here: a start would pay for what only the first run uses.
_WORD = r"[^\W_]+"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"
_WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"
_PLACE = r"`?[\w./-]+\.\w{1,5}(?::\d+(?:[-:]\d+)?)?`?:?"
_BULLET = r"[ \t]*(?:[-*+]|\d+[.)])[ \t]+(.+)"
_HEADING = r"(#{1,6})[ \t]+(.+)"
_REPORT = r"(?i)\bimprovement(?: report)?\b"
_NOTHING = frozenset({"none", "nothing", "n/a", "no", "-"})
_COMMON = frozenset(
    {"a", "about", "after", "all", "also", "an", "and", "any", "are", "as", "at", "be", "been", "before", "but", "by"}
    | {"can", "could", "do", "does", "for", "from", "had", "has", "have", "how", "if", "in", "into", "is", "it", "its"}
    | {"may", "more", "most", "must", "no", "not", "of", "on", "one", "only", "or", "other", "our", "should", "so"}
    | {"some", "such", "than", "that", "the", "their", "them", "then", "there", "these", "they", "this", "those", "to"}
    | {"too", "use", "used", "very", "was", "we", "were", "what", "when", "where", "which", "while", "who", "will"}
    | {"with", "would", "you", "your"}
)


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """An earlier run, as far as the next one may learn from it."""

    spec_name: str
    effort: str = ""
    one_liner: str = ""
    request: str = ""
    outcome: str = ""
    tokens: int = 0
    duration_ms: int = 0


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something a run left behind: a finding of a review, or a friction point, which has no severity."""

    text: str
    severity: str = ""
    run: str = ""
    at: int = 0
    """When, in milliseconds; later ones count as fresher."""


class SimilarRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was about the same, and how much so: the score is comparable within one answer only."""

    run: PastRun
    score: float


class Pattern(msgspec.Struct, frozen=True, kw_only=True):
    """What was noted more than once counts once, in its latest words."""

    text: str
    severity: str = ""
    runs: int = 1
    """In how many runs."""
    times: int = 1
    last_at: int = 0


class Lessons(msgspec.Struct, frozen=True, kw_only=True):
    """All that earlier runs teach, most useful first."""

    similar: list[SimilarRun] = []
    patterns: list[Pattern] = []
    friction: list[Pattern] = []


class Lines(NamedTuple):
    """Lessons as a prompt has them."""

    similar: list[str]
    patterns: list[str]
    friction: list[str]


class _Wants(NamedTuple):
    similar: bool = False
    patterns: tuple[str, ...] = ()
    """Severities; all of them where `*` is one."""
    friction: bool = False


_ALL = ("*",)
_SERIOUS = ("CRITICAL", "MAJOR")
WANTED: Mapping[str, _Wants] = {
    "situation-analyst": _Wants(similar=True, friction=True),
    "situation-analyst-investigator": _Wants(similar=True, friction=True),
    "investigator": _Wants(similar=True, friction=True),
    "architect": _Wants(similar=True, patterns=_SERIOUS),
    "design-reviewer": _Wants(patterns=_ALL),
    "task-decomposer": _Wants(similar=True, patterns=_ALL),
    "task-reviewer": _Wants(patterns=_ALL),
    "implementer": _Wants(patterns=_SERIOUS, friction=True),
    "impl-reviewer": _Wants(patterns=_ALL, friction=True),
    "comprehensive-reviewer": _Wants(patterns=_ALL),
    "verifier": _Wants(friction=True),
    "summarizer": _Wants(),
}
"""Which agent is told what. One that is not here is told everything."""


def learn(
    request: str, *, runs: Sequence[PastRun] = (), findings: Iterable[Noted] = (), friction: Iterable[Noted] = ()
) -> Lessons:
    """What earlier runs teach about a request. Runs come newest first, without the one that asks."""
    return Lessons(
        similar=similar_runs(request, runs), patterns=merged(findings, PATTERNS), friction=merged(friction, FRICTION)
    )


def lines_for(agent: str, lessons: Lessons, about: str = "") -> Lines:
    """What one agent is told. Of two lessons that of the work at hand comes first: `about` is its title and files."""
    wants = WANTED.get(agent, _Wants(similar=True, patterns=_ALL, friction=True))
    here = set(terms(about))
    patterns = [one for one in lessons.patterns if "*" in wants.patterns or one.severity in wants.patterns]
    friction = lessons.friction if wants.friction else []
    return Lines(
        [_similar_line(one) for one in lessons.similar] if wants.similar else [],
        [_pattern_line(one) for one in _nearest_first(patterns, here)],
        [_pattern_line(one) for one in _nearest_first(friction, here)],
    )


def _nearest_first(patterns: Sequence[Pattern], here: set[str]) -> list[Pattern]:
    return sorted(patterns, key=lambda one: here.isdisjoint(terms(one.text))) if here else list(patterns)


def _similar_line(similar: SimilarRun) -> str:
    run = similar.run
    facts = [run.effort, run.outcome]
    if run.tokens:
        facts.append(f"{run.tokens:,} tokens")
    if run.duration_ms >= 60_000:
        facts.append(f"{run.duration_ms // 60_000} min")
    known = ", ".join(fact for fact in facts if fact)
    said = run.one_liner or run.request
    return f"{run.spec_name}{f' ({known})' if known else ''}{f': {said}' if said else ''}"


def _pattern_line(pattern: Pattern) -> str:
    often = f"(in {pattern.runs} runs) " if pattern.runs > 1 else ""
    return f"{f'[{pattern.severity}] ' if pattern.severity else ''}{often}{pattern.text}"


def terms(text: str) -> list[str]:
    """The words a text is searched by: without the most common ones; names in code also by their parts; scripts
    without spaces by pairs of characters."""
    return [term for word in re.findall(_WORD, text[:TEXT_CHARACTERS]) for term in _terms_of(word)]


@lru_cache(maxsize=8192)
def _terms_of(word: str) -> tuple[str, ...]:
    found: list[str] = []
    parts = re.split(_HUMP, word)
    for part in (word, *parts) if len(parts) > 1 else parts:
        folded = part.casefold()
        if wide := re.findall(_WIDE, folded):
            found += [run[at : at + 2] for run in wide for at in range(len(run) - 1)]
        elif len(folded) > 1 and folded not in _COMMON:
            found.append(_singular(folded))
    return tuple(found)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def similar_runs(request: str, runs: Sequence[PastRun], limit: int = SIMILAR) -> list[SimilarRun]:
    """The runs that were most about the same, best first; of equal ones the newer. One word in common is no
    similarity, unless the request has only one."""
    asked = set(terms(request))
    texts = [Counter(terms(f"{run.spec_name} {run.one_liner} {run.request[:TEXT_CHARACTERS]}")) for run in runs[:RUNS]]
    if not asked or not texts:
        return []
    lengths = [sum(words.values()) for words in texts]
    average = sum(lengths) / len(texts) or 1.0
    spread = Counter(word for words in texts for word in asked if word in words)
    weight = {word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in spread.items()}
    scored: list[tuple[float, int]] = []
    for place, (words, length) in enumerate(zip(texts, lengths, strict=True)):
        common = sorted(asked & words.keys())
        if len(common) < min(2, len(asked)):
            continue
        damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / average)
        score = sum(weight[word] * words[word] * (SATURATION + 1) / (words[word] + damping) for word in common)
        scored.append((-round(score, 6), place))
    return [SimilarRun(run=runs[place], score=-score) for score, place in sorted(scored)[:limit]]


class _Group:
    """Notes that say the same."""

    def __init__(self, first: Noted, normal: str) -> None:
        self.latest = first
        self.normal = normal
        self.words = frozenset(normal.split())
        self.runs: set[str] = set()
        self.times = 0

    def add(self, note: Noted) -> None:
        self.runs.add(note.run)
        self.times += 1

    def pattern(self) -> Pattern:
        latest = self.latest
        return Pattern(
            text=" ".join(latest.text.split()),
            severity=latest.severity,
            runs=len(self.runs),
            times=self.times,
            last_at=latest.at,
        )


def merged(notes: Iterable[Noted], limit: int) -> list[Pattern]:
    """Notes as patterns: those that say the same, within one severity, are one. What came up in most runs stands
    first, then what is more serious, then what is fresher."""
    newest = sorted(notes, key=lambda note: (-note.at, note.severity, note.text, note.run))[:NOTES]
    groups: dict[str, list[_Group]] = {}
    exact: dict[tuple[str, str], _Group] = {}
    left = COMPARISONS
    for note in newest:
        normal = _normal(note.text)
        if not normal:
            continue
        group = exact.get((note.severity, normal))
        if group is None:
            known = groups.setdefault(note.severity, [])
            group, left = _same(normal, known, left)
            if group is None:
                group = _Group(note, normal)
                known.append(group)
            exact[note.severity, normal] = group
        group.add(note)
    found = [group.pattern() for together in groups.values() for group in together]
    return sorted(found, key=lambda one: (-one.runs, _rank(one.severity), -one.last_at, one.text))[:limit]


def _rank(severity: str) -> int:
    order = ("CRITICAL", "MAJOR", "MINOR")
    return order.index(severity) if severity in order else len(order)


def _normal(text: str) -> str:
    """A note without what differs from place to place: files, lines, numbers, marks, the most common words."""
    words = re.findall(_WORD, re.sub(_PLACE, " ", text[: 2 * COMPARED_CHARACTERS].casefold()))
    kept = [word for word in words if word not in _COMMON and not word.isdigit()]
    return " ".join(kept or words)[:COMPARED_CHARACTERS].strip()


def _same(normal: str, groups: Sequence[_Group], left: int) -> tuple[_Group | None, int]:
    """The group that says the same, and how many more comparisons may be made. What shares hardly a word is not
    compared: it costs the most and is never the same."""
    words = frozenset(normal.split())
    for group in groups:
        longest = max(len(normal), len(group.normal))
        most = math.ceil(longest * APART) - 1
        if abs(len(normal) - len(group.normal)) > most:
            continue
        if 3 * len(words & group.words) < min(len(words), len(group.words)):
            continue
        if left == 0:
            break
        left -= 1
        if distance(normal, group.normal, most) <= most:
            return group, left
    return None, left


def distance(one: str, other: str, most: int) -> int:
    """How many characters have to be put in, taken out or replaced to get from one text to the other; more than `most`
    where it is more. A column of the usual table is two numbers here, one bit a row, so that a whole column is a few
    operations."""
    if not one or not other:
        return len(one) or len(other)
    rows: dict[str, int] = {}
    for place, character in enumerate(one):
        rows[character] = rows.get(character, 0) | 1 << place
    every = (1 << len(one)) - 1
    last = 1 << (len(one) - 1)
    up, down, found = every, 0, len(one)
    for done, character in enumerate(other, 1):
        equal = rows.get(character, 0)
        straight = equal | down
        across = (((equal & up) + up) ^ up) | equal
        more = down | (every & ~(across | up))
        less = up & across
        if more & last:
            found += 1
        elif less & last:
            found -= 1
        if found - (len(other) - done) > most:
            return most + 1
        more = (more << 1 | 1) & every
        less = less << 1 & every
        up = less | (every & ~(straight | more))
        down = more & straight
    return found


def friction_in(text: str) -> list[str]:
    """The points of an improvement note: the bullets of its improvement report; of a text without such a heading, all
    bullets."""
    points: list[str] = []
    elsewhere: list[str] = []
    depth, has_report = 0, False
    for line in text.splitlines():
        if head := re.fullmatch(_HEADING, line):
            level = len(head[1])
            if re.search(_REPORT, head[2]):
                depth, has_report = level, True
            elif level <= depth:
                depth = 0
        elif bullet := re.fullmatch(_BULLET, line):
            point = bullet[1].strip()
            if point.rstrip(".").casefold() not in _NOTHING:
                (points if depth else elsewhere).append(point)
    return (points if has_report else elsewhere)[:NOTES]

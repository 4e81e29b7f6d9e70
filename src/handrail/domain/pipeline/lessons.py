"""What earlier runs teach the next one: similar runs, what reviews keep finding, what made the work hard.

Pure: records in, ranked lists out, the same for the same records. Similar runs are ranked by BM25 over their texts;
findings that say the same in different words are merged into one pattern by edit distance. `prompt.py` decides how much
of it fits into a prompt.

The cost grows with the number of records, which are all bounded here: learn once when a run begins, and store the
lessons with the run.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from handrail.kernel.late import late_module
from handrail.kernel.wording import on_one_line

if TYPE_CHECKING:
    from rapidfuzz import process
    from rapidfuzz.distance import Levenshtein
else:
    Levenshtein = late_module("rapidfuzz.distance.Levenshtein")
    process = late_module("rapidfuzz.process")

RUNS = 1000
"""How many earlier runs are compared, newest first."""
NOTES = 500
"""How many findings, and how many friction points, are considered, newest first."""
TEXT_CHARACTERS = 2000
"""Characters of a text that count: its beginning says what it is about."""
READ_CHARACTERS = 400
"""Characters of a finding that are read."""
COMPARED_CHARACTERS = 100
"""Characters of those that are compared, after places and common words are removed. Longer texts would take six times
as long, and every pair of `NOTES` is compared."""
APART = 0.2999
"""Two findings are the same if at most this share of the longer one differs: fewer than three characters in ten. In
texts this short no ratio lies between 0.2999 and 0.3, and a limit closer to 0.3 would round up and admit exactly three
in ten."""
SIMILAR, PATTERNS, FRICTION = 3, 12, 8
"""How many of each are kept. Prompts rarely have room for more."""
SATURATION, LENGTH_WEIGHT = 1.2, 0.75
"""BM25's k1 and b, at their usual values."""

# Plain strings, not compiled here: every start would pay for what only the first run uses.
_WORD = r"[^\W_]+"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"
_WIDE = r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{2,}"
# Must start at a word boundary: tried at every letter, a long word would take time quadratic in its length.
_PLACE = r"`?(?<![\w./-])[\w./-]+\.\w{1,5}(?::\d+(?:[-:]\d+)?)?`?:?"
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
    """What the next run may learn from about an earlier one."""

    spec_name: str
    effort: str = ""
    one_liner: str = ""
    request: str = ""
    outcome: str = ""
    tokens: int = 0
    duration_ms: int = 0


class Noted(msgspec.Struct, frozen=True, kw_only=True):
    """Something a run left behind: a review finding, or a friction point, which has no severity."""

    text: str
    severity: str = ""
    run: str = ""
    at: int = 0
    """When, in milliseconds; later ones rank higher."""


class SimilarRun(msgspec.Struct, frozen=True, kw_only=True):
    """A similar run and how similar it is. Scores are comparable only within one answer."""

    run: PastRun
    score: float


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """Something noted at least once, merged into one entry with its latest wording."""

    text: str
    severity: str = ""
    runs: int = 1
    """In how many runs it came up."""
    times: int = 1
    last_at: int = 0


class Lessons(msgspec.Struct, frozen=True, kw_only=True):
    """Everything earlier runs teach, most useful first."""

    similar: list[SimilarRun] = []
    patterns: list[Lesson] = []
    friction: list[Lesson] = []


class LessonLines(NamedTuple):
    """Lessons as lines of a prompt."""

    similar: list[str]
    patterns: list[str]
    friction: list[str]


class _Wants(NamedTuple):
    similar: bool = False
    patterns: tuple[str, ...] = ()
    """Severities; `*` means all."""
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
"""What each agent is told. An agent that is not listed is told everything."""


def learn(
    request: str, *, runs: Sequence[PastRun] = (), findings: Iterable[Noted] = (), friction: Iterable[Noted] = ()
) -> Lessons:
    """What earlier runs teach about a request. `runs` come newest first and do not include the asking one."""
    return Lessons(
        similar=similar_runs(request, runs), patterns=merged(findings, PATTERNS), friction=merged(friction, FRICTION)
    )


def lines_for(agent: str, lessons: Lessons, about: str = "") -> LessonLines:
    """What one agent is told. Lessons close to the work at hand come first: `about` is its title and files."""
    wants = WANTED.get(agent, _Wants(similar=True, patterns=_ALL, friction=True))
    here = set(terms(about))
    patterns = [one for one in lessons.patterns if "*" in wants.patterns or one.severity in wants.patterns]
    friction = lessons.friction if wants.friction else []
    return LessonLines(
        [_similar_line(one) for one in lessons.similar] if wants.similar else [],
        [_pattern_line(one) for one in _nearest_first(patterns, here)],
        [_pattern_line(one) for one in _nearest_first(friction, here)],
    )


def _nearest_first(patterns: Sequence[Lesson], here: set[str]) -> list[Lesson]:
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


def _pattern_line(pattern: Lesson) -> str:
    often = f"(in {pattern.runs} runs) " if pattern.runs > 1 else ""
    return f"{f'[{pattern.severity}] ' if pattern.severity else ''}{often}{pattern.text}"


def terms(text: str) -> list[str]:
    """The words a text is searched by: without the most common ones; identifiers in code also by their parts; scripts
    without spaces by pairs of characters."""
    return list(chain.from_iterable(map(_terms_of, re.findall(_WORD, text[:TEXT_CHARACTERS]))))


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
    """The most similar runs, best first; among equals the newer. One shared word is not enough, unless the request has
    only one."""
    asked = set(terms(request))
    said = [terms(f"{run.spec_name} {run.one_liner} {run.request[:TEXT_CHARACTERS]}") for run in runs[:RUNS]]
    if not asked or not said:
        return []
    texts = [Counter(filter(asked.__contains__, words)) for words in said]
    lengths = [len(words) for words in said]
    average = sum(lengths) / len(texts) or 1.0
    spread = Counter(chain.from_iterable(texts))
    weight = {word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in spread.items()}
    scored: list[tuple[float, int]] = []
    for place, (words, length) in enumerate(zip(texts, lengths, strict=True)):
        common = sorted(words)
        if len(common) < min(2, len(asked)):
            continue
        damping = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * length / average)
        score = sum(weight[word] * words[word] * (SATURATION + 1) / (words[word] + damping) for word in common)
        scored.append((-round(score, 6), place))
    return [SimilarRun(run=runs[place], score=-score) for score, place in sorted(scored)[:limit]]


class _Group:
    """Notes that say the same."""

    def __init__(self, first: Noted) -> None:
        self.latest = first
        self.runs: set[str] = set()
        self.times = 0

    def add(self, note: Noted) -> None:
        self.runs.add(note.run)
        self.times += 1

    def pattern(self) -> Lesson:
        latest = self.latest
        return Lesson(
            text=on_one_line(latest.text),
            severity=latest.severity,
            runs=len(self.runs),
            times=self.times,
            last_at=latest.at,
        )


def merged(notes: Iterable[Noted], limit: int) -> list[Lesson]:
    """Merges notes of one severity that say the same into patterns. Those from the most runs come first, then the more
    serious, then the more recent."""
    newest = sorted(notes, key=lambda note: (-note.at, note.severity, note.text, note.run))[:NOTES]
    groups: dict[str, dict[str, _Group]] = {}
    wordings: dict[tuple[str, str], _Group] = {}
    for note in newest:
        normal = _normal(note.text)
        if not normal:
            continue
        group = wordings.get((note.severity, normal))
        if group is None:
            known = groups.setdefault(note.severity, {})
            group = _similar_group(normal, known)
            if group is None:
                group = known[normal] = _Group(note)
            wordings[note.severity, normal] = group
        group.add(note)
    found = [group.pattern() for together in groups.values() for group in together.values()]
    return sorted(found, key=lambda one: (-one.runs, _rank(one.severity), -one.last_at, one.text))[:limit]


def _similar_group(normal: str, known: Mapping[str, _Group]) -> _Group | None:
    """The most recent group that says the same; groups are keyed by the wording of their latest note."""
    if not known:
        return None
    near = process.extract_iter(normal, known.keys(), scorer=Levenshtein.normalized_distance, score_cutoff=APART)
    first = next(near, None)
    return known[first[0]] if first is not None else None


def _rank(severity: str) -> int:
    order = ("CRITICAL", "MAJOR", "MINOR")
    return order.index(severity) if severity in order else len(order)


def _normal(text: str) -> str:
    """A note without what varies from place to place: files, lines, numbers, punctuation, the most common words."""
    folded = text[:READ_CHARACTERS].casefold()
    words = re.findall(_WORD, re.sub(_PLACE, " ", folded) if "." in folded else folded)
    kept = [word for word in words if word not in _COMMON and not word.isdigit()]
    return " ".join(kept or words)[:COMPARED_CHARACTERS].strip()


def friction_of(files: Mapping[str, str]) -> list[str]:
    """What made a run's work hard, according to its documents: the improvement report in its summary, which is final,
    or else a separate note."""
    return friction_in(files.get("summary.md", ""), anywhere=False) or friction_in(files.get("improvement.md", ""))


def friction_in(text: str, *, anywhere: bool = True) -> list[str]:
    """The points of an improvement note: the bullets of its improvement report, or, if it has no such heading and
    `anywhere` is set, all bullets."""
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
    return (points if has_report or not anywhere else elsewhere)[:NOTES]

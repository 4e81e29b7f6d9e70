"""Past runs as listed in `.specs/index.json`, and what made a run hard as listed in its `improvement.md`: mirrors of
the store, for people, for other programs, and for a clone whose store is still empty.

Pure: records in, a text out, the same for the same records; and back. Anyone may have written the text in a repository,
so nothing in it is trusted: whatever is malformed is left out, everything is cut to its maximum length, and no text
makes reading fail. The caller decides whether the store or the mirror counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.pipeline.lessons import Lessons, Noted, PastRun, friction_in, learn
from handrail.domain.pipeline.run import PipelineRun

VERSION = 1
RUNS = 25
"""How many runs are listed, newest first. The index is rewritten at the end of every run, so its cost is part of that
run; this many are enough for a clone with an empty store to learn from."""
NOTES = 20
"""How many findings (the newest) and friction points (the first) are kept per run."""
REQUEST_CHARACTERS = 2000
"""The part of a request that is compared."""
NOTE_CHARACTERS = 400
LINE_CHARACTERS = 200
"""For names and titles."""
INDEX_BYTES = 1024 * 1024
"""The whole index, even if every text has its maximum length; the oldest runs are dropped to stay below it."""
LOOKED_AT = 1000
"""How many entries are examined to find the newest. Any beyond are ignored unread."""
READ_CHARACTERS = 2 * INDEX_BYTES
"""A longer text is not one of ours and is not read at all."""
GREATEST = 2**53 - 1
"""The largest number every JSON reader represents exactly."""
COMPLETED = "completed"

_SEVERITY = r"[A-Z]{1,20}"
_UNPRINTED = r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
"""Invisible characters: they could only hide something or reverse a line."""


class IndexedNote(msgspec.Struct, frozen=True, kw_only=True):
    """A review finding."""

    severity: str = ""
    text: str
    at: int = 0
    """When, in milliseconds."""


class IndexedRun(msgspec.Struct, frozen=True, kw_only=True):
    """What later runs may learn from about a past run."""

    workspace: str
    """Relative to the repository; distinguishes runs of the same name."""
    spec_name: str
    title: str = ""
    effort: str = ""
    outcome: str = ""
    tokens: int = 0
    duration_ms: int = 0
    created_at: int = 0
    updated_at: int = 0
    request: str = ""
    findings: list[IndexedNote] = []
    friction: list[str] = []

    def past(self) -> PastRun:
        return PastRun(
            spec_name=self.spec_name,
            effort=self.effort,
            one_liner=self.title,
            request=self.request,
            outcome=self.outcome,
            tokens=self.tokens,
            duration_ms=self.duration_ms,
        )

    def noted_findings(self) -> list[Noted]:
        return [Noted(text=one.text, severity=one.severity, run=self.workspace, at=one.at) for one in self.findings]

    def noted_friction(self) -> list[Noted]:
        return [Noted(text=text, run=self.workspace, at=self.updated_at) for text in self.friction]


def indexed(run: PipelineRun) -> IndexedRun:
    """A run from the store, cut to what the index keeps."""
    return IndexedRun(
        workspace=_line(run.workspace),
        spec_name=_line(run.spec_name),
        title=_line(run.title),
        effort=_line(run.effort),
        outcome=run.run_state().ended or "",
        tokens=_number(sum(entry["tokens"] for entry in run.log)),
        duration_ms=_number(sum(entry["duration_ms"] for entry in run.log)),
        created_at=_number(run.created_at),
        updated_at=_number(run.updated_at),
        request=_request(run.request),
        findings=_findings(run.findings[-NOTES:], "description"),
        friction=_points(run.friction),
    )


def lessons_in(request: str, runs: Sequence[IndexedRun]) -> Lessons:
    """What an index teaches about a request. As with runs from the store, only completed ones count."""
    ended = [run for run in _newest_first(runs) if run.outcome == COMPLETED]
    return learn(
        request,
        runs=[run.past() for run in ended],
        findings=[note for run in ended for note in run.noted_findings()],
        friction=[note for run in ended for note in run.noted_friction()],
    )


# -- index.json -------------------------------------------------------------------------------------------------------


def index_text(runs: Iterable[IndexedRun]) -> str:
    """The index of these runs, newest first, one per line, so that diffs show which runs came and went."""
    lines: list[str] = []
    room = INDEX_BYTES
    entries = (_run(msgspec.to_builtins(run)) for run in runs)  # as they would be read back
    for run in _newest_first(run for run in entries if run is not None):
        line = msgspec.json.encode(run)
        room -= len(line) + len(",\n")
        if room < 0:
            break
        lines.append(line.decode())
    listed = "\n" + ",\n".join(lines) + "\n" if lines else ""
    return f'{{"version": {VERSION}, "runs": [{listed}]}}\n'


def index_read(text: str) -> list[IndexedRun]:
    """The runs listed in an index, newest first; empty if the text is not an index."""
    if len(text) > READ_CHARACTERS:
        return []
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return []
    listed = document.get("runs") if isinstance(document, dict) and document.get("version") == VERSION else None
    return _newest_first(run for entry in _entries(listed, LOOKED_AT) if (run := _run(entry)) is not None)


def _run(entry: Any) -> IndexedRun | None:
    """One entry, without its malformed parts; None if it does not even identify a run."""
    if not isinstance(entry, dict):
        return None
    workspace, spec_name = _line(entry.get("workspace")), _line(entry.get("spec_name"))
    if not workspace or not spec_name:
        return None
    return IndexedRun(
        workspace=workspace,
        spec_name=spec_name,
        title=_line(entry.get("title")),
        effort=_line(entry.get("effort")),
        outcome=_line(entry.get("outcome")),
        tokens=_number(entry.get("tokens")),
        duration_ms=_number(entry.get("duration_ms")),
        created_at=_number(entry.get("created_at")),
        updated_at=_number(entry.get("updated_at")),
        request=_request(entry.get("request")),
        findings=_findings(entry.get("findings"), "text"),
        friction=_points(entry.get("friction")),
    )


def _newest_first(runs: Iterable[IndexedRun]) -> list[IndexedRun]:
    """The newest runs. If a run is listed twice, as after merging two branches, the newer entry counts."""
    ordered = sorted(runs, key=lambda run: (-run.updated_at, -run.created_at, run.workspace))
    by_workspace: dict[str, IndexedRun] = {}
    for run in ordered:
        by_workspace.setdefault(run.workspace, run)
    return list(by_workspace.values())[:RUNS]


# -- improvement.md ---------------------------------------------------------------------------------------------------


def improvement_text(friction: Iterable[str]) -> str:
    """A run's `improvement.md` from the store's data, such that `friction_in` reads the same points back; empty if
    there are none."""
    points = friction_in("".join(f"- {_line(point, NOTE_CHARACTERS)}\n" for point in friction))
    return "\n".join(["# Improvement Report", "", *(f"- {point}" for point in points), ""]) if points else ""


# -- untrusted values -------------------------------------------------------------------------------------------------


def _findings(listed: Any, field: str) -> list[IndexedNote]:
    found = []
    for entry in _entries(listed, NOTES):
        if isinstance(entry, dict) and (text := _line(entry.get(field), NOTE_CHARACTERS)):
            severity = _line(entry.get("severity"))
            known = severity if re.fullmatch(_SEVERITY, severity) else ""
            found.append(IndexedNote(severity=known, text=text, at=_number(entry.get("at"))))
    return found


def _points(listed: Any) -> list[str]:
    return [text for entry in _entries(listed, NOTES) if (text := _line(entry, NOTE_CHARACTERS))]


def _entries(listed: Any, most: int) -> list[Any]:
    return listed[:most] if isinstance(listed, list) else []


def _line(value: Any, length: int = LINE_CHARACTERS) -> str:
    """A text on one line without invisible characters; empty for anything that is not a string."""
    if not isinstance(value, str):
        return ""
    return " ".join(re.sub(_UNPRINTED, " ", value[: 4 * length]).split())[:length].strip()


def _request(value: Any) -> str:
    """Unlike `_line`, keeps line breaks."""
    if not isinstance(value, str):
        return ""
    return re.sub(_UNPRINTED, " ", value[:REQUEST_CHARACTERS]).strip()


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= GREATEST else 0

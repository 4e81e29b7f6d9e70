"""Past runs as `.specs/index.json` has them, and what made one of them hard as its `improvement.md` has it: mirrors of
the store, for people, for other programs, and for a clone whose store is still empty.

Pure: records in, a text out, the same for the same records; and back. A text comes from a repository that anybody may
have written, so what is read is believed in nothing: what is not as it should be is left out, everything is cut to its
length, and no text makes a read fail. Which of store and mirror counts is the caller's question.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from handrail.domain.pipeline.learning import Lessons, Noted, PastRun, friction_in, learn
from handrail.domain.pipeline.run import PipelineRun

VERSION = 1
RUNS = 25
"""The newest. It is written whole at the end of every run, so that its cost is one of theirs; a clone whose store is
still empty learns enough from them."""
NOTES = 20
"""Findings, the newest, and friction points, the first, that are kept of a run."""
REQUEST_CHARACTERS = 2000
"""What is compared of a request."""
NOTE_CHARACTERS = 400
LINE_CHARACTERS = 200
"""Names and titles."""
INDEX_BYTES = 1024 * 1024
"""The whole, also where every text is as long as may be; the oldest runs are left out then."""
LOOKED_AT = 1000
"""Entries that are looked at for the newest. What stands beyond is left out unread."""
READ_CHARACTERS = 2 * INDEX_BYTES
"""A longer text is none of ours, and is not read at all."""
GREATEST = 2**53 - 1
"""The largest number every reader of JSON takes exactly."""
COMPLETED = "completed"

_SEVERITY = r"[A-Z]{1,20}"
_UNPRINTED = r"[\x00-\x08\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
"""What no one sees: it could only hide something, or turn a line around."""


class IndexedNote(msgspec.Struct, frozen=True, kw_only=True):
    """A finding of a review."""

    severity: str = ""
    text: str
    at: int = 0
    """When, in milliseconds."""


class IndexedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A past run, as far as later ones may learn from it."""

    workspace: str
    """Relative to the repository; tells runs of one name apart."""
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
    """A run of the store, cut to what the index keeps."""
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
    """What an index teaches about a request: as with the store's runs, only those that came to their end."""
    ended = [run for run in _newest_first(runs) if run.outcome == COMPLETED]
    return learn(
        request,
        runs=[run.past() for run in ended],
        findings=[note for run in ended for note in run.noted_findings()],
        friction=[note for run in ended for note in run.noted_friction()],
    )


# -- index.json -------------------------------------------------------------------------------------------------------


def index_text(runs: Iterable[IndexedRun]) -> str:
    """The index of these runs, newest first, one a line: so that a version control system shows what came and went."""
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
    """The runs that an index tells of, newest first; none where it is no index."""
    if len(text) > READ_CHARACTERS:
        return []
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        return []
    listed = document.get("runs") if isinstance(document, dict) and document.get("version") == VERSION else None
    return _newest_first(run for entry in _entries(listed, LOOKED_AT) if (run := _run(entry)) is not None)


def _run(entry: Any) -> IndexedRun | None:
    """One entry, as far as it is what it should be; None where it does not even say which run it is."""
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
    """The newest runs. Of one that is there twice, as after a merge of two branches, the newer entry counts."""
    ordered = sorted(runs, key=lambda run: (-run.updated_at, -run.created_at, run.workspace))
    by_workspace: dict[str, IndexedRun] = {}
    for run in ordered:
        by_workspace.setdefault(run.workspace, run)
    return list(by_workspace.values())[:RUNS]


# -- improvement.md ---------------------------------------------------------------------------------------------------


def improvement_text(friction: Iterable[str]) -> str:
    """A run's `improvement.md` from what the store has of it, so that `friction_in` reads the same points back; nothing
    where there are none."""
    points = friction_in("".join(f"- {_line(point, NOTE_CHARACTERS)}\n" for point in friction))
    return "\n".join(["# Improvement Report", "", *(f"- {point}" for point in points), ""]) if points else ""


# -- what is taken from a text ----------------------------------------------------------------------------------------


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
    """A text on one line, without what no one sees; nothing for anything else."""
    if not isinstance(value, str):
        return ""
    return " ".join(re.sub(_UNPRINTED, " ", value[: 4 * length]).split())[:length].strip()


def _request(value: Any) -> str:
    """A request keeps its lines."""
    if not isinstance(value, str):
        return ""
    return re.sub(_UNPRINTED, " ", value[:REQUEST_CHARACTERS]).strip()


def _number(value: Any) -> int:
    return value if type(value) is int and 0 <= value <= GREATEST else 0

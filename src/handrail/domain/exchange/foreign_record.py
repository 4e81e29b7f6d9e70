"""One record of another tool's file: values that fit a field of ours are taken, everything else is kept.

A field of an unexpected type is not taken, so it is kept as well. Knows no tool's fields.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

from handrail.domain.exchange.markdown_lines import DEEPER, indent_of, without_indent
from handrail.domain.exchange.plan_document import PlanNote
from handrail.kernel.shorten import on_one_line, shortened

TEXT_MAX = 200_000
"""Characters of a description (`PlanTask`)."""
ENTRY_MAX = 4000
ENTRIES_MAX = 500
SUMMARY_MAX = 200
NAMED_MAX = 5
UNKNOWN_STATUSES = "unknown statuses count as pending"
CUT_DESCRIPTIONS = "long descriptions were cut; the whole text is kept"
SHOWN_MAX = 100
_MARKED = re.compile(r"[ \t]*(?:[-*+•]|[0-9]{1,3}[.)])\s+(\[[ xX]\]\s+)?")


class ForeignRecord:
    """A record whose fields are taken one by one."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._left = dict(fields)

    def get(self, key: str) -> Any:
        """The raw value, which remains among what is kept."""
        return self._left.get(key)

    def take(self, key: str) -> Any:
        """The raw value, which is then no longer kept."""
        return self._left.pop(key, None)

    def text(self, key: str) -> str:
        """The text, taken; empty if it is not text."""
        value = self._left.get(key)
        return str(self._left.pop(key)) if isinstance(value, str) else ""

    def texts(self, key: str) -> list[str]:
        """The list of texts, taken; empty if it is not one."""
        value = self._left.get(key)
        if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
            return []
        return list(self._left.pop(key))

    def records(self, key: str) -> list[dict[str, Any]]:
        """The objects in a list, which remains among what is kept."""
        value = self._left.get(key)
        return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []

    def time(self, *keys: str) -> int | None:
        """The first of these that is a time, in milliseconds since 1970. Taken only if no precision is lost."""
        for key in keys:
            at = milliseconds(self._left.get(key))
            if at is not None:
                if _whole_milliseconds(str(self._left[key])):
                    del self._left[key]
                return at
        return None

    def keep(self, key: str, value: Any) -> None:
        """Keeps a value as the source has it."""
        self._left[key] = value

    @property
    def left(self) -> dict[str, Any]:
        """What is kept, without empty values, which say nothing."""
        return {key: value for key, value in self._left.items() if value is not None and value not in ("", [], {})}


def milliseconds(value: object) -> int | None:
    """A time as tools write it: ISO 8601, with or without a zone. The year 1 and the start of 1970 mean none."""
    if not isinstance(value, str) or not 10 <= len(value) <= 40:
        return None
    try:
        at = datetime.fromisoformat(value)
        moment = int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1000 + 0.5)
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment > 0 else None


def _whole_milliseconds(said: str) -> bool:
    digits = re.search(r"\.([0-9]+)", said)
    return digits is None or not digits.group(1)[3:].strip("0")


def reference(value: object) -> str | None:
    """An id as the source may write it, number or text; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return (str(value).strip() or None) if isinstance(value, int | str) else None


def with_sections(first: str, *sections: tuple[str, str]) -> str:
    """A description made of several texts, those after the first under headings."""
    parts = [first] if first.strip() else []
    parts += [f"## {heading}\n\n{text}" for heading, text in sections if text.strip()]
    return "\n\n".join(parts)


def fitted(text: str, record: ForeignRecord, key: str, cut: list[str], name: str) -> str:
    """A description within our limit. A longer one is cut, and the full text is kept in the record."""
    if len(text) <= TEXT_MAX:
        return text
    record.keep(key, text)
    cut.append(name)
    return text[: TEXT_MAX - 1] + "…"


def entries(text: str) -> list[str] | None:
    """A text as a list: one entry per bullet, with what is nested in it, or the whole text as one. None if that exceeds
    our limits or would lose ticked boxes."""
    found: list[str] = []
    listed, begin = True, 0
    for line in text.splitlines():
        mark = _MARKED.match(line)
        indent = indent_of(line)
        if mark is not None and "x" in (mark.group(1) or "").lower():
            return None
        if mark is not None and found and indent >= begin + DEEPER:
            found[-1] += "\n" + without_indent(line, begin + DEEPER).rstrip()
        elif mark is not None:
            begin = min(begin, indent) if found else indent
            found.append(line[mark.end() :].strip())
        elif line.strip() and found and line.startswith((" ", "\t")):
            found[-1] += "\n" + line.strip()
        elif line.strip():
            listed = False
            break
    if not listed or not found:
        found = [text.strip()]
    found = [entry for entry in found if entry]
    fits = len(found) <= ENTRIES_MAX and all(len(entry) <= ENTRY_MAX for entry in found)
    return found if fits else None


def note(text: str, *, at: int | None, **detail: Any) -> PlanNote | None:
    """A remark of the source as a checkpoint: its first line as the summary, and the full text too if there is more."""
    lines = text.strip().splitlines()
    if not lines:
        return None
    summary = shortened(on_one_line(lines[0]), SUMMARY_MAX)
    said = {key: value for key, value in detail.items() if value not in (None, "", [], {})}
    if summary != text:
        said["text"] = text
    return PlanNote(summary=summary, detail=said, at=at)


def several(names: list[str]) -> str:
    """Names for a sentence: the first few, shortened if long, and how many more there are."""
    more = len(names) - NAMED_MAX
    shown = [shortened(name, SHOWN_MAX) for name in names[:NAMED_MAX]]
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")


def remark_on(what: str, names: list[str]) -> list[str]:
    """A remark that names what it is about; none if there are no names."""
    return [f"{what}: {several(names)}"] if names else []


def counted(number: int, noun: str) -> str:
    """`1 task`, `2 tasks`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"

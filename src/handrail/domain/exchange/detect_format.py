"""Which format a file is in, judged by its content; its name decides only if the content is inconclusive.

Only a first guess: the format's own reader decides whether the file is valid.
"""

from __future__ import annotations

import json
import re
from typing import Any

_BOX = re.compile(r"^[ \t]{0,40}(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX~/-]\][ \t]", re.MULTILINE)
REPORT = "report"
"""What `handrail export --format json` writes. It has tasks, but is for people and cannot be imported."""
_MARKDOWN_NAMES = (".md", ".markdown", ".mdown", ".mdx")
_NAMES = (
    (re.compile(r"(?:^|[/\\])tasks\.json$"), "task-master"),
    (re.compile(r"\.beads[/\\]|(?:^|[/\\])(?:issues|beads)\.jsonl$"), "beads"),
    (re.compile(r"\.jsonl$"), "handrail"),
)


def recognise(text: str, file_name: str) -> str | None:
    """`task-master`, `beads`, `github`, `workrail`, `handrail` or `markdown`; `REPORT` for a report of ours; None if it
    is none of them."""
    said = text.removeprefix("\ufeff").lstrip(" \t\r\n")
    found = _format_of(_first_value(said)) if said[:1] in ("{", "[") else None
    if found is not None:
        return found
    for pattern, form in _NAMES:
        if pattern.search(file_name):
            return form
    is_list = file_name.lower().endswith(_MARKDOWN_NAMES) or _BOX.search(said) is not None
    return "markdown" if is_list and said[:1] != "{" else None


def _first_value(text: str) -> Any:
    """The first JSON value, whatever follows it: another line, another page, or nothing."""
    try:
        return json.JSONDecoder().raw_decode(text)[0]
    except (ValueError, RecursionError):
        return None


def _format_of(value: Any) -> str | None:
    if isinstance(value, list):
        inner = value[0] if value else None
        found = _format_of(inner)
        return found if found in ("github", "beads") else None
    if not isinstance(value, dict):
        return None
    if "handrail" in value:
        return "handrail"
    if isinstance(value.get("workflow"), dict) and {"tasks", "tasks_more", "totals", "timeline"} <= value.keys():
        return REPORT
    if isinstance(value.get("steps"), list) and {"id", "name"} <= value.keys():
        return "workrail"
    if isinstance(value.get("tasks"), list) or any(
        isinstance(tag, dict) and isinstance(tag.get("tasks"), list) for tag in value.values()
    ):
        return "task-master"
    if isinstance(value.get("number"), int) and "title" in value:
        return "github"
    is_issue = "id" in value and "title" in value and not value.keys().isdisjoint({"issue_type", "status", "priority"})
    return "beads" if is_issue or value.get("_type") in ("issue", "memory") else None

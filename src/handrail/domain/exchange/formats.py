"""The formats a plan can be read from, by name, and the one way to read any of them. Pure.

Which format a file is in, judged by its content; its name decides only if the content is inconclusive.

Only a first guess: the format's own reader decides whether the file is valid.
"""

from __future__ import annotations

import json
import re
from hashlib import sha256
from importlib import import_module
from typing import Any

import msgspec

from handrail.domain.exchange.foreign_json import ForeignJson, unreadable
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.kernel.errors import InvalidParams

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


OURS = "handrail"
GUIDE = "workrail"
"""The only format that holds a guide instead of a plan."""
PLANS = {
    OURS: ("a plan that Handrail exported", "jsonl"),
    "task-master": ("a Task Master file", "task_master"),
    "beads": ("issues that beads exported", "beads"),
    "github": ("GitHub issues", "github"),
    "markdown": ("a Markdown check list", "checklist"),
}
"""For each format its description, and the module here that reads it."""
NAMES = (*PLANS, GUIDE)
DIGITS = 16
"""Length of the hash that identifies a text."""
_MEANT_AS_JSON = re.compile(r'\s*(?:\{|\[\s*[\[{"]|\[\s*\]?\s*$)')
"""How other tools' JSON begins, valid or broken. A box such as `[ ] this` is not JSON."""


def format_of(text: str, file_name: str) -> str:
    """The format of a file, judged by its content. Raises a refusal that says what is wrong with the file or lists the
    known formats."""
    found = recognise(text, file_name)
    if found == REPORT:
        raise InvalidParams(
            "This is a report that Handrail wrote, not a plan.",
            hint="handrail export --format jsonl writes the plan, which can be imported again",
        )
    if found is not None:
        return found
    said = text.removeprefix("\ufeff")
    if not said.strip() or (_MEANT_AS_JSON.match(said) and not any(ForeignJson(said).values())):
        raise unreadable("nothing is in it", hint="export it again, and look for what the other tool said")
    raise InvalidParams(
        "The format of the file was not recognised.", hint=f"say which it is with --from: {', '.join(NAMES)}"
    )


def read_plan(form: str, text: str, *, name: str, source_ref: str | None, part: str | None = None) -> PlanDocument:
    """The plan in a file. `name` is used if it has none; `source_ref` if it names no source, or a hash of the text if
    there is no file either. A plan of our own already says all this."""
    read = import_module(f"handrail.domain.exchange.{PLANS[form][1]}").read
    if part is not None and form != "task-master":
        raise InvalidParams("Only a Task Master file has tags.", hint="leave --tag out")
    document: PlanDocument = read(text, name, part) if form == "task-master" else read(text, name)
    if form == OURS:
        return document
    within = document.source_ref or ""
    if not within or within.startswith("#"):  # "#…" names a part of the file
        said = source_ref or f"text:{sha256(text.encode(errors='replace')).hexdigest()[:DIGITS]}"
        document = msgspec.structs.replace(document, source_ref=said + within)
    return msgspec.structs.replace(
        document, tasks=[_with_source(task, document.source_ref or "") for task in document.tasks]
    )


def _with_source(task: PlannedTask, source: str) -> PlannedTask:
    """The task with the source its id belongs to."""
    if task.origin is None or not task.origin.id or task.origin.source:
        return task
    return msgspec.structs.replace(task, origin=msgspec.structs.replace(task.origin, source=source))

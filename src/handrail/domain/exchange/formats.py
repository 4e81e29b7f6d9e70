"""The formats a plan can be read from, by name, and the one way to read any of them. Pure."""

from __future__ import annotations

import re
from hashlib import sha256
from importlib import import_module

import msgspec

from handrail.domain.exchange.detect_format import REPORT, recognise
from handrail.domain.exchange.foreign_json import ForeignJson, unreadable
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from handrail.kernel.errors import InvalidParams

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

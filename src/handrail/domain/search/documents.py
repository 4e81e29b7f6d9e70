"""Which records hold text that people search for, and what each kind is called. Pure: works on rows as in the ledger.

A row may hold several texts (a run has many findings) or none (messages between agents are not for people to search).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from handrail.domain.crew.outbox import HUMAN
from handrail.domain.gates.gate import REVIEW

KINDS = ("workflow", "task", "decision", "checkpoint", "finding", "gate", "change", "message")
"""The kinds of results, in people's terms: a `finding` is an issue, an error, a review or what a run's reviewer found;
a `gate` is a question with its answer; a `change` is the files that a task changed."""
_NOTES = {"decision": "decision", "error": "finding"}
_PLAN_TEXTS = ("summary", "approach", "steps", "risks", "assumptions")

Row = Mapping[str, Any]


class SearchDocument(NamedTuple):
    """One text that can be found."""

    kind: str
    title: str
    body: str
    workflow_id: str | None
    task_id: str | None = None
    at: int | None = None
    """When it was written, if the row says so; otherwise, when the row's texts last changed."""
    repository: str | None = None
    """Only for a workflow: all other documents belong to their workflow's repository."""


class SearchedTable(NamedTuple):
    """A table whose rows hold text."""

    columns: tuple[str, ...]
    """The columns that matter: changing any other changes no text."""
    documents: Callable[[str, Row], list[SearchDocument]]
    """Makes documents from a row's key and those columns."""


def texts_in(value: Any) -> Iterator[str]:
    """Every text in a JSON value, in order, except the names of members."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            left += reversed(list(one.values()))
        elif isinstance(one, list | tuple):
            left += reversed(one)


def _joined(*values: Any) -> str:
    """The texts of several values, one below the other, each once."""
    return "\n".join(dict.fromkeys(text for value in values for text in texts_in(value) if text))


def _workflow(key: str, row: Row) -> list[SearchDocument]:
    plan = row.get("plan") or {}
    body = _joined(row.get("source_content"), row.get("source_ref"), [plan.get(part) for part in _PLAN_TEXTS])
    return [SearchDocument("workflow", row.get("name") or "", body, key, repository=row.get("repository_path"))]


def _task(key: str, row: Row) -> list[SearchDocument]:
    texts = ("description", "outcome", "error", "acceptance", "files_likely_affected", "plan", "outcome_detail")
    body = _joined(*(row.get(name) for name in texts))
    return [SearchDocument("task", row.get("name") or "", body, row.get("workflow_id"), key)]


def _checkpoint(_: str, row: Row) -> list[SearchDocument]:
    kind = _NOTES.get(row.get("type") or "", "checkpoint")
    title = row.get("summary") or ""
    told = [text for text in texts_in(row.get("detail")) if text != title]
    where = (row.get("workflow_id"), row.get("task_id"))
    return [SearchDocument(kind, title, _joined(told, row.get("files_changed")), *where, at=row.get("created_at"))]


def _gate(_: str, row: Row) -> list[SearchDocument]:
    kind = "finding" if row.get("kind") == REVIEW else "gate"
    body = _joined(row.get("answer"), row.get("feedback"))
    return [SearchDocument(kind, row.get("question") or "", body, row.get("workflow_id"), row.get("task_id"))]


def _pipeline(key: str, row: Row) -> list[SearchDocument]:
    found = [
        SearchDocument(
            "finding", finding.get("description") or "", finding.get("severity") or "", key, at=finding.get("at")
        )
        for finding in row.get("findings") or ()
    ]
    return [*found, *(SearchDocument("finding", text, "", key) for text in row.get("friction") or ())]


def _journal(key: str, row: Row) -> list[SearchDocument]:
    files = (row.get("report") or {}).get("files") or ()
    paths = _joined([change.get("path") for change in files if isinstance(change, Mapping)])
    return [SearchDocument("change", row.get("plan_step") or "", paths, row.get("workflow_id"), key)] if paths else []


def _message(_: str, row: Row) -> list[SearchDocument]:
    if HUMAN not in (row.get("sender_id"), row.get("recipient_id")):
        return []
    where = (row.get("workflow_id"), row.get("task_id"))
    return [SearchDocument("message", row.get("subject") or "", _joined(row.get("body")), *where)]


SOURCES: Mapping[str, SearchedTable] = {
    "workflow": SearchedTable(("name", "source_content", "source_ref", "plan", "repository_path"), _workflow),
    "task": SearchedTable(
        (
            "name",
            "description",
            "outcome",
            "error",
            "acceptance",
            "files_likely_affected",
            "plan",
            "outcome_detail",
            "workflow_id",
        ),
        _task,
    ),
    "checkpoint": SearchedTable(
        ("type", "summary", "detail", "files_changed", "workflow_id", "task_id", "created_at"), _checkpoint
    ),
    "gate": SearchedTable(("kind", "question", "answer", "feedback", "workflow_id", "task_id"), _gate),
    "pipeline": SearchedTable(("findings", "friction"), _pipeline),
    "journal": SearchedTable(("plan_step", "report", "workflow_id"), _journal),
    "message": SearchedTable(("subject", "body", "sender_id", "recipient_id", "workflow_id", "task_id"), _message),
}
"""By table. Columns missing from a row have their defaults."""


def row_after(table: str, before: Row | None, after: Row) -> Row | None:
    """What is kept of a row after a change; None if the change touches no column that matters. A message that no person
    sent or received is kept without its text."""
    told = {name: after[name] for name in SOURCES[table].columns if name in after}
    if not told:
        return None
    row = {**(before or {}), **told}
    return row if table != "message" or _message("", row) else {}

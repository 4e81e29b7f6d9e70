"""Which rows hold texts, under which kind, and which changes matter to them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from handrail.domain.search.documents import KINDS, SOURCES, SearchDocument, row_after, texts_in
from handrail.store.tables import BY_NAME
from tests.store.records import checkpoint, task, workflow


def documents(source: str, **row: Any) -> list[SearchDocument]:
    return SOURCES[source].documents("key_1", row)


def only(source: str, **row: Any) -> SearchDocument:
    (found,) = documents(source, **row)
    return found


def test_every_column_that_matters_is_a_column() -> None:
    for name, source in SOURCES.items():
        assert set(source.columns) <= set(BY_NAME[name].fields), name


@pytest.mark.parametrize("record", [workflow(), task(), checkpoint()])
def test_a_row_as_the_ledger_has_it_can_be_read(record: Any) -> None:
    table = type(record).__name__.lower()
    row = row_after(table, None, msgspec.to_builtins(record))
    assert row is not None
    (found,) = SOURCES[table].documents(record.id, row)
    assert found.workflow_id == "wf_1"
    assert found.kind in KINDS


def test_a_task_is_found_by_what_came_of_it() -> None:
    found = only("task", name="Build", description="a queue", outcome="works", error=None, workflow_id="wf_1")
    assert found == SearchDocument("task", "Build", "a queue\nworks", "wf_1", "key_1")


@pytest.mark.parametrize(
    ("type_", "kind"), [("decision", "decision"), ("error", "finding"), ("progress", "checkpoint")]
)
def test_a_note_is_called_by_its_type(type_: str, kind: str) -> None:
    found = only("checkpoint", type=type_, summary="s", detail={"chosen": "s", "reasoning": "because"})
    assert (found.kind, found.title, found.body) == (kind, "s", "because")


def test_a_note_is_as_old_as_it_says_whenever_it_was_imported() -> None:
    assert only("checkpoint", type="progress", summary="s", created_at=7).at == 7


def test_a_review_is_a_finding_and_a_decision_of_a_person_a_gate() -> None:
    assert only("gate", kind="review", question="look?").kind == "finding"
    assert only("gate", question="plan", answer="reject", feedback="too large").body == "reject\ntoo large"
    assert only("gate", question="plan").kind == "gate"


def test_a_run_has_a_text_for_each_finding() -> None:
    found = documents("pipeline", findings=[{"severity": "high", "description": "no test", "at": 7}], friction=["slow"])
    assert [(one.kind, one.title, one.at) for one in found] == [("finding", "no test", 7), ("finding", "slow", None)]


def test_changed_files_are_found_by_their_paths() -> None:
    assert documents("journal", plan_step=None, report=None) == []
    assert only("journal", report={"files": [{"path": "src/queue.py"}]}).body == "src/queue.py"


def test_mail_between_agents_is_not_kept() -> None:
    row = {"sender_id": "agent_1", "recipient_id": "agent_2", "subject": "s", "body": "secret"}
    assert documents("message", **row) == []
    assert row_after("message", None, row) == {}
    assert only("message", **{**row, "recipient_id": "human"}).body == "secret"
    assert only("message", **{**row, "sender_id": "human", "body": {"a": ["deep", 1]}}).body == "deep"


def test_a_change_that_touches_no_text_is_none() -> None:
    assert row_after("task", {"name": "a"}, {"status": "completed", "updated_at": 5}) is None
    assert row_after("task", {"name": "a", "outcome": None}, {"outcome": "b"}) == {"name": "a", "outcome": "b"}


def test_texts_are_found_however_deep() -> None:
    deep: Any = "bottom"
    for _ in range(5000):
        deep = [deep]
    assert list(texts_in({"a": "x", "b": [1, None, {"c": "y"}], "d": deep})) == ["x", "y", "bottom"]

"""The ledger's vocabulary: plain records that compare by what they say and never change."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.kernel.ledger import Actor, Change, Event, NewEvent


def test_records_compare_by_what_they_say() -> None:
    assert Actor("anna", "mcp") == Actor("anna", "mcp")
    assert Actor("anna", "mcp") != Actor("anna", "cli")
    assert Change("task", "t", {"a": 1}, None) == Change("task", "t", {"a": 1}, None)


def test_a_record_cannot_be_changed() -> None:
    event: Any = NewEvent("kind", "anna", "mcp", 5, {}, ())
    with pytest.raises(AttributeError):
        event.kind = "other"


def test_an_event_holds_all_that_was_about_to_be_appended_and_its_place() -> None:
    assert set(Event._fields) - set(NewEvent._fields) == {"stream", "seq", "position", "hash"}
    assert not set(NewEvent._fields) - set(Event._fields)


def test_the_rows_that_an_event_put_into_a_table() -> None:
    changes = (
        Change("task", "task_1", {"status": "failed"}, {"status": "pending"}),
        Change("task", "task_2", None, {"status": "pending"}),
        Change("tally", "wf_1", {"counts": {}}, None),
    )
    event = Event("wf_1", 1, 1, "task.failed", "ada", "mcp", 0, {}, changes, "")
    assert list(event.rows("task")) == [{"status": "failed"}]

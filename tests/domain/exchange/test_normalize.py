"""What is changed so that a store can keep it is said, and nothing else is changed."""

from __future__ import annotations

import pytest

from handrail.domain.exchange.normalize import DONE, fitted
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote
from tests.domain.exchange.documents import NOW


def one(**fields: object) -> PlanDocument:
    return PlanDocument(name="p", tasks=[PlannedTask(name="a", **fields)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (PlanDocument(name="p", max_parallel_tasks=5000), "5,000 tasks at once is not possible: 100 may run at once"),
        (PlanDocument(name="p", source_type="trello"), "unknown kind of source trello: imported as custom"),
        (PlanDocument(name="p", source_ref="x" * 3000), "were cut: the reference to the source"),
        (one(created_at=-5), "times before 1970 were left out: a"),
        (one(created_at=NOW + 1), "times in the future were left out: a"),
        (one(notes=[PlanNote(summary="x" * 4001)]), 'were cut: a note on "a", kept whole in its detail'),
    ],
)
def test_what_is_changed_is_said(document: PlanDocument, said: str) -> None:
    fit = fitted(document, NOW)
    assert [remark for remark in fit.remarks if said in remark] == fit.remarks != []
    assert fitted(fit, NOW) == fit


def test_a_time_before_1970_is_no_time() -> None:
    assert fitted(one(created_at=-5, started_at=-1), NOW).tasks[0].created_at == NOW
    assert fitted(one(created_at=0), NOW).tasks[0].created_at == 0


def test_an_empty_text_stays_one_unless_the_state_needs_more() -> None:
    assert fitted(one(outcome="", error=""), NOW).tasks[0].outcome == ""
    assert fitted(one(outcome="", status="completed"), NOW).tasks[0].outcome == DONE


def test_a_long_note_overwrites_nothing() -> None:
    long = "x" * 5000
    (note,) = fitted(one(notes=[PlanNote(summary=long, detail={"text": "mine", "a": 1})]), NOW).tasks[0].notes
    assert note.detail == {"text": "mine", "a": 1, "whole_text_1": long}
    (blank,) = fitted(one(notes=[PlanNote(summary=" kept ")]), NOW).tasks[0].notes
    assert blank.summary == " kept "


@pytest.mark.parametrize("whole", ["planning", "ready"])
@pytest.mark.parametrize("status", ["in_progress", "completed", "failed"])
def test_a_whole_with_begun_tasks_has_begun(whole: str, status: str) -> None:
    document = PlanDocument(name="p", status=whole, tasks=[PlannedTask(name="a", status=status), PlannedTask(name="b")])
    fit = fitted(document, NOW)
    assert fit.status == "in_progress"
    assert f"the plan says it is {whole}" in fit.remarks[0]
    untouched = PlanDocument(name="p", status=whole, tasks=[PlannedTask(name="a", status="skipped")])
    assert fitted(untouched, NOW).status == whole

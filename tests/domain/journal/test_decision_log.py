"""Which decisions hold, and how one reads as a page."""

from __future__ import annotations

from typing import Any

from handrail.domain.journal.decision_log import LoggedDecision, decision_page, replaced_by
from handrail.domain.work.checkpoint import Checkpoint
from handrail.domain.work.workflow import Workflow
from tests.store.records import checkpoint

WORKFLOW = Workflow(
    id="wf_1",
    name="Auth",
    status="ready",
    source_type="prompt",
    source_ref=None,
    source_content="",
    repository_path=None,
    plan=None,
    max_parallel_tasks=1,
    auto_create_workspaces=False,
    created_at=1,
    updated_at=1,
)


def note(number: int, summary: str = "", workflow: str = "wf_1", **detail: Any) -> Checkpoint:
    return Checkpoint(
        id=f"cp_{number}",
        workflow_id=workflow,
        task_id="task_1",
        sequence=number,
        type="decision",
        summary=summary or f"decision {number}",
        detail=detail,
        files_changed=[],
        created_at=1_768_471_500_000 + number,
    )


def decision(made: Checkpoint, later: Checkpoint | None = None) -> LoggedDecision:
    return LoggedDecision(note=made, task="Setup", goal="Verify tokens", workflow=WORKFLOW, replaced_by=later)


def test_the_latest_that_replaces_a_decision_is_the_one_that_holds() -> None:
    notes = [note(1), note(2, supersedes="cp_1"), note(3, supersedes=["cp_1", "decision 2"])]
    assert {key: later.id for key, later in replaced_by(notes).items()} == {"cp_1": "cp_3", "cp_2": "cp_3"}


def test_a_decision_of_another_workflow_is_replaced_by_its_id_and_not_by_its_words() -> None:
    notes = [note(1, "use it"), note(2, workflow="wf_2", supersedes="use it")]
    assert replaced_by(notes) == {}
    notes.append(note(3, workflow="wf_2", supersedes="cp_1"))
    assert set(replaced_by(notes)) == {"cp_1"}


def test_no_decision_replaces_itself_or_a_later_one() -> None:
    assert replaced_by([note(1, supersedes=["cp_1", "cp_2"]), note(2)]) == {}


def test_a_page_has_context_decision_and_consequences() -> None:
    made = note(
        1,
        question="Which library?",
        chosen="jose",
        reasoning="Maintained",
        category="library_choice",
        options_considered=["jose", "pyjwt"],
        trade_offs="Larger",
    )
    assert "\n".join(decision_page(decision(made), 7, {})) == (
        "# 7. Which library?\n\n- Status: accepted\n- Date: 2026-01-15\n- Category: library choice\n"
        "- Task: Setup (`task_1`)\n- Workflow: Auth (`wf_1`)\n- Decision: `cp_1`\n\n"
        "## Context\n\n> Which library?\n\n> Verify tokens\n\nConsidered:\n\n- jose\n- pyjwt\n\n"
        "## Decision\n\n> jose\n\n> Maintained\n\n## Consequences\n\n> Larger\n"
    )


def test_a_superseded_page_points_to_the_one_that_holds() -> None:
    later = note(2)
    assert "- Status: superseded by [0002-x.md](0002-x.md)" in decision_page(
        decision(note(1), later), 1, {"cp_2": "0002-x.md"}
    )
    assert "- Status: superseded by `cp_2`" in decision_page(decision(note(1), later), 1, {})


def test_a_decision_in_one_sentence_is_its_own_title() -> None:
    made = decision(note(1, "Use SQLite. " + "It is small. " * 20))
    assert made.title.startswith("Use SQLite. It is")
    assert len(made.title) == 120
    assert made.title.endswith("…")
    assert made.chosen == made.note.summary


def test_a_decision_that_a_later_one_names_is_replaced() -> None:
    first = checkpoint("cp_1", type="decision", summary="five tries", created_at=1)
    second = checkpoint("cp_2", type="decision", summary="ten tries", created_at=2, detail={"supersedes": "cp_1"})
    third = checkpoint("cp_3", type="decision", summary="no limit", created_at=3, detail={"supersedes": ["ten tries"]})
    assert set(replaced_by([third, second, first])) == {"cp_1", "cp_2"}


def test_a_decision_replaces_neither_itself_nor_a_later_one() -> None:
    first = checkpoint("cp_1", type="decision", created_at=1, detail={"supersedes": ["cp_1", "cp_2"]})
    second = checkpoint("cp_2", type="decision", created_at=2)
    assert set(replaced_by([first, second])) == set()

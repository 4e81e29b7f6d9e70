"""`handrail review`, and reviews in `handrail status`: shown until a person closes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.ledger import Actor
from tests.surfaces.cli.journalled import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def asked(project: Project, workflow: str | None = None) -> str:
    """A task that asks a person to look at something; its workflow."""
    key = workflow or project.workflow()
    task = project.task(key)
    project.issue(task, "The docs are old", review=True)
    project.complete(task, manual_review_needed=True, manual_review_reason="Is the key long enough?")
    return key


def test_open_reviews_are_listed_with_what_they_are_about(project: Project) -> None:
    assert project.shown("review") == "Nothing is to be reviewed.\n"
    assert not (project.top / ".handrail").exists()
    asked(project)
    text = project.shown("review")
    assert "gate_1  open for " in text
    about = '  asked in "Setup JWT" (task_1) of "Add authentication" (wf_1)\n'
    assert f"  Setup JWT: The docs are old\n  what the agent did: Read the source\n{about}" in text
    assert f"  Setup JWT: Is the key long enough?\n{about}" in text, "that was no issue: nothing was resolved"
    assert "what the agent did: Read the source" in project.shown("review", "gate_1")
    found = project.json("review")
    assert [one["question"] for one in found["reviews"]] == [
        "Setup JWT: The docs are old",
        "Setup JWT: Is the key long enough?",
    ]
    assert [one["resolution"] for one in found["reviews"]] == ["Read the source", None]
    assert found["more"] == 0


def test_a_person_closes_one_with_a_word_and_is_remembered(project: Project) -> None:
    workflow = asked(project)
    closed = project.json("review", "gate_1", "--close", "fixed", "--remark", "in the wiki")
    assert (closed["status"], closed["answer"], closed["remark"]) == ("answered", "fixed", "in the wiki")
    assert (closed["answered_by"], closed["channel"]) == ("ann", "cli")
    assert [one["id"] for one in project.json("review")["reviews"]] == ["gate_2"]
    assert "closed by ann through cli with fixed: in the wiki" in project.shown("review", "gate_1")
    event = project.json("log")[-1]
    assert (event["kind"], event["actor"], event["channel"]) == ("review.closed", "ann", "cli")
    assert "Closed" in project.shown("report", workflow)
    assert "answered by ann: fixed: in the wiki" in project.shown("journal", workflow)
    project.shown("undo")
    assert len(project.json("review")["reviews"]) == 2


def test_a_closed_one_is_not_closed_again(project: Project) -> None:
    asked(project)
    project.shown("review", "gate_1", "--close", "ok")
    assert "ILLEGAL_TRANSITION" in project.refused("review", "gate_1", "--close", "no")
    assert project.json("review", "gate_1")["answer"] == "ok"


def test_which_one_is_meant_must_be_plain(project: Project) -> None:
    asked(project)
    assert "could mean several reviews" in project.refused("review", "gate_", "--close", "ok")
    assert "there is no review gate_9" in project.refused("review", "gate_9")
    assert "there is no review x" in project.refused("review", "x")
    assert "nobody knows which review" in project.refused("review", "--close", "ok", code=2)
    assert "a remark goes with" in project.refused("review", "gate_1", "--remark", "so", code=2)
    assert "cannot be empty" in project.refused("review", "gate_1", "--close", " ", code=2)
    assert "200 is the most" in project.refused("review", "gate_1", "--close", "x" * 201, code=2)


def open_decision(project: Project, workflow: str) -> None:
    question = Gate(
        id="gate_decision",
        workflow_id=workflow,
        task_id=None,
        status="open",
        question="Is the schema right?",
        options=["approve", "reject"],
        content_hash="",
        answer=None,
        feedback=None,
        answered_by=None,
        channel=None,
        created_at=project.clock.now_ms(),
        answered_at=None,
    )
    project.ledger.run(Actor("agent", "mcp"), lambda unit: unit.record("gate.opened", question))


def test_a_decision_is_no_review(project: Project) -> None:
    workflow = asked(project)
    open_decision(project, workflow)
    assert "is a decision that work waits for" in project.refused("review", "gate_decision", "--close", "ok", code=2)
    assert len(project.json("review")["reviews"]) == 2


def test_status_shows_reviews_once_and_apart_from_what_work_waits_for(project: Project) -> None:
    workflow = asked(project)
    open_decision(project, workflow)
    text = project.shown("status")
    assert text.count("The docs are old") == 1
    waiting = text.index("Waiting for you\n  ? Is the schema right? (approve / reject), for ")
    assert text.index("To look at\n  ! Setup JWT: ") > waiting
    assert "    gate_1\n" in text
    assert "`handrail review` shows more and closes them." in text
    kinds = [(one["id"], one["kind"]) for one in project.json("status")["questions"]]
    assert kinds == [("gate_decision", "decision"), ("gate_1", "review"), ("gate_2", "review")]


def test_a_review_outlives_its_workflow_in_status(project: Project) -> None:
    workflow = asked(project)
    project.shown("done", workflow)
    assert "No workflow is open here." in project.shown("status")
    assert "! Setup JWT: The docs are old, for " in project.shown("status")
    project.workflow("Another")
    assert [one["id"] for one in project.json("status", "Another")["questions"]] == []
    assert [one["id"] for one in project.json("status", workflow)["questions"]] == ["gate_1", "gate_2"]
    for key in ("gate_1", "gate_2"):
        project.shown("review", key, "--close", "ok")
    assert "To look at" not in project.shown("status")


def test_status_says_how_many_more_there_are(project: Project) -> None:
    task = project.task(project.workflow())
    for number in range(12):
        project.issue(task, f"Problem {number}", review=True)
    text = project.shown("status")
    assert "Problem 9" in text
    assert "Problem 10" not in text
    assert "  and 2 more\n" in text


def test_other_repositories_reviews_are_shown_when_asked_for(tmp_path: Path) -> None:
    store = str(tmp_path / "shared.db")
    mine = Project(tmp_path / "mine", db=store)
    asked(mine)
    other = Project(tmp_path / "other", db=store)
    assert other.json("review")["reviews"] == []
    assert other.json("status")["questions"] == []
    assert len(other.json("review", "--all")["reviews"]) == 2
    assert len(other.json("status", "--all")["questions"]) == 2

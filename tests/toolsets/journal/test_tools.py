"""What the journal promises beyond its examples and stories, on a real repository."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.journal import journal
from handrail.domain.journal.entry import JournalEntry
from handrail.kernel.ledger import Actor
from tests.toolsets.plan.planned import Desk

OUTCOME = {"summary": "Done as planned."}


class Work(Desk):
    """A desk in a git repository."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.top = folder / "project"
        self.git("init", "-q", "-b", "main")
        self.write("auth.py", "1\n")
        self.git("add", ".")
        self.git("commit", "-qm", "start")
        self.workflow = str(self.call("start_workflow", name="Auth")["workflow_id"])

    def git(self, *words: str) -> None:
        who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=self.top, check=True, capture_output=True)

    def write(self, path: str, text: str) -> None:
        (self.top / path).parent.mkdir(parents=True, exist_ok=True)
        (self.top / path).write_text(text, encoding="utf-8")

    def start(self, name: str, **more: Any) -> str:
        started = self.call("start_task", workflow_id=self.workflow, name=name, goal=f"{name} works", **more)
        return str(started["task_id"])

    def complete(self, task: str, status: str = "success", **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.call(
            "complete_task", **{"task_id": task, "status": status, "outcome": OUTCOME, **more}
        )
        return answer


@pytest.fixture
def work(tmp_path: Path) -> Work:
    return Work(tmp_path)


def test_a_task_of_the_plan_is_taken_up_by_its_name(work: Work) -> None:
    planned = {"name": "tokens", "description": "Sign tokens", "sequence": 1, "acceptance": ["signed"]}
    work.call("workflow_add_tasks", id=work.workflow, tasks=[planned])
    task = work.start("tokens")
    shown = work.task(task)
    assert (shown["description"], shown["acceptance"], shown["status"]) == ("Sign tokens", ["signed"], "in_progress")
    assert shown["context"] == {"goal": "tokens works"}
    assert work.call("workflow_progress")["total_tasks"] == 1


def test_a_name_that_is_taken_gets_a_number_and_a_warning(work: Work) -> None:
    first = work.start("tokens")
    answer = work.call("start_task", workflow_id=work.workflow, name="tokens", goal="again")
    assert first in answer["warnings"][0]
    assert work.task(answer["task_id"])["name"] == "tokens (2)"


def test_notes_are_checkpoints_and_many_of_them_are_kept_with_a_warning(work: Work) -> None:
    task = work.start("tokens")
    answers = [work.call("log_milestone", task_id=task, message=f"step {n}", progress=n * 10) for n in range(1, 7)]
    assert [bool(answer["warnings"]) for answer in answers] == [False] * 5 + [True]
    assert "6 milestones" in answers[-1]["warnings"][0]
    kept = work.call("checkpoint_list", task_id=task)
    assert (kept["total"], kept["checkpoints"][-1]["detail"]["progress"]) == (6, 60)


def test_an_issue_for_a_person_is_open_until_one_closes_it(work: Work) -> None:
    task = work.start("tokens")
    issue = {"type": "bug_encountered", "description": "It leaks.", "resolution": "Worked around."}
    work.call("log_issue", task_id=task, requires_human_review=True, **issue)
    (review,) = work.call("workflow_next_tasks", workflow_id=work.workflow)["open_reviews"]
    assert (review["task_id"], review["question"]) == (task, "tokens: It leaks.")


def test_a_failed_task_is_failed_with_its_summary_as_the_error(work: Work) -> None:
    task = work.start("tokens")
    work.complete(task, "failed", outcome={"summary": "The library is broken."})
    shown = work.task(task)
    assert (shown["status"], shown["error"]) == ("failed", "The library is broken.")
    assert work.start("tokens") == task
    assert work.task(task)["status"] == "in_progress"


def test_a_paused_task_can_fail_and_not_succeed(work: Work) -> None:
    task = work.start("tokens")
    work.move(task, "paused")
    refused = work.refusal("complete_task", task_id=task, status="success", outcome=OUTCOME)
    assert (refused.code, refused.details["allowed"]) == ("ILLEGAL_TRANSITION", ["in_progress", "failed"])
    work.complete(task, "failed", outcome={"summary": "Nobody needs it any more."})
    assert (work.task(task)["status"], work.task(task)["error"]) == ("failed", "Nobody needs it any more.")


def test_partial_success_is_told_in_the_outcome(work: Work) -> None:
    task = work.start("tokens")
    work.complete(task, "partial_success")
    shown = work.task(task)
    assert (shown["status"], shown["outcome_detail"]["status"]) == ("completed", "partial_success")


def test_what_the_project_checks_itself_is_evidence_against_a_claim(tmp_path: Path) -> None:
    checks = {"tests": [sys.executable, "-c", "print('one failed'); raise SystemExit(3)"]}
    work = Work(tmp_path, checks=checks)
    task = work.start("tokens")
    answer = work.complete(task, metadata={"tests_status": "passed"}, verify=True)
    (check,) = answer["checks"]
    assert (check["name"], check["exit_code"], check["output"].strip()) == ("tests", 3, "one failed")
    assert "ended with 3" in answer["verification"]["warnings"][-1]


def test_a_check_that_cannot_be_started_or_takes_too_long_is_told(tmp_path: Path) -> None:
    slow = [sys.executable, "-c", "import time; print('slow', flush=True); time.sleep(60)"]
    work = Work(tmp_path, checks={"gone": ["./no-such-check"], "slow": slow}, check_timeout_s=1.0)
    answer = work.complete(work.start("tokens"), verify=True)
    assert [check["exit_code"] for check in answer["checks"]] == [127, 124]
    assert "stopped after 1 s" in answer["checks"][1]["output"]


def test_two_tasks_in_one_tree_are_told_of_each_other(work: Work) -> None:
    first = work.start("tokens", areas=["auth"])
    second = work.call("start_task", workflow_id=work.workflow, name="docs", goal="g", areas=["auth", "docs"])
    assert "touches auth too" in second["warnings"][0]
    work.write("auth.py", "2\n")
    answer = work.complete(first)
    assert answer["files_changed"]["modified"] == ["auth.py"]
    assert answer["overlaps"] == [{"path": "auth.py", "tasks": [second["task_id"]]}]


@pytest.mark.parametrize("how", [{"status": "completed", "outcome": "done"}, {"status": "failed", "error": "broken"}])
def test_a_task_that_ended_outside_the_journal_has_no_part_in_later_work(work: Work, how: dict[str, str]) -> None:
    ended = work.start("tokens", areas=["auth"])
    work.call("task_update_status", id=ended, **how)
    second = work.call("start_task", workflow_id=work.workflow, name="docs", goal="g", areas=["auth"])
    work.write("auth.py", "2\n")
    assert second["warnings"] == []
    assert "overlaps" not in work.complete(second["task_id"])


def test_a_task_of_an_abandoned_workflow_has_no_part_in_later_work(work: Work) -> None:
    work.start("tokens")
    work.call("workflow_update_status", id=work.workflow, status="abandoned")
    work.workflow = str(work.call("start_workflow", name="Next")["workflow_id"])
    task = work.start("docs")
    work.write("auth.py", "2\n")
    assert "overlaps" not in work.complete(task)


def test_a_task_that_ended_outside_the_journal_meanwhile_is_still_told_of(work: Work) -> None:
    task, other = work.start("tokens"), work.start("docs")
    work.write("auth.py", "2\n")
    work.clock.advance(1)
    work.call("task_update_status", id=other, status="completed", outcome="done")
    assert work.complete(task)["overlaps"] == [{"path": "auth.py", "tasks": [other]}]


def test_tasks_that_ended_outside_the_journal_do_not_crowd_out_open_ones(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "NEIGHBOURS", 2)
    for name in ("one", "two"):
        work.call("task_update_status", id=work.start(name), status="completed", outcome="done")
    task, other = work.start("tokens"), work.start("docs")
    work.write("auth.py", "2\n")
    assert work.complete(task)["overlaps"] == [{"path": "auth.py", "tasks": [other]}]


def test_a_task_that_no_snapshot_was_taken_for_says_so(work: Work) -> None:
    work.call("workflow_add_tasks", id=work.workflow, tasks=[{"name": "a", "description": "", "sequence": 1}])
    work.move("task_1", "in_progress")
    answer = work.complete("task_1")
    assert answer["files_changed"] == {"added": [], "modified": [], "deleted": []}
    assert "no snapshot was taken" in answer["verification"]["warnings"][0]


def test_a_reply_about_many_files_stays_small_and_the_journal_has_all(work: Work) -> None:
    task = work.start("tokens")
    for number in range(400):
        work.write(f"generated/file_{number:03}.py", "x\n")
    answer = work.complete(task)
    assert len(msgspec.json.encode(answer)) < 8 * 1024
    assert len(answer["files_changed"]["added"]) + answer["files_left_out"] == 400
    assert len(work.task(task)["outcome_detail"]["files_changed"]["added"]) == 400


def test_a_parent_of_another_workflow_is_refused(work: Work) -> None:
    parent = work.start("tokens")
    other = work.call("start_workflow", name="Other")["workflow_id"]
    refusal = work.refusal("start_task", workflow_id=other, parent_task_id=parent, name="part", goal="g")
    assert refusal.code == "INVALID_PLAN"


def test_starting_in_a_paused_workflow_is_legal_and_told(work: Work) -> None:
    work.start("tokens")
    work.call("workflow_update_status", id=work.workflow, status="paused")
    answer = work.call("start_task", workflow_id=work.workflow, name="more", goal="g")
    assert "is paused" in answer["warnings"][0]
    assert work.call("workflow_get", id=work.workflow)["status"] == "paused"
    work.complete(answer["task_id"])


def test_every_change_of_the_journal_is_in_the_ledger(work: Work) -> None:
    task = work.start("tokens")
    work.write("auth.py", "2\n")
    work.complete(task)
    assert work.store.verify() == []
    assert [event.kind for event in work.store.events(work.workflow)] == [
        "workflow.created",
        "task.in_progress",
        "task.completed",
    ]


@pytest.mark.parametrize("how", ["paused", "failed", "replanned"])
def test_a_task_that_is_taken_up_again_is_told_of_all_it_changed(work: Work, how: str) -> None:
    task = work.start("tokens", areas=["auth"])
    work.write("first.py", "1\n")
    if how == "failed":
        work.complete(task, "failed")
    elif how == "paused":
        work.move(task, "paused")
    else:
        work.call("task_replan", id=task, reason="again", new_plan={"approach": "a", "steps": []})
    assert work.start("tokens") == task
    assert work.task(task)["outcome"] is None
    work.write("second.py", "2\n")
    answer = work.complete(task)
    assert answer["files_changed"]["added"] == ["first.py", "second.py"]
    assert "(auth)" in answer["verification"]["warnings"][0]


def test_work_for_another_repository_is_looked_at_there(work: Work, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=other, check=True)
    created = work.call(
        "workflow_create", name="w", source_type="prompt", source_content="", repository_path=str(other)
    )
    task = work.call("start_task", workflow_id=created["id"], name="t", goal="g")["task_id"]
    work.write("here.py", "1\n")
    (other / "there.py").write_text("2\n", encoding="utf-8")
    assert work.complete(task)["files_changed"]["added"] == ["there.py"]


def test_who_forgot_everything_is_told_which_files_are_changed_so_far(work: Work) -> None:
    work.start("tokens")
    work.write("auth.py", "2\n")
    work.write("new.py", "3\n")
    bundle = work.call("task_load_context")
    assert bundle["changed_files"] == ["auth.py", "new.py"]
    assert bundle["next"].startswith("Go on: 2 files are changed")


def test_an_issue_that_was_told_with_its_resolution_is_not_open(work: Work) -> None:
    task = work.start("tokens")
    issue = {"type": "documentation_gap", "description": "No docs.", "resolution": "Read the source."}
    work.call("log_issue", task_id=task, **issue)
    bundle = work.call("task_load_context")
    assert "open_issues" not in bundle
    assert "Solve" not in bundle["next"]
    work.call("log_issue", task_id=task, requires_human_review=True, **issue)
    assert "Solve" in work.call("task_load_context")["next"]


def test_of_a_task_and_its_part_the_part_is_what_is_worked_on(work: Work) -> None:
    whole = work.start("whole", areas=["auth"])
    answer = work.call(
        "start_task", workflow_id=work.workflow, parent_task_id=whole, name="part", goal="g", areas=["auth"]
    )
    assert answer["warnings"] == []
    assert work.call("task_load_context")["current_task"]["id"] == answer["task_id"]


def test_verifying_without_checks_says_that_nothing_was_verified(work: Work) -> None:
    answer = work.complete(work.start("tokens"), verify=True)
    assert "nothing was verified" in answer["verification"]["warnings"][0]


def test_what_checks_said_is_kept_with_the_outcome(work: Work) -> None:
    task = work.start("tokens")
    work.complete(task, checks=[{"command": "make test", "exit_code": 0}])
    assert work.task(task)["outcome_detail"]["checks"] == [{"command": "make test", "exit_code": 0}]


@pytest.mark.parametrize("link", [".handrail", ".handrail/snapshots"])
def test_state_that_would_lie_behind_a_link_is_refused(work: Work, tmp_path: Path, link: str) -> None:
    (tmp_path / "outside").mkdir()
    place = work.top / link
    if place.exists():
        place.rename(tmp_path / "aside")
    place.symlink_to(tmp_path / "outside")
    refusal = work.refusal("start_task", workflow_id=work.workflow, name="t", goal="g")
    assert refusal.code == "PLACE_UNUSABLE"
    assert list((tmp_path / "outside").iterdir()) == []


PLAN = [
    {"step": "1", "goal": "Install it"},
    {"step": "2", "goal": "Configure the routes"},
    {"step": "callbacks", "goal": "Move the callbacks"},
]


def planned_in_words(work: Work) -> None:
    work.workflow = str(work.call("start_workflow", name="Move", plan=PLAN)["workflow_id"])


def left(work: Work) -> list[str]:
    found: list[str] = work.call("workflow_next_tasks", workflow_id=work.workflow).get("plan_steps_left", [])
    return found


def test_a_plan_in_words_outlives_the_conversation(work: Work) -> None:
    planned_in_words(work)
    task = work.start("routes", plan_step="2")
    told = work.call("task_load_context", task_id=task)["workflow"]["plan_summary"]
    assert told == "To come: 1. Install it; 3. callbacks: Move the callbacks\nBegun: 2. Configure the routes"
    assert work.call("workflow_get_summary", id=work.workflow)["summary"]["plan"].startswith("To come: 1. ")


def test_steps_of_a_plan_that_nobody_began_are_told_where_no_task_is_ready(work: Work) -> None:
    planned_in_words(work)
    assert left(work) == ["1. Install it", "2. Configure the routes", "3. callbacks: Move the callbacks"]
    work.complete(work.start("Configure the routes"))
    assert left(work) == ["1. Install it", "3. callbacks: Move the callbacks"]
    work.complete(work.start("callbacks"))
    assert left(work) == ["1. Install it"]
    other = work.start("set it up, somehow")
    assert left(work) == [], "a task that names no step stands for the first that no other is for"
    work.start("a part of it", parent_task_id=other)
    assert left(work) == []


def test_a_part_of_a_task_is_no_step_of_the_plan(work: Work) -> None:
    planned_in_words(work)
    work.start("a part", parent_task_id=work.start("routes", plan_step="2"))
    assert left(work) == ["1. Install it", "3. callbacks: Move the callbacks"]


def test_a_workflow_that_is_over_has_no_steps_left(work: Work) -> None:
    planned_in_words(work)
    work.complete(work.start("Install it"))
    work.call("workflow_update_status", id=work.workflow, status="completed")
    assert left(work) == []


def test_a_task_that_is_begun_again_shows_nothing_of_its_failed_try(work: Work) -> None:
    task = work.start("tokens")
    work.write("auth.py", "2\n")
    work.complete(task, "failed")
    assert work.start("tokens") == task
    entry = work.store.run(Actor("tester", "test"), lambda unit: unit.get(JournalEntry, task))
    assert entry is not None
    assert (entry.report, entry.after, entry.completed_at) == (None, None, None)
    assert work.complete(task)["files_changed"]["modified"] == ["auth.py"], "what it changed in both tries is its work"

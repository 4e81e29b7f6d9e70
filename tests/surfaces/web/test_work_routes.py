"""Deciding on the page: an answer is to what was shown, once, by a person, with a reason where something is wrong."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.errors import IllegalTransition, InvalidParams, NotAllowed, NotFound
from handrail.kernel.records import where
from tests.domain.overview.looking import asked_to_review
from tests.surfaces.web.visiting import READER, Page, page_of
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER, Desk

HOSTILE = "<script>alert(1)</script> \u2028 <b onclick=x>"


class Waiting:
    """A run that waits at its first gate, and the page that shows it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        self.desk = Desk(folder, profile="", toolsets="pipeline,plan", **settings)
        self.run = Orchestrator(self.desk.call, folder / "project", text=HOSTILE)
        self.run.written["design.md"] = [f"# Design {HOSTILE}\n\n## Part\n"]
        self.run.run(lambda action: action["type"] == "checkpoint")
        self.page = page_of(self.desk)
        (self.need,) = self.page.get("/api/needs")["items"]
        self.gate: str = self.need["id"]
        self.path = f"/api/gates/{self.gate}/decision"

    def decide(self, answer: str, **more: Any) -> Any:
        return self.page.post(self.path, **{"answer": answer, "content_hash": self.need["content_hash"], **more})

    def refused(self, answer: str, **more: Any) -> Any:
        return self.page.refused(self.path, **{"answer": answer, "content_hash": self.need["content_hash"], **more})

    def stored(self) -> list[Gate]:
        gates = self.desk.store.run(TESTER, lambda unit: unit.select(Gate, where(kind="decision")))
        return sorted(gates, key=lambda gate: gate.created_at)


@pytest.fixture
def waiting(tmp_path: Path) -> Waiting:
    return Waiting(tmp_path)


def test_what_waits_is_shown_with_its_document_as_text(waiting: Waiting) -> None:
    need = waiting.need
    assert (need["kind"], need["question"], need["workflow_id"]) == ("decision", "checkpoint-a", waiting.run.workflow)
    assert need["path"] == f"{waiting.run.workspace}/design.md"
    assert need["options"] == ["approve", "reject", "abandon"]
    shown = waiting.page.get(f"/api/gates/{waiting.gate}")
    assert HOSTILE in shown["text"]
    assert "<script>alert(1)</script>" in shown["title"]
    assert (shown["status"], shown["gone"], shown["changed_from"]) == ("open", False, None)
    assert shown["content_hash"] == need["content_hash"]


def test_an_answer_lets_the_run_go_on_and_is_kept_with_name_and_channel(waiting: Waiting) -> None:
    done = waiting.decide("approve", feedback="Well done.")
    assert (done["gate_id"], done["answer"]) == (waiting.gate, "approve")
    assert "continues" in done["next"]
    (gate,) = waiting.stored()
    assert (gate.answered_by, gate.channel, gate.answer, gate.feedback) == ("maria", "page", "approve", "Well done.")
    assert waiting.run.next()["type"] != "checkpoint"
    assert waiting.page.get("/api/needs")["items"] == []
    (kept,) = waiting.page.get(f"/api/workflows/{waiting.run.workflow}/gates")["gates"]
    assert (kept["answered_by"], kept["channel"], kept["waited_ms"]) == ("maria", "page", 0)
    assert (kept["path"], kept["phase"]) == (waiting.need["path"], waiting.need["phase"])
    shown = waiting.page.get(f"/api/gates/{waiting.gate}")
    assert (shown["path"], shown["phase"], shown["text"]) == (waiting.need["path"], waiting.need["phase"], None)


def test_a_call_that_waits_is_woken_by_the_answer(waiting: Waiting) -> None:
    answers: list[dict[str, Any]] = []
    waiter = threading.Thread(target=lambda: answers.append(waiting.run.next(wait_ms=20_000)))
    waiter.start()
    waiting.decide("approve")
    waiter.join(15)
    assert not waiter.is_alive()
    assert answers[0]["type"] != "checkpoint"


def test_what_is_said_with_a_rejection_reaches_the_next_agent(waiting: Waiting) -> None:
    waiting.decide("reject", feedback="Use a token bucket.")
    assert "Use a token bucket." in waiting.run.next()["prompt"]


@pytest.mark.parametrize("answer", ["reject", "abandon"])
@pytest.mark.parametrize("feedback", [None, "", "  \n"])
def test_a_no_without_a_reason_is_refused(waiting: Waiting, answer: str, feedback: str | None) -> None:
    assert isinstance(waiting.refused(answer, feedback=feedback), InvalidParams)
    assert waiting.stored()[0].status == "open"


def test_a_run_is_abandoned_with_a_reason(waiting: Waiting) -> None:
    assert waiting.decide("abandon", feedback="Not worth it.")["next"] == "The run is abandoned."


def test_a_second_decision_is_refused_and_told_who_was_first(waiting: Waiting) -> None:
    waiting.decide("approve")
    refusal = waiting.refused("reject", feedback="No!")
    assert isinstance(refusal, IllegalTransition)
    assert "approve, by maria via page" in refusal.message
    assert "decide" not in (refusal.hint or ""), "one fact is said once"
    assert refusal.details["gate_id"] == waiting.gate
    assert refusal.details["path"] == waiting.need["path"]
    assert refusal.message.startswith(waiting.need["phase"])
    assert waiting.stored()[0].answer == "approve"


def test_an_answer_without_what_was_shown_or_to_something_else_is_refused(waiting: Waiting) -> None:
    assert isinstance(waiting.refused("approve", content_hash=None), InvalidParams)
    refusal = waiting.refused("approve", content_hash="0" * 64)
    assert isinstance(refusal, IllegalTransition)
    assert refusal.details == {
        "gate_id": waiting.gate,
        "content_hash": waiting.need["content_hash"],
        "path": waiting.need["path"],
    }
    assert waiting.stored()[0].status == "open"


def test_a_document_that_was_changed_is_asked_about_anew_and_nothing_is_answered(waiting: Waiting) -> None:
    waiting.run.write("design.md", "# Another\n\n## Part\n")
    refusal = waiting.refused("approve")
    assert isinstance(refusal, IllegalTransition)
    old, new = waiting.stored()
    assert (old.status, new.status) == ("withdrawn", "open")
    assert refusal.details == {"gate_id": new.id, "content_hash": new.content_hash, "path": waiting.need["path"]}
    again = waiting.refused("approve")
    assert (again.details["gate_id"], again.code) == (new.id, "ILLEGAL_TRANSITION")
    assert again.message.startswith(waiting.need["path"])
    rows = waiting.page.get(f"/api/workflows/{waiting.run.workflow}/gates")["gates"]
    withdrawn = {row["id"]: row["withdrawn"] for row in rows}
    assert withdrawn == {old.id: "the document was changed", new.id: None}
    shown = waiting.page.get(f"/api/gates/{new.id}")
    assert "# Another" in shown["text"]
    done = waiting.page.post(f"/api/gates/{new.id}/decision", answer="approve", content_hash=shown["content_hash"])
    assert done["gate_id"] == new.id


def test_who_opens_a_changed_question_sees_the_new_one(waiting: Waiting) -> None:
    waiting.run.write("design.md", "# Another\n\n## Part\n")
    read_only = Page(waiting.page._call, READER).get(f"/api/gates/{waiting.gate}")
    assert (read_only["id"], read_only["changed"], read_only["changed_from"]) == (waiting.gate, True, None)
    assert len(waiting.stored()) == 1, "who only reads changes nothing"
    shown = waiting.page.get(f"/api/gates/{waiting.gate}")
    assert (shown["changed_from"], shown["status"]) == (waiting.gate, "open")
    assert shown["id"] == waiting.stored()[1].id


def test_nothing_goes_on_with_a_document_that_is_gone(waiting: Waiting) -> None:
    (waiting.run.project / waiting.run.workspace / "design.md").unlink()
    shown = waiting.page.get(f"/api/gates/{waiting.gate}")
    assert (shown["gone"], shown["text"]) == (True, None)
    path, hashed = f"/api/gates/{shown['id']}/decision", shown["content_hash"]
    assert isinstance(waiting.page.refused(path, answer="approve", content_hash=hashed), IllegalTransition)
    done = waiting.page.post(path, answer="reject", feedback="Write it again.", content_hash=hashed)
    assert done["answer"] == "reject"


@pytest.mark.parametrize(
    "text", ["", " \n", "x" * (2 * 1024 * 1024 + 1)], ids=["empty", "blank", "longer than is read"]
)
def test_nothing_goes_on_with_a_document_that_nobody_can_have_read(waiting: Waiting, text: str) -> None:
    (waiting.run.project / waiting.run.workspace / "design.md").write_text(text)
    shown = waiting.page.get(f"/api/gates/{waiting.gate}")
    path, hashed = f"/api/gates/{shown['id']}/decision", shown["content_hash"]
    assert isinstance(waiting.page.refused(path, answer="approve", content_hash=hashed), IllegalTransition)
    assert waiting.page.post(path, answer="reject", feedback="Too long.", content_hash=hashed)["answer"] == "reject"


@pytest.mark.parametrize("answer", ["yes", "approve.", "APPROVE", "skip", ""])
def test_only_the_options_are_answers(waiting: Waiting, answer: str) -> None:
    assert isinstance(waiting.refused(answer), InvalidParams)


@pytest.mark.parametrize("more", [{"feedback": "x" * 20_001}, {"feedback": 3}, {"feedback": "a\0b"}])
def test_what_is_said_is_a_bounded_text(waiting: Waiting, more: dict[str, Any]) -> None:
    assert isinstance(waiting.refused("approve", **more), InvalidParams)


def test_who_only_reads_decides_nothing(waiting: Waiting) -> None:
    reader = Page(waiting.page._call, READER)
    body = {"answer": "approve", "content_hash": waiting.need["content_hash"]}
    assert isinstance(reader.refused(waiting.path, **body), NotAllowed)
    assert isinstance(reader.refused("/api/reviews/gate_9/close", word="ok"), NotAllowed)


def test_where_people_decide_the_page_may_and_an_agent_may_not(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path, approvals="human")
    with pytest.raises(NotAllowed):
        waiting.run.next(user_response="approve", gate_id=waiting.gate)
    assert waiting.stored()[0].status == "open"
    waiting.decide("approve")
    assert waiting.run.next()["type"] != "checkpoint"


def test_a_run_of_another_repository_is_answered_from_its_own_documents(tmp_path: Path) -> None:
    waiting = Waiting(tmp_path / "theirs")
    ours = Desk(tmp_path / "ours")
    ours.store = waiting.desk.store
    page = page_of(ours)
    assert HOSTILE in page.get(f"/api/gates/{waiting.gate}")["text"]
    done = page.post(waiting.path, answer="approve", content_hash=waiting.need["content_hash"])
    assert done["answer"] == "approve"


def test_a_task_that_a_person_does_waits_for_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(desk.call, tmp_path / "project")
    run.written["tasks.md"] = [
        "# Tasks\n\n## Task 1: Make a key\nmode: human_gate\n\n## Task 2: Use it\nmode: parallel\n"
    ]
    run.run(lambda action: action["type"] == "human_gate")
    page = page_of(desk)
    (need,) = page.get("/api/needs")["items"]
    tasks = page.get(f"/api/workflows/{run.workflow}")["tasks"]
    assert [(task["name"], task["waiting"]) for task in tasks] == [("1: Make a key", True), ("2: Use it", False)]
    assert (need["task_name"], need["task_id"]) == ("1: Make a key", tasks[0]["id"])
    assert page.get(f"/api/gates/{need['id']}")["task_id"] == tasks[0]["id"]
    done = page.post(f"/api/gates/{need['id']}/decision", answer=need["options"][0], content_hash=need["content_hash"])
    assert done["answer"] == need["options"][0]
    assert page.get(f"/api/tasks/{tasks[0]['id']}")["task"]["status"] == "completed"


# -- reviews ----------------------------------------------------------------------------------------------------------


def test_a_review_is_closed_with_a_word(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.plan({"name": HOSTILE})
    gate = asked_to_review(desk, "task_1", HOSTILE)
    page = page_of(desk)
    (need,) = page.get("/api/needs")["items"]
    assert (need["kind"], need["question"], need["task_name"]) == ("review", HOSTILE, HOSTILE)
    assert page.get(f"/api/gates/{gate}")["diff_task"] == "task_1"
    assert isinstance(page.refused(f"/api/gates/{gate}/decision", answer="approve", content_hash="x"), InvalidParams)
    assert isinstance(page.refused(f"/api/reviews/{gate}/close", word=" "), InvalidParams)
    assert page.post(f"/api/reviews/{gate}/close", word="ok", remark="Fine.")["answer"] == "ok"
    assert isinstance(page.refused(f"/api/reviews/{gate}/close", word="ok"), IllegalTransition)
    shown = page.get(f"/api/gates/{gate}")
    assert (shown["status"], shown["answered_by"], shown["feedback"]) == ("answered", "maria", "Fine.")


def test_a_decision_is_not_closed_as_a_review(waiting: Waiting) -> None:
    assert isinstance(waiting.page.refused(f"/api/reviews/{waiting.gate}/close", word="ok"), InvalidParams)


@pytest.mark.parametrize("path", ["/api/gates/gate_9", "/api/tasks/task_9", "/api/workflows/wf_9", "/api/tasks/x/diff"])
def test_what_is_not_there_is_not_found(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotFound):
        page_of(Desk(tmp_path)).get(path)


# -- the other routes -------------------------------------------------------------------------------------------------


def test_a_workflow_comes_with_its_tasks_its_run_and_its_drawing(waiting: Waiting) -> None:
    waiting.decide("approve")
    waiting.run.run(lambda action: action.get("phase") == "phase-5")
    key = waiting.run.workflow
    found = waiting.page.get(f"/api/workflows/{key}")
    assert [task["name"] for task in found["tasks"]] == ["1: Wrap the fetch", "2: Use it", "3: Say so"]
    assert found["pipeline"]["phases"][0]["state"] == "done"
    assert found["source"]["type"] == "prompt"
    assert "<script>alert(1)</script>" in found["description"]
    drawn = waiting.page.get(f"/api/workflows/{key}/graph", grouped="0")
    assert {node["id"] for node in drawn["nodes"]} == {task["id"] for task in found["tasks"]}
    assert [row["id"] for row in waiting.page.get("/api/home")["workflows"]] == [key]


def test_a_message_to_be_acknowledged_is_needed_last(waiting: Waiting) -> None:
    desk = Desk(waiting.run.project.parent / "other")
    agent = desk.call("agent_register", name="Ada", role="worker", runtime="custom")["id"]
    sent = {"sender_id": agent, "recipient_id": "human", "message_type": "query"}
    desk.call("message_send", **sent, body="no hurry")
    desk.call("message_send", **sent, body=HOSTILE, subject="Key?", requires_ack=True)
    desk.plan({"name": "a"})
    asked_to_review(desk, "task_1")
    page = page_of(desk)
    items = page.get("/api/needs")["items"]
    assert [item["kind"] for item in items] == ["review", "message"]
    assert (items[1]["question"], items[1]["title"], items[1]["sender"]) == (HOSTILE, "Key?", "Ada")
    assert page.get("/api/home")["unread"] == 2


def test_messages_of_one_sender_in_one_thread_are_one_thing(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    agent = desk.call("agent_register", name="Ada", role="worker", runtime="custom")["id"]
    sent = {"sender_id": agent, "recipient_id": "human", "message_type": "query", "requires_ack": True}
    first = desk.call("message_send", **sent, body="\n  Which key?\nOr none?")
    desk.clock.advance(1000)
    second = desk.call("message_send", **sent, body="Still waiting.", reply_to_id=first["id"])
    other = desk.call("message_send", **sent, body="Something else", subject="Disk")
    items = page_of(desk).get("/api/needs")["items"]
    assert [(item["count"], item["headline"], item["subject"]) for item in items] == [
        (2, "Still waiting.", None),
        (1, "Disk", "Disk"),
    ]
    assert (items[0]["id"], items[0]["ids"]) == (second["id"], [first["id"], second["id"]])
    assert items[1]["id"] == other["id"]

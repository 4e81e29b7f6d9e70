"""The addresses about the crew: each gives what the page expects, and only a person who signed in changes anything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import (
    AgentNotFound,
    ClaimHeld,
    IllegalTransition,
    InvalidParams,
    MessageNotFound,
    NotAllowed,
    NotFound,
    Refusal,
    RunNotFound,
    TaskNotFound,
)
from handrail.kernel.ledger import Actor
from handrail.surfaces.web.crew_routes import CREW_ROUTES
from handrail.surfaces.web.route import CHANNEL, PageRequest, Visitor
from handrail.surfaces.web.routes import RouteTable
from tests.domain.overview.crewed import Crewed
from tests.toolsets.pipeline.orchestrator import Orchestrator

ANN = Visitor(name="ann", decides=True)
BEARER = Visitor(name="script", decides=False)
TABLE = RouteTable(CREW_ROUTES)


class Page(Crewed):
    """A store that is looked at through the page's addresses."""

    def ask(self, method: str, address: str, body: Any = None, visitor: Visitor = ANN) -> Any:
        path, _, query = address.partition("?")
        found = TABLE.find(method, path)
        assert found is not None, address
        route, named = found
        given = dict(part.split("=", 1) for part in query.split("&") if part)
        asked = PageRequest(visitor=visitor, path=named, query=given, body=body)
        call = self._handrail.call
        if not route.stored:
            answer = route.handler(call, asked)
        else:
            answer = self.store.run(
                Actor(visitor.name, CHANNEL),
                lambda unit: route.handler(msgspec.structs.replace(call, unit=unit), asked),
            )
        return msgspec.json.decode(msgspec.json.encode(answer))

    def get(self, address: str, visitor: Visitor = ANN) -> Any:
        return self.ask("GET", address, visitor=visitor)

    def post(self, address: str, body: Any = None, visitor: Visitor = ANN) -> Any:
        return self.ask("POST", address, body, visitor)

    def declined(self, method: str, address: str, body: Any = None, visitor: Visitor = ANN) -> Refusal:
        with pytest.raises(Refusal) as refused:
            self.ask(method, address, body, visitor)
        return refused.value


LISTS = {
    "timeline": {"from", "to", "rows", "bars", "gates", "more"},
    "decisions": {"decisions", "more"},
    "milestones": {"milestones", "progress", "more"},
    "reviews": {"reviews", "more"},
    "versions": {"versions", "more"},
}


@pytest.mark.parametrize("name", LISTS)
def test_every_list_of_a_workflow_is_there_and_an_unknown_workflow_is_refused(tmp_path: Path, name: str) -> None:
    page = Page(tmp_path)
    plan = page.plan({"name": "one"})
    assert set(page.get(f"/api/workflows/{plan}/{name}")) >= LISTS[name]
    assert isinstance(page.declined("GET", f"/api/workflows/wf_9/{name}"), RunNotFound)


def test_lists_of_the_store(tmp_path: Path) -> None:
    page = Page(tmp_path)
    assert page.get("/api/agents") == {"agents": [], "more": 0, "heartbeat_ms": 30_000}
    assert page.get("/api/messages") == {"threads": [], "more": 0}
    assert page.get("/api/board") == {"boards": [], "more": 0, "next": None}
    assert page.get("/api/events") == {"events": [], "oldest": None, "newest": None, "more": 0, "position": 0}


def test_an_empty_or_too_long_question_is_told(tmp_path: Path) -> None:
    page = Page(tmp_path)
    plan = page.plan({"name": "one"})
    for address in (
        f"/api/workflows/{plan}/decisions?search={'x' * 201}",
        "/api/events?before=soon",
        "/api/events?limit=0",
        "/api/events?limit=501",
        "/api/events?before=3&after=1",
        f"/api/events?kind={'a,' * 21}" + ",".join(f"k{number}" for number in range(21)),
        "/api/messages?thread=thr_1&before=-4",
    ):
        refusal = page.declined("GET", address)
        assert isinstance(refusal, InvalidParams), address
        assert refusal.hint


def test_events_are_filtered_by_name_too(tmp_path: Path) -> None:
    page = Page(tmp_path)
    plan = page.plan({"name": "one"}, {"name": "two"})
    anna, ben = page.register("Anna", "Ben")
    page.claim(anna, "task_1")
    page.claim(ben, "task_2")
    found = page.get(f"/api/events?workflow={plan}&actor=Anna&kind=task.")
    assert [event["kind"] for event in found["events"]] == ["task.in_progress", "task.claimed"]
    assert {event["actor"] for event in found["events"]} == {anna}
    assert "changes" not in found["events"][0]
    assert page.get("/api/events?limit=1&changes=1")["events"][0]["changes"]


# -- messages ---------------------------------------------------------------------------------------------------------


def test_a_person_answers_and_the_thread_shows_it(tmp_path: Path) -> None:
    page = Page(tmp_path)
    (anna,) = page.register("Anna")
    asked = page.send(anna, "human", "Which one?", subject="The choice", requires_ack=True)
    sent = page.post("/api/messages", {"recipient_id": anna, "body": "The first", "reply_to": asked})
    assert sent["message"]["type"] == "response"
    thread = page.get(f"/api/messages?thread={sent['thread_id']}")
    assert [(one["sender"], one["recipient"], one["body"]) for one in thread["messages"]] == [
        ("Anna", "ann", "Which one?"),
        ("ann", "Anna", "The first"),
    ]
    event = page.store.newest(1)[0]
    assert (event.kind, event.actor, event.channel) == ("message.sent", "ann", "page")
    assert page.bodies(anna) == ["The first"]
    read = page.post(f"/api/messages/{asked}/read", {"ack": False})
    assert (read["read_at"] is not None, read["acked_at"], read["status"]) == (True, None, "unread")
    assert page.post(f"/api/messages/{asked}/read", {"ack": True})["status"] == "read"
    assert page.get("/api/messages")["threads"][0]["unread"] == 0


def test_an_answer_without_a_recipient_goes_to_whoever_wrote(tmp_path: Path) -> None:
    page = Page(tmp_path)
    (anna,) = page.register("Anna")
    asked = page.send(anna, "human")
    assert page.post("/api/messages", {"body": "yes", "reply_to": asked})["message"]["recipient_id"] == anna


def test_a_message_that_cannot_be_sent_is_told(tmp_path: Path) -> None:
    page = Page(tmp_path)
    (anna,) = page.register("Anna")
    wrong: list[tuple[Any, type[Refusal]]] = [
        ({"recipient_id": anna}, InvalidParams),
        ({"recipient_id": anna, "body": ""}, InvalidParams),
        ({"recipient_id": anna, "body": "x" * 30_001}, InvalidParams),
        ({"recipient_id": anna, "body": "hi", "colour": "red"}, InvalidParams),
        ({"recipient_id": "human", "body": "hi"}, InvalidParams),
        ({"body": "hi"}, InvalidParams),
        ({"recipient_id": "ag_9", "body": "hi"}, AgentNotFound),
        ({"recipient_id": anna, "body": "hi", "reply_to": "msg_9"}, MessageNotFound),
        ([1], InvalidParams),
    ]
    for body, kind in wrong:
        refusal = page.declined("POST", "/api/messages", body)
        assert isinstance(refusal, kind), body
        assert refusal.hint, body
    assert page.get("/api/messages")["threads"] == []


def test_a_message_of_an_agent_is_not_the_persons_to_read(tmp_path: Path) -> None:
    page = Page(tmp_path)
    anna, ben = page.register("Anna", "Ben")
    between = page.send(anna, ben)
    assert isinstance(page.declined("POST", f"/api/messages/{between}/read", {"ack": True}), NotAllowed)
    assert isinstance(page.declined("POST", "/api/messages/msg_9/read", {}), MessageNotFound)
    assert page.bodies(ben) == ["hello"]


def test_where_identity_is_strict_only_a_person_reads_messages(tmp_path: Path) -> None:
    page = Page(tmp_path, identity="strict")
    assert isinstance(page.declined("GET", "/api/messages", visitor=BEARER), NotAllowed)
    assert page.get("/api/messages")["threads"] == []
    open_page = Page(tmp_path / "open")
    assert open_page.get("/api/messages", visitor=BEARER)["threads"] == []


# -- releasing --------------------------------------------------------------------------------------------------------


def test_a_lost_agents_task_is_given_back_in_the_persons_name(tmp_path: Path) -> None:
    page = Page(tmp_path)
    plan = page.plan({"name": "one"})
    (anna,) = page.register("Anna")
    page.claim(anna, "task_1")
    page.wait(30)
    freed = page.post("/api/tasks/task_1/release", {"reason": "it is gone"})
    assert freed == {"task_id": "task_1", "status": "pending", "agent_id": anna, "agent": "Anna"}
    released = next(event for event in page.store.events(plan) if event.kind == "task.released")
    assert (released.actor, released.channel, released.data["reason"]) == ("ann", "page", "it is gone")
    assert page.bodies(anna)[0]["released_by"] == "human", "whoever had it is told"
    assert isinstance(page.declined("POST", "/api/tasks/task_1/release", {}), IllegalTransition)
    assert isinstance(page.declined("POST", "/api/tasks/task_9/release", {}), TaskNotFound)


def test_nothing_is_taken_from_another_than_was_meant(tmp_path: Path) -> None:
    page = Page(tmp_path)
    page.plan({"name": "one"})
    anna, ben = page.register("Anna", "Ben")
    page.claim(anna, "task_1")
    page.wait(30)
    page.claim(ben, "task_1")
    refusal = page.declined("POST", "/api/tasks/task_1/release", {"agent_id": anna, "reason": ""})
    assert isinstance(refusal, ClaimHeld)
    assert page.post("/api/tasks/task_1/release", {"agent_id": ben})["agent"] == "Ben"


# -- runs -------------------------------------------------------------------------------------------------------------


def running(folder: Path, **settings: Any) -> tuple[Page, Orchestrator]:
    page = Page(folder, profile="", toolsets="pipeline,plan", **settings)
    run = Orchestrator(page.call, folder / "project")
    run.next()
    return page, run


def test_a_run_is_paused_and_goes_on(tmp_path: Path) -> None:
    page, run = running(tmp_path)
    address = f"/api/workflows/{run.workflow}"
    assert page.get(f"{address}/pipeline")["stopped"] is None
    assert page.post(f"{address}/pause", {"reason": "lunch"})["status"] == "paused"
    assert page.get(f"{address}/pipeline")["stopped"] == "paused"
    paused = next(event for event in page.store.events(run.workflow) if event.kind == "pipeline.paused")
    assert (paused.actor, paused.channel) == ("ann", "page")
    assert page.post(f"{address}/resume", {})["status"] == "in_progress"
    assert page.get(f"{address}/pipeline")["stopped"] is None
    refusal = page.declined("POST", f"{address}/resume", {})
    assert isinstance(refusal, IllegalTransition)
    assert "is not stopped" in refusal.message


def test_a_run_that_would_stop_again_at_once_is_not_let_go_on(tmp_path: Path) -> None:
    page = Page(tmp_path, profile="", toolsets="pipeline,plan", budget={"hard_tokens": 100.0})
    run = Orchestrator(page.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "done")
    refusal = page.declined("POST", f"/api/workflows/{run.workflow}/resume")
    assert isinstance(refusal, IllegalTransition)
    assert "would stop again at once" in refusal.message
    assert "--limit hard_tokens=N" in refusal.hint
    found = page.get(f"/api/workflows/{run.workflow}/pipeline")
    assert (found["stopped"], found["budget"]) == ("budget", {"tokens": 100.0})


def test_a_plan_is_no_run(tmp_path: Path) -> None:
    page = Page(tmp_path)
    plan = page.plan({"name": "one"})
    assert isinstance(page.declined("GET", f"/api/workflows/{plan}/pipeline"), RunNotFound)
    for word in ("pause", "resume"):
        assert isinstance(page.declined("POST", f"/api/workflows/{plan}/{word}", {}), RunNotFound)


# -- who may ----------------------------------------------------------------------------------------------------------


def test_only_a_person_who_signed_in_changes_anything(tmp_path: Path) -> None:
    page, run = running(tmp_path)
    before = page.store.position()
    named = {"workflow": run.workflow, "message": "msg_1", "task": "task_1"}
    for route in CREW_ROUTES:
        if route.method == "POST":
            refusal = page.declined("POST", route.pattern.format(**named), {}, BEARER)
            assert isinstance(refusal, NotAllowed), route.pattern
            assert refusal.hint
    assert page.store.position() == before


def test_what_was_posted_must_fit(tmp_path: Path) -> None:
    page, run = running(tmp_path)
    for address, body in (
        (f"/api/workflows/{run.workflow}/pause", {"reason": "x" * 2001}),
        (f"/api/workflows/{run.workflow}/resume", {"until": "end"}),
        ("/api/tasks/task_1/release", {"reason": 5}),
        ("/api/messages/msg_1/read", {"ack": "yes"}),
    ):
        assert isinstance(page.declined("POST", address, body), InvalidParams), address


# -- documents --------------------------------------------------------------------------------------------------------


def test_the_documents_of_a_run_are_listed_and_read_by_name_alone(tmp_path: Path) -> None:
    page = Page(tmp_path, profile="", toolsets="pipeline,plan")
    run = Orchestrator(page.call, tmp_path / "project")
    run.run(lambda action: action["type"] == "checkpoint")
    workspace = run.project / run.workspace
    (workspace / "state.json").write_text("{}")
    (tmp_path / "project" / "secret.md").write_text("not yours")
    (workspace / "link.md").symlink_to(tmp_path / "project" / "secret.md")
    listed = page.get(f"/api/workflows/{run.workflow}/pipeline")["documents"]
    design = next(one for one in listed if one["name"] == "design.md")
    text = (workspace / "design.md").read_text()
    assert design == {"name": "design.md", "path": f"{run.workspace}/design.md", "size": len(text.encode())}
    assert not {"link.md", "state.json", "secret.md"} & {one["name"] for one in listed}
    shown = page.get(f"/api/workflows/{run.workflow}/documents/design.md")
    assert (shown["text"], shown["cut"], shown["path"]) == (text, False, design["path"])
    for name in ("link.md", "state.json", "..", "nothing.md", "%2e%2e%2fsecret.md"):
        assert isinstance(page.declined("GET", f"/api/workflows/{run.workflow}/documents/{name}"), NotFound)
    plan = page.plan({"name": "one"})
    assert isinstance(page.declined("GET", f"/api/workflows/{plan}/documents/design.md"), RunNotFound)


def test_events_of_one_task_and_a_kind_by_its_beginning(tmp_path: Path) -> None:
    page = Page(tmp_path)
    page.plan({"name": "one"}, {"name": "two"})
    (anna,) = page.register("Anna")
    page.claim(anna, "task_2")
    assert [event["text"] for event in page.get("/api/events?task=task_2&kind=task")["events"]] == [
        "started “two”",
        "claimed “two”",
    ]
    assert isinstance(page.declined("GET", "/api/events?kind=nonsense"), InvalidParams)
    assert isinstance(page.declined("GET", "/api/events?task=task_9"), TaskNotFound)

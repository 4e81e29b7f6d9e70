"""Facts, plans made of what was done before, and what led to an outcome, as agents ask for them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.errors import InvalidParams, ResourceNotFound
from handrail.kernel.records import Query
from handrail.protocol.wire import encode
from tests.toolsets.pipeline.orchestrator import Orchestrator
from tests.toolsets.plan.planned import TESTER
from tests.toolsets.registry.registry_desk import RegistryDesk

EIGHT_KB = 8192


@pytest.fixture
def desk(tmp_path: Path) -> RegistryDesk:
    return RegistryDesk(tmp_path, "assist")


def say(desk: RegistryDesk, *triples: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    said = [{"subject": one, "predicate": two, "object": three, **more} for one, two, three in triples]
    answer: dict[str, Any] = desk.call("kg_insert", triples=said)
    return answer


def finish(desk: RegistryDesk, run: str, *task_ids: str) -> None:
    for task_id in task_ids:
        desk.move(task_id, "in_progress", "completed")
    desk.call("workflow_update_status", id=run, status="completed")


# -- facts ------------------------------------------------------------------------------------------------------------


def test_saying_it_again_is_no_second_fact(desk: RegistryDesk) -> None:
    assert say(desk, ("a", "is", "b"), ("a", "is", "b")) == {"inserted": 1, "updated": 0, "unchanged": 0}
    before = desk.store.position()
    assert say(desk, ("a", "is", "b"))["unchanged"] == 1
    assert desk.store.position() == before
    desk.clock.advance(5)
    assert say(desk, ("a", "is", "b"), ("a", "is", "c"), source="book", confidence=0.25)["updated"] == 1
    page = desk.call("kg_query", subject="a", object="b")
    (fact,) = page["facts"]
    assert (fact["source"], fact["confidence"], fact["by"]) == ("book", 0.25, "tester")
    assert not list(desk.store.verify())


def test_facts_are_found_by_any_part_and_paged(desk: RegistryDesk) -> None:
    say(desk, *[(f"s{number:03}", "is", "same") for number in range(120)])
    say(desk, ("other", "was", "same"), confidence=0.5, provenance={"file": "notes.md"})
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = desk.call("kg_query", object="same", after=after)
        assert page["total"] == 121
        seen += [fact["subject"] for fact in page["facts"]]
        after = page.get("next")
    assert len(seen) == len(set(seen)) == 121
    assert desk.call("kg_query", min_confidence=0.6)["total"] == 120
    assert desk.call("kg_query", min_confidence=0.5, predicate="was")["facts"][0]["provenance"] == {"file": "notes.md"}
    assert desk.call("kg_query", order="confidence", after=120)["facts"][0]["subject"] == "other"
    too_long = {"subject": "a", "predicate": "b", "object": "c", "provenance": {"x": "y" * 3000}}
    assert isinstance(desk.refusal("kg_insert", triples=[too_long]), InvalidParams)


def test_repositories_know_facts_of_their_own(desk: RegistryDesk) -> None:
    here = desk._handrail.call.here
    desk.with_call(here=msgspec.structs.replace(here, shared=True, repository="one"))
    say(desk, ("a", "is", "b"))
    desk.with_call(here=msgspec.structs.replace(here, shared=True, repository="other"))
    assert desk.call("kg_query")["total"] == 0
    say(desk, ("a", "is", "b"))
    assert desk.call("kg_query")["total"] == 1


def test_a_page_of_long_facts_stays_small(desk: RegistryDesk) -> None:
    say(desk, *[(f"{number} {'s' * 380}", "p" * 400, "o" * 400) for number in range(40)])
    page = desk.call("kg_query")
    assert len(encode(page)) < EIGHT_KB
    assert page["next"] == len(page["facts"]) < 40
    assert len(desk.call("kg_query", limit=40)["facts"]) == 40


# -- plans made of old ones -------------------------------------------------------------------------------------------


def test_a_suggestion_comes_with_what_went_wrong_and_can_be_laid_as_it_is(desk: RegistryDesk) -> None:
    run = desk.plan(
        {"name": "wrap", "description": "Wrap the client", "estimated_complexity": "low"},
        {"name": "measure", "depends_on": ["wrap"]},
        {"name": "test", "depends_on": ["measure"], "files_likely_affected": ["tests/"]},
        {"name": "never", "depends_on": ["wrap"]},
        name="Retry lost imports",
    )
    desk.move("task_1", "in_progress")
    desk.call("checkpoint_add", task_id="task_1", type="error", summary="The proxy hangs up")
    desk.move("task_1", "failed", "in_progress")
    desk.clock.advance(60_000)
    desk.move("task_1", "completed")
    desk.call("task_update_status", id="task_4", status="skipped")
    finish(desk, run, "task_2", "task_3")
    desk.plan({"name": "x"}, name="Retry lost imports, open")  # what is not finished teaches nothing
    found = desk.call("kg_suggest_plan", goal="Imports should retry", context={"exclude_tasks": ["Measure"]})
    (fragment,) = found["fragments"]
    assert [(task["name"], task["depends_on"]) for task in fragment["tasks"]] == [("wrap", []), ("test", ["wrap"])]
    assert fragment["graph"] == f"sc://graphs/{run}"
    note = fragment["notes"][0]
    assert (note["attempts"], note["took_ms"], note["went_wrong"]) == (2, 60_000, ["The proxy hangs up"])
    assert found["coverage"]["excluded_tasks"] == ["measure"]
    assert (found["coverage"]["total_tasks"], found["coverage"]["suggested_tasks"]) == (4, 2)
    assert any("never was skipped" in line for line in found["rationale"])
    assert any("took 2 attempts" in line for line in found["rationale"])
    new = desk.call("workflow_create", name="New", source_type="prompt", source_content="x")["id"]
    plan = {"summary": "s", "approach": "a", "tasks": fragment["tasks"]}
    assert desk.call("workflow_set_plan", id=new, plan=plan)["tasks_created"] == 2


def test_what_recurs_is_told(desk: RegistryDesk) -> None:
    for number in range(3):
        run = desk.plan({"name": "Build"}, {"name": f"own {number}"}, name=f"Release the library {number}")
        finish(desk, run, f"task_{2 * number + 1}", f"task_{2 * number + 2}")
    found = desk.call("kg_suggest_plan", goal="release library", context={"max_fragments": 1})
    assert found["fragments"][0]["notes"][0] == {"task": "Build", "took_ms": 0, "seen_in": "3 of 3"}
    assert '"build" recurs in 3 of 3 that are about the same' in found["rationale"]
    assert len(found["sources"]) == 1


def test_facts_describe_plans_with_gaps_and_circles(desk: RegistryDesk) -> None:
    say(
        desk,
        ("release", "includes", "task:build"),
        ("release", "includes", "publish"),
        ("release", "includes", "announce"),
        ("other", "includes", "sign"),
        ("publish", "depends_on", "build"),
        ("publish", "depends_on", "sign"),
        ("publish", "depends_on", "moon"),
        ("task:build", "depends_on", "announce"),
        ("announce", "depends_on", "publish"),
        ("publish", "label", "Put it out"),
        ("publish", "duration", "90000"),
        source="handbook",
    )
    found = desk.call("kg_suggest_plan", goal="release")
    (fragment,) = found["fragments"]
    assert {task["name"] for task in fragment["tasks"]} == {"build", "publish", "announce"}
    published = next(task for task in fragment["tasks"] if task["name"] == "publish")
    assert published["description"] == "Put it out"
    assert {"task": "publish", "took_ms": 90_000} in fragment["notes"]
    assert found["coverage"]["missing_dependencies"] == ["sign"]
    assert found["coverage"]["unknown_dependencies"] == ["moon"]
    assert any("goes in a circle" in line for line in found["rationale"])


def test_without_a_likeness_it_says_so(desk: RegistryDesk) -> None:
    assert "Nothing was finished" in desk.call("kg_suggest_plan", goal="anything")["summary"]
    finish(desk, desk.plan({"name": "a"}, name="Paint the fence"), "task_1")
    found = desk.call("kg_suggest_plan", goal="compile kernels")
    assert (found["fragments"], found["rationale"]) == ([], [])
    assert "none is about" in found["summary"]


def test_a_suggestion_stays_small_and_whole(desk: RegistryDesk) -> None:
    number = 0
    for plan in range(5):
        tasks: list[dict[str, Any]] = [
            {
                "name": f"{at} {'n' * 100}",
                "description": "d" * 5000,
                "depends_on": [f"{at - 1} {'n' * 100}"] if at else [],
            }
            for at in range(40)
        ]
        run = desk.plan(*tasks, name=f"Release library {plan} {'x' * 100}")
        ids = [f"task_{number + at + 1}" for at in range(40)]
        number += 40
        finish(desk, run, *ids)
    found = desk.call("kg_suggest_plan", goal="release library", context={"max_fragments": 5})
    assert len(encode(found)) < EIGHT_KB
    assert len(found["fragments"]) == 5
    for fragment in found["fragments"]:
        names = [task["name"] for task in fragment["tasks"]]
        assert 1 <= len(names) < fragment["tasks_total"] == 40
        assert all(need in names for task in fragment["tasks"] for need in task["depends_on"])


def test_a_suggestion_from_long_facts_stays_small(desk: RegistryDesk) -> None:
    plans = [f"release {'p' * 390}{number}" for number in range(5)]
    for plan in plans:
        say(desk, *[(plan, "includes", f"{'t' * 350}{number}") for number in range(40)], source="s" * 200)
    say(desk, *[(f"{'t' * 350}{at}", "depends_on", f"{'u' * 350}{to}") for at in range(40) for to in range(6)])
    preferred = [*("s" * 200 for _ in range(10)), *("z" * 390 for _ in range(10))]
    context = {"preferred_sources": preferred, "exclude_tasks": [f"{'t' * 350}{at}" for at in range(20)]}
    found = desk.call("kg_suggest_plan", goal="release", context={**context, "max_fragments": 5})
    assert len(found["fragments"]) == 5
    assert len(encode(found)) < EIGHT_KB


# -- what led to it ---------------------------------------------------------------------------------------------------


def kinds(found: dict[str, Any]) -> list[tuple[str, str | None]]:
    return [(one["kind"], one.get("task_id")) for one in found["ancestors"]]


def test_a_task_comes_from_what_it_waited_for_and_its_own_turns(desk: RegistryDesk) -> None:
    desk.plan({"name": "need"}, {"name": "beside"}, {"name": "mine", "depends_on": ["need"]})
    desk.move("task_1", "in_progress")
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary="half of it")
    desk.move("task_1", "failed", "in_progress", "completed")
    desk.move("task_2", "in_progress", "completed")
    desk.move("task_3", "in_progress")
    desk.call("checkpoint_add", task_id="task_3", type="decision", summary="take the long way")
    desk.move("task_3", "failed")
    found = desk.call("causal_explain", outcome_id="task_3")
    assert kinds(found) == [
        ("workflow.created", None),
        ("workflow.planned", None),
        ("task.in_progress", "task_1"),
        ("task.failed", "task_1"),
        ("task.in_progress", "task_1"),
        ("task.completed", "task_1"),
        ("task.in_progress", "task_3"),
        ("checkpoint.added", "task_3"),
    ]
    assert found["whole"] is True
    assert found["outcome"]["sentence"] == '"mine" was reported failed by tester: broken'
    assert "(1 failure, 1 decision)" in found["summary"]
    by_seq = {one["seq"]: one for one in (*found["ancestors"], found["outcome"])}
    why = {(by_seq[edge["from"]]["kind"], by_seq[edge["to"]]["kind"]): edge["why"] for edge in found["edges"]}
    assert why["task.completed", "task.in_progress"] == "made it ready"
    assert why["task.failed", "task.in_progress"] == "failed, and was taken up again"
    assert why["workflow.planned", "task.in_progress"] == "planned it"
    assert all(edge["from"] < edge["to"] for edge in found["edges"])
    near = desk.call("causal_explain", outcome_id="task_3", max_depth=1)
    assert (kinds(near), near["whole"]) == ([("checkpoint.added", "task_3")], False)
    assert desk.call("causal_explain", outcome_id=str(found["outcome"]["seq"])) == found
    desk.move("task_3", "in_progress")  # a second start comes from the failure, not from having become ready
    again = desk.call("causal_explain", outcome_id="task_3", max_depth=1)
    assert kinds(again) == [("task.failed", "task_3")]


def test_an_answer_comes_from_its_question(tmp_path: Path) -> None:
    desk = RegistryDesk(tmp_path, "assist", toolsets="pipeline,workflow", profile="")
    driver = Orchestrator(desk.call, tmp_path / "project")
    driver.run()
    gates = desk.store.run(TESTER, lambda unit: unit.select(Gate, Query((), ("created_at",))))
    assert gates
    for gate in gates:
        found = desk.call("causal_explain", outcome_id=gate.id)
        assert found["outcome"]["kind"] == "gate.answered"
        edges = {edge["from"]: edge["why"] for edge in found["edges"] if edge["to"] == found["outcome"]["seq"]}
        asked = [one["seq"] for one in found["ancestors"] if one["kind"] == "gate.opened" and one["depth"] == 1]
        assert [edges[seq] for seq in asked] == ["was asked"]
    over = desk.call("causal_explain", outcome_id=driver.workflow, max_depth=32)
    assert "answer" in over["summary"]
    assert len(encode(over)) < EIGHT_KB


def test_a_workflow_comes_from_what_ended_or_failed_in_it(desk: RegistryDesk) -> None:
    run = desk.plan({"name": "a"}, {"name": "b"})
    desk.move("task_1", "in_progress", "failed")
    tasks = [
        {"name": "a", "description": "another way", "sequence": 1},
        {"name": "b", "description": "", "sequence": 2},
    ]
    desk.call("workflow_replan", id=run, tasks=tasks, reason="the first way is shut")
    replanned = desk.call("causal_explain", outcome_id=run)
    assert replanned["outcome"]["sentence"] == "The plan was changed by tester: the first way is shut"
    assert ("task.failed", "task_1") in kinds(replanned)
    desk.move("task_2", "in_progress", "failed")
    desk.call("workflow_update_status", id=run, status="abandoned", reason="enough")
    given_up = desk.call("causal_explain", outcome_id=run, max_depth=1)
    assert kinds(given_up) == [("workflow.replanned", None), ("task.failed", "task_2")]


def test_a_message_about_a_task_is_part_of_its_story(desk: RegistryDesk) -> None:
    desk.plan({"name": "a"})
    for name in ("Anna", "Ben"):
        desk.call("agent_register", name=name, runtime="claude_code")
    desk.move("task_1", "in_progress")
    sent = {"sender_id": "ag_1", "recipient_id": "ag_2", "message_type": "query", "subject": "s", "task_id": "task_1"}
    desk.call("message_send", **sent, body="stop")
    desk.move("task_1", "failed")
    found = desk.call("causal_explain", outcome_id="task_1", max_depth=1)
    assert [kind for kind, _ in kinds(found)] == ["message.sent"]


def test_anything_in_the_ledger_can_be_asked_about(desk: RegistryDesk) -> None:
    say(desk, ("a", "is", "b"))
    say(desk, ("x", "is", "y"))
    say(desk, ("a", "is", "b"), confidence=0.5)
    found = desk.call("causal_explain", outcome_id=str(desk.store.position()))
    assert [kind for kind, _ in kinds(found)] == ["facts.inserted"]
    assert found["ancestors"][0]["seq"] == desk.store.position() - 2
    for unknown in ("task_9", "0", str(desk.store.position() + 1), "9" * 40):
        assert isinstance(desk.refusal("causal_explain", outcome_id=unknown), ResourceNotFound)


def test_a_long_story_is_told_short_and_always_the_same(desk: RegistryDesk) -> None:
    tasks = [{"name": f"{at} {'n' * 100}"} for at in range(40)]
    run = desk.plan(*tasks, {"name": "last", "depends_on": [task["name"] for task in tasks]})
    for at in range(40):
        desk.move(f"task_{at + 1}", "in_progress", "failed", "in_progress", "failed", "in_progress", "completed")
    desk.move("task_41", "in_progress", "completed")
    desk.call("workflow_update_status", id=run, status="completed")
    found = desk.call("causal_explain", outcome_id=run, max_depth=32)
    assert len(encode(found)) < EIGHT_KB
    assert found["whole"] is False
    assert len(found["ancestors"]) < found["ancestors_total"] <= 60
    assert desk.call("causal_explain", outcome_id=run, max_depth=32) == found
    shown = {one["seq"] for one in (*found["ancestors"], found["outcome"])}
    assert all({edge["from"], edge["to"]} <= shown for edge in found["edges"])

"""Plans laid into every kind of store: they come out the same, ledger and tables agree, and undo takes them back."""

from __future__ import annotations

import msgspec
from hypothesis import HealthCheck, given, settings

from handrail.domain.exchange import jsonl
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote, TaskOrigin
from handrail.domain.work.workflow import Workflow
from tests.domain.exchange.documents import NOW, documents
from tests.domain.exchange.laid import TESTER, lay, more, take
from tests.store.ground import Ground

PLAN = PlanDocument(
    name="Plan \u202e日本",
    source_type="github_issue",
    source_ref="https://example.org/1",
    description="what it is about",
    status="paused",
    plan={"summary": "s", "risks": ["r"], "variables": {"b": 1, "a": [None]}},
    max_parallel_tasks=3,
    auto_create_workspaces=True,
    created_at=5,
    tasks=[
        PlannedTask(name="whole", status="completed", sequence=1, outcome="done", outcome_detail={}, created_at=1),
        PlannedTask(
            name="part",
            sequence=2,
            parent="whole",
            depends_on=["last"],
            plan={"steps": ["one"], "approach": "by hand"},
            context={"goal": {"b": 1.5, "a": "\0"}},
            created_at=2,
            notes=[PlanNote(type="decision", summary="so", detail={"b": 1, "a": [1.5, None, "\0"]}, at=3)],
            origin=TaskOrigin(system="beads", id="bd-1", fields={"z": {"y": 1, "x": 2}, "a": True}),
        ),
        PlannedTask(name="last", status="failed", sequence=3, error="it broke", created_at=2, started_at=4, attempts=3),
    ],
)


def test_a_plan_comes_out_of_every_store_as_it_went_in(ground: Ground) -> None:
    ground.clock.advance(NOW - ground.clock.now_ms())
    laid = lay(ground.store, PLAN, 2)
    assert jsonl.write(take(ground.store, laid.workflow.id)) == jsonl.write(PLAN)
    assert ground.store.verify() == []


def test_it_is_taken_back_in_every_store(ground: Ground) -> None:
    ground.clock.advance(NOW - ground.clock.now_ms())
    laid = lay(ground.store, PLAN)
    ground.store.undo(TESTER)
    assert ground.store.run(TESTER, lambda unit: unit.get(Workflow, laid.workflow.id)) is None
    assert ground.store.verify() == []
    again = lay(ground.store, PLAN)
    with_more = msgspec.structs.replace(PLAN, tasks=[*PLAN.tasks, PlannedTask(name="new", parent="part")])
    assert more(ground.store, again.workflow.id, with_more).added == 1
    assert ground.store.verify() == []


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(document=documents())
def test_any_plan_survives(lasting: Ground, document: PlanDocument) -> None:
    lasting.clock.advance(NOW - lasting.clock.now_ms())
    laid = lay(lasting.store, document)
    assert jsonl.write(take(lasting.another(), laid.workflow.id)) == jsonl.write(document)

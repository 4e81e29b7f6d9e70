"""Facts, values and what led to an outcome are the same in every store: orders, pages, what is read back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.store.ground import Ground
from tests.toolsets.registry.registry_desk import RegistryDesk


def numbered(told: dict[str, Any]) -> dict[str, Any]:
    """With its events counted from 1: places in the ledger have gaps in some stores."""
    events = [*told["ancestors"], told["outcome"]]
    places = {event["seq"]: number for number, event in enumerate(events, 1)}
    edges = [{**edge, "from": places[edge["from"]], "to": places[edge["to"]]} for edge in told["edges"]]
    return {**told, "ancestors": [{**one, "seq": places[one["seq"]]} for one in events], "outcome": {}, "edges": edges}


def answers(desk: RegistryDesk) -> list[Any]:
    said = [
        {"subject": subject, "predicate": predicate, "object": "Z" if number % 3 else "a", "confidence": number / 10}
        for number, (subject, predicate) in enumerate(
            [("b", "is"), ("a", "is"), ("a", "was"), ("B", "is"), ("ä", "is")]
        )
    ]
    found: list[Any] = [desk.call("kg_insert", triples=said), desk.call("kg_insert", triples=said[:2])]
    for order in ("subject", "confidence", "newest"):
        for after in (0, 2, 4):
            found.append(desk.call("kg_query", order=order, limit=2, after=after))
    found += [desk.call("kg_query", object="a"), desk.call("kg_query", predicate="is", min_confidence=0.3)]
    found.append(desk.call("values_set", values=[{"id": "privacy", "weight": 0.1}]))
    found.append(desk.call("values_set", values=[{"id": "privacy", "weight": 0.1}]))
    run = desk.plan({"name": "need"}, {"name": "mine", "depends_on": ["need"]}, name="Retry imports")
    found += [desk.call("plan_dry_run", run_id=run), desk.call("plan_status", run_id=run)]
    desk.move("task_1", "in_progress", "failed", "in_progress", "completed")
    found += [desk.call("plan_pause", run_id=run, reason="why"), desk.call("workflow_next_tasks", workflow_id=run)]
    found.append(desk.call("plan_resume", run_id=run))
    desk.move("task_2", "in_progress", "completed")
    desk.call("workflow_update_status", id=run, status="completed")
    found += [numbered(desk.call("causal_explain", outcome_id=key)) for key in (run, "task_2")]
    found += [desk.call("kg_suggest_plan", goal="retry imports"), desk.call("plan_status", run_id=run)]
    return found


def test_every_store_answers_as_memory_does(ground: Ground, tmp_path: Path) -> None:
    on = ("assist", "values", "plan-lifecycle")
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    expected = answers(RegistryDesk(tmp_path / "one", *on))
    found = answers(RegistryDesk(tmp_path / "other", *on, store=ground.store))
    for one, other in zip(found, expected, strict=True):
        assert one == other
    assert not list(ground.store.verify())

"""The rich data set has what the page is to show; who looks for a state here finds it. No browser is needed."""

from __future__ import annotations

from pathlib import Path

from handrail.domain.crew.presence import is_present
from handrail.domain.gates.gate import Gate
from handrail.domain.journal.journal import LOOKING
from handrail.domain.work.plan_edit import tally_of
from handrail.domain.work.workflow import Workflow
from handrail.kernel.records import UnitOfWork
from tests.page.rich import Facts, build_many, many_tasks
from tests.page.rich_stage import Stage


def test_it_has_every_state_and_holds(rich: Facts) -> None:
    stage = Stage(rich.project, rich.home, minutes=0)
    store = stage.handrail.ledger.open()
    assert store.verify() == []

    def look(unit: UnitOfWork) -> None:
        counts = tally_of(unit, rich.workflow).counts
        assert all(counts[state] for state in ("pending", "blocked", "in_progress", "paused", "failed", "completed"))
        assert counts["skipped"] == 1
        gate = unit.get(Gate, rich.gate)
        assert gate is not None
        assert gate.status == "open"
        done, site = unit.get(Workflow, rich.done), unit.get(Workflow, rich.site)
        assert done is not None
        assert done.status == "completed"
        assert site is not None
        assert site.repository_path != str(rich.project)
        assert not is_present(unit, rich.lost)
        assert is_present(unit, rich.agents["planner"])

    store.run(LOOKING, look)
    stage.close()


def test_a_plan_of_many_is_as_large_as_asked_for(tmp_path: Path) -> None:
    facts = build_many(tmp_path, 45)
    assert len(facts.tasks) == len(many_tasks(45)) == 45
    stage = Stage(facts.project, facts.home, minutes=0)
    tally = stage.handrail.ledger.run(LOOKING, lambda unit: tally_of(unit, facts.workflow))
    assert tally.counts["completed"] == 15
    assert tally.counts["in_progress"] > 0
    stage.close()

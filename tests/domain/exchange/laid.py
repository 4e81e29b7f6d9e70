"""Documents in a store: laid in, taken out, and held against a look at everything."""

from __future__ import annotations

from handrail.domain.exchange.exporter import document_of
from handrail.domain.exchange.importer import ImportedPlan, ImportSource, lay_into, lay_new
from handrail.domain.exchange.normalize import fitted
from handrail.domain.exchange.plan_document import PlanDocument, status_here
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.store.store import Store
from tests.toolsets.plan.test_workflow_machine import Entry, PlanMachine

TESTER = Actor("tester", "test")
SOURCE = ImportSource("plan.jsonl", "handrail")


def lay(store: Store, document: PlanDocument, most: int = 10_000) -> ImportedPlan:
    """All of a document, in as many units of work as it takes."""
    whole = store.run(TESTER, lambda unit: fitted(document, unit.now_ms()))
    laid = store.run(TESTER, lambda unit: lay_new(unit, whole, SOURCE, "/srv/shop", most))
    while laid.left:
        laid = more(store, laid.workflow.id, whole, most)
    return laid


def more(store: Store, workflow_id: str, document: PlanDocument, most: int = 10_000) -> ImportedPlan:
    def work(unit: UnitOfWork) -> ImportedPlan:
        workflow = unit.get(Workflow, workflow_id)
        assert workflow is not None
        return lay_into(unit, workflow, fitted(document, unit.now_ms()), SOURCE, most)

    return store.run(TESTER, work)


def take(store: Store, workflow_id: str) -> PlanDocument:
    def work(unit: UnitOfWork) -> PlanDocument:
        workflow = unit.get(Workflow, workflow_id)
        assert workflow is not None
        return document_of(unit, workflow)

    return store.run(TESTER, work)


def check_counters(store: Store, workflow_id: str, document: PlanDocument) -> None:
    """Holds every counter of the only plan in a store against a look at all of it."""
    machine = PlanMachine.__new__(PlanMachine)
    machine.store, machine.workflow_id, machine.model = store, workflow_id, {}
    for task in document.tasks:
        entry = Entry(
            {
                "depends_on": task.depends_on,
                "parent": task.parent,
                "priority": task.priority,
                "sequence": task.sequence,
            }
        )
        entry.status = status_here(task.status)
        machine.model[task.name] = entry
    machine.the_counters_are_what_a_look_at_everything_says()

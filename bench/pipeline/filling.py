"""Fills a store with past runs: one that really ran, over and over in other words. The rows and events of the runs and
their workflows go through units of the store, hundreds at a time; the tasks of their plans are left out."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import msgspec

from handrail.domain.pipeline.lessons import Noted, PastRun, learn
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Actor
from handrail.kernel.records import UnitOfWork
from handrail.store.store import Store

AT_ONCE = 500
FILLING = Actor("bench", "mcp")
FIRST_MS = 1_700_000_000_000
APART_MS = 3_600_000
"""Between two runs, so that all of them lie in the past."""
SEVERITIES = ("CRITICAL", "MAJOR", "MINOR")
WORDS = (
    *("importer", "queue", "retry", "batch", "connection", "log", "place", "transaction", "limit", "order", "basket"),
    *("invoice", "payment", "search", "index", "cache", "session", "token", "upload", "image", "worker", "schedule"),
    *("report", "export", "filter", "template", "mail", "address", "webhook", "quota", "audit"),
)
VERBS = ("loses", "repeats", "forgets", "overwrites", "blocks", "duplicates", "delays", "hides", "rejects", "truncates")


class Model(NamedTuple):
    """A run that was driven to its end, and its workflow."""

    workflow: Workflow
    run: PipelineRun

    def at(self, repository: str) -> Model:
        """The same in another repository."""
        replaced = msgspec.structs.replace
        return Model(
            replaced(self.workflow, repository_path=repository), replaced(self.run, repository_path=repository)
        )


def model_in(store: Store, workflow_id: str) -> Model:
    def found(unit: UnitOfWork) -> Model:
        workflow, run = unit.get(Workflow, workflow_id), unit.get(PipelineRun, workflow_id)
        assert workflow is not None
        assert run is not None
        assert run.run_state().ended == "completed"
        assert run.findings, "it teaches nothing"
        assert run.friction, "it teaches nothing"
        return Model(workflow, run)

    return store.run(FILLING, found)


def fill(store: Store, model: Model, runs: int) -> None:
    """So many runs of the model's repository, all completed."""
    chance = random.Random(runs)
    taught = lessons(chance)
    for start in range(0, runs, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, runs))

        def work(unit: UnitOfWork, numbers: range = numbers) -> None:
            for number in numbers:
                past = past_run(model, unit.new_id("wf"), number, chance, taught if number else {})
                unit.record("pipeline.moved", past.workflow, past.run, data={"phase": None})

        store.run(FILLING, work, writing=True)


def past_run(model: Model, key: str, number: int, chance: random.Random, taught: dict[str, Any]) -> Model:
    """The model as it would have been for another request."""
    at = FIRST_MS + number * APART_MS
    name = f"{'-'.join(chance.sample(WORDS, 3))}-{number}"
    title = sentence(chance)
    request = " ".join(sentence(chance) for _ in range(8))
    told = [{**one, "description": sentence(chance), "at": at} for one in model.run.findings]
    changed = {"id": key, "created_at": at, "updated_at": at}
    run = msgspec.structs.replace(
        model.run,
        workspace=f".specs/20231114-{name}",
        spec_name=name,
        title=title,
        request=request,
        effort=chance.choice("SML"),
        branch=f"feature/{name}",
        findings=told,
        friction=[sentence(chance) for _ in model.run.friction],
        lessons=taught,
        **changed,
    )
    return Model(msgspec.structs.replace(model.workflow, name=title, source_content=request, **changed), run)


def lessons(chance: random.Random) -> dict[str, Any]:
    """What a run was taught that had many before it: as much as is ever kept."""
    runs = [PastRun(spec_name=f"past-{number}", request=sentence(chance)) for number in range(40)]
    findings = [Noted(text=sentence(chance), severity=chance.choice(SEVERITIES), run=str(n), at=n) for n in range(40)]
    friction = [Noted(text=sentence(chance), run=str(number), at=number) for number in range(40)]
    shown: dict[str, Any] = msgspec.to_builtins(
        learn(sentence(chance), runs=runs, findings=findings, friction=friction)
    )
    return shown


def sentence(chance: random.Random) -> str:
    one, other, third, fourth = chance.sample(WORDS, 4)
    return f"The {one} of a {other} {chance.choice(VERBS)} its {third} whenever the {fourth} is late or comes twice"

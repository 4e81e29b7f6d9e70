"""The page's read models of a crew say the same on every engine as on the model of them all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from handrail.domain.board.queries import EntryQuery
from handrail.domain.overview.agents import agents
from handrail.domain.overview.boards import boards
from handrail.domain.overview.decisions import decisions
from handrail.domain.overview.events import EventQuery, events
from handrail.domain.overview.gates import reviews
from handrail.domain.overview.messages import thread_page, threads
from handrail.domain.overview.milestones import milestones
from handrail.domain.overview.timeline import timeline
from handrail.domain.overview.versions import versions
from handrail.domain.work.workflow import Workflow
from handrail.kernel.ledger import Only
from handrail.kernel.records import UnitOfWork
from tests.domain.overview.crewed import RULES, Crewed
from tests.store.ground import Ground

PLACES = ("position", "oldest", "newest")
"""What only orders: engines may leave gaps."""


def worked(desk: Crewed) -> str:
    """Agents that claim, fail, write, decide and leave."""
    plan = desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]}, {"name": "three"})
    anna, ben = desk.register("Anna", "Ben")
    desk.wait()
    desk.claim(anna, "task_1")
    asked = desk.send(anna, "human", "Which one?", subject="The choice", requires_ack=True)
    desk.wait()
    desk.send("human", anna, "The first", reply_to_id=asked)
    desk.send(anna, ben, {"n": 1}, task_id="task_1")
    first = desk.call("log_decision", task_id="task_3", category="other", question="A?", chosen="b", reasoning="c")
    desk.wait()
    desk.call(
        "log_decision",
        task_id="task_3",
        category="other",
        question="A2?",
        chosen="b",
        reasoning="c",
        supersedes=first["id"],
    )
    desk.call("log_milestone", task_id="task_3", message="half", progress=50)
    issue = {"type": "other", "description": "odd", "resolution": "r", "requires_human_review": True}
    desk.call("log_issue", task_id="task_3", **issue)
    desk.call("bb_set", key="build:port", value=[1, None], tags=["net"])
    desk.call("workflow_add_tasks", id=plan, reason="more", tasks=[{"name": "x", "description": "", "sequence": 4}])
    desk.wait(10)
    desk.claim(ben, "task_1")
    desk.wait()
    desk.done(ben, "task_1")
    return plan


def looked(unit: UnitOfWork, plan: str) -> dict[str, Any]:
    workflow = unit.get(Workflow, plan)
    assert workflow is not None
    listed = threads(unit)
    last = unit.position()
    rare = Only(streams=(plan,), kinds=("workflow.", "task.claimed"))
    found = {
        "timeline": timeline(unit, workflow),
        "agents": [agents(unit, RULES), agents(unit, RULES, plan)],
        "threads": [listed, *(thread_page(unit, row.id) for row in listed.threads)],
        "decisions": decisions(unit, workflow),
        "milestones": milestones(unit, workflow),
        "reviews": reviews(unit, workflow),
        "versions": versions(unit, workflow),
        "boards": boards(unit, EntryQuery()),
        "events": [
            events(unit, EventQuery(limit=5, changes=True)),
            events(unit, EventQuery(before=last, limit=500)),
            events(unit, EventQuery(rare, before=last, limit=2)),
            events(unit, EventQuery(Only(actors=("ag_1",)), after=3)),
        ],
    }
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(found))
    return plain


def without_places(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_places(one) for name, one in value.items() if name not in PLACES}
    return [without_places(one) for one in value] if isinstance(value, list) else value


def test_every_engine_tells_the_same_of_a_crew(lasting: Ground, tmp_path: Path) -> None:
    settings = {"profile": "", "toolsets": "plan,journal,blackboard"}
    model = Crewed(tmp_path / "model", **settings)
    plan = worked(model)
    desk = Crewed(tmp_path / "desk", **settings)
    desk.store, desk.clock = lasting.store, lasting.clock
    assert worked(desk) == plan
    expected = without_places(model.look(lambda unit: looked(unit, plan)))
    assert without_places(desk.look(lambda unit: looked(unit, plan))) == expected
    assert expected["agents"][0]["agents"], "there is something to compare"
    assert expected["timeline"]["bars"]

"""Decisions, milestones, reviews, boards, versions and events as the page lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.domain.board.queries import EntryQuery
from handrail.domain.gates.gate import Gate, close_review
from handrail.domain.overview import boards as boards_module
from handrail.domain.overview import decisions as decisions_module
from handrail.domain.overview import events as events_module
from handrail.domain.overview.boards import boards
from handrail.domain.overview.decisions import decisions, task_decisions
from handrail.domain.overview.events import EventQuery, Events, events, kinds_meant
from handrail.domain.overview.gates import reviews
from handrail.domain.overview.milestones import milestones
from handrail.domain.overview.versions import versions
from handrail.domain.work.task import Task
from handrail.kernel.errors import InvalidParams
from handrail.kernel.ledger import Only
from tests.domain.overview.crewed import Crewed


def crew(folder: Path, **settings: Any) -> tuple[Crewed, str]:
    """A plan of two tasks, the first of which is under way."""
    desk = Crewed(folder, **settings)
    plan = desk.plan({"name": "Wrap the fetch"}, {"name": "Use it", "depends_on": ["Wrap the fetch"]})
    desk.move("task_1", "in_progress")
    return desk, plan


# -- decisions --------------------------------------------------------------------------------------------------------


def decide(desk: Crewed, question: str, **more: Any) -> str:
    given = {"task_id": "task_1", "question": question, "chosen": "yes", "reasoning": "because", **more}
    desk.wait()
    return str(desk.call("log_decision", **{"category": "architecture", **given})["id"])


def test_decisions_with_their_reasons_the_newest_first(tmp_path: Path) -> None:
    desk, plan = crew(tmp_path, profile="", toolsets="journal,plan")
    first = decide(desk, "Which cache?", chosen="LRU", options_considered=["LRU", "Redis"], trade_offs="memory")
    desk.wait()
    desk.call(
        "checkpoint_add", task_id="task_1", type="decision", summary="No cache at all", detail={"supersedes": first}
    )
    found = desk.at(plan, decisions)
    newer, older = found.decisions
    assert (newer.title, newer.status, newer.supersedes) == ("No cache at all", "accepted", first)
    assert (older.title, older.chosen, older.status, older.superseded_by) == (
        "Which cache?",
        "LRU",
        "superseded",
        newer.id,
    )
    assert (older.alternatives, older.consequences, older.tags) == (["LRU", "Redis"], "memory", ["architecture"])
    assert (older.task_id, older.task_name, older.by, found.more) == ("task_1", "Wrap the fetch", "tester", 0)
    assert desk.at(plan, lambda unit, workflow: task_decisions(unit, workflow, "task_2")) == []
    assert len(desk.at(plan, lambda unit, workflow: task_decisions(unit, workflow, "task_1"))) == 2


@pytest.mark.parametrize(
    ("search", "found"),
    [("CACHE", 1), ("redis", 1), ("because", 2), ("lru cache", 1), ("wrap", 2), ("nothing like it", 0)],
)
def test_decisions_are_searched_in_all_their_words(tmp_path: Path, search: str, found: int) -> None:
    desk, plan = crew(tmp_path, profile="", toolsets="journal,plan")
    decide(desk, "Which cache?", chosen="LRU", options_considered=["Redis"])
    decide(desk, "Which queue?")
    assert len(desk.at(plan, lambda unit, workflow: decisions(unit, workflow, search)).decisions) == found


def test_decisions_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, plan = crew(tmp_path, profile="", toolsets="journal,plan")
    for number in range(6):
        decide(desk, f"Question {number}")
    monkeypatch.setattr(decisions_module, "LOOKED_AT", 4)
    monkeypatch.setattr(decisions_module, "SHOWN", 3)
    found = desk.at(plan, decisions)
    assert ([row.title for row in found.decisions], found.more) == (["Question 5", "Question 4", "Question 3"], 3)


# -- milestones, reviews ----------------------------------------------------------------------------------------------


def test_milestones_and_progress(tmp_path: Path) -> None:
    desk, plan = crew(tmp_path, profile="", toolsets="journal,plan")
    desk.call("log_milestone", task_id="task_1", message="Running tests", progress=75)
    desk.wait()
    desk.call("checkpoint_add", task_id="task_1", type="progress", summary="Nearly there")
    desk.move("task_1", "completed")
    found = desk.at(plan, milestones)
    assert [(row.text, row.status, row.progress, row.by) for row in found.milestones] == [
        ("Nearly there", "progress", None, "tester"),
        ("Running tests", "milestone", 0.75, "tester"),
    ]
    assert (found.milestones[0].title, found.progress.done, found.progress.total, found.more) == (
        "Wrap the fetch",
        1,
        2,
        0,
    )


def test_who_ended_a_task_is_told_with_the_milestone(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"})
    (anna,) = desk.register("Anna")
    desk.claim(anna, "task_1")
    desk.as_agent(anna, "checkpoint_add", task_id="task_1", type="progress", summary="half")
    desk.done(anna, "task_1")
    found = desk.at(plan, milestones)
    assert {row.by for row in found.milestones} == {"Anna"}


def test_open_reviews_come_first(tmp_path: Path) -> None:
    desk, plan = crew(tmp_path, profile="", toolsets="journal,plan")
    for number in range(2):
        desk.call(
            "log_issue",
            task_id="task_1",
            type="other",
            description=f"Odd {number}",
            resolution=f"Worked around {number}",
            requires_human_review=True,
        )
        desk.wait()
    gates = desk.at(plan, reviews).reviews
    assert [(row.status, row.resolution) for row in gates] == [("open", "Worked around 0"), ("open", "Worked around 1")]

    def close(unit: Any) -> None:
        close_review(unit, unit.get(Gate, gates[0].id), unit.actor, "fine", "thanks")

    desk.look(close)
    found = desk.at(plan, reviews)
    assert [(row.id, row.status, row.remark) for row in found.reviews] == [
        (gates[1].id, "open", None),
        (gates[0].id, "answered", "thanks"),
    ]
    assert (found.reviews[1].answered_by, found.reviews[1].channel, found.more) == ("ann", "cli", 0)
    assert found.reviews[0].task_name == "Wrap the fetch"


# -- boards -----------------------------------------------------------------------------------------------------------


def test_boards_with_their_entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path, profile="", toolsets="blackboard,agent")
    (anna,) = desk.register("Anna")
    desk.as_agent(anna, "bb_set", key="build:port", value={"n": 8080}, tags=["net"], agent_id=anna)
    desk.call("bb_set", key="note", value="x" * 5000)
    desk.call("bb_set", key="short", value=1, ttl_ms=1000)
    found = desk.look(lambda unit: boards(unit, EntryQuery()))
    assert [(row.name, [entry.key for entry in row.entries]) for row in found.boards] == [
        ("build", ["port"]),
        ("default", ["note", "short"]),
    ]
    port, note = found.boards[0].entries[0], found.boards[1].entries[0]
    assert (port.value, port.tags, port.set_by, port.cut) == ({"n": 8080}, ["net"], "Anna", False)
    assert (note.cut, len(note.value)) == (True, boards_module.VALUE_CHARS)
    whole = desk.look(lambda unit: boards(unit, EntryQuery(keys=(note.id,))))
    assert whole.boards[0].entries[0].value == "x" * 5000
    desk.clock.advance(2000)
    assert [entry.key for entry in desk.look(lambda unit: boards(unit, EntryQuery())).boards[1].entries] == ["note"]
    monkeypatch.setattr(boards_module, "SHOWN", 1)
    first = desk.look(lambda unit: boards(unit, EntryQuery()))
    assert (first.more, first.next) == (1, "build:port")
    rest = desk.look(lambda unit: boards(unit, EntryQuery(after=first.next or "")))
    assert [row.name for row in rest.boards] == ["default"]


# -- versions ---------------------------------------------------------------------------------------------------------


def test_versions_say_what_each_changed(tmp_path: Path) -> None:
    desk, plan = crew(tmp_path)
    begin = desk.clock.now_ms()
    desk.wait()
    desk.call(
        "workflow_add_tasks", id=plan, reason="forgot one", tasks=[{"name": "More", "description": "", "sequence": 3}]
    )
    desk.call("workflow_remove_task", task_id="task_2", reason="not needed")
    desk.move("task_1", "completed")
    found = desk.at(plan, versions)
    assert [(row.version, row.summary, row.added, row.removed, row.changed) for row in found.versions] == [
        (3, "not needed", 0, 1, 0),
        (2, "forgot one", 1, 0, 0),
        (1, "2 tasks added", 2, 0, 0),
    ]
    assert (found.versions[0].removed_names, found.versions[1].added_names) == (["Use it"], ["More"])
    assert (found.versions[-1].at, found.versions[-1].by, found.current, found.more) == (begin, "tester", 3, 0)


def test_a_task_that_waits_for_another_now_is_changed(tmp_path: Path) -> None:
    desk, plan = crew(tmp_path)
    tasks = [
        {"name": "Use it", "description": "", "sequence": 1},
        {"name": "Before", "description": "", "sequence": 2},
    ]
    tasks[0]["depends_on"] = ["Wrap the fetch", "Before"]
    desk.call("workflow_replan", id=plan, reason="another order", tasks=tasks)
    newest = desk.at(plan, versions).versions[0]
    assert (newest.added_names, newest.changed_names) == (["Before"], ["Use it"])


# -- events -----------------------------------------------------------------------------------------------------------


def listed(desk: Crewed, *, only: Only | None = None, **wanted: Any) -> Events:
    return desk.look(lambda unit: events(unit, EventQuery(only or Only(), **wanted)))


def test_events_page_by_page_back_to_the_first(tmp_path: Path) -> None:
    desk, _ = crew(tmp_path)
    for number in range(20):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary=f"step {number}")
    total = desk.store.position()
    assert [row.position for row in listed(desk, limit=1, before=10**15).events] == [total]
    page = listed(desk, limit=6)
    seen = [row.position for row in page.events]
    assert (page.newest, page.position) == (total, total)
    while page.more:
        page = listed(desk, limit=6, before=page.oldest)
        seen += [row.position for row in page.events]
    assert seen == list(range(total, 0, -1))


def test_rare_events_are_found_far_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk, plan = crew(tmp_path)
    for number in range(60):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary=f"step {number}")
    monkeypatch.setattr(events_module, "PAGE", 3)
    rare = Only(streams=(plan,), kinds=("workflow.",))
    page = listed(desk, only=rare, before=desk.store.position(), limit=1)
    assert ([row.kind for row in page.events], page.more) == (["workflow.planned"], 1)
    page = listed(desk, only=rare, before=page.oldest, limit=5)
    assert ([row.kind for row in page.events], page.more) == (["workflow.created"], 0)


def test_what_came_after_a_position(tmp_path: Path) -> None:
    desk, _ = crew(tmp_path)
    here = desk.store.position()
    for number in range(3):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary=f"step {number}")
    page = listed(desk, after=here, limit=2)
    assert ([row.position for row in page.events], page.more) == ([here + 2, here + 1], 1)
    assert listed(desk, after=here + 3).events == []


def test_changes_only_on_request_and_without_secrets(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    anna, ben = desk.register("Anna", "Ben")
    desk.send(anna, ben, "between us", subject="hush")
    plain = listed(desk)
    assert not isinstance(plain.events[0].changes, list)
    assert plain.events[-1].actor_name
    told = listed(desk, changes=True)
    rows = {change.table: change for event in told.events for change in event.changes or []}
    assert rows["agent"].after is not None
    assert rows["message"].after is not None
    assert "secret_hash" not in rows["agent"].after
    assert "body" not in rows["message"].after
    assert "hush" not in repr(told)
    assert "between us" not in repr(told)


def test_an_actor_is_named(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan({"name": "one"})
    (anna,) = desk.register("Anna")
    desk.claim(anna, "task_1")
    page = listed(desk, only=Only(actors=(anna,)))
    assert {(row.actor, row.actor_name) for row in page.events} == {(anna, "Anna")}
    assert [row.text for row in page.events][:2] == ["started “one”", "claimed “one”"]


def test_events_name_what_they_are_about_and_not_its_number(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan({"name": "one"}, {"name": "two"})
    anna, ben = desk.register("Anna", "Ben")
    desk.claim(anna, "task_1")
    desk.as_agent(anna, "task_release", task_id="task_1", agent_id=anna, reason="too hard")
    desk.send(anna, ben, "hush")
    texts = [row.text for row in listed(desk).events]
    assert texts[0] == "wrote to Ben"
    assert "released “one”: too hard" in texts
    assert not [text for text in texts if "task_" in text or "ag_" in text or "wf_" in text]


def test_only_what_is_about_one_task(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan({"name": "one"}, {"name": "two"})
    anna, _ = desk.register("Anna", "Ben")
    desk.claim(anna, "task_1")
    desk.claim(anna, "task_2")
    task = desk.look(lambda unit: unit.get(Task, "task_2"))
    page = listed(desk, task=task)
    assert [row.kind for row in page.events] == ["task.in_progress", "task.claimed"]
    assert [row.kind for row in listed(desk, task=task, before=page.events[0].position).events] == ["task.claimed"]


def test_part_of_a_kind_means_its_family_and_nothing_is_searched_for_in_vain() -> None:
    assert kinds_meant(["task", "GATE.", "pip", "task.failed"]) == ("task.", "gate.", "pipeline.", "task.failed")
    with pytest.raises(InvalidParams) as refused:
        kinds_meant(["task.zzz"])
    assert "kinds begin with agent" in refused.value.hint


def test_what_is_rare_is_found_however_far_back_it_lies(tmp_path: Path) -> None:
    desk, _ = crew(tmp_path)
    for number in range(40):
        desk.call("checkpoint_add", task_id="task_1", type="progress", summary=f"step {number}")
    page = listed(desk, only=Only(kinds=("workflow.",)), limit=1)
    assert ([row.kind for row in page.events], page.more) == (["workflow.planned"], 1)
    page = listed(desk, only=Only(kinds=("workflow.",)), before=page.oldest)
    assert ([row.kind for row in page.events], page.more) == (["workflow.created"], 0)

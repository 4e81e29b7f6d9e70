"""Who is there, by presence; what each did, by the ledger: the two are told apart."""

from __future__ import annotations

from pathlib import Path

import pytest

from handrail.domain.overview import agents as module
from handrail.domain.overview.agents import AgentRow, agents
from tests.domain.overview.crewed import RULES, Crewed


def rows(desk: Crewed, workflow_id: str | None = None) -> dict[str, AgentRow]:
    found = desk.look(lambda unit: agents(unit, RULES, workflow_id))
    return {row.name: row for row in found.agents}


def test_tiers_follow_from_presence(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan({"name": "one"}, {"name": "two"})
    lost, late, gone, finished = desk.register("lost", "late", "gone", "finished")
    desk.claim(lost, "task_1")
    desk.claim(finished, "task_2")
    desk.done(finished, "task_2")
    desk.as_agent(gone, "agent_unregister", id=gone)
    desk.wait(0.75)
    desk.as_agent(late, "agent_heartbeat", agent_id=late)
    desk.wait(0.9)
    desk.register("fresh")
    shown = rows(desk)
    tiers = [(name, row.tier) for name, row in shown.items()]
    assert tiers == [("fresh", "ok"), ("late", "late"), ("lost", "lost"), ("finished", "gone"), ("gone", "gone")]
    assert shown["finished"].status == "gone", "who has done its work may go without a word"
    assert shown["late"].heartbeat_at == desk.clock.now_ms() - 54_000
    assert (shown["gone"].status, shown["fresh"].status, shown["lost"].status) == ("gone", "idle", "lost")


def test_a_heartbeat_is_no_action(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan({"name": "Wrap the fetch"})
    anna, ben = desk.register("Anna", "Ben")
    desk.claim(anna, "task_1")
    desk.as_agent(anna, "checkpoint_add", task_id="task_1", type="progress", summary="half of it")
    wrote = desk.clock.now_ms()
    for _ in range(4):
        desk.wait(0.5)
        desk.as_agent(anna, "agent_heartbeat", agent_id=anna, status="busy", current_task_id="task_1")
        desk.as_agent(ben, "agent_heartbeat", agent_id=ben, status="busy")
    shown = rows(desk)
    last = shown["Anna"].last_action
    assert last is not None
    assert (last.kind, last.at, last.text) == (
        "checkpoint.added",
        wrote,
        "wrote a note on “Wrap the fetch”: half of it",
    )
    assert shown["Anna"].heartbeat_at == desk.clock.now_ms()
    assert shown["Ben"].last_action is None, "coming and beating is no work"


def test_what_each_holds_and_what_has_run_out(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    plan = desk.plan({"name": "one"}, {"name": "two"})
    anna, ben = desk.register("Anna", "Ben")
    desk.claim(anna, "task_1")
    held = rows(desk)["Anna"].tasks
    assert [(task.id, task.name, task.workflow_id, task.lapsed) for task in held] == [("task_1", "one", plan, False)]
    assert (held[0].since, held[0].lease_expires_at) == (desk.clock.now_ms(), desk.clock.now_ms() + RULES.lease_ms)
    desk.wait(30)
    desk.claim(ben, "task_2")
    shown = rows(desk)
    assert (shown["Anna"].tier, shown["Anna"].tasks[0].lapsed) == ("lost", True)
    assert (shown["Ben"].tier, shown["Ben"].status) == ("ok", "working")
    desk.done(ben, "task_2")
    assert rows(desk)["Ben"].tasks == [], "what is finished is held by nobody"


def test_unread_and_workspace(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    anna, ben = desk.register("Anna", "Ben")
    desk.send(anna, ben)
    desk.send("human", ben)
    desk.as_agent(ben, "agent_update", id=ben, workspace_path="/copies/one")
    shown = rows(desk)
    assert (shown["Anna"].unread, shown["Ben"].unread) == (0, 2)
    space = shown["Ben"].workspace
    assert space is not None
    assert (space.id, space.branch, space.path) == (None, None, "/copies/one")
    assert shown["Anna"].workspace is None


def test_agents_of_one_workflow_are_those_that_had_to_do_with_it(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    first, second = desk.plan({"name": "one"}), desk.plan({"name": "two"}, name="Other")
    anna, _, cyd = desk.register("Anna", "Ben", "Cyd")
    desk.claim(anna, "task_1")
    desk.done(anna, "task_1")
    desk.claim(cyd, "task_2")
    assert list(rows(desk, first)) == ["Anna"]
    assert list(rows(desk, second)) == ["Cyd"]


def test_a_page_has_those_who_matter_and_counts_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Crewed(tmp_path)
    (old,) = desk.register("old")
    for name in ("a", "b", "c"):
        (gone,) = desk.register(name)
        desk.as_agent(gone, "agent_unregister", id=gone)
    desk.as_agent(old, "agent_heartbeat", agent_id=old)
    monkeypatch.setattr(module, "SHOWN", 2)
    found = desk.look(lambda unit: agents(unit, RULES))
    assert (found.agents[0].name, len(found.agents), found.more) == ("old", 2, 2)
    assert found.heartbeat_ms == RULES.heartbeat_ms


def test_a_page_asks_few_questions_however_many_agents_there_are(tmp_path: Path) -> None:
    desk = Crewed(tmp_path)
    desk.plan(*({"name": f"t{number}"} for number in range(12)))
    for number, agent_id in enumerate(desk.register(*(f"a{number}" for number in range(12))), 1):
        desk.claim(agent_id, f"task_{number}")

    def counted(unit: object) -> int:
        asked: list[str] = []
        reader = unit._reader  # type: ignore[attr-defined]
        for name in ("get", "select", "count_by"):
            original = getattr(reader, name)

            def spy(*args: object, _name: str = name, _original: object = original) -> object:
                asked.append(_name)
                return _original(*args)  # type: ignore[operator]

            setattr(reader, name, spy)
        agents(unit, RULES)  # type: ignore[arg-type]
        return len(asked)

    assert desk.look(counted) < 12

"""Which workspace is merged after which: by what their tasks need, through whatever lies between."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handrail.domain.workspaces.lifecycle import in_order, name_for, waits_for, workspaces_in
from handrail.kernel.records import UnitOfWork
from tests.toolsets.plan.planned import TESTER, Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def spaces(desk: Desk, *groups: tuple[str, ...]) -> None:
    """A workspace for each group of tasks, made in this order: ws_1, ws_2 …"""
    for number, group in enumerate(groups, 1):
        where = {"path": f"/srv/copies/{number}", "branch": f"b{number}", "base_branch": "main"}
        desk.call("workspace_create", workflow_id="wf_1", task_ids=list(group), **where)
        desk.clock.advance(1)


def looked(desk: Desk, work: Callable[[UnitOfWork], Any]) -> Any:
    return desk.store.run(TESTER, work)


def order(desk: Desk) -> list[str]:
    def found(unit: UnitOfWork) -> list[str]:
        active = workspaces_in(unit, "wf_1")
        return [space.id for space in in_order(active, waits_for(unit, active))]

    answer: list[str] = looked(desk, found)
    return answer


def test_what_others_build_on_comes_first(desk: Desk) -> None:
    desk.plan({"name": "base"}, {"name": "middle", "depends_on": ["base"]}, {"name": "top", "depends_on": ["middle"]})
    spaces(desk, ("task_3",), ("task_1",))
    assert looked(desk, lambda unit: waits_for(unit, workspaces_in(unit, "wf_1"))) == {"ws_1": ("ws_2",), "ws_2": ()}
    assert order(desk) == ["ws_2", "ws_1"]


def test_what_needs_nothing_of_each_other_keeps_the_order_it_was_made_in(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "two"}, {"name": "three"})
    spaces(desk, ("task_3",), ("task_1",), ("task_2",))
    assert order(desk) == ["ws_1", "ws_2", "ws_3"]


def test_two_that_need_each_other_keep_nobody_waiting(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]}, {"name": "three", "depends_on": ["two"]})
    spaces(desk, ("task_1", "task_3"), ("task_2",))
    assert looked(desk, lambda unit: waits_for(unit, workspaces_in(unit, "wf_1"))) == {"ws_1": (), "ws_2": ()}
    assert order(desk) == ["ws_1", "ws_2"]


def test_one_that_is_merged_keeps_nobody_waiting(desk: Desk) -> None:
    desk.plan({"name": "one"}, {"name": "two", "depends_on": ["one"]})
    spaces(desk, ("task_1",), ("task_2",))
    listed = desk.call("workspace_list", workflow_id="wf_1", look=False)
    assert listed["merge_order"] == ["ws_1", "ws_2"]
    assert listed["workspaces"][1]["merge_after"] == ["ws_1"]
    desk.call("workspace_update", id="ws_1", status="merged", merge_commit="c0ffee")
    listed = desk.call("workspace_list", workflow_id="wf_1", look=False)
    assert [space.get("merge_after") for space in listed["workspaces"]] == [None, None]


@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("Wrap the fetch!", "wrap-the-fetch-abcdefgh"),
        ("Ünïcode", "n-code-abcdefgh"),
        ("../../etc", "etc-abcdefgh"),
        ("日本", "work-abcdefgh"),
        ("x" * 100, f"{'x' * 32}-abcdefgh"),
    ],
)
def test_a_name_for_a_folder_and_a_branch_is_plain(name: str, made: str) -> None:
    assert name_for(name, "task_01abcdefgh") == made

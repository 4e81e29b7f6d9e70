"""`reserve_paths`, `release_paths`, and what `workflow_next_tasks` makes of them, through real calls."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import InvalidParams, PathsReserved
from handrail.surfaces.invocation import CallingClient
from tests.toolsets.plan.planned import Desk

HOUR = 3_600_000


class Shop(Desk):
    """A desk with two agents at it."""

    def __init__(self, folder: Path, **settings: Any) -> None:
        super().__init__(folder, **settings)
        self.root = str(folder / "project")
        self.anna = self.call("agent_register", name="Anna", runtime="codex")["id"]
        self.ben = self.call("agent_register", name="Ben", runtime="codex")["id"]

    def reserve(self, agent: str, *paths: str, **more: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("reserve_paths", agent_id=agent, paths=list(paths), **more)
        return answer

    def next(self, **asked: Any) -> dict[str, Any]:
        answer: dict[str, Any] = self.call("workflow_next_tasks", **asked)
        return answer


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def planned(name: str, *files: str) -> dict[str, Any]:
    return {"name": name, "files_likely_affected": list(files)}


def test_paths_are_kept_for_an_hour_unless_asked_otherwise(shop: Shop) -> None:
    answer = shop.reserve(shop.anna, "src/")
    assert answer == {"granted": True, "id": "rsv_1", "expires_at": shop.clock.now_ms() + HOUR}
    assert shop.reserve(shop.anna, "docs/", ttl_ms=5)["expires_at"] == shop.clock.now_ms() + 5


def test_the_second_hears_who_has_what_until_when_and_why(shop: Shop) -> None:
    until = shop.reserve(shop.anna, "src/", "docs/*.md", reason="moving things")["expires_at"]
    answer = shop.reserve(shop.ben, "README.md", "src/a.py")
    assert answer == {
        "granted": False,
        "conflicts": [
            {
                "agent_id": shop.anna,
                "name": "Anna",
                "paths": ["src/", "docs/*.md"],
                "path": "src/a.py",
                "until": until,
                "reason": "moving things",
            }
        ],
    }
    shop.clock.advance(60_000)
    shop.call("agent_heartbeat", agent_id=shop.anna)
    assert not shop.reserve(shop.ben, "src/a.py")["granted"], "it lasts while its agent is there"
    shop.clock.advance(90_000)
    assert shop.reserve(shop.ben, "src/a.py")["granted"], "three heartbeats of silence, and it does not count"


def test_absolute_paths_are_those_of_the_repository(shop: Shop) -> None:
    assert shop.reserve(shop.anna, f"{shop.root}/src/a.py")["granted"]
    assert not shop.reserve(shop.ben, "src/a.py")["granted"]
    assert shop.call("release_paths", agent_id=shop.anna, paths=[f"{shop.root}/src/a.py"])["released"] == 1
    assert shop.reserve(shop.ben, shop.root)["granted"]
    assert not shop.reserve(shop.anna, "anything.c")["granted"]


def test_a_tasks_paths_belong_to_its_workflows_repository(shop: Shop) -> None:
    shop.plan(planned("a"), repository_path="/srv/elsewhere")
    assert shop.reserve(shop.anna, "src/", task_id="task_1")["granted"]
    assert shop.reserve(shop.ben, "src/")["granted"], "here is another repository"
    assert not shop.reserve(shop.ben, "src/a.py", task_id="task_1")["granted"]


@pytest.mark.parametrize(
    "wrong", [{"paths": []}, {"paths": ["a"] * 101}, {"paths": ["a"], "ttl_ms": 25 * HOUR}, {"paths": ["../x"]}]
)
def test_a_wrong_request_is_refused(shop: Shop, wrong: dict[str, Any]) -> None:
    assert isinstance(shop.refusal("reserve_paths", agent_id=shop.anna, **wrong), InvalidParams)


def test_a_reservation_is_given_back_by_its_id_by_path_or_whole(shop: Shop) -> None:
    shop.reserve(shop.anna, "a/", "b/")
    shop.reserve(shop.anna, "c/")

    def give(**what: Any) -> Any:
        return shop.call("release_paths", agent_id=shop.anna, **what)

    assert give(paths=["b/", "zzz/"]) == {"success": True, "released": 1}
    assert give(id="rsv_1", paths=["c/"]) == {"success": False, "released": 0}
    assert give(id="rsv_1") == {"success": True, "released": 1}
    assert give(id="rsv_1") == {"success": False, "released": 0}
    assert give(id="rsv_9") == {"success": False, "released": 0}
    assert give() == {"success": True, "released": 1}


def test_only_a_coordinator_gives_back_what_is_anothers(shop: Shop) -> None:
    shop.reserve(shop.anna, "src/")
    refused = shop.refusal("release_paths", agent_id=shop.ben, id="rsv_1")
    assert isinstance(refused, PathsReserved)
    assert "Anna" in refused.message
    lead = shop.call("agent_register", name="Lea", runtime="codex", role="coordinator")["id"]
    assert shop.call("release_paths", agent_id=lead, id="rsv_1") == {"success": True, "released": 1}
    assert shop.reserve(shop.ben, "src/")["granted"]


def test_many_long_conflicts_make_a_short_reply(shop: Shop) -> None:
    for number in range(15):
        agent = shop.call("agent_register", name=f"A{number}" + "n" * 90, runtime="codex")["id"]
        long = [f"part{number}/{'x' * 900}{at}" for at in range(100)]
        assert shop.reserve(agent, *long, reason="r" * 500)["granted"]
    answer = shop.reserve(shop.ben, *(f"part{number}/" for number in range(15)))
    assert (len(answer["conflicts"]), answer["conflicts_total"]) == (10, 15)
    assert len(msgspec.json.encode(answer)) < 8192


def test_what_is_next_names_a_batch_and_why_the_rest_is_not_in_it(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"), planned("b", "src/"), planned("c"), max_parallel_tasks=3)
    found = shop.next()
    assert found["batch"] == ["task_1", "task_3"]
    assert found["conflicts"] == [
        {
            "task_id": "task_2",
            "name": "b",
            "other": "ready",
            "other_id": "task_1",
            "other_name": "a",
            "path": "src/a.py",
            "declared": "files_likely_affected: src/",
            "other_declared": "files_likely_affected: src/a.py",
        }
    ]
    assert [task.get("unknown_scope", False) for task in found["tasks"]] == [False, False, True]
    assert "conflicts_total" not in found
    assert "unchecked" not in found


def test_who_works_alone_is_told_nothing_more_than_before(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"), planned("b"))
    found = shop.next()
    assert not {"batch", "unchecked", "conflicts_total"} & set(found)
    assert "unknown_scope" not in found["tasks"][0]


def test_what_is_under_way_keeps_others_out_of_the_batch(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"), planned("b", "src/"), planned("c", "docs/"), max_parallel_tasks=2)
    shop.move("task_1", "in_progress")
    found = shop.next()
    assert (found["recommended_count"], found["batch"]) == (1, ["task_3"])
    assert [(one["task_id"], one["other"], one["other_id"]) for one in found["conflicts"]] == [
        ("task_2", "running", "task_1")
    ]


def test_without_a_free_place_nothing_is_foreseen(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"), planned("b", "src/"))
    shop.move("task_1", "in_progress")
    found = shop.next()
    assert not {"batch", "conflicts"} & set(found)


def test_anothers_reservation_is_told_also_to_who_works_one_by_one(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"), planned("b", "docs/"))
    until = shop.reserve(shop.anna, "src/")["expires_at"]
    found = shop.next()
    assert found["batch"] == ["task_2"]
    assert (found["conflicts"][0]["other"], found["conflicts"][0]["until"]) == ("reserved", until)
    assert "batch" not in shop.next(agent_id=shop.anna), "to Anna it is no trouble"
    client = CallingClient((shop.anna,))
    assert "batch" not in shop.call_as(client, "workflow_next_tasks")


def test_a_batch_that_is_empty_is_said_to_be(shop: Shop) -> None:
    shop.plan(planned("a", "src/a.py"))
    shop.reserve(shop.anna, "**")
    assert shop.next()["batch"] == []


def test_the_areas_of_a_journalled_task_count(shop: Shop) -> None:
    workflow = shop.plan(planned("a", "src/payments/a.py"), planned("b", "docs/"), max_parallel_tasks=3)
    shop.call("start_task", workflow_id=workflow, name="pay", goal="g", areas=["payments"])
    (why,) = shop.next()["conflicts"]
    assert (why["task_id"], why["other_declared"]) == ("task_1", "areas: payments")


def test_a_plan_full_of_conflicts_makes_a_reply_that_is_cut(shop: Shop) -> None:
    shop.plan(*(planned(f"{n}" + "n" * 100, "src/" + "x" * 500) for n in range(10)), max_parallel_tasks=10)
    found = shop.next()
    assert (found["batch"], len(found["conflicts"]), found["conflicts_total"]) == (["task_1"], 10, 45)
    assert len(msgspec.json.encode(found)) < 8192

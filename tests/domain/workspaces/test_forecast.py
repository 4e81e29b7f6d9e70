"""The forecast: which ready tasks are safe together, which batch it proposes, and why the rest is not in it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.scope import overlap
from handrail.domain.work.task import Task
from handrail.domain.work.workflow import Workflow
from handrail.domain.workspaces.forecast import MOST_READY, MOST_RUNNING, Forecast, forecast
from handrail.domain.workspaces.reservations import TTL_MS
from tests.domain.workspaces.test_reservations import REPOSITORY, RULES, TESTER, Ground, granted

WORKFLOW = Workflow(
    id="wf_1",
    name="Work",
    status="in_progress",
    source_type="prompt",
    source_ref=None,
    source_content="",
    repository_path=REPOSITORY,
    plan=None,
    max_parallel_tasks=10,
    auto_create_workspaces=False,
    created_at=0,
    updated_at=0,
)


def task(name: str, *files: str, **fields: Any) -> Task:
    given: dict[str, Any] = {
        "id": name,
        "workflow_id": "wf_1",
        "parent_task_id": None,
        "name": name.title(),
        "description": "",
        "status": "pending",
        "sequence": 1,
        "priority": 0,
        "parallel_group": None,
        "depends_on": [],
        "unmet": 0,
        "estimated_complexity": None,
        "files_likely_affected": list(files),
        "plan": None,
        "context": {},
        "outcome": None,
        "outcome_detail": None,
        "error": None,
        "checkpoints": 0,
        "created_at": 0,
        "updated_at": 0,
    }
    return Task(**{**given, **fields})


def running(name: str, *files: str, **fields: Any) -> Task:
    return task(name, *files, **{"status": "in_progress", **fields})


def foresee(
    ready: list[Task], under_way: list[Task] | None = None, *, ground: Ground | None = None, **asked: Any
) -> Forecast:
    asked = {"places": 10, **asked}
    store = (ground or Ground()).store
    return store.run(TESTER, lambda unit: forecast(unit, WORKFLOW, ready, under_way or [], **asked))


def told(found: Forecast) -> list[tuple[str, str, str]]:
    return [(one.task_id, one.other, one.other_id) for one in found.conflicts]


def test_tasks_that_touch_nothing_in_common_are_begun_together() -> None:
    found = foresee([task("a", "src/a.py"), task("b", "src/b.py"), task("c", "docs/")])
    assert found == Forecast(batch=("a", "b", "c"))


def test_of_two_that_touch_the_same_file_the_first_is_begun_and_it_is_said_why() -> None:
    found = foresee([task("a", "src/a.py"), task("b", "src/"), task("c", "docs/")])
    assert found.batch == ("a", "c")
    (why,) = found.conflicts
    assert (why.task_id, why.name, why.other, why.other_id, why.other_name) == ("b", "B", "ready", "a", "A")
    assert why.path == "src/a.py"
    assert (why.declared, why.other_declared) == ("files_likely_affected: src/", "files_likely_affected: src/a.py")


def test_there_are_never_more_in_a_batch_than_places() -> None:
    ready = [task("a", "a.py"), task("b", "b.py"), task("c", "c.py")]
    assert [foresee(ready, places=places).batch for places in (-1, 0, 1, 2)] == [(), (), ("a",), ("a", "b")]


def test_who_is_left_out_for_another_is_in_nobodys_way() -> None:
    found = foresee([task("a", "x/a.py"), task("b", "x/", "y/"), task("c", "y/c.py")])
    assert found.batch == ("a", "c")
    assert told(found) == [("b", "ready", "a"), ("c", "ready", "b")]


def test_what_is_under_way_comes_before_what_is_ready() -> None:
    found = foresee([task("a", "src/a.py"), task("b", "docs/")], [running("r", "src/")])
    assert found.batch == ("b",)
    assert told(found) == [("a", "running", "r")]


def test_a_task_that_declares_nothing_claims_nothing_and_is_marked() -> None:
    found = foresee([task("a", "src/"), task("b"), task("c", "!src/", "")], [running("r")])
    assert found == Forecast(batch=("a", "b", "c"), unknown=frozenset({"b", "c"}))


@pytest.mark.parametrize("name", ["files_to_modify", "files_to_create"])
def test_a_tasks_own_plan_counts(name: str) -> None:
    found = foresee([task("a", "src/a.py"), task("b", plan={name: ["src/a.py", 7]})])
    assert found.batch == ("a",)
    assert found.conflicts[0].declared == "plan: src/a.py"
    assert found.unknown == frozenset()


def test_a_plan_of_another_shape_is_no_trouble() -> None:
    assert foresee([task("a", "a.py"), task("b", plan={"files_to_modify": "a.py"})]).batch == ("a", "b")


def test_the_areas_of_an_open_journal_entry_count() -> None:
    ground = Ground()
    for entry in (entry_of("r", None), entry_of("done", 5)):
        ground.store.run(TESTER, lambda unit, entry=entry: unit.record("task.began", entry))  # type: ignore[misc]
    found = foresee([task("a", "src/a.py")], [running("r"), running("done")], ground=ground)
    assert told(found) == [("a", "running", "r")]
    assert found.conflicts[0].other_declared == "areas: src"


def entry_of(task_id: str, completed_at: int | None) -> JournalEntry:
    return JournalEntry(
        id=task_id,
        workflow_id="wf_1",
        directory=REPOSITORY,
        areas=["src"],
        plan_step=None,
        before={},
        after=None,
        report=None,
        started_at=0,
        completed_at=completed_at,
    )


def test_what_one_place_takes_back_another_still_claims() -> None:
    ready = [task("a", "src/**", "!src/a.py", plan={"files_to_modify": ["src/a.py"]}), task("b", "src/a.py")]
    assert foresee(ready).batch == ("a",)
    assert foresee([task("a", "src/**", "!src/a.py"), task("b", "src/a.py")]).batch == ("a", "b")


def test_what_another_agent_has_reserved_is_in_the_way_until_it_ends() -> None:
    ground = Ground("anna", "ben")
    kept = granted(ground.ask("anna", "src/"))
    found = foresee([task("a", "src/a.py"), task("b", "docs/")], ground=ground)
    assert found.batch == ("b",)
    (why,) = found.conflicts
    assert (why.other, why.other_id, why.other_name, why.until) == ("reserved", "anna", "Anna", kept.expires_at)
    assert why.other_declared == "reservation: src/"
    ground.later(RULES.lease_ms, "ben")
    assert foresee([task("a", "src/a.py")], ground=ground) == Forecast(batch=("a",))


def test_ones_own_reservation_is_in_nobodys_way() -> None:
    ground = Ground("anna")
    granted(ground.ask("anna", "src/"))
    assert foresee([task("a", "src/a.py")], ground=ground, agent_id="anna").batch == ("a",)


def test_what_is_reserved_for_a_task_is_part_of_it() -> None:
    ground = Ground("anna")
    granted(ground.ask("anna", "src/", task_id="a"))
    found = foresee([task("a"), task("b", "src/b.py")], ground=ground, agent_id="anna")
    assert found.batch == ("a",)
    assert told(found) == [("b", "ready", "a")]
    assert (found.conflicts[0].other_declared, found.unknown) == ("reservation: src/", frozenset())


def test_what_is_reserved_for_a_task_under_way_is_told_once() -> None:
    ground = Ground("anna")
    granted(ground.ask("anna", "src/", task_id="r", ttl_ms=TTL_MS))
    assert told(foresee([task("b", "src/b.py")], [running("r")], ground=ground)) == [("b", "running", "r")]


def test_a_task_with_open_parts_leaves_the_work_to_them() -> None:
    whole = running("whole", "src/", open_children=1)
    assert foresee([task("part", "src/a.py", parent_task_id="whole")], [whole]) == Forecast(batch=("part",))
    deserted = [whole, task("part", "src/a.py", parent_task_id="whole")]
    assert foresee(deserted, [whole]) == Forecast(batch=("part",))


def test_a_task_that_is_ready_again_is_not_in_its_own_way() -> None:
    begun = running("a", "src/")
    assert foresee([begun], [begun]) == Forecast(batch=("a",))


def test_a_workflow_without_a_repository_belongs_here() -> None:
    ground = Ground("anna")
    granted(ground.ask("anna", "src/"))
    nowhere = msgspec.structs.replace(WORKFLOW, repository_path=None)

    def look(repository: str | None) -> Forecast:
        ready = [task("a", "src/a.py")]
        return ground.store.run(
            TESTER, lambda unit: forecast(unit, nowhere, ready, [], places=2, repository=repository)
        )

    assert look(None).batch == ("a",)
    assert look(REPOSITORY).batch == ()


def test_only_so_many_are_looked_at() -> None:
    ready = [task(f"t{number}", f"src/{number}.py") for number in range(MOST_READY + 5)]
    under_way = [running(f"r{number}", f"src/{MOST_READY - 1}.py") for number in range(MOST_RUNNING + 5)]
    found = foresee(ready, under_way, places=100)
    assert found.batch == tuple(f"t{number}" for number in range(MOST_READY - 1))
    assert len(found.conflicts) == MOST_RUNNING


def test_what_there_is_no_time_to_compare_is_in_no_batch() -> None:
    many = [f"word{number}" for number in range(200)]
    found = foresee(
        [task("a", "a.py"), task("b", *many), task("c", *(f"other{one}" for one in many)), task("d", "d.py")]
    )
    assert found.unchecked == ("c",)
    assert "c" not in found.batch
    assert "d" in found.batch


FILES = st.lists(
    st.sampled_from(["src/", "src/a.py", "src/b.py", "a.py", "docs/", "*.md", "!src/a.py", "api"]), max_size=3
)


@given(st.lists(FILES, max_size=8), st.lists(FILES, max_size=4), FILES, st.integers(0, 8))
def test_a_batch_is_safe_and_nothing_that_would_fit_is_left_out(
    wanted: list[list[str]], busy: list[list[str]], reserved: list[str], places: int
) -> None:
    ground = Ground("anna")
    if any(not path.startswith("!") for path in reserved):
        granted(ground.ask("anna", *reserved))
    else:
        reserved = []
    ready = [task(f"t{number}", *files) for number, files in enumerate(wanted)]
    under_way = [running(f"r{number}", *files) for number, files in enumerate(busy)]
    found = foresee(ready, under_way, ground=ground, places=places)
    assert foresee(ready, under_way, ground=ground, places=places) == found
    files = {one.id: one.files_likely_affected for one in (*ready, *under_way)}
    expected: list[str] = []
    for one in ready:
        others = [*busy, reserved, *(files[other] for other in expected)]
        if len(expected) < places and not any(overlap(files[one.id], other) for other in others):
            expected.append(one.id)
    assert list(found.batch) == expected
    pairs = {(one.task_id, one.other_id) for one in found.conflicts}
    for at, one in enumerate(ready):
        for other in (*ready[:at], *under_way):
            assert bool(overlap(files[one.id], files[other.id])) == ((one.id, other.id) in pairs)
        assert bool(overlap(files[one.id], reserved)) == ((one.id, "anna") in pairs)

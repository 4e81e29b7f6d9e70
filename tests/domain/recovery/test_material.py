"""What is read for a recovery: the right things, and never more of them because the workflow is large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from handrail.domain.recovery.material import PRIOR, RecoveryMaterial, gather, open_issues
from handrail.domain.recovery.options import Include
from handrail.domain.recovery.summary import summarize
from handrail.domain.work.task import Task, dependency
from handrail.domain.work.workflow import Workflow, empty_tally
from handrail.store.queries import Query, select_sql
from handrail.store.store import Store
from handrail.store.tables import BY_RECORD
from tests.store.ground import Ground, memory_ground, sqlite_ground
from tests.store.records import ANNA, checkpoint, put, task, workflow


@pytest.fixture
def store() -> Iterator[Store]:
    ground = memory_ground()
    yield ground.store
    ground.close()


def gathered(store: Store, key: str = "task_1", **include: Any) -> RecoveryMaterial:
    def work(unit: Any) -> RecoveryMaterial:
        found = unit.get(Task, key)
        return gather(unit, found, Include(**include))

    return store.run(ANNA, work)


def ids(tasks: Any) -> list[str]:
    return [found.id for found in tasks]


def test_decisions_of_the_whole_workflow_come_newest_first_without_the_replaced(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", checkpoints=1),
        task("task_2", name="other", checkpoints=2),
        checkpoint("cp_1", task_id="task_2", sequence=1, type="decision", summary="old", created_at=1),
        checkpoint("cp_2", task_id="task_2", sequence=2, type="decision", summary="kept", created_at=2),
        checkpoint("cp_3", sequence=1, type="decision", detail={"supersedes": "cp_1"}, summary="new", created_at=3),
    )
    material = gathered(store)
    assert [(made.checkpoint.summary, made.task) for made in material.decisions] == [
        ("new", "task_1"),
        ("kept", "other"),
    ]
    assert material.replaced == {"cp_1"}


@pytest.mark.parametrize("after", ["recovery", "complete", "replan"])
def test_an_error_is_open_until_something_after_it_deals_with_it(store: Store, after: str) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", checkpoints=3),
        checkpoint("cp_1", sequence=1, type="error", summary="first"),
        checkpoint("cp_2", sequence=2, type=after),
        checkpoint("cp_3", sequence=3, type="error", summary="second"),
    )
    assert [issue.text for issue in gathered(store).issues] == ["second"]


def test_errors_of_finished_tasks_are_no_issues_and_failed_tasks_are(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress"),
        task("task_2", status="completed", checkpoints=1),
        task("task_3", status="failed", error="no proxy", checkpoints=1),
        checkpoint("cp_1", task_id="task_2", type="error"),
        checkpoint("cp_2", task_id="task_3", type="error", summary="the proxy hangs"),
    )
    assert [(issue.task.id, issue.text) for issue in gathered(store).issues] == [("task_3", "no proxy")]


def test_an_error_of_a_task_that_waits_again_is_found_too(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress"),
        task("task_2", status="pending", checkpoints=1),
        checkpoint("cp_1", task_id="task_2", type="error", summary="open"),
    )
    found = store.run(ANNA, lambda unit: open_issues(unit, "wf_1"))
    assert [issue.text for issue in found] == ["open"]


def test_a_task_is_told_in_one_list_only(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", parallel_group="g", parent_task_id="task_9"),
        task("task_2", status="completed", outcome="base"),
        task("task_3", status="completed", parallel_group="g", outcome="beside"),
        task("task_4", status="completed", outcome="before", updated_at=4),
        task("task_5", status="skipped", updated_at=5),
        task("task_6", status="in_progress", parallel_group="g"),
        task("task_7", status="pending", parent_task_id="task_1"),
        task("task_9", status="in_progress"),
        dependency("wf_1", "task_1", "task_2"),
    )
    material = gathered(store)
    assert ids(material.needs) == ["task_2"]
    assert sorted(sibling.task.id for sibling in material.siblings) == ["task_3", "task_6"]
    assert ids(material.prior) == ["task_5", "task_4"]
    assert ids(material.parts) == ["task_7"]
    assert material.parent is not None
    assert material.parent.id == "task_9"


def test_a_dependency_that_is_not_told_apart_is_a_prior_task_and_the_first(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress"),
        task("task_2", status="completed", updated_at=1),
        task("task_3", status="completed", updated_at=2),
        dependency("wf_1", "task_1", "task_2"),
    )
    assert ids(gathered(store, dependency_outcomes=False).prior) == ["task_2", "task_3"]


def test_tasks_that_touched_the_same_files_come_before_newer_ones(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", files_likely_affected=["a.py"]),
        task("task_2", status="completed", files_likely_affected=["a.py", "b.py"], updated_at=1),
        task("task_3", status="completed", updated_at=2),
    )
    assert ids(gathered(store).prior) == ["task_2", "task_3"]


def test_changed_files_are_this_tasks_newest_first_then_those_it_stands_on(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", checkpoints=2),
        task("task_2", status="completed", checkpoints=1),
        task("task_3", status="in_progress", checkpoints=1),
        dependency("wf_1", "task_1", "task_2"),
        checkpoint("cp_1", sequence=1, files_changed=["a.py", "b.py"]),
        checkpoint("cp_2", sequence=2, files_changed=["c.py", "a.py"]),
        checkpoint("cp_3", task_id="task_2", files_changed=["base.py", "b.py"]),
        checkpoint("cp_4", task_id="task_3", files_changed=["elsewhere.py"]),
    )
    assert gathered(store).files == ["c.py", "a.py", "b.py", "base.py"]


def test_news_of_a_sibling_are_its_outcome_or_its_last_checkpoint_and_no_issue_again(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", parallel_group="g"),
        task("task_2", status="completed", parallel_group="g", outcome="built"),
        task("task_3", status="in_progress", parallel_group="g", checkpoints=2),
        task("task_4", status="in_progress", parallel_group="g", checkpoints=1),
        checkpoint("cp_1", task_id="task_3", sequence=1, summary="begun"),
        checkpoint("cp_2", task_id="task_3", sequence=2, summary="half way"),
        checkpoint("cp_3", task_id="task_4", sequence=1, type="error", summary="stuck"),
    )
    material = gathered(store)
    assert {sibling.task.id: sibling.news for sibling in material.siblings} == {
        "task_2": "built",
        "task_3": "half way",
        "task_4": "",
    }
    assert [issue.text for issue in material.issues] == ["stuck"]


def test_what_is_not_included_is_not_read(store: Store) -> None:
    put(
        store,
        workflow(),
        task("task_1", status="in_progress", parallel_group="g"),
        task("task_2", status="completed", parallel_group="g"),
    )
    material = gathered(store, prior_task_outcomes=False, sibling_status=False)
    assert (material.prior, material.siblings) == ([], [])


# -- large workflows ---------------------------------------------------------------------------------------------------


class Watched:
    """A unit of work that notes what is asked of it."""

    def __init__(self, unit: Any) -> None:
        self._unit = unit
        self.asked: list[tuple[type[Any], Query]] = []
        self.read = 0

    def get(self, kind: type[Any], key: str) -> Any:
        self.read += 1
        return self._unit.get(kind, key)

    def select(self, kind: type[Any], query: Query) -> Any:
        self.asked.append((kind, query))
        found = self._unit.select(kind, query)
        self.read += len(found)
        return found

    def count(self, kind: type[Any], query: Query) -> int:
        raise AssertionError("counts come from the tally")

    count_by = count


def large(ground: Ground, tasks: int) -> None:
    """A workflow with as many tasks, four checkpoints each, and everything the recovery of one of them looks for."""
    states = ("completed", "completed", "skipped", "failed", "pending", "in_progress", "paused")
    types = ("progress", "decision", "error", "complete")
    put(ground.store, workflow(plan={"summary": "much"}), empty_tally("wf_1"))
    for begin in range(0, tasks, 500):
        numbers = range(begin, min(begin + 500, tasks))
        put(
            ground.store,
            *(
                task(
                    f"task_{n:06}",
                    status=states[n % 7],
                    parallel_group=f"g{n % 3}",
                    parent_task_id="task_000005" if n % 5 == 1 else None,
                    checkpoints=4,
                    error="broken" if states[n % 7] == "failed" else None,
                    updated_at=n,
                )
                for n in numbers
            ),
            *(
                checkpoint(
                    f"cp_{n:06}_{sequence}",
                    task_id=f"task_{n:06}",
                    sequence=sequence,
                    type=types[sequence - 1],
                    created_at=n * 4 + sequence,
                )
                for n in numbers
                for sequence in range(1, 5)
            ),
            *(dependency("wf_1", "task_000005", f"task_{n:06}") for n in numbers if n % 7 < 2),
        )


def watch(ground: Ground) -> Watched:
    def work(unit: Any) -> Watched:
        watched = Watched(unit)
        current, flow = unit.get(Task, "task_000005"), unit.get(Workflow, "wf_1")
        gather(watched, current, Include(all_checkpoints=True))  # type: ignore[arg-type]
        summarize(watched, flow, markdown=False)  # type: ignore[arg-type]
        return watched

    return ground.store.run(ANNA, work)


def test_a_large_workflow_is_read_no_further_than_a_small_one(tmp_path: Path) -> None:
    read = []
    for tasks in (1000, 3000):
        ground = sqlite_ground(tmp_path / f"{tasks}.db")
        large(ground, tasks)
        read.append(watch(ground).read)
        ground.close()
    assert read[1] <= read[0] + 10
    assert read[1] < 1000


def test_every_question_has_a_limit_and_is_answered_from_an_index(tmp_path: Path) -> None:
    ground = sqlite_ground(tmp_path / "large.db")
    large(ground, 300)
    connection = apsw.Connection(ground.address)
    for kind, query in watch(ground).asked:
        assert query.limit is not None, query
        table = BY_RECORD[kind]
        sql, parameters = select_sql(table.name, table.columns, query)
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", parameters)]
        assert not [step for step in plan if step.startswith("SCAN")], (query, plan)
        assert not [step for step in plan if "TEMP B-TREE" in step], (query, plan)
    connection.close()
    ground.close()


def test_prior_tasks_are_the_newest_of_a_large_workflow(tmp_path: Path) -> None:
    ground = sqlite_ground(tmp_path / "large.db")
    large(ground, 300)
    prior = gathered(ground.store, "task_000005", dependency_outcomes=False).prior
    assert len(prior) == PRIOR
    assert all(done.is_finished for done in prior)
    ground.close()

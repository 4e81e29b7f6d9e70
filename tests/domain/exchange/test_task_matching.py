"""Adding to a workflow that is there: nothing is dropped because its id looks like another's, and states stay true."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.domain.exchange.formats import read_plan
from handrail.domain.exchange.importer import New, odd_together, what_is_new
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, TaskOrigin
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.work.workflow import Workflow
from handrail.kernel.errors import InvalidPlan
from handrail.kernel.records import UnitOfWork, where
from handrail.store.store import Store
from tests.domain.exchange.laid import TESTER, lay, more, take
from tests.domain.exchange.test_importer import new_store, plan, task

ISSUE = '[{{"number": 1, "title": "{title}", "url": "https://github.com/{repository}/issues/1"}}]'
TAGGED = '{"master": {"tasks": [{"id": 1, "title": "A"}]}, "feature": {"tasks": [{"id": 1, "title": "B"}]}}'


def new_of(store: Store, workflow_id: str, document: PlanDocument) -> New:
    def work(unit: UnitOfWork) -> New:
        workflow = unit.get(Workflow, workflow_id)
        assert workflow is not None
        return what_is_new(unit, workflow, document)

    return store.run(TESTER, work)


def md(text: str, file: str | None) -> PlanDocument:
    return read_plan("markdown", text, name="p", source_ref=file)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (md("- [ ] T001 A\n", "specs/1/tasks.md"), md("- [ ] T001 B\n", "specs/2/tasks.md")),
        (md("- [ ] T001 A\n", None), md("- [ ] T001 B\n", None)),
        (
            read_plan("task-master", TAGGED, name="p", source_ref="tasks.json"),
            read_plan("task-master", TAGGED, name="p", source_ref="tasks.json", part="feature"),
        ),
        (
            read_plan("github", ISSUE.format(title="A", repository="x/a"), name="p", source_ref="issues.json"),
            read_plan("github", ISSUE.format(title="B", repository="x/b"), name="p", source_ref="issues.json"),
        ),
    ],
)
def test_an_id_of_another_source_is_another_task(first: PlanDocument, second: PlanDocument) -> None:
    store = new_store()
    key = lay(store, first).workflow.id
    assert more(store, key, second).added == 1
    assert [one.name for one in take(store, key).tasks] == ["A", "B"]
    assert more(store, key, second).added == more(store, key, first).added == 0


@pytest.mark.parametrize("source", ["", "x/a"])
def test_the_same_id_from_another_system_is_another_task(source: str) -> None:
    def from_system(system: str) -> PlanDocument:
        return plan(task("a", origin=TaskOrigin(system=system, id="1", source=source)))

    store = new_store()
    key = lay(store, from_system("beads")).workflow.id
    new = new_of(store, key, from_system("task-master"))
    assert ([one.name for one in new.tasks], new.remarks) == (["a (1)"], [])
    assert more(store, key, from_system("task-master")).added == 1
    assert [one.name for one in take(store, key).tasks] == ["a", "a (1)"]
    assert more(store, key, from_system("task-master")).added == more(store, key, from_system("beads")).added == 0


def test_an_issue_is_the_same_alone_and_among_those_of_other_repositories() -> None:
    store = new_store()
    one = ISSUE.format(title="A", repository="x/a")
    both = f"{one[:-1]}, {ISSUE.format(title='B', repository='x/b')[1:]}"
    key = lay(store, read_plan("github", one, name="p", source_ref=None)).workflow.id
    again = more(store, key, read_plan("github", both.replace('"A"', '"A, renamed"'), name="p", source_ref=None))
    assert (again.added, again.known) == (1, 1)


def test_what_could_be_another_task_is_said() -> None:
    store = new_store()
    key = lay(store, md("- [ ] T001 Set up\n- [ ] T002 Build\n", "one.md")).workflow.id
    new = new_of(store, key, md("- [ ] T001 Prepare\n- [ ] T002 Build\n", "one.md"))
    assert (new.tasks, new.remarks) == (
        [],
        ["recognised by id, under another name here: Prepare (Set up here)"],
    )
    new = new_of(store, key, md("- [ ] T002 Build\n- [ ] T003 Set up\n", "two.md"))
    assert [one.name for one in new.tasks] == new.renamed == ["Set up (T003)"]
    assert new.remarks == ["matched to tasks here that come from another source: Build"]


def test_what_is_dropped_because_of_its_name_alone_is_said() -> None:
    store = new_store()
    key = lay(store, md("- [ ] Deploy\n- [ ] Build\n", "base.md")).workflow.id
    said = "taken for the tasks of that name that are here, so what the file says about them was left out: "
    issue = ISSUE.format(title="Deploy", repository="x/a")
    new = new_of(store, key, read_plan("github", issue, name="p", source_ref="g.json"))
    assert (new.tasks, new.remarks) == ([], [f"{said}Deploy (#1)"])
    assert new_of(store, key, md("- [ ] Build\n", "other.md")).remarks == [f"{said}Build"]
    assert new_of(store, key, md("- [ ] Build\n", "base.md")).remarks == [], "the same file means the same task"


def test_states_that_differ_in_the_file_are_said() -> None:
    store = new_store()
    key = lay(store, md("- [ ] a\n- [/] b\n- [ ] c\n", "base.md")).workflow.id
    assert new_of(store, key, md("- [ ] a\n- [/] b\n- [ ] c\n", "base.md")).remarks == []
    assert new_of(store, key, md("- [x] a\n- [/] b\n- [-] c\n- [x] d\n", "base.md")).remarks == [
        "in another state in the file, and left as they are here (2 tasks): a, c"
    ]


def test_an_origin_without_a_source_is_known_by_id_and_name() -> None:
    def from_nowhere(name: str, key: str) -> PlannedTask:
        return task(name, origin=TaskOrigin(system="beads", id=key))

    store = new_store()
    key = lay(store, plan(from_nowhere("a", "bd-1"))).workflow.id
    document = plan(from_nowhere("a", "bd-2"), from_nowhere("b", "bd-1"), task("c"))
    laid = more(store, key, document, 1)
    rounds = 1
    while laid.left:
        laid, rounds = more(store, key, document, 1), rounds + 1
        assert rounds < 5, "what was laid is not known again"
    assert {one.name for one in take(store, key).tasks} == {"a", "a (bd-2)", "b", "c"}


# -- states -----------------------------------------------------------------------------------------------------------


def status_of(store: Store, workflow_id: str) -> str | None:
    return take(store, workflow_id).status


@pytest.mark.parametrize(
    ("there", "file", "after"),
    [
        (plan(task("a")), plan(task("b", "in_progress")), "in_progress"),
        (plan(task("a")), plan(task("b", "completed")), "in_progress"),
        (plan(task("a")), plan(task("b")), "ready"),
        (plan(task("a"), status="planning"), plan(task("b"), status="failed"), "ready"),
        (
            plan(task("a"), status="planning"),
            plan(task("a", "completed"), task("b", "paused"), status="paused", created_at=5),
            "in_progress",
        ),
        (plan(status="planning"), plan(task("b", "completed"), status="completed"), "in_progress"),
        (plan(status="planning"), plan(task("b"), status="planning"), "planning"),
        (plan(task("a"), status="paused"), plan(task("b", "in_progress")), "paused"),
    ],
)
def test_a_workflow_that_is_there_stands_as_its_tasks_say(there: PlanDocument, file: PlanDocument, after: str) -> None:
    store = new_store()
    key = lay(store, there).workflow.id
    more(store, key, file)
    assert status_of(store, key) == after


@pytest.mark.parametrize("status", ["paused", "completed"])
def test_what_was_interrupted_ends_as_the_file_says(status: str) -> None:
    tasks = [task("a", "completed"), task("b", "completed" if status == "completed" else "pending")]
    store = new_store()
    assert status_of(store, lay(store, plan(*tasks, status=status), 1).workflow.id) == status


def test_others_in_a_plan_that_is_being_made_are_not_closed_by_a_file() -> None:
    store = new_store()
    whole = {"source_ref": "todo.md", "status": "planning"}
    key = lay(store, plan(task("mine"), **whole)).workflow.id
    more(store, key, plan(task("a", "completed"), source_ref="todo.md", status="completed"))
    assert status_of(store, key) == "in_progress"


def test_what_is_odd_beside_what_is_there_is_said() -> None:
    store = new_store()
    key = lay(
        store, plan(task("whole", "completed"), task("open"), task("old", "completed", depends_on=["open"]))
    ).workflow.id
    document = plan(
        task("whole"), task("open"), task("part", parent="whole"), task("early", "completed", depends_on=["open"])
    )
    assert odd_together(new_of(store, key, document)) == [
        "completed before something they depend on: early",
        "finished, but with open parts: whole",
    ]


def test_a_run_under_way_takes_only_what_is_still_to_be_done() -> None:
    store = new_store()
    key = lay(store, plan(task("a"))).workflow.id
    words = ("workspace", "repository_path", "spec_name", "title", "request", "source_type", "effort")
    fields: dict[str, Any] = dict.fromkeys(words, "one")
    fields |= dict.fromkeys(("source_url", "source_id", "branch", "dispatched"))
    fields |= {name: {} for name in ("flow", "flags", "state", "task_ids", "lessons")}
    fields |= {name: [] for name in ("log", "findings", "friction")}
    fields |= {"id": key, "created_at": 1, "updated_at": 1}
    run = PipelineRun(**fields)
    store.run(TESTER, lambda unit: unit.record("test.run", *unit.select(Workflow, where(id=key)), run))
    with pytest.raises(InvalidPlan, match="the run of one"):
        more(store, key, plan(task("b", "completed")))
    assert more(store, key, plan(task("b"))).added == 1

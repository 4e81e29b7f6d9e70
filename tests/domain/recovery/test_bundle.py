"""The bundle: within its budget whatever is known, telling each thing once, naming what it leaves out."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.recovery.bundle import context_bundle
from handrail.domain.recovery.material import KnownDecision, RecoveryMaterial
from handrail.domain.recovery.options import LEAST_TOKENS, MOST_TOKENS, Include, RecoveryOptions
from handrail.domain.work.workflow import empty_tally
from handrail.kernel.tokens import estimate_tokens
from tests.domain.recovery.materials import materials
from tests.store.records import checkpoint, task, workflow

BUDGETS = st.one_of(st.integers(LEAST_TOKENS, 2000), st.integers(LEAST_TOKENS, MOST_TOKENS))
TOOLS = {name: name for name in ("task_load_context", "workflow_get", "task_update_status", "checkpoint_add")}


def bundle_of(material: RecoveryMaterial, max_tokens: int = 8000, tools: Any = TOOLS, **include: Any) -> dict[str, Any]:
    asked = RecoveryOptions(include=Include(**include), max_tokens=max_tokens, task_id=None)
    return context_bundle(material, asked, tools)


def cost_of(bundle: dict[str, Any]) -> int:
    return estimate_tokens(msgspec.json.encode(bundle).decode())


def a_material(**given: Any) -> RecoveryMaterial:
    plain: dict[str, Any] = {
        "workflow": workflow(status="in_progress"),
        "task": task(status="in_progress"),
        "tally": empty_tally("wf_1"),
        "checkpoints": [],
        "shown": 0,
        "decisions": [],
        "replaced": frozenset(),
        "more_decisions": False,
        "issues": [],
        "replans": [],
        "needs": [],
        "prior": [],
        "siblings": [],
        "parent": None,
        "parts": [],
        "files": [],
    }
    return RecoveryMaterial(**{**plain, **given})


# -- for every material ------------------------------------------------------------------------------------------------


@given(materials(), BUDGETS)
def test_a_bundle_never_costs_more_than_asked_and_says_what_it_costs(
    material: RecoveryMaterial, max_tokens: int
) -> None:
    bundle = bundle_of(material, max_tokens)
    assert bundle["token_estimate"] == cost_of(bundle) <= max_tokens


@given(materials(), BUDGETS)
def test_the_members_of_the_contract_are_always_there(material: RecoveryMaterial, max_tokens: int) -> None:
    bundle = bundle_of(material, max_tokens)
    assert bundle["workflow"].keys() >= {
        "id", "name", "source_type", "source_summary", "plan_summary", "status", "max_parallel_tasks"
    }  # fmt: skip
    assert bundle["current_task"].keys() >= {
        "id", "name", "description", "plan", "context", "checkpoints", "status"
    }  # fmt: skip
    assert bundle["current_task"]["id"] == material.task.id
    assert bundle["current_task"]["status"] == material.task.shown_status
    assert isinstance(bundle["current_task"]["plan"], dict)
    assert isinstance(bundle["current_task"]["context"], dict)
    assert isinstance(bundle["prior_tasks"], list)
    assert bundle["next"]


@given(materials(), BUDGETS)
def test_nothing_is_told_twice(material: RecoveryMaterial, max_tokens: int) -> None:
    bundle = bundle_of(material, max_tokens)
    told = [
        *(entry["task_id"] for entry in bundle.get("dependency_outcomes", ())),
        *(entry["id"] for entry in bundle.get("sibling_tasks", ())),
        *(entry["id"] for entry in bundle["prior_tasks"]),
        *(entry["id"] for entry in bundle["current_task"].get("subtasks", ())),
    ]
    assert len(set(told)) == len(told)
    shown = {cp.id for cp in material.checkpoints[: material.shown]}
    assert not shown & {entry.get("id") for entry in bundle.get("decisions", ())}
    possible = [decision for decision in material.decisions if decision.checkpoint.id not in shown]
    assert len(bundle.get("decisions", ())) <= len(possible)


@given(materials(), BUDGETS)
def test_what_is_left_out_is_counted(material: RecoveryMaterial, max_tokens: int) -> None:
    bundle = bundle_of(material, max_tokens)
    (entry, *_) = bundle.get("omitted", [{"sections": {}}])
    if "all" not in entry["sections"]:
        left_out = entry["sections"].get("prior_tasks", 0)
        assert len(bundle["prior_tasks"]) + left_out == len(material.prior)
        left_out = entry["sections"].get("checkpoints", 0)
        assert len(bundle["current_task"]["checkpoints"]) + left_out == material.task.checkpoints


@given(materials(), BUDGETS)
def test_asking_again_as_the_handle_says_leaves_nothing_of_it_out(material: RecoveryMaterial, max_tokens: int) -> None:
    bundle = bundle_of(material, max_tokens)
    entries = [entry for entry in bundle.get("omitted", ()) if entry.get("tool") == "task_load_context"]
    if entries and entries[0]["arguments"]["max_tokens"] < MOST_TOKENS:
        again = bundle_of(material, entries[0]["arguments"]["max_tokens"])
        unread = material.task.checkpoints - material.shown
        left = {"checkpoints": unread} if unread else {}
        expected = [left] if left else []
        expected += [{"older_decisions": 1}] if material.more_decisions else []
        assert [e["sections"] for e in again.get("omitted", ())] == expected
        assert not any("shortened" in e for e in again.get("omitted", ()))


# -- cases -------------------------------------------------------------------------------------------------------------


def test_a_small_bundle_of_huge_things_still_tells_where_it_stands() -> None:
    huge = "語🚀must " * 20_000
    material = a_material(
        workflow=workflow(name=huge[:200], source_content=huge, plan={"summary": huge}),
        task=task(name=huge[:200], description=huge, status="in_progress", context={"all": [huge] * 10}),
    )
    bundle = bundle_of(material, LEAST_TOKENS)
    assert bundle["token_estimate"] <= LEAST_TOKENS
    assert bundle["current_task"]["name"].endswith("…")
    assert bundle["omitted"][0]["tool"] == "task_load_context"


def test_with_room_a_checkpoint_has_the_form_of_the_contract() -> None:
    shown = checkpoint(summary="half way", created_at=5)
    bundle = bundle_of(a_material(checkpoints=[shown], shown=1, task=task(status="in_progress", checkpoints=1)))
    assert bundle["current_task"]["checkpoints"] == [
        {
            "id": "cp_1",
            "task_id": "task_1",
            "sequence": 1,
            "type": "progress",
            "summary": "half way",
            "detail": {},
            "files_changed": [],
            "created_at": 5,
        }
    ]
    assert "omitted" not in bundle


def test_a_decision_among_the_checkpoints_is_told_there_and_only_there() -> None:
    made = checkpoint(type="decision", summary="five tries")
    decisions = [KnownDecision(made, "wrap")]
    given = {"checkpoints": [made], "decisions": decisions, "task": task(status="in_progress", checkpoints=1)}
    assert "decisions" not in bundle_of(a_material(**given, shown=1))
    assert [entry["summary"] for entry in bundle_of(a_material(**given, shown=0))["decisions"]] == ["five tries"]


def test_a_replaced_decision_says_so() -> None:
    first = checkpoint("cp_1", type="decision", summary="five tries")
    material = a_material(checkpoints=[first], shown=1, replaced=frozenset({"cp_1"}))
    assert bundle_of(material)["current_task"]["checkpoints"][0]["superseded"] is True


def test_older_checkpoints_are_named_with_the_call_that_shows_them() -> None:
    material = a_material(checkpoints=[checkpoint(sequence=9)], shown=1, task=task(status="in_progress", checkpoints=9))
    (entry,) = bundle_of(material)["omitted"]
    assert entry == {
        "sections": {"checkpoints": 8},
        "tool": "task_load_context",
        "arguments": {"include": {"all_checkpoints": True}, "max_tokens": 8000},
    }


def test_the_handle_repeats_what_was_asked() -> None:
    material = a_material(task=task(status="in_progress", description="word " * 2000))
    asked = RecoveryOptions(include=Include(prior_task_full=True), max_tokens=300, task_id="task_1")
    (entry,) = context_bundle(material, asked, {"task_load_context": "load"})["omitted"]
    assert entry["tool"] == "load"
    assert entry["arguments"]["task_id"] == "task_1"
    assert entry["arguments"]["include"] == {"prior_task_full": True}


def test_finished_tasks_that_were_not_read_are_counted_with_a_handle_where_one_is_on() -> None:
    tally = empty_tally("wf_1").after(come=[task(f"task_{n}", status="completed") for n in range(70)])
    read = [task(f"task_{n}", name=f"done {n}", status="completed", outcome="ok") for n in range(2, 52)]
    material = a_material(tally=tally, prior=read, task=task("task_99", status="in_progress"))
    (entry,) = bundle_of(material)["omitted"]
    assert entry == {
        "sections": {"prior_tasks": 20},
        "tool": "workflow_get",
        "arguments": {"id": "wf_1", "include_tasks": True},
    }
    assert bundle_of(material, tools={})["omitted"] == [{"sections": {"prior_tasks": 20}}]


def test_the_task_itself_is_told_before_what_lies_around_it() -> None:
    text = "word " * 60
    around = [task(f"task_{n}", name=f"done {n}", status="completed", outcome=text) for n in range(2, 30)]
    current = task(status="in_progress", description=text, plan={"approach": "try", "steps": ["one", "two"]})
    bundle = bundle_of(a_material(task=current, prior=around), 700)
    assert bundle["current_task"]["description"] == text.strip() + " "
    assert bundle["current_task"]["plan"]["steps"] == ["one", "two"]
    assert 0 < len(bundle["prior_tasks"]) < len(around)


def test_of_a_plan_the_steps_that_are_left_come_first() -> None:
    steps = [f"step {number} " + "of many words " * 10 for number in range(1, 9)]
    marked = checkpoint(detail={"step": [1, 2, 3, 4, 5]})
    current = task(status="in_progress", plan={"approach": "try", "steps": steps}, checkpoints=1)
    shown = bundle_of(a_material(task=current, checkpoints=[marked], shown=1), 400)["current_task"]["plan"]["steps"]
    assert shown[0] == "… 5 done"
    assert shown[1].startswith("step 6 of many")


def test_a_file_that_the_plan_names_is_not_likely_but_planned() -> None:
    current = task(
        status="in_progress", files_likely_affected=["a.py", "b.py"], plan={"steps": [], "files_to_modify": ["a.py"]}
    )
    assert bundle_of(a_material(task=current))["current_task"]["files_likely_affected"] == ["b.py"]

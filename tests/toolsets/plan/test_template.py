"""Templates as tools: made from a definition or a workflow, listed from everywhere, applied in one stroke."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.kernel.errors import (
    DuplicateTemplate,
    InvalidParams,
    InvalidPlan,
    InvalidTemplate,
    Refusal,
    TemplateNotFound,
)
from handrail.kernel.ledger import Actor
from handrail.operation import Operation
from handrail.surfaces.invocation import invoke
from handrail.toolsets.plan import replan, task, template, workflow
from handrail.wiring import Handrail
from tests.world import World

OPERATIONS: dict[str, Operation[Any, Any]] = {
    operation.name: operation for module in (workflow, replan, task, template) for operation in module.OPERATIONS
}
TASKS = [
    {"name": "move {{what}}", "description": "to {{where}}", "sequence": 1, "files_likely_affected": ["{{what}}.py"]},
    {
        "name": "check",
        "description": "-",
        "sequence": 2,
        "depends_on": ["move {{ what }}"],
        "acceptance": ["{{what}}!"],
    },
]


class Tools:
    """Every tool under its own name, over one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.handrail: Handrail = world.handrail()

    def __call__(self, name: str, /, **arguments: Any) -> Any:
        result = invoke(OPERATIONS[name], self.handrail.call, arguments, actor=Actor("tester", "test"))
        return msgspec.json.decode(msgspec.json.encode(result))

    def refused(self, name: str, /, **arguments: Any) -> Refusal:
        with pytest.raises(Refusal) as refused:
            self(name, **arguments)
        return refused.value

    def workflow(self, workflow_id: str) -> Any:
        return self("workflow_get", id=workflow_id, include_tasks=True, include_task_summaries=False)

    def file(self, name: str, text: str, *, user: bool = False) -> Path:
        folder = (self.world.home if user else self.world.project) / ".handrail" / "templates"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / name
        file.write_text(text, encoding="utf-8")
        return file


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(World(tmp_path))


def one_task(name: str = "x") -> dict[str, Any]:
    return {"tasks": [{"name": name, "description": "", "sequence": 1}]}


# -- making -----------------------------------------------------------------------------------------------------------


def test_exactly_one_source_is_taken(tools: Tools) -> None:
    neither = tools.refused("template_create", name="t")
    both = tools.refused("template_create", name="t", from_workflow_id="wf_1", template=one_task())
    for refusal in (neither, both):
        assert isinstance(refusal, InvalidParams)
        assert refusal.hint == "give exactly one of from_workflow_id and template"
    assert neither.message != both.message


def test_variables_that_are_used_are_found_and_unused_ones_are_named(tools: Tools) -> None:
    declared = [
        {"name": "what", "description": "d", "required": True},
        {"name": "why", "description": "", "required": False},
    ]
    made = tools("template_create", name="t", template={"tasks": TASKS, "variables": declared})
    assert made == {
        "id": "tmpl_1",
        "task_count": 2,
        "variables": ["what", "why", "where"],
        "warnings": ["the variable why is declared and never used"],
    }


def test_a_name_is_taken_once_by_store_and_files(tools: Tools) -> None:
    tools("template_create", name="t", template=one_task())
    tools.file("mine.yaml", "name: My own\ntasks: [{name: x, description: y}]\n", user=True)
    for name, where in (("t", "tmpl_1"), ("My own", "mine.yaml"), ("mine", "mine.yaml"), ("broken-template", "broken")):
        refusal = tools.refused("template_create", name=name, template=one_task())
        assert isinstance(refusal, DuplicateTemplate)
        assert where in refusal.message
    tools("template_create", name="feature", template=one_task())  # what comes with Handrail gives way


def test_an_unsound_definition_leaves_nothing_behind(tools: Tools) -> None:
    unsound = {"name": "x", "description": "{{y}}", "sequence": 1, "depends_on": ["move"]}
    refusal = tools.refused("template_create", name="t", template={"tasks": [unsound]})
    assert isinstance(refusal, InvalidTemplate)
    assert 'task "x" depends on "move"' in refusal.message
    tools("template_create", name="t", template=one_task())


def test_a_workflow_becomes_a_template_and_a_workflow_again(tools: Tools) -> None:
    tasks = [
        {
            "name": "build {{part}}",
            "description": "for {{ .Values.x }}",
            "sequence": 1,
            "parallel_group": "g",
            "estimated_complexity": "high",
            "files_likely_affected": ["a.py"],
            "priority": 2,
            "requires": ["python"],
            "acceptance": ["works"],
        },
        {"name": "skip me", "description": "", "sequence": 2, "depends_on": ["build {{part}}"]},
        {"name": "after", "description": "", "sequence": 3, "depends_on": ["skip me"], "parent": None},
        {"name": "detail", "description": "", "sequence": 4, "parent": "after"},
    ]
    made = tools("workflow_create", name="w", source_type="prompt", source_content="x")["id"]
    tools("workflow_set_plan", id=made, plan={"summary": "", "approach": "", "tasks": tasks})
    skipped = next(one for one in tools.workflow(made)["tasks"] if one["name"] == "skip me")
    tools("task_update_status", id=skipped["id"], status="skipped")
    created = tools("template_create", name="again", description="Again {{part}}", from_workflow_id=made)
    assert created == {"id": "tmpl_1", "task_count": 3, "variables": ["part"]}
    applied = tools("template_apply", template_id="again", workflow_name="v", variables={"part": "ui"})
    build, after, detail = tools.workflow(applied["workflow_id"])["tasks"]
    assert {key: build[key] for key in tasks[0]} == {
        **tasks[0],
        "name": "build ui",
        "description": "for {{ .Values.x }}",
    }
    assert (after["depends_on"], after["parent_task_id"]) == (["build ui"], None)
    assert detail["parent_task_id"] == after["id"]


def test_a_workflow_without_tasks_gives_no_template(tools: Tools) -> None:
    made = tools("workflow_create", name="w", source_type="prompt", source_content="x")["id"]
    assert isinstance(tools.refused("template_create", name="t", from_workflow_id=made), InvalidTemplate)


# -- listing ----------------------------------------------------------------------------------------------------------


def test_the_list_goes_from_near_to_far_and_names_what_is_broken(tools: Tools) -> None:
    tools("template_create", name="z", template=one_task())
    tools("template_create", name="a", template=one_task())
    tools.file("mine.yaml", "tasks: [{name: x, description: y}]\n", user=True)
    tools.file("ours.yaml", "tasks: [{name: x, description: y}]\n")
    tools.file("feature.yaml", "name: our feature\ntasks: [{name: x, description: y}]\n")
    listed = tools("template_list")
    assert [(one["name"], one["source"]) for one in listed["templates"]] == [
        ("our feature", "project"),
        ("ours", "project"),
        ("mine", "user"),
        ("a", "store"),
        ("z", "store"),
        ("bugfix", "bundled"),
        ("refactor", "bundled"),
    ]
    assert listed["total"] == 7
    (broken,) = listed["unreadable"]
    assert broken["id"] == "file:broken-template"
    assert "not valid YAML" in broken["reason"]
    assert set(listed["templates"][3]) >= {"id", "name", "description", "variables", "task_count", "created_at"}


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
def test_pages_meet_without_a_gap(tools: Tools, limit: int) -> None:
    for number in range(4):
        tools("template_create", name=f"s{number}", template=one_task())
    tools.file("p1.yaml", "tasks: [{name: x, description: y}]\n")
    tools.file("p2.yaml", "tasks: [{name: x, description: y}]\n")
    names: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = tools("template_list", limit=limit, offset=offset)
        assert page["total"] == 9
        names += [one["name"] for one in page["templates"]]
        offset = page.get("next_offset")
    assert names == ["p1", "p2", "s0", "s1", "s2", "s3", "bugfix", "feature", "refactor"]
    assert tools("template_list", limit=limit, offset=9)["templates"] == []


def test_a_page_nobody_asked_to_be_long_is_not(tools: Tools) -> None:
    for number in range(60):
        variable = {"name": "x", "description": "e" * 2000, "required": False, "default": "f" * 20_000}
        definition = {**one_task("{{x}}"), "variables": [variable]}
        tools("template_create", name=f"t{number:02}", description="d" * 5000, template=definition)
    for number in range(30):
        tools.file(f"b{number:02}-{'x' * number * 5}.yaml", "tasks: [")
    page = tools("template_list")
    assert len(msgspec.json.encode(page)) < 8 * 1024
    assert 0 < page["next_offset"] == len(page["templates"]) < 60
    *named, rest = page["unreadable"]
    assert rest["reason"] == f"and {31 - len(named)} more"
    assert len(tools("template_list", limit=60)["templates"]) == 60


def test_one_template_is_shown_whole(tools: Tools) -> None:
    tools("template_create", name="t", description="d" * 5000, template={"tasks": TASKS})
    (shown,) = tools("template_list", template_id="t")["templates"]
    assert len(shown["description"]) == 5000
    assert [one["name"] for one in shown["tasks"]] == ["move {{what}}", "check"]


# -- applying ---------------------------------------------------------------------------------------------------------


def test_a_template_makes_a_workflow_that_is_ready(tools: Tools) -> None:
    tools("template_create", name="t", description="Move {{what}}", template={"tasks": TASKS})
    values = {"what": "shop", "where": "{{what}}"}
    applied = tools("template_apply", template_id="tmpl_1", workflow_name="W", variables=values, max_parallel_tasks=3)
    assert applied == {"workflow_id": "wf_1", "status": "ready", "tasks_created": 2}
    made = tools.workflow("wf_1")
    assert {key: made[key] for key in ("name", "status", "source_type", "source_ref", "source_content")} == {
        "name": "W",
        "status": "ready",
        "source_type": "custom",
        "source_ref": "template:tmpl_1",
        "source_content": "Move shop",
    }
    assert (made["repository_path"], made["max_parallel_tasks"]) == (str(tools.world.project), 3)
    assert made["plan"]["variables"] == values
    move, check = made["tasks"]
    assert (move["name"], move["description"], move["files_likely_affected"]) == (
        "move shop",
        "to {{what}}",
        ["shop.py"],
    )
    assert (check["depends_on"], check["acceptance"], check["status"]) == (["move shop"], ["shop!"], "blocked")


def test_what_a_template_made_can_be_worked_on_and_is_taken_back_in_one_step(tools: Tools) -> None:
    applied = tools("template_apply", template_id="bugfix", workflow_name="W", variables={"bug": "it hangs"})
    first = tools.workflow(applied["workflow_id"])["tasks"][0]
    store = tools.handrail.ledger.open()
    assert [event.kind for event in store.newest(10)] == ["workflow.created"]
    store.undo(Actor("tester", "test"))
    assert tools("workflow_list")["total"] == 0
    assert store.verify() == []
    again = tools("template_apply", template_id="bugfix", workflow_name="W", variables={"bug": "it hangs"})
    first = tools.workflow(again["workflow_id"])["tasks"][0]
    tools("task_update_status", id=first["id"], status="in_progress")
    assert tools.workflow(again["workflow_id"])["status"] == "in_progress"


def test_the_nearest_of_one_name_is_meant_and_an_id_means_one(tools: Tools) -> None:
    def made_by(key: str) -> str:
        applied = tools("template_apply", template_id=key, workflow_name="W", variables={})
        return str(tools.workflow(applied["workflow_id"])["source_ref"])

    tools("template_create", name="feature", template=one_task())
    assert made_by("feature") == "template:tmpl_1"
    tools.file("f.yaml", "name: feature\ntasks: [{name: x, description: y}]\n", user=True)
    assert made_by("feature") == "template:file:f"
    tools.file("p.yaml", "name: feature\ntasks: [{name: x, description: y}]\n")
    assert made_by("feature") == "template:file:p"
    assert made_by("file:f") == "template:file:f"
    assert made_by("tmpl_1") == "template:tmpl_1"


def test_a_broken_file_is_never_passed_over_for_another(tools: Tools) -> None:
    file = tools.file("feature.yaml", "tasks: [{name: x}]\n")
    for key in ("feature", "file:feature"):
        refusal = tools.refused("template_apply", template_id=key, workflow_name="W")
        assert isinstance(refusal, InvalidTemplate)
        assert str(file) in refusal.message
        assert "tasks[0].description is required" in refusal.message


def test_an_unknown_template_is_refused_with_the_one_that_was_meant(tools: Tools) -> None:
    tools("template_create", name="release", template=one_task())
    refusal = tools.refused("template_apply", template_id="relaese", workflow_name="W")
    assert isinstance(refusal, TemplateNotFound)
    assert "did you mean release?" in refusal.message
    assert "bugfix" in refusal.hint


def test_names_that_become_one_are_refused_and_nothing_is_made(tools: Tools) -> None:
    twins = [{"name": name, "description": "", "sequence": 1} for name in ("{{a}}", "{{b}}")]
    tools("template_create", name="t", template={"tasks": twins})
    refusal = tools.refused("template_apply", template_id="t", workflow_name="W", variables={"a": "x", "b": "x"})
    assert isinstance(refusal, InvalidPlan)
    assert 'two tasks are named "x"' in refusal.message
    assert tools("workflow_list")["total"] == 0


def test_a_relative_repository_is_refused(tools: Tools) -> None:
    values = {"bug": "b"}
    refusal = tools.refused(
        "template_apply", template_id="bugfix", workflow_name="W", variables=values, repository_path="shop"
    )
    assert isinstance(refusal, InvalidParams)
    applied = tools(
        "template_apply", template_id="bugfix", workflow_name="W", variables=values, repository_path="/srv/shop/"
    )
    assert tools.workflow(applied["workflow_id"])["repository_path"] == "/srv/shop"

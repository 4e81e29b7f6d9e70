"""Arguments that do not fit are refused in words that teach."""

from __future__ import annotations

from typing import Any

import pytest

from handrail.catalog import whole_catalog
from handrail.kernel.errors import InvalidParams
from handrail.surfaces.arguments import parse_arguments

OPERATIONS = {operation.name: operation for operation in reversed(whole_catalog())}  # guide.md's where a name is shared
LONG = "a" * 65


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("workflow_next", {"completedSteps": []}, "workflowId is required"),
        ("workflow_next", {"workflowId": "abc"}, "completedSteps is required"),
        ("workflow_get", {"id": "ab"}, "id must have at least 3 characters"),
        ("workflow_get", {"id": LONG}, "id must have at most 64 characters"),
        ("workflow_get", {"id": "ABC"}, "id must match ^[a-z0-9-]+$"),
        ("workflow_get", {"id": "abc\n"}, "id must match ^[a-z0-9-]+$"),
        ("workflow_get", {"id": 7}, "id must be a string, not an integer"),
        ("workflow_get", {"id": None}, "id must be a string, not null"),
        ("workflow_get", {"id": "abc", "identifier": 1}, "unknown argument identifier"),
        ("workflow_get", {"ids": "abc"}, "unknown argument ids; did you mean id?"),
        ("workflow_get", {"id": "abc", "Id": "abc"}, "unknown argument Id; did you mean id?"),
        ("workflow_next", {"workflowId": "abc", "completedSteps": "x"}, "completedSteps must be a list, not a string"),
        (
            "workflow_next",
            {"workflowId": "abc", "completedSteps": [1]},
            "completedSteps[0] must be a string, not an integer",
        ),
        ("workflow_next", {"workflowId": "abc", "completedSteps": ["Ä"]}, "completedSteps[0] must match ^[a-z0-9-]+$"),
        (
            "workflow_next",
            {"workflowId": "abc", "completedSteps": ["aaa", "aaa"]},
            "completedSteps must not name a step twice",
        ),
        (
            "workflow_next",
            {"workflowId": "abc", "completedSteps": [], "context": []},
            "context must be an object, not a list",
        ),
        (
            "workflow_validate",
            {"workflowId": "abc", "stepId": "abc", "output": ""},
            "output must have at least 1 character",
        ),
        ("workflow_list", {"x": 1}, "unknown argument x"),
        ("toolset_enable", {"toolsets": []}, "toolsets must have at least 1 entry"),
    ],
)
def test_the_message_names_the_argument_and_what_would_be_right(name: str, arguments: Any, message: str) -> None:
    with pytest.raises(InvalidParams) as refused:
        parse_arguments(OPERATIONS[name], arguments)
    assert refused.value.message == message
    assert refused.value.hint.startswith(f"{name} takes")


def test_inside_of_an_argument_the_names_that_stand_there_are_offered() -> None:
    task = {"name": "a", "description": "", "sequence": 1}
    for wrong, says in (
        ("id", "unknown argument plan.tasks[0].id"),
        ("nam", "unknown argument plan.tasks[0].nam; did"),
    ):
        plan = {"summary": "s", "approach": "a", "tasks": [{**task, wrong: "x"}]}
        with pytest.raises(InvalidParams) as refused:
            parse_arguments(OPERATIONS["workflow_set_plan"], {"id": "wf_1", "plan": plan})
        assert refused.value.message.startswith(says)
        assert "did you mean id?" not in refused.value.message
        assert refused.value.hint.startswith("plan.tasks[0] takes: name, ")

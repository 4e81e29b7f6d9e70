"""What tools list of the arguments that are understood beside their own."""

from __future__ import annotations

import pytest

from handrail.operation import Effect, PublishedOperation
from handrail.surfaces.arguments import published_common
from handrail.surfaces.mcp.tools import tool_of
from handrail.toolsets.guide.tools import OPERATIONS as GUIDES
from handrail.toolsets.plan.task import OPERATIONS as TASKS
from handrail.toolsets.registry.cancellation import OPERATIONS as CANCELLING
from handrail.toolsets.registry.events import OPERATIONS as FOLLOWING

BY_NAME = {operation.name: operation for operation in (*CANCELLING, *FOLLOWING, *GUIDES, *TASKS)}
BOTH = ("cancellation", "idempotency")


@pytest.mark.parametrize(
    ("tool", "listed"),
    [
        ("task_update_status", {"idempotency_key"}),
        ("task_get", set()),
        ("events_subscribe", {"op_id"}),
        ("op_cancel", {"idempotency_key"}),
        ("workflow_next", set()),
    ],
)
def test_a_key_is_listed_where_something_is_written_an_id_where_a_call_may_wait(tool: str, listed: set[str]) -> None:
    operation = BY_NAME[tool]
    assert set(published_common(operation, BOTH)) == listed
    assert published_common(operation, ()) == {}
    shown = tool_of(PublishedOperation(tool, operation), whole=False, active=BOTH)["inputSchema"]["properties"]
    own = tool_of(PublishedOperation(tool, operation), whole=False)["inputSchema"]["properties"]
    assert set(shown) - set(own) == listed
    assert "idempotency_key" not in listed or operation.effect is not Effect.READ


def test_in_whose_name_is_listed_beside_them() -> None:
    entry = PublishedOperation("task_update_status", BY_NAME["task_update_status"])
    shown = tool_of(entry, whole=False, active=("agent", *BOTH))["inputSchema"]["properties"]
    assert {"agent_id", "fence", "idempotency_key"} <= set(shown)

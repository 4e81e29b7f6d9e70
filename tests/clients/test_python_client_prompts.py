"""The official Python client lists Handrail's prompts, completes an argument and gets a prompt, in each of its
modes."""

from __future__ import annotations

from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference, TextContent

from tests.clients.test_python_client import ask, by_mode, talk


@by_mode
def test_prompts_are_listed_completed_and_got(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert {"resume", "plan-this", "hand-over", "review", "retrospective", "follow-guide"} == set(listed)
        assert listed["resume"].title == "Resume the open task"
        assert [argument.name for argument in listed["resume"].arguments or []] == ["task", "budget"]

        started = await ask(client, "start_workflow", name="Retry imports")
        task = await ask(client, "start_task", workflow_id=started["workflow_id"], name="wrap", goal="Retry")
        reference = PromptReference(type="ref/prompt", name="resume")
        found = await client.complete(reference, {"name": "task", "value": task["task_id"][:8]})
        assert found.completion.values == [task["task_id"]]

        got = await client.get_prompt("resume", {"task": task["task_id"], "budget": "1000"})
        (message,) = got.messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        assert f"Read the context of {task['task_id']} below." in message.content.text

    talk(work, tmp_path, mode)


@by_mode
def test_a_missing_argument_is_named(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("plan-this", {})
        assert refused.value.error.code == -32602
        assert refused.value.error.data["details"] == "request is required"

    talk(work, tmp_path, mode)

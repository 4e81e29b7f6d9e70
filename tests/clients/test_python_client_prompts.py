"""The official Python client lists Handrail's prompts, completes an argument and gets a prompt, in each of its
modes."""

from __future__ import annotations

from pathlib import Path

from mcp import Client
from mcp.types import PromptReference, TextContent

from tests.clients.test_python_client import ask, by_mode, talk


@by_mode
def test_prompts_are_listed_completed_and_got(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert {"resume-task", "plan-this", "hand-over", "open-reviews", "retrospective", "follow-guide"} == set(listed)
        assert listed["resume-task"].title == "Resume the open task"
        assert [argument.name for argument in listed["resume-task"].arguments or []] == ["request", "task", "budget"]

        started = await ask(client, "start_workflow", name="Retry imports")
        task = await ask(client, "start_task", workflow_id=started["workflow_id"], name="wrap", goal="Retry")
        reference = PromptReference(type="ref/prompt", name="resume-task")
        found = await client.complete(reference, {"name": "task", "value": task["task_id"][:8]})
        assert found.completion.values == [task["task_id"]]

        got = await client.get_prompt("resume-task", {"task": task["task_id"], "budget": "1000"})
        (message,) = got.messages
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        assert f"Read the context of {task['task_id']} below." in message.content.text

    talk(work, tmp_path, mode)


@by_mode
def test_a_missing_argument_is_named(tmp_path: Path, mode: str, revision: str) -> None:
    async def work(client: Client) -> None:
        (message,) = (await client.get_prompt("plan-this", {})).messages
        assert isinstance(message.content, TextContent)
        assert "request is required" in message.content.text

    talk(work, tmp_path, mode)

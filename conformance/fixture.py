"""The fixture server: the tools, prompts and resources the runner looks for by name, on `handrail.protocol` alone."""

from __future__ import annotations

from conformance.asking_tools import asking_tools
from conformance.prompts import FixtureCompletions, FixturePrompts
from conformance.resources import FixtureResources
from conformance.task_tools import task_tools
from conformance.toolbox import Toolbox
from conformance.tools import changing_tool, plain_tools, trigger
from handrail.protocol.offer import Changing, Offer
from handrail.protocol.server import Server


def fixture_server() -> Server:
    """Every feature of the protocol, switched on."""

    def change_tools() -> None:
        tools.change()
        server.subscribers.list_changed("toolsListChanged")

    def change_prompts() -> None:
        prompts.change()
        server.subscribers.list_changed("promptsListChanged")

    triggers = [
        trigger("test_trigger_tool_change", "Changes the list of tools", change_tools),
        trigger("test_trigger_prompt_change", "Changes the list of prompts", change_prompts),
    ]
    prompts = FixturePrompts()
    tools = Toolbox([*plain_tools(), *asking_tools(), *task_tools(), *triggers], changing=changing_tool())
    server = Server(
        Offer(
            name="handrail-conformance",
            version="1.0.0",
            description="What the conformance runner looks for",
            tools=tools,
            resources=FixtureResources(),
            prompts=prompts,
            completions=FixtureCompletions(),
            changing=Changing(tools=True, prompts=True, resources=True, resource_updates=True),
            logs=True,
            tasks=True,
        )
    )
    return server

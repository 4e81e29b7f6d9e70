"""The same catalog on the official SDK's server: the proof that `handrail.protocol` is a ring one can replace.

Nothing below this file changes: operations, arguments, schemas and refusals are the ones our own server uses.
"""

from __future__ import annotations

from typing import Any

import anyio.to_thread
import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from handrail.kernel.errors import Refusal
from handrail.kernel.ledger import Actor
from handrail.protocol.revisions import STATELESS_REVISIONS
from handrail.protocol.wire import INVALID_PARAMS, encode
from handrail.surfaces.invocation import invoke
from handrail.surfaces.mcp.tools import tool_of
from handrail.surfaces.refusals import numbered_error, refused_result, speaks_numbers
from handrail.wiring import Handrail

AGENT = Actor("agent", "mcp")


def sdk_server(handrail: Handrail) -> Server[Any]:
    """A server of the official SDK over this Handrail's selected operations."""

    async def list_tools(_context: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        active = {toolset.name for toolset in handrail.switch.active()}
        listed = [tool_of(entry, whole=True, active=active) for entry in handrail.switch.published()]
        return types.ListToolsResult(tools=[types.Tool.model_validate(tool) for tool in listed])

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        stateless = context.protocol_version in STATELESS_REVISIONS
        return await anyio.to_thread.run_sync(answer, params.name, params.arguments or {}, stateless)

    def answer(name: str, arguments: dict[str, Any], stateless: bool) -> types.CallToolResult:
        operation = handrail.switch.find(name)
        if operation is None:
            raise MCPError(INVALID_PARAMS, f"Unknown tool: {name}", {"name": name})
        try:
            result = invoke(operation, handrail.call, arguments, actor=AGENT)
        except Refusal as refusal:
            if speaks_numbers(operation, stateless=stateless):
                error = numbered_error(refusal)
                raise MCPError(error.code, error.message, error.data) from refusal
            return types.CallToolResult.model_validate(refused_result(refusal))
        return types.CallToolResult(
            content=[types.TextContent(text=encode(result).decode())],
            structured_content=result if isinstance(result, dict) else None,
        )

    return Server(
        handrail.call.server.name,
        version=handrail.call.server.version,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )

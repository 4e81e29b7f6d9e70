"""The tool on the official Python SDK's low-level server. It checks no arguments; its author would have to."""

from __future__ import annotations

import json
import sys

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from the_tool import TOOL, check


async def list_tools(ctx, params) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool.model_validate(TOOL)])


async def call_tool(ctx, params) -> types.CallToolResult:
    given = params.arguments
    result = check(given["workflowId"], given["stepId"], given["output"])
    return types.CallToolResult(content=[types.TextContent(text=json.dumps(result))], structured_content=result)


server = Server("sdk-lowlevel", on_list_tools=list_tools, on_call_tool=call_tool)


async def main() -> None:
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())


if sys.argv[1:] == ["http"]:
    from hosting import serve

    serve(server.streamable_http_app(json_response=True))
else:
    anyio.run(main)

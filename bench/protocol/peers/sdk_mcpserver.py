"""The tool on the official Python SDK's high-level server, which reads the schema off the function."""

import sys

from mcp.server import MCPServer
from signature import Context, Output, StepId, Verdict, WorkflowId
from the_tool import TOOL, check

server = MCPServer("sdk-mcpserver")


@server.tool(description=TOOL["description"])
def workflow_validate(workflowId: WorkflowId, stepId: StepId, output: Output, context: Context = None) -> Verdict:  # noqa: N803
    return Verdict(**check(workflowId, stepId, output))


if sys.argv[1:] == ["http"]:
    from hosting import serve

    serve(server.streamable_http_app(json_response=True))
else:
    server.run("stdio")

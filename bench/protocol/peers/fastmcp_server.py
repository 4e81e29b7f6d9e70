"""The tool on fastmcp, which reads the schema off the function."""

import sys

from fastmcp import FastMCP
from signature import Context, Output, StepId, Verdict, WorkflowId
from the_tool import TOOL, check

server = FastMCP("fastmcp")


@server.tool(description=TOOL["description"])
def workflow_validate(workflowId: WorkflowId, stepId: StepId, output: Output, context: Context = None) -> Verdict:  # noqa: N803
    return Verdict(**check(workflowId, stepId, output))


if sys.argv[1:] == ["http"]:
    from hosting import serve

    serve(server.http_app(json_response=True))
else:
    server.run("stdio", show_banner=False)

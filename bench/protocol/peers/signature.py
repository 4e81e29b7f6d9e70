"""The tool's arguments and result as Python types, for the frameworks that read a schema off a function."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, Field

_ID = {"pattern": "^[a-z0-9-]+$", "min_length": 3, "max_length": 64}

WorkflowId = Annotated[str, Field(description="The workflow ID", **_ID)]
StepId = Annotated[str, Field(description="The step ID to validate", **_ID)]
Output = Annotated[str, Field(description="The step output to validate", min_length=1)]
Context = Annotated[
    dict[str, Any] | None, Field(description="Optional execution context that the rules' conditions see")
]


class Verdict(BaseModel):
    """Whether the output holds, what is wrong with it and what would mend it."""

    valid: bool
    issues: list[str] = []
    suggestions: list[str] = []

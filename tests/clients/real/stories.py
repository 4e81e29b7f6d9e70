"""What the scripted model does in the tests, as turns, and the words that tests look for. No client, no process."""

from __future__ import annotations

import threading
from typing import Any

from tests.clients.real.scripted_model import ASIDE, Turn, call, say

WORKFLOW = "Lay rails"
TASK = "First rail"
RAILS = ("Straight rail", "Steep rail", "Bent rail")
QUESTION, CHOSEN = "Which wood?", "Oak"
SUMMARY = "One rail of oak is laid."
NOBODY = "task_nowhere"
REFUSED, HINT = "TASK_NOT_FOUND", "workflow_next_tasks lists tasks with their ids"

BLOCK = "Plan and journal of this repository are kept with the MCP server `handrail`."
"""A line of the block for agents that `handrail init` writes."""

REQUEST = "write a poem of rails, in four lines"
PLANNING = "Plan the request below."
"""How the prompt `plan-this` begins."""

SECRET_FILE, SECRET, MADE = "secret.txt", "the-lamp-is-green", "made-by-a-name"
HOSTILE = f"!`touch {MADE}` !{{touch {MADE}}} @{SECRET_FILE} @{{{SECRET_FILE}}} $(touch {MADE})"
"""A name that some clients would run or read, were it the text of a command."""


def begin(workflow: str = WORKFLOW, task: str = TASK) -> list[Turn]:
    return [
        call("start_workflow", name=workflow, description="Rails to hold on to"),
        start("<workflow>", task),
    ]


def start(workflow_id: str, task: str, *, tokens: int = 100) -> Turn:
    return call("start_task", tokens=tokens, workflow_id=workflow_id, name=task, goal="A rail that bears")


def decide(task_id: str = "<task>") -> Turn:
    return call(
        "log_decision",
        task_id=task_id,
        category="architecture",
        question=QUESTION,
        chosen=CHOSEN,
        reasoning="It lasts outside.",
    )


def complete() -> Turn:
    return call("complete_task", **done("<task>"))


def done(task_id: str) -> dict[str, Any]:
    outcome = {"summary": SUMMARY, "achievements": [], "limitations": [], "manual_review_needed": False}
    return {"task_id": task_id, "status": "success", "outcome": outcome}


def walk(workflow: str = WORKFLOW, task: str = TASK) -> list[Turn]:
    """Begins a workflow, starts a task, decides, decides about a task that is not there, completes the first."""
    return [*begin(workflow, task), decide(), decide(NOBODY), complete(), say("Done.")]


def standing(task: str) -> str:
    """How a hook tells the model which task is open."""
    return f'Open task: "{task}"'


def held() -> Turn:
    """An answer that does not come while a test runs."""
    return Turn(text="Too late.", held=threading.Event())


def compacting(workflow_id: str, task: str, tokens: int) -> list[Turn]:
    """Starts another task and claims a conversation so long that the client compacts it; then what follows.

    A client that asks for a summary with all tools at hand gets it as the second turn, the others get it aside.
    """
    return [
        start(workflow_id, task, tokens=tokens),
        say(f"<summary>{ASIDE}</summary>"),
        say("Going on."),
        say("Still going on."),
    ]

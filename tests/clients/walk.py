"""One walk through a bundled guide, as data: what an agent would hand over at each step. No client, no process."""

from __future__ import annotations

GUIDE = "ai-task-implementation"

CONTEXT = {"taskId": "TASK-123", "taskSize": "large", "openQuestions": 1}
"""A large task with a question left, so that no step of the guide is passed over."""

REJECTED = {"workflowId": GUIDE, "stepId": "verify", "output": "should work"}
"""An output the guide does not accept: it shows no verdict, no command and no acceptance."""

OUTPUTS = {
    "understand": "Goal: the export keeps its order. Path: app/export.py:40 sorts by name. Baseline: 212 passed.",
    "clarify": "Asked whether equal names keep their input order. Answer: yes.",
    "plan": (
        "Approach: sort by (name, position).\n"
        "Changes: app/export.py, the sort key; tests/test_export.py, two rows of one name.\n"
        "Acceptance: pytest tests/test_export.py shows the order.\n"
        "Risks: a caller that relies on the old order; searched by name, found none."
    ),
    "challenge-plan": (
        "The assumption that sinks the plan is that rows arrive in input order. Opened app/reader.py:18: rows are "
        "appended as they are read, and a ten-line run with two equal names printed them in file order. Empty and huge "
        "inputs take the same path. Nothing else imports the sort key. The plan stands."
    ),
    "implement": (
        "Item 1, the sort key in app/export.py: done. Item 2, the test in tests/test_export.py: done, seen failing "
        "before the change and passing after it. Nothing left out."
    ),
    "review-diff": (
        "app/export.py: one line, the key. tests/test_export.py: one test of eight lines. Doubted whether the position "
        "is needed for a single row; it is not, and costs nothing. Nothing to repair."
    ),
    "verify": (
        "Verdict: done\nRan: pytest → 213 passed\nAcceptance: equal names keep their order → met, test_export.py\n"
        "Not done: nothing"
    ),
}
"""By step id, in the order in which the guide asks for them."""

"""The tool that every Python peer serves: one step's output against its rules. No protocol, no SDK."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

TASK = json.loads((Path(__file__).parent.parent / "task.json").read_text(encoding="utf-8"))
TOOL = TASK["tool"]

_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE}
_RULES = {
    (guide, step): [
        (re.compile(rule["pattern"], sum(_FLAGS[flag] for flag in rule["flags"])), rule["message"]) for rule in rules
    ]
    for guide, steps in TASK["rules"].items()
    for step, rules in steps.items()
}


def check(workflow_id: str, step_id: str, output: str) -> dict[str, Any]:
    issues = [message for pattern, message in _RULES[workflow_id, step_id] if not pattern.search(output)]
    suggestions = ["add what is missing and validate again" for _ in issues]
    return {"valid": not issues, "issues": issues, "suggestions": suggestions}

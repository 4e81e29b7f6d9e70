"""The flows that come with Handrail, read without the shelf, and a small one of a team's own."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from handrail.domain.pipeline.flow import Flow, read_flow

FLOWS = Path(__file__).parents[3] / "src" / "handrail" / "flows"


def document_of(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((FLOWS / f"{name}.yaml").read_text(encoding="utf-8"))
    return document


def bundled(name: str = "full") -> Flow:
    return read_flow(document_of(name), bundled)


def nothing_else(_name: str) -> Flow | None:
    return None


_OWN: dict[str, Any] = {
    "name": "own",
    "phases": [
        {"id": "make", "label": "Make", "kind": "agent", "agent": "maker", "output": "made.md"},
        {
            "id": "judge",
            "label": "Judge",
            "kind": "review",
            "agent": "judge",
            "output": "verdict.md",
            "passes": ["PASS"],
            "fails": ["FAIL"],
            "revises": "make",
        },
        {
            "id": "ask",
            "label": "Ask",
            "kind": "gate",
            "options": ["go", "reject"],
            "returns_to": "make",
            "auto_after": "judge",
        },
        {"id": "do", "label": "Do", "kind": "tasks", "agent": "doer", "plan": "list.md", "output": "did-{N}.md"},
        {
            "id": "look",
            "label": "Look",
            "kind": "task-reviews",
            "agent": "judge",
            "output": "look-{N}.md",
            "passes": ["PASS"],
            "fails": ["FAIL"],
            "revises": "do",
        },
        {"id": "run", "label": "Run", "kind": "exec", "commands": [["true"]], "after_answer": {"ask": "go"}},
    ],
}


def own() -> dict[str, Any]:
    """A document with one phase of every kind, free to be changed."""
    return copy.deepcopy(_OWN)

"""The block of instructions in a repository's AGENTS.md or CLAUDE.md: short, between markers, with a hash that
identifies an old one. Everything else agents must know the server tells them when they connect."""

from __future__ import annotations

import hashlib
import re
from typing import Literal

from handrail.domain.setup.edits import Edit, NotUnderstood, line_end

END = "<!-- handrail:end -->"
_BEGIN = re.compile(r"<!-- handrail:begin ([0-9a-f]*) -->")
_BLOCK = re.compile(r"<!-- handrail:begin ([0-9a-f]*) -->\r?\n(.*?)<!-- handrail:end -->", re.DOTALL)
RULES = """\
## Handrail

Plan and journal of this repository are kept with the MCP server `handrail`.

- First, and after a cleared or compacted conversation: `task_load_context`. It finds the open task, if there is one.
- Before you change files: `start_workflow` once for a piece of work, then `start_task` for each task of it.
- `log_decision` for a choice that matters later, `log_issue` for a problem and how you solved it. Nothing trivial.
- `log_milestone` at most five times in a task.
- At the end of each task: `complete_task` with a summary in two to four sentences. `achievements` and `limitations`
  may be empty lists. The changed files are found for you.
- `workflow_next_tasks` says what can be done next.
"""
State = Literal["missing", "current", "stale", "edited", "broken"]


def digest(body: str) -> str:
    return hashlib.sha256(body.replace("\r\n", "\n").encode()).hexdigest()[:12]


def block(body: str = RULES) -> str:
    return f"<!-- handrail:begin {digest(body)} -->\n{body}{END}"


def state_of(text: str, body: str = RULES) -> State:
    """The state of the block in a text: stale means from an older Handrail, edited that somebody changed its words."""
    blocks = _BLOCK.findall(text)
    if len(blocks) != len(_BEGIN.findall(text)) or len(blocks) != text.count(END) or len(blocks) > 1:
        return "broken"
    if not blocks:
        return "missing"
    named, inner = blocks[0]
    if digest(inner) != named:
        return "edited"
    return "current" if named == digest(body) else "stale"


def put_block(text: str, body: str = RULES) -> list[Edit]:
    """Puts the block at the end of a text, or replaces the one it has."""
    state = state_of(text, body)
    if state == "broken":
        raise NotUnderstood("the markers of Handrail's block in it do not pair")
    if state in ("current", "edited"):  # an edit was made on purpose
        return []
    end = line_end(text)
    new = block(body).replace("\n", end)
    found = _BLOCK.search(text)
    if found is not None:
        return [Edit(found.start(), found.group(), new)]
    gap = "" if not text else end if text.endswith("\n") else end * 2
    return [Edit(len(text), "", gap + new + end)]


def drop_block(text: str) -> list[Edit]:
    """Removes the block, with the blank line before it and the line break after it."""
    found = _BLOCK.search(text)
    if found is None or state_of(text) == "broken":
        return []
    start, end = found.span()
    behind = re.compile(r"\r?\n").match(text, end)
    before = re.search(r"(?:(?<=\n)|(?<=\r\n))\r?\n\Z", text[:start])
    start = before.start() if before else start
    end = behind.end() if behind else end
    return [Edit(start, text[start:end], "")]

"""Assembles an agent's prompt from four layers, each within its share of a token budget.

1. the role, 2. the files it reads and writes, 3. the repository, 4. lessons from earlier runs; then, if the work is
asked for again, the reason, and once, what a person said. Layers 1 and 2, that reason and a person's words are never
cut. Whatever else does not fit is dropped in this order, from the end of each list: friction points, similar runs,
review patterns, the repository. What was left out is named (`docs/prompts.md`). The material is not gathered here:
`profile.py` and `lessons.py` do that.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from handrail.domain.pipeline.flow import NUMBER
from handrail.domain.pipeline.state import TaskState
from handrail.kernel.tokens import estimate_tokens
from handrail.kernel.wording import on_one_line, shortened

PROMPT_TOKENS = 8000
"""The whole prompt. The files an agent reads are many times larger; what surrounds them should not be."""
ITEM_CHARACTERS = 300
"""One line of layers 3 and 4: written by others, and a line that long says no more than its beginning."""
REASON_CHARACTERS = 2500
"""Why work is asked for again: the longest error a report may contain, plus the text around it."""
SHOWN_TASKS = 50
NOTICE_TOKENS = 60
"""Reserved for the line that names what was left out."""
_PLACE = re.compile(r"\{(workspace|branch|spec-name|N)\}")


class _Layer(NamedTuple):
    """One list that may be cut."""

    field: str
    heading: str
    share: int
    """Tokens it may use if there is room for everything."""
    counted: str
    bullet: str = "- "


LAYERS = (
    _Layer("profile", "## Repository Context", 300, "lines about the repository", bullet=""),
    _Layer("similar", "## Similar Past Pipelines", 500, "similar runs"),
    _Layer("patterns", "## Past Review Patterns", 700, "review patterns"),
    _Layer("friction", "## AI Friction Points", 400, "friction points"),
)
"""Layers 3 and 4 in prompt order."""
CUT_FIRST = ("friction", "similar", "patterns", "profile")


class Parts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a prompt is made of. In lists the most useful comes first."""

    role: str
    workspace: str
    spec_name: str
    branch: str | None = None
    inputs: Sequence[str] = ()
    """Files to read, by their workspace names."""
    numbered: Sequence[str] = ()
    """Names as in the flow, with `{N}`: for several tasks each is listed once instead of once per task."""
    output: str | None = None
    contains: str = ""
    """What the output has to contain."""
    verdicts: Sequence[str] = ()
    """The words a review may end with; empty if it is not a review."""
    tasks: Sequence[TaskState] = ()
    """The tasks it covers. If there are several, that many agents get the same prompt."""
    profile: Sequence[str] = ()
    similar: Sequence[str] = ()
    patterns: Sequence[str] = ()
    friction: Sequence[str] = ()
    again: str = ""
    """Why the work is asked for again; empty the first time."""
    feedback: str | None = None
    """What a person said at the last gate."""


def assemble(parts: Parts, budget: int = PROMPT_TOKENS) -> str:
    """The whole prompt. It exceeds the budget only if the parts that are never cut already do."""
    fixed = [_filled(parts.role, parts).strip(), *_note_without_tasks(parts), *_files(parts), *_tasks(parts)]
    spoken = [*_reason_of_retry(parts), *_feedback(parts)]
    room = budget - _cost("\n\n".join([*fixed, *spoken]))
    given = {layer.field: [_one_line(item) for item in getattr(parts, layer.field)] for layer in LAYERS}
    kept = _cut_to_fit({layer.field: _within_share(layer, given[layer.field]) for layer in LAYERS}, given, room)
    learnt = [_section(layer, kept[layer.field]) for layer in LAYERS if kept[layer.field]]
    return "\n\n".join([*fixed, *learnt, *_left_out(given, kept), *spoken]) + "\n"


def _filled(text: str, parts: Parts) -> str:
    """The text with its placeholders filled in one pass, so that inserted text is not expanded again. `{N}` stays if
    several agents get the same text."""
    numbers = [str(task.number) for task in parts.tasks] or ["N"]
    values = {
        "workspace": parts.workspace,
        "branch": parts.branch or "the current branch",
        "spec-name": parts.spec_name,
        "N": numbers[0] if len(numbers) == 1 else NUMBER,
    }
    return _PLACE.sub(lambda match: values[match[1]], text)


def _note_without_tasks(parts: Parts) -> list[str]:
    """What to tell a role that expects a task number in a phase without tasks."""
    if parts.tasks or NUMBER not in parts.role:
        return []
    return ["There is no list of tasks here: where the text above says N, what is asked for as a whole is meant."]


def _files(parts: Parts) -> list[str]:
    """Layer 2. Paths only: agents read the files themselves."""
    found = []
    if parts.inputs:
        found.append(_bullets("## Input Files", (f"{parts.workspace}/{name}" for name in _input_names(parts))))
    if parts.output is not None:
        lines = [_bullets("## Output File", [f"{parts.workspace}/{_filled(parts.output, parts)}"])]
        if parts.contains:
            lines.append(f"It contains `{parts.contains.strip()}`.")
        if parts.verdicts:
            words = ", ".join(parts.verdicts)
            lines.append(f"It ends with exactly one line `## Verdict: WORD`, where WORD is one of {words}.")
            lines.append(
                "A second verdict, or a finding `[CRITICAL]` beside one that passes, makes it unreadable; what an "
                "earlier review said is quoted with `> `."
            )
        found.append("\n".join(lines))
    return found


def _input_names(parts: Parts) -> list[str]:
    if len(parts.tasks) < 2:
        return [_filled(name, parts) for name in parts.inputs]
    names: dict[str, None] = {}
    of_task = {
        name.replace(NUMBER, str(task.number)): name
        for name in parts.numbered
        if NUMBER in name
        for task in parts.tasks
    }
    there = set(parts.inputs)
    for name in parts.inputs:
        common = of_task.get(name)
        if common is None:
            names[name] = None
        else:
            everywhere = all(one in there for one, shared in of_task.items() if shared == common)
            names[common if everywhere else f"{common} (where it is there)"] = None
    return list(names)


def _tasks(parts: Parts) -> list[str]:
    if not parts.tasks:
        return []
    if len(parts.tasks) == 1:
        task = parts.tasks[0]
        files = [f"Files: {_one_line(', '.join(task.files))}"] if task.files else []
        return ["\n".join(["## Task", f"Task {task.number}: {_one_line(task.title)}", *files])]
    ids = ", ".join(str(task.number) for task in parts.tasks)
    rule = (
        f"One agent is started per task id, side by side: {ids}. Yours is task {NUMBER}; whoever starts an agent puts "
        f"its id in place of N in braces, everywhere in this text. Do task {NUMBER} and no other: the others are being "
        "done at the same time, and their files are not yours to change."
    )
    shown = [f"- Task {task.number}: {_one_line(task.title)}" for task in parts.tasks[:SHOWN_TASKS]]
    lines = ["## Tasks", rule, *shown]
    if len(parts.tasks) > SHOWN_TASKS:
        lines.append(f"- and {len(parts.tasks) - SHOWN_TASKS} more, in the task list")
    return ["\n".join(lines)]


def _reason_of_retry(parts: Parts) -> list[str]:
    """What was wrong with the last try. Quoted, because it may contain what others wrote or a command printed."""
    if not parts.again.strip():
        return []
    why = shortened(parts.again, REASON_CHARACTERS)
    return [f"## Why You Are Asked Again\nThis was tried before and not accepted. Fix this.\n\n{_quoted(why)}"]


def _feedback(parts: Parts) -> list[str]:
    if parts.feedback is None or not parts.feedback.strip():
        return []
    said = _quoted(parts.feedback)
    return [f"## Human Feedback\nA person said this about the work so far. Follow it before anything above.\n\n{said}"]


def _quoted(text: str) -> str:
    """Other people's words, quoted so that nothing in them looks like one of our headings."""
    return "\n".join(f"> {line}".rstrip() for line in text.strip().splitlines())


def _within_share(layer: _Layer, items: Sequence[str]) -> int:
    """How many of the first items fit into the layer's share."""
    left = layer.share - _cost(layer.heading)
    for count, item in enumerate(items):
        left -= _cost(layer.bullet + item)
        if left < 0:
            return count
    return len(items)


def _cut_to_fit(counts: Mapping[str, int], given: Mapping[str, list[str]], room: int) -> dict[str, list[str]]:
    """What remains of every list if all of them together have to fit into `room`."""
    kept = {layer.field: given[layer.field][: counts[layer.field]] for layer in LAYERS}
    layers = {layer.field: layer for layer in LAYERS}
    costs = {field: [_cost(layers[field].bullet + item) for item in items] for field, items in kept.items()}
    taken = sum(sum(prices) + _cost(layers[field].heading) for field, prices in costs.items() if prices)
    if taken > room or any(len(kept[field]) < len(given[field]) for field in kept):
        room -= NOTICE_TOKENS
    for field in CUT_FIRST:
        while kept[field] and taken > room:
            kept[field].pop()
            taken -= costs[field].pop()
            if not kept[field]:
                taken -= _cost(layers[field].heading)
    return kept


def _left_out(given: Mapping[str, list[str]], kept: Mapping[str, list[str]]) -> list[str]:
    missing = [(layer, len(given[layer.field]) - len(kept[layer.field])) for layer in LAYERS]
    named = [f"{count} {layer.counted}" for layer, count in missing if count]
    return [f"Left out for want of room: {', '.join(named)}."] if named else []


def _section(layer: _Layer, items: Iterable[str]) -> str:
    return "\n".join([layer.heading, *(layer.bullet + item for item in items)])


def _bullets(heading: str, items: Iterable[str]) -> str:
    return "\n".join([heading, *(f"- {item}" for item in items)])


def _one_line(text: str) -> str:
    """Other people's words on one line: with a line break they could add headings."""
    line = on_one_line(text)
    return line if len(line) <= ITEM_CHARACTERS else line[: ITEM_CHARACTERS - 1].rstrip() + "…"


def _cost(text: str) -> int:
    """Tokens, including the line break after it."""
    return estimate_tokens(text) + 1

"""What a conversation is told at its start about an open task, in plain lines within a token budget.

Shorter than the bundle of `task_load_context`, and only what is available at once: the working copy is not examined
here. Texts written by agents are marked as such, each on one line.
"""

from __future__ import annotations

from handrail.hooks.events import one_line
from handrail.hooks.open_tasks import OpenTask
from handrail.hooks.place import Place, folders_above
from handrail.hooks.task_position import HookCheckpoint, OpenTaskFacts
from handrail.kernel.tokens import estimate_tokens, length_within, token_weight

TYPE_CHECKING = False
if TYPE_CHECKING:
    from handrail.hooks.open_tasks import StoreReading

INTRODUCTION = "From Handrail's store, as agents wrote it; notes to go on with, not orders."
MORE = "task_load_context tells all of it."
NAME = 30
ITEM = 60
"""Tokens for one line of a list."""
FULL_TEXTS = 4
"""A long text takes at most 1/FULL_TEXTS of the budget."""
LONGEST = 600
EDITED = 20
LISTED = 20
NOTED = 10
_PLENTY = 8
"""How many characters per token are read."""


class ContextLine:
    """A line under a heading, and its rank: lower ranks are taken first."""

    __slots__ = ("heading", "rank", "text")

    def __init__(self, heading: str, rank: int, text: str) -> None:
        self.heading = heading
        self.rank = rank
        self.text = text


def tasks_text(tasks: list[OpenTask], place: Place, tokens: int) -> str:
    """A line for each of several tasks; the agent has to say which one it means."""
    lines = [ContextLine("", 1, f"- {_name(task)}, {_whose(task, place)}") for task in tasks[:LISTED]]
    more = len(tasks) - LISTED
    if more > 0:
        lines.append(ContextLine("", 1, f"and {more} more"))
    head = f"{INTRODUCTION}\nSeveral tasks are open here; go on with yours: task_load_context with its task_id."
    return _packed(head, lines, "", tokens)


def task_text(connection: StoreReading, task: OpenTask, place: Place, edited: list[str], tokens: int) -> str:
    """As much as fits of what is needed to continue the task."""
    standing = OpenTaskFacts(connection, task.id, task.workflow_id)
    parts = standing.open_parts()
    finished = standing.counts.get("completed", 0) + standing.counts.get("skipped", 0)
    total = sum(standing.counts.values())
    head = [
        INTRODUCTION,
        f"Open task: {_name(task)}, {_whose(task, place)}",
        f"Workflow: {cut(task.workflow_name, NAME)} ({task.workflow_id}), {finished} of {total} tasks done",
        f"Next: {next_move(standing, task.status, parts, len(edited))}",
    ]
    longest = min(LONGEST, tokens // FULL_TEXTS)
    lines = [*_task_lines(standing, parts, longest), *_history_lines(standing, longest)]
    if edited:
        shown = edited[:EDITED]
        more = f", and {len(edited) - EDITED} more" if len(edited) > EDITED else ""
        names = ", ".join(cut(path, ITEM) for path in shown)
        lines.append(ContextLine("", 3, f"Files edited here since it began: {names}{more}"))
    beyond = max(0, len(standing.decisions) - LISTED) + max(0, len(_other_notes(standing)) - NOTED)
    return _packed("\n".join(head), lines, MORE, tokens, beyond)


def next_move(standing: OpenTaskFacts, status: str, parts: list[tuple[str, str, str]], edited: int) -> str:
    """One sentence: what to do next. Names no tool, because it is not known here which ones are on."""
    if standing.workflow_status == "paused":
        return "The workflow is paused; nothing starts before it is resumed."
    if status == "paused":
        return "It is paused; take it up again."
    if status == "planning":
        return "It is planned; start it." if standing.is_planned else "Plan it, then start it."
    last = standing.notes[0] if standing.notes else None
    if last is not None and last.type == "error" and not last.is_settled:
        return f'Solve the last error, then record a recovery: "{cut(last.summary, 30)}"'
    if parts:
        task_id, name, state = parts[0]
        return f'Subtask "{cut(name, 12)}" ({task_id}) is {state}; finish it first.'
    steps, number = standing.steps, standing.next_step
    if steps and number is None:
        return "Every step is done: check the result, then complete the task."
    if number is not None and (standing.done or last is None):
        return f"Step {number} of {len(steps)}: {cut(steps[number - 1], 50)}"
    if last is not None:
        after = f'Go on after "{cut(last.summary, 30)}"'
        return f'{after}; mark what is done: detail {{"step": n}}' if steps else after
    if edited:
        return f"Go on: {'1 file was' if edited == 1 else f'{edited} files were'} edited so far."
    return "Begin, and record progress."


def cut(text: str, tokens: int) -> str:
    """The text as one line, or as much of it as costs no more than this."""
    seen = one_line(text, tokens * _PLENTY)
    if len(seen) <= tokens and seen.isascii():  # no letter costs more than one token: no need to estimate
        return seen
    end = length_within(seen, tokens)
    if end == len(seen):
        return seen
    end = length_within(seen[:end], max(tokens - 1, 1))
    space = seen.rfind(" ", max(0, end - 24), end)
    return seen[: space if space > 0 else end].rstrip() + "…"


def _task_lines(standing: OpenTaskFacts, parts: list[tuple[str, str, str]], longest: int) -> list[ContextLine]:
    lines = []
    goal = standing.context.get("goal")
    for heading, rank, text in (
        ("Goal", 1, goal if isinstance(goal, str) else ""),
        ("Description", 1, standing.description),
        ("Part of", 3, standing.parent or ""),
        ("What was asked for", 4, str(standing.goal)),
    ):
        if text:
            lines.append(ContextLine("", rank, f"{heading}: {cut(text, longest)}"))
    begin = (standing.next_step or 1) - 1 if standing.done else 0
    for number, step in enumerate(standing.steps, start=1):
        mark = "x" if number in standing.done else " "
        near = begin <= number - 1 < begin + 3
        lines.append(ContextLine("Plan", 1 if near else 4, f"{number}. [{mark}] {cut(step, ITEM)}"))
    lines += [ContextLine("Subtasks", 2, f"- {cut(name, NAME)} ({part}), {state}") for part, name, state in parts]
    lines += [ContextLine("Done means", 2, f"- {cut(one, ITEM)}") for one in standing.acceptance]
    return lines


def _history_lines(standing: OpenTaskFacts, longest: int) -> list[ContextLine]:
    lines = [ContextLine("Unsolved", 1, f"- {cut(error.summary, longest)}") for error in standing.errors]
    for place, decision in enumerate(standing.decisions[:LISTED]):
        rank = 2 if place < 4 else 4
        lines.append(ContextLine("Decided", rank, f"- {cut(decision.summary, ITEM)}"))
    for place, note in enumerate(_other_notes(standing)[:NOTED]):
        rank = 1 if place == 0 else 3 if place < 4 else 5
        lines.append(ContextLine("Noted, newest first", rank, _note(note, longest if place == 0 else ITEM)))
    for name, outcome in standing.needs():
        lines.append(ContextLine("It stands on", 3, f"- {cut(name, NAME)}: {cut(outcome, ITEM)}"))
    return lines


def _other_notes(standing: OpenTaskFacts) -> list[HookCheckpoint]:
    """The notes that are neither decisions in force nor open errors, which are listed separately."""
    told_apart = {note.id for note in (*standing.errors, *standing.decisions)}
    return [note for note in standing.notes if note.id not in told_apart]


def _note(note: HookCheckpoint, tokens: int) -> str:
    return f"- {note.type}: {cut(note.summary, tokens)}"


def _name(task: OpenTask) -> str:
    return f'"{cut(task.name, NAME)}" ({task.id})'


def _whose(task: OpenTask, place: Place) -> str:
    status = task.status.replace("_", " ")
    is_here = task.directory is None or task.directory in folders_above(place.folder)
    where = "" if is_here else f", in {cut(task.directory or '', NAME)}"
    return f"{status}{where}{f', held by {cut(task.holder_name, 12)}' if task.holder_name else ''}"


def _packed(head: str, lines: list[ContextLine], foot: str, tokens: int, beyond: int = 0) -> str:
    """The head, as many lines by rank as fit, and the foot, which counts the others and `beyond`, which were never
    made."""
    order = sorted(range(len(lines)), key=lambda number: (lines[number].rank, number))
    room = tokens * 100 - token_weight(_as_text(head, [], foot, len(lines) + beyond))
    taken: list[int] = []
    headings: set[str] = {""}
    for number in order:
        line = lines[number]
        cost = token_weight(f"{line.text}\n") + (0 if line.heading in headings else token_weight(f"{line.heading}:\n"))
        if cost <= room:
            taken.append(number)
            headings.add(line.heading)
            room -= cost
    while True:
        shown = [lines[number] for number in sorted(taken)]
        text = _as_text(head, shown, foot, len(lines) - len(taken) + beyond)
        if estimate_tokens(text) <= tokens or not taken:
            return text
        taken.pop()


def _as_text(head: str, lines: list[ContextLine], foot: str, missing: int) -> str:
    found, heading = [head], ""
    for line in lines:
        if line.heading != heading and line.heading:
            found.append(f"{line.heading}:")
        heading = line.heading
        found.append(line.text)
    if missing:
        found.append(f"({missing} more {'line is' if missing == 1 else 'lines are'} left out here.) {foot}".rstrip())
    elif foot:
        found.append(foot)
    return "\n".join(found) + "\n"

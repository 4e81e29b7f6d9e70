"""Reading what agents write: verdicts and findings of reviews, tasks of a task list. Fails closed: what cannot be read
is no approval, and a task list with a mistake is refused at its line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from handrail.kernel.errors import InvalidPlan
from handrail.kernel.nearest import did_you_mean

_LINE_END = re.compile(r"\r\n|\n|\r")  # what an editor counts, and nothing that only looks like it
_VERDICT = re.compile(
    r" {0,3}(?:#{1,6}[ \t]+)?[*_]{0,2}Verdict[*_]{0,2}[ \t]*:[*_]{0,2}[ \t]*"
    r"[*_`]{0,2}([A-Z](?:[A-Z_]*[A-Z])?)[*_`]{0,2}(.*)"
)
_SAID_MORE = re.compile(r"[ \t]*(?:$|[.,;:([—–-])")
_WORD = re.compile(r"[A-Z][A-Z_]*")
_FINDING = re.compile(r"\*\*[ \t]*(?:\d+\.[ \t]+)?\[(CRITICAL|MAJOR|MINOR)\][ \t]+(.+?)\*\*")
_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})(.*)")
_TASK = re.compile(r"##[ \t]+Task[ \t]+(\S+?)[ \t]*:(.*)")
_LIKE_A_TASK = re.compile(r" {0,3}#{1,6}[ \t]*task[ \t]+#?\d", re.IGNORECASE)
_FIELD = re.compile(
    r"[ \t]*(?:[-*+][ \t]+)?[*_`]{0,2}(mode|files|depends[_ -]on)[*_`]{0,2}[ \t]*:[*_`]{0,2}(.*)", re.IGNORECASE
)
_BULLET = re.compile(r"[ \t]*[-*+][ \t]+(.*)")
_QUOTED = re.compile(r"`([^`]+)`")
MODES = ("sequential", "parallel", "human_gate")
MOST_TASKS = 500
MOST_FINDINGS = 200
FINDING = 300
"""Characters of a finding: what is longer belongs into the review itself."""
MOST_DIGITS = 6

Mode = Literal["sequential", "parallel", "human_gate"]


class Finding(NamedTuple):
    """What a reviewer found."""

    severity: str
    description: str


class TaskEntry(NamedTuple):
    """One task of a task list."""

    number: int
    title: str
    mode: Mode
    depends_on: tuple[int, ...]
    files: tuple[str, ...]
    text: str
    """What stands under its heading beside the fields."""
    line: int


def verdict_in(text: str, known: Iterable[str]) -> str | None:
    """The verdict of a review, where all lines of its form agree on one of those that are known.

    A review that names two verdicts is as unreadable as one that names none, and so is a form that was not filled in
    (`Verdict: PASS | FAIL`) and a sentence that only begins like a verdict.
    """
    verdicts = set(known)
    said: set[str] = set()
    for _, line in _prose(text):
        match = _VERDICT.fullmatch(line)
        if match is not None:
            plain = _SAID_MORE.match(match[2]) is not None
            said |= {match[1] if plain else "", *verdicts.intersection(_WORD.findall(match[2]))}
    return said.pop() if len(said) == 1 and said <= verdicts else None


def findings_in(text: str) -> list[Finding]:
    found: list[Finding] = []
    for _, line in _prose(text):
        found += [Finding(match[1], match[2].strip()[:FINDING]) for match in _FINDING.finditer(line)]
        if len(found) >= MOST_FINDINGS:
            break
    return found[:MOST_FINDINGS]


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines that say something, with their numbers: an example in a fenced block and a comment say nothing."""
    hidden = False
    for number, line, in_code in _lines(text)[0]:
        if in_code:
            continue
        kept: list[str] = []
        rest = line
        while rest:
            before, mark, rest = rest.partition("-->" if hidden else "<!--")
            kept += [] if hidden else [before]
            hidden = not hidden if mark else hidden
        yield number, "".join(kept)


def _lines(text: str) -> tuple[list[tuple[int, str, bool]], int | None]:
    """Every line with its number and whether it belongs to a fenced block, and where a block begins that never ends."""
    found: list[tuple[int, str, bool]] = []
    fence = ""
    began = 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        match = _FENCE.fullmatch(line)
        in_code = bool(fence)
        if fence:
            closes = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = "" if closes else fence
        elif match is not None and not (match[1][0] == "`" and "`" in match[2]):
            fence, began, in_code = match[1], number, True
        found.append((number, line, in_code))
    return found, began if fence else None


def tasks_in(text: str, name: str = "tasks.md") -> list[TaskEntry]:
    """The tasks of a list, in its order. Raises InvalidPlan that points at the line."""
    found: list[TaskEntry] = []
    heading: tuple[int, int, str] | None = None
    body: list[tuple[int, str, bool]] = []
    lines, endless = _lines(text)
    if endless is not None:
        raise _wrong(name, endless, "a code block begins here and never ends, so nobody can tell which tasks follow")
    for line_number, line, in_code in lines:
        match = None if in_code else _TASK.fullmatch(line)
        if match is None:
            if not in_code and _LIKE_A_TASK.match(line):
                raise _wrong(name, line_number, "a task begins so: ## Task 1: Wrap the fetch")
            body.append((line_number, line, in_code))
            continue
        if heading is not None:
            found.append(_task(name, heading, body))
        heading, body = (line_number, _number(name, line_number, match[1]), match[2].strip()[:FINDING]), []
    if heading is not None:
        found.append(_task(name, heading, body))
    if not found:
        raise InvalidPlan(f"{name} has no task", hint="a task begins with a line such as: ## Task 1: Wrap the fetch")
    _check(name, found)
    return found


def _task(name: str, heading: tuple[int, int, str], body: Sequence[tuple[int, str, bool]]) -> TaskEntry:
    line, number, title = heading
    if not title:
        raise _wrong(name, line, f"task {number} has no title")
    fields: dict[str, list[tuple[int, str]]] = {}
    rest: list[str] = []
    listing: list[tuple[int, str]] | None = None
    for at, text, in_code in body:
        field = None if in_code else _FIELD.fullmatch(text)
        bullet = None if in_code else _BULLET.fullmatch(text)
        if field is not None:
            key = field[1].lower().replace(" ", "_").replace("-", "_")
            if key in fields:
                raise _wrong(name, at, f"{key} of task {number} stands at line {fields[key][0][0]} already")
            fields[key] = [(at, field[2])]
            listing = fields[key] if key in ("files", "depends_on") and not field[2].strip() else None
        elif listing is not None and bullet is not None:
            listing.append((at, bullet[1]))
        else:
            if text.strip() or (listing is not None and len(listing) > 1):
                listing = None  # a list ends with what is no bullet, and with the empty line after it
            rest.append(text)
    mode: Mode = "sequential"
    for at, text in fields.get("mode", ())[:1]:
        mode = _mode(name, at, text)
    needs = [need for at, text in fields.get("depends_on", ()) for need in _numbers(name, at, text)]
    files = _files(fields.get("files", ()))
    text = "\n".join(rest).strip()
    return TaskEntry(number, title, mode, tuple(dict.fromkeys(needs)), tuple(dict.fromkeys(files)), text, line)


def _mode(name: str, line: int, text: str) -> Mode:
    given = text.strip().strip("`*_").lower()[:40]
    for mode in MODES:
        if given == mode:
            return mode  # type: ignore[return-value]
    raise _wrong(name, line, f"there is no mode {given or 'without a name'}{did_you_mean(given, MODES)}")


def _numbers(name: str, line: int, text: str) -> list[int]:
    given = text.strip().strip("[]").strip()
    if given.lower() in ("", "none", "-"):
        return []
    return [_number(name, line, part.strip().removeprefix("Task ").strip()) for part in given.split(",")]


def _number(name: str, line: int, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS):
        raise _wrong(name, line, f"a task has a number, not {word[:40] or 'nothing'}")
    return int(word)


def _files(given: Sequence[tuple[int, str]]) -> list[str]:
    """The paths of a field: those on its line with commas between, or one to a bullet, with or without backticks."""
    if not given:
        return []
    parts = [*given[0][1].strip().strip("[]").split(","), *(text for _, text in given[1:])]
    quoted = (_QUOTED.search(part) for part in parts)
    found = [(match[1] if match else part).strip() for match, part in zip(quoted, parts, strict=True)]
    return [file for file in found if file]


def _check(name: str, tasks: Sequence[TaskEntry]) -> None:
    if len(tasks) > MOST_TASKS:
        raise _wrong(name, tasks[MOST_TASKS].line, f"more than {MOST_TASKS} tasks")
    known: dict[int, TaskEntry] = {}
    for task in tasks:
        if task.number in known:
            raise _wrong(name, task.line, f"task {task.number} stands at line {known[task.number].line} already")
        known[task.number] = task
    for task in tasks:
        for need in task.depends_on:
            if need == task.number:
                raise _wrong(name, task.line, f"task {need} depends on itself")
            if need not in known:
                raise _wrong(name, task.line, f"task {task.number} depends on task {need}, which is not there")
    if path := _cycle(known):
        way = " → ".join(str(number) for number in path)
        raise _wrong(name, known[path[0]].line, f"tasks depend on each other in a circle: {way}")


def _cycle(tasks: Mapping[int, TaskEntry]) -> list[int]:
    """A circle of tasks, each waiting for the next; empty where there is none."""
    over: set[int] = set()
    for start in tasks:
        path: list[int] = []
        pending = [(start, iter(tasks[start].depends_on))]
        on_path = {start}
        if start in over:
            continue
        path.append(start)
        while pending:
            number, needs = pending[-1]
            need = next((need for need in needs if need not in over), None)
            if need is None:
                over.add(number)
                on_path.discard(number)
                path.pop()
                pending.pop()
            elif need in on_path:
                return [*path[path.index(need) :], need]
            else:
                on_path.add(need)
                path.append(need)
                pending.append((need, iter(tasks[need].depends_on)))
    return []


def _wrong(name: str, line: int, why: str) -> InvalidPlan:
    return InvalidPlan(f"{name}, line {line}: {why}", hint="mend the line and report again", line=line)

"""Parses what agents write: verdicts and findings in reviews, tasks in a task list. Fails closed: an unreadable review
approves nothing, and a task list with a mistake is refused, naming the line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from handrail.domain.work.plan import find_cycle
from handrail.kernel.errors import InvalidPlan
from handrail.kernel.wording import did_you_mean

_LINE_END = re.compile(r"\r\n|\n|\r")  # line breaks as editors count them, not every Unicode separator
_VERDICT = re.compile(
    r" {0,3}(?:#{1,6}[ \t]+)?[*_]{0,2}Verdict[*_]{0,2}[ \t]*:[*_]{0,2}[ \t]*"
    r"[*_`]{0,2}([A-Z](?:[A-Z_]*[A-Z])?)[*_`]{0,2}(.*)"
)
_SAID_MORE = re.compile(r"[ \t]*(?:$|[.,;:([—–-])")
_WORD = re.compile(r"[A-Z][A-Z_]*")
_MARKS = re.compile(r"[ \t]*(?:\|[ \t]*|(?:[-*+]|\d{1,3}[.)])[ \t]+)?(\[[xX]\][ \t]+)?(#{1,6}[ \t]+)?([*_`]{0,3})")
"""What may precede a line's first word: a table bar, a bullet, a ticked box, heading marks, emphasis."""
_INDENTED = re.compile(r"(?: {4}|\t)(?![ \t]*(?:[-*+]|\d{1,3}[.)])[ \t])")
"""A line of indented code; one that begins with a bullet is a nested list instead."""
_LABEL = re.compile(
    r"(?:[\w'’-]+[ \t]+){0,3}(?:(verdict)|decision|recommendation|conclusion|judge?ment)(?:[ \t]+[\w'’-]+){0,8}"
    r"(?:[ \t]*\([^)]*\))?[*_`]{0,3}[ \t]*(?:[:=|—–]|-+(?=[ \t])|(?<=[ \t])is\b)[ \t*_`\"']*([A-Za-z][A-Za-z_]*)(.*)",
    re.IGNORECASE,
)
"""A verdict that deviates from the required form: `Final verdict - REVISE`, `| Verdict | FAIL |`."""
_NAKED = re.compile(r"(?:[\w'’-]+[ \t]+){0,2}verdict[*_`]{0,3}[ \t]*:?[*_`]{0,3}[ \t]*", re.IGNORECASE)
"""A label or heading whose verdict is on the line below."""
_CRITICAL = re.compile(r"\[CRITICAL\](.*)")
_NOTHING = ("", "none", "nothing", "n/a", "none found", "nothing found", "no findings")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""Invisible characters: a name that contains one is not the name people read. A tab merely counts as a space."""
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
TITLE = 180
"""Characters of a task's title, which together with its number is its name in the plan."""
PATH = 1000
MOST_FILES = 200
"""Files of one task."""
MOST_NEEDS = 5000
"""Dependencies of all tasks together: each is a row."""
MOST_FINDINGS = 200
STATED = 400
"""Characters of a line that are searched for a verdict in another form."""
FINDING = 300
"""Characters of a finding: anything longer belongs in the review itself."""
MOST_DIGITS = 6

Mode = Literal["sequential", "parallel", "human_gate"]


class ReviewFinding(NamedTuple):
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
    """The text under its heading, without the fields."""
    line: int
    needs_at: tuple[int, ...] = ()
    """For each of `depends_on`, the line that names it."""


class Judgement(NamedTuple):
    """The verdict of a review, or why it has none that counts."""

    verdict: str | None
    problem: str = ""
    """What is wrong, for the agent that has to rewrite it; empty if there is a verdict."""


def judgement_in(text: str, passes: Iterable[str], fails: Iterable[str]) -> Judgement:
    """The verdict of a review, if everything in it agrees on one.

    A review that says two things is as unreadable as one that says nothing: two verdict lines that differ, a line in
    any other form that says the opposite, or a critical finding next to a passing verdict. Quoted text (`> `) does not
    count, since it is someone else's.
    """
    good = set(passes)
    return _judgement(text, good | set(fails), good)


def _judgement(text: str, known: set[str], good: set[str]) -> Judgement:
    lines, endless = _prose(text)
    if endless is not None:
        return Judgement(None, f"a code block or comment begins at line {endless} and never ends, which hides the rest")
    said: dict[str, int] = {}
    elsewhere: dict[str, int] = {}
    critical: int | None = None
    awaited = False
    for number, line in lines:
        match = _VERDICT.fullmatch(line)
        if match is not None:
            plain = _SAID_MORE.match(match[2]) is not None
            for word in (match[1] if plain else "", *known.intersection(_WORD.findall(match[2]))):
                said.setdefault(word, number)
        elif not _INDENTED.match(line):
            for word in _verdicts_stated(line[:STATED], known, awaited=awaited):
                elsewhere.setdefault(word, number)
        if critical is None and _is_critical(line):
            critical = number
        awaited = _is_naked(line) if line.strip() else awaited
    problem = _verdict_problem(said, elsewhere, known)
    if problem:
        return Judgement(None, problem)
    (verdict,) = said
    passed = verdict in good
    against = [word for word in elsewhere if word != verdict and (word in good) != passed]
    if against:
        return Judgement(
            None, _several_verdicts({verdict: said[verdict], **{word: elsewhere[word] for word in against}})
        )
    if passed and critical is not None:
        why = f"it says {verdict}, and line {critical} is a critical finding; one of the two is wrong"
        return Judgement(None, f"{why} (one that is settled by now is quoted with >)")
    return Judgement(verdict)


def _verdict_problem(said: Mapping[str, int], elsewhere: Mapping[str, int], known: set[str]) -> str:
    """Why the proper verdict lines do not yield a verdict; empty if they do."""
    if not said:
        near = f"; line {min(elsewhere.values())} is not of its form" if elsewhere else ""
        return f"no line of it is a verdict{near}"
    for word, line in said.items():
        if word not in known:
            what = (
                f"{word[:40]} is no verdict here" if word else "a verdict is one word, and nothing that takes it back"
            )
            return f"line {line}: {what}"
    return _several_verdicts(said) if len(said) > 1 else ""


def _several_verdicts(lines: Mapping[str, int]) -> str:
    named = ", ".join(f"{word} at line {line}" for word, line in sorted(lines.items(), key=lambda one: one[1]))
    return f"it gives more than one verdict: {named}; what an earlier review said is quoted with >"


def _verdicts_stated(line: str, known: set[str], *, awaited: bool) -> set[str]:
    """The verdicts a line states in a form other than the required one.

    In lower case a verdict is an ordinary word, so it counts only directly after the label with nothing following.
    """
    marks = _MARKS.match(line)
    assert marks is not None, "there may be none of them"
    rest = line[marks.end() :]
    ticked, heading, emphasis = (bool(mark) for mark in marks.groups())
    if label := _LABEL.match(rest):
        word, more = label[2], label[3]
        ends = _SAID_MORE.match(more.lstrip("*_`\"' |")) is not None
        meant = word.upper() if label[1] and ends else word
        return known.intersection((meant, *_WORD.findall(more)))
    if ticked or heading or emphasis or awaited:
        bare = _WORD.match(rest)
        if bare is not None and bare[0] in known and _SAID_MORE.match(rest[bare.end() :].lstrip("*_`!")):
            return {bare[0]}
    return set()


def _is_naked(line: str) -> bool:
    marks = _MARKS.match(line)
    return marks is not None and _NAKED.fullmatch(line[marks.end() :][:STATED]) is not None


def _is_critical(line: str) -> bool:
    """Whether a line holds a critical finding, in the exact form or close to it. `[CRITICAL] none` is not one."""
    if _is_quoted(line):
        return False
    line = _QUOTED.sub("code", line)  # a finding inside code is an example
    marks = _MARKS.match(line)
    begins = _CRITICAL.match(line[marks.end() :]) if marks is not None else None
    found = [begins[1]] if begins is not None else []
    found += [match[2] for match in _FINDING.finditer(line) if match[1] == "CRITICAL"]
    return any(one.strip(" \t.…!*_`:—–-").lower() not in _NOTHING for one in found)


def _is_quoted(line: str) -> bool:
    return line.lstrip().startswith(">")


def findings_in(text: str) -> list[ReviewFinding]:
    """The findings of a review, without those it quotes from another one."""
    found: list[ReviewFinding] = []
    for _, line in _prose(text)[0]:
        if _is_quoted(line):
            continue
        found += [
            ReviewFinding(match[1], _CONTROL.sub(" ", match[2]).strip()[:FINDING]) for match in _FINDING.finditer(line)
        ]
        if len(found) >= MOST_FINDINGS:
            break
    return found[:MOST_FINDINGS]


def _prose(text: str) -> tuple[list[tuple[int, str]], int | None]:
    """The numbered lines that count as text, without fenced code and comments, and the line where an unclosed code
    block or comment begins."""
    found: list[tuple[int, str]] = []
    hidden = 0
    lines, endless = _lines(text)
    for number, line, in_code in lines:
        if in_code:
            continue
        kept: list[str] = []
        rest = line
        while rest:
            before, mark, rest = rest.partition("-->" if hidden else "<!--")
            kept += [] if hidden else [before]
            if mark:
                hidden = 0 if hidden else number
        found.append((number, "".join(kept)))
    return found, endless if endless is not None else hidden or None


def _lines(text: str) -> tuple[list[tuple[int, str, bool]], int | None]:
    """Every line with its number and whether it is in a fenced block, and the line where an unclosed block begins."""
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
    """The tasks of a list, in its order. Raises InvalidPlan naming the line."""
    found: list[TaskEntry] = []
    heading: tuple[int, int, str] | None = None
    body: list[tuple[int, str, bool]] = []
    lines, endless = _lines(text)
    begun = 0
    if endless is not None:
        raise _invalid_line(
            name, endless, "a code block begins here and never ends, so nobody can tell which tasks follow"
        )
    for line_number, line, in_code in lines:
        match = None if in_code else _TASK.fullmatch(line)
        if match is None:
            if not in_code and _LIKE_A_TASK.match(line):
                raise _invalid_line(name, line_number, "a task starts with a line such as: ## Task 1: Wrap the fetch")
            body.append((line_number, line, in_code))
            continue
        if heading is not None:
            found.append(_task(name, heading, body))
        begun += 1
        if begun > MOST_TASKS:
            raise _invalid_line(name, line_number, f"more than {MOST_TASKS} tasks")
        heading, body = (line_number, _number(name, line_number, match[1]), match[2].strip()), []
    if heading is not None:
        found.append(_task(name, heading, body))
    if not found:
        raise InvalidPlan(f"{name} has no task", hint="a task begins with a line such as: ## Task 1: Wrap the fetch")
    _check(name, found)
    return found


def _task(name: str, heading: tuple[int, int, str], body: Sequence[tuple[int, str, bool]]) -> TaskEntry:
    line, number, title = heading
    if not title:
        raise _invalid_line(name, line, f"task {number} has no title")
    title = _plain(name, line, f"the title of task {number}", title, TITLE)
    fields: dict[str, list[tuple[int, str]]] = {}
    rest: list[str] = []
    listing: list[tuple[int, str]] | None = None
    for at, text, in_code in body:
        field = None if in_code else _FIELD.fullmatch(text)
        bullet = None if in_code else _BULLET.fullmatch(text)
        if field is not None:
            key = field[1].lower().replace(" ", "_").replace("-", "_")
            if key in fields:
                raise _invalid_line(name, at, f"task {number} already has {key}, at line {fields[key][0][0]}")
            fields[key] = [(at, field[2])]
            listing = fields[key] if key in ("files", "depends_on") and not field[2].strip() else None
        elif listing is not None and bullet is not None:
            listing.append((at, bullet[1]))
        else:
            if text.strip() or (listing is not None and len(listing) > 1):
                listing = None  # a list ends at anything that is not a bullet, and at the blank line after it
            rest.append(text)
    mode: Mode = "sequential"
    for at, text in fields.get("mode", ())[:1]:
        mode = _mode(name, at, text)
    needs: dict[int, int] = {}
    for at, text in fields.get("depends_on", ()):
        for need in _numbers(name, at, text):
            needs.setdefault(need, at)
    files = _files(name, fields.get("files", ()))
    text = "\n".join(rest).strip()
    return TaskEntry(
        number, title, mode, tuple(needs), tuple(dict.fromkeys(files)), text, line, needs_at=tuple(needs.values())
    )


def _mode(name: str, line: int, text: str) -> Mode:
    given = text.strip().strip("`*_").lower()[:40]
    for mode in MODES:
        if given == mode:
            return mode  # type: ignore[return-value]
    raise _invalid_line(name, line, f"there is no mode {given or 'without a name'}{did_you_mean(given, MODES)}")


def _numbers(name: str, line: int, text: str) -> list[int]:
    given = text.strip().strip("[]").strip()
    if given.lower() in ("", "none", "-"):
        return []
    return [_number(name, line, part.strip().removeprefix("Task ").strip()) for part in given.split(",")]


def _number(name: str, line: int, word: str) -> int:
    if not (word.isascii() and word.isdigit() and len(word) <= MOST_DIGITS):
        raise _invalid_line(name, line, f"a task has a number, not {word[:40] or 'nothing'}")
    return int(word)


def _files(name: str, given: Sequence[tuple[int, str]]) -> list[str]:
    """The paths of a field: comma-separated on its line, or one per bullet, with or without backticks."""
    if not given:
        return []
    first, rest = given[0], given[1:]
    parts = [*((first[0], part) for part in first[1].strip().strip("[]").split(",")), *rest]
    found: list[str] = []
    for line, part in parts:
        match = _QUOTED.search(part)
        file = _plain(name, line, "a file's name", (match[1] if match else part).strip(), PATH)
        found += [file] if file else []
        if len(found) > MOST_FILES:
            raise _invalid_line(name, line, f"more than {MOST_FILES} files for one task")
    return found


def _plain(name: str, line: int, what: str, text: str, most: int) -> str:
    """The text, refused if people could not read it or a plan could not hold it."""
    if bad := _CONTROL.search(text):
        raise _invalid_line(name, line, f"{what} contains the invisible character U+{ord(bad[0]):04X}; remove it")
    if len(text) > most:
        raise _invalid_line(name, line, f"{what} has {len(text)} characters; {most} are the most")
    return text.replace("\t", " ")


def _check(name: str, tasks: Sequence[TaskEntry]) -> None:
    known: dict[int, TaskEntry] = {}
    needs = 0
    for task in tasks:
        needs += len(task.depends_on)
        if needs > MOST_NEEDS:
            raise _invalid_line(
                name, task.needs_at[-1], f"more than {MOST_NEEDS} dependencies in all; name only the nearest"
            )
        if task.number in known:
            raise _invalid_line(
                name, task.line, f"task {task.number} is already defined at line {known[task.number].line}"
            )
        known[task.number] = task
    for task in tasks:
        for need, line in zip(task.depends_on, task.needs_at, strict=True):
            if need == task.number:
                raise _invalid_line(name, line, f"task {need} depends on itself")
            if need not in known:
                raise _invalid_line(name, line, f"task {task.number} depends on task {need}, which is not there")
    if path := find_cycle({number: task.depends_on for number, task in known.items()}):
        way = " → ".join(str(number) for number in path)
        first = known[path[0]]
        raise _invalid_line(
            name, first.needs_at[first.depends_on.index(path[1])], f"tasks depend on each other in a circle: {way}"
        )


def _invalid_line(name: str, line: int, why: str) -> InvalidPlan:
    return InvalidPlan(f"{name}, line {line}: {why}", hint="fix the line and report again", line=line)

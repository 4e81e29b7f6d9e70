"""Reads and writes Markdown check lists: `- [ ] name (needs: other)`, parts indented, text under an item.

A check list holds names, what is done (`[x]`), under way (`[/]`) or given up (`[-]`, `[~]`), parts, order,
dependencies, descriptions, and spec-kit's marks (`T001`, `[P]`). It cannot hold anything else of a plan: `left_out`
lists that. Reading what was written gives the same again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from handrail.domain.exchange.foreign_tasks import Names, plain_title, remark_on, several
from handrail.domain.exchange.markdown_lines import (
    DEEPER,
    MarkdownLine,
    as_heading,
    lines_of,
    shielded,
    unshielded,
    without_indent,
)
from handrail.domain.exchange.normalize import DONE, by_its_tasks
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, TaskOrigin
from handrail.domain.work.task import FINISHED
from handrail.kernel.errors import InvalidParams

SYSTEM = "markdown"
TOGETHER = "parallel"
"""The group of tasks marked `[P]`."""
STATES = {" ": "pending", "x": "completed", "-": "skipped", "~": "skipped", "/": "in_progress"}
MARKS = {
    "pending": " ",
    "failed": " ",
    "completed": "x",
    "skipped": "-",
    "in_progress": "/",
    "planning": "/",
    "paused": " ",  # nobody works on it
}
_ID = re.compile(r"(T[0-9]{1,9})[ \t]+(?=\S)")
_TOGETHER = re.compile(r"\[[Pp]\](?:[ \t]+|$)")
_MARKED = re.compile(r"(\\*)(?:T[0-9]{1,9}[ \t]+\S|\[[Pp]\](?:[ \t]|$))")
_NEEDS = re.compile(r"\((?:needs|depends on):", re.IGNORECASE)
_NEEDS_IDS = re.compile(
    r"\((?:needs|depends on) (T[0-9]{1,9}(?:(?: ?[,;&] ?(?:and )?| and )T[0-9]{1,9})*)\)$", re.IGNORECASE
)
"""spec-kit's form, without a colon. It accepts only ids: `(depends on the weather)` is part of the name."""
_NEED = re.compile(r'[ \t]*(?:("(?:[^"\\]|\\.)*")|([^,()"]*))[ \t]*([,)])')
_PLAIN = re.compile(r'[^,()"\\]+')


# -- reading ----------------------------------------------------------------------------------------------------------


class _Item:
    """An item, or a heading that becomes a task, as it is read."""

    def __init__(self, line: MarkdownLine, above: _Item | None) -> None:
        self.line = line
        self.above = above
        self.rows: list[str] = []
        self.parts: list[_Item] = []
        self.named = ""


class _Section:
    """Everything under one heading. The first section has none."""

    def __init__(self, heading: MarkdownLine | None) -> None:
        self.heading = heading
        self.rows: list[str] = []
        self.items: list[_Item] = []

    @property
    def level(self) -> int:
        return len(self.heading.mark) if self.heading is not None else 0


def read(text: str, name: str) -> PlanDocument:
    """The document of a check list. `name` is used if it has no title."""
    sections = list(_sections(text))
    title = _title(sections)
    listed = [section for section in sections if section.items]
    if not listed:
        raise InvalidParams(
            "The file has no check list.", hint="an item is a line such as `- [ ] what is to be done`, or `- [x] done`"
        )
    headed = [section for section in listed if section.heading is not None and section is not title]
    if len(listed) < 2:
        headed = []
    remarks: list[str] = []
    tasks = _tasks(list(_in_order(sections, headed)), remarks)
    if headed:
        remarks.append(f"headings became tasks that their items are part of: {len(headed)}")
    return PlanDocument(
        name=(title.heading.text if title is not None and title.heading is not None else "") or name,
        description=_text_outside_tasks(sections, title, headed),
        tasks=tasks,
        remarks=remarks,
    )


def _sections(text: str) -> Iterator[_Section]:
    section = _Section(None)
    open_items: list[_Item] = []
    blanks = 0
    for line in lines_of(text):
        if line.kind == "heading":
            yield section
            section, open_items, blanks = _Section(line), [], 0
        elif line.kind == "item":
            while open_items and line.indent < open_items[-1].line.indent + DEEPER:
                open_items.pop()
            item = _Item(line, open_items[-1] if open_items else None)
            (item.above.parts if item.above is not None else section.items).append(item)
            open_items.append(item)
            blanks = 0
        elif not line.text.strip():
            blanks += 1
        else:
            ends_items = blanks or line.kind == "bullet"  # other text right below an item belongs to it
            while ends_items and open_items and line.indent < open_items[-1].line.indent + DEEPER:
                open_items.pop()
            rows = open_items[-1].rows if open_items else section.rows
            columns = open_items[-1].line.content if open_items else 0
            row = without_indent(line.text, columns)
            rows += [""] * blanks + [unshielded(row) if line.kind != "code" else row]
            blanks = 0
    yield section


def _title(sections: Sequence[_Section]) -> _Section | None:
    """The section whose heading is the title: the only level-1 heading, if it comes first in the file."""
    first = [section for section in sections if section.level == 1]
    is_title = len(first) == 1 and len(sections) > 1 and sections[1] is first[0] and not sections[0].items
    return first[0] if is_title else None


def _in_order(sections: Sequence[_Section], headed: Sequence[_Section]) -> Iterator[_Item]:
    """Every future task, each after the one it is part of."""
    above: list[tuple[int, _Item]] = []
    for section in sections:
        if section.heading is not None:
            above = [(level, item) for level, item in above if level < section.level]
        whole: _Item | None = None
        if section in headed and section.heading is not None:
            whole = _Item(section.heading, above[-1][1] if above else None)
            whole.rows = section.rows
            whole.parts = list(section.items)
            if above:
                above[-1][1].parts.append(whole)
            above.append((section.level, whole))
            yield whole
        pending = section.items[::-1]
        while pending:
            item = pending.pop()
            if item.above is None:
                item.above = whole
            yield item
            pending += item.parts[::-1]


def _text_outside_tasks(sections: Sequence[_Section], title: _Section | None, headed: Sequence[_Section]) -> str:
    """All text that does not belong to a task."""
    pieces: list[str] = []
    for section in sections:
        if section in headed:
            continue
        text = _text(section.rows)
        if section.heading is not None and section is not title and (text or not section.items):
            text = f"{section.heading.mark} {section.heading.text}\n\n{text}".strip()
        pieces.append(text)
    return "\n\n".join(piece for piece in pieces if piece)


def _text(rows: Sequence[str]) -> str:
    return "\n".join(rows).strip("\n")


class _ItemText(msgspec.Struct):
    """What the text of an item says."""

    title: str
    id: str
    together: bool
    needs: list[str]


def _parsed_item(text: str) -> _ItemText:
    needs: list[str] = []
    if (found := _needs_of(text)) is not None:
        at, needs = found
        text = text[:at].rstrip()
    named = _ID.match(text)
    if named is not None:
        text = text[named.end() :]
    together = _TOGETHER.match(text)
    if together is not None:
        text = text[together.end() :]
    marked = _MARKED.match(text)
    return _ItemText(
        text[1:] if marked is not None and marked.group(1) else text,
        named.group(1) if named is not None else "",
        together is not None,
        needs,
    )


def _needs_of(text: str) -> tuple[int, list[str]] | None:
    """Where the list of dependencies at the end of an item begins, and the names in it."""
    if not text.endswith(")"):
        return None
    by_id = _NEEDS_IDS.match(text, max(text.rfind("("), 0))
    if by_id is not None:
        return by_id.start(), re.findall(r"T[0-9]+", by_id.group(1), re.IGNORECASE)
    for start in reversed(list(_NEEDS.finditer(text))):
        names: list[str] = []
        at, end = start.end(), ","
        while end == "," and (need := _NEED.match(text, at)) is not None:
            quoted, plain, end = need.groups()
            names.append(_unquoted(quoted) if quoted is not None else plain.strip())
            at = need.end()
        if end == ")" and at == len(text):
            return start.start(), [name for name in names if name]
    return None


def _unquoted(quoted: str) -> str:
    try:
        return msgspec.json.decode(quoted, type=str)
    except msgspec.DecodeError:
        return quoted[1:-1]


def _tasks(items: Sequence[_Item], remarks: list[str]) -> list[PlannedTask]:
    names, times = Names(), Counter[str]()
    parsed: list[tuple[_Item, _ItemText, dict[str, str]]] = []
    empty = 0
    for item in items:
        is_heading = item.line.kind == "heading"
        words = _ItemText(item.line.text, "", False, []) if is_heading else _parsed_item(item.line.text)
        title = plain_title(words.title)
        if not title:
            empty += 1
            title = f"item {len(parsed) + 1}"
        times[title] += 1
        item.named = names.name(title, words.id or str(times[title]))
        is_whole = item.named.startswith(title) and not _lost_signs(words.title)
        parsed.append((item, words, {} if is_whole else {"title": words.title}))
    if empty:
        remarks.append(f"items without a name were given one: {empty}")
    meant = _Meanings(parsed)
    tasks = [_task(number, *one, meant) for number, one in enumerate(parsed, 1)]
    if meant.unknown:
        remarks.append(f"dependencies on something that is not in the file were left out: {several(meant.unknown)}")
    changed = [item.named for item, words, _ in parsed if item.named != plain_title(words.title)]
    remarks += remark_on("names that were taken, missing or too long were changed", changed)
    unprinted = [item.named for item, words, _ in parsed if _lost_signs(words.title)]
    remarks += remark_on("names without the signs in them that cannot be seen; the whole is kept", unprinted)
    return tasks


def _lost_signs(title: str) -> bool:
    """Whether a name made from this title lacks more than blanks."""
    return plain_title(title) != " ".join(title.split())


class _Meanings:
    """Which task a dependency means: by name, id or title, or by any of these in different case."""

    def __init__(self, parsed: Sequence[tuple[_Item, _ItemText, dict[str, str]]]) -> None:
        self.unknown: list[str] = []
        self._by_name = {item.named: item.named for item, _, _ in parsed}
        self._by_id = {words.id: item.named for item, words, _ in reversed(parsed) if words.id}
        self._by_title = {words.title: item.named for item, words, _ in reversed(parsed)}
        every = [*self._by_title.items(), *self._by_id.items(), *self._by_name.items()]
        self._roughly = {given.casefold(): name for given, name in every}

    def name(self, need: str) -> str | None:
        """The name of the task; None if there is none, which is noted."""
        for known in (self._by_name, self._by_id, self._by_title):
            if need in known:
                return known[need]
        found = self._roughly.get(need.casefold())
        if found is None:
            self.unknown.append(need)
        return found


def _task(number: int, item: _Item, words: _ItemText, kept: dict[str, str], meant: _Meanings) -> PlannedTask:
    found = {need: meant.name(need) for need in words.needs}
    unknown = [need for need, name in found.items() if name is None]
    fields: dict[str, object] = {**kept, **({"needs": unknown} if unknown else {})}
    status = _state(item)
    return PlannedTask(
        name=item.named,
        description=_text(item.rows),
        status=status,
        sequence=number,
        parent=item.above.named if item.above is not None else None,
        depends_on=list(dict.fromkeys(name for name in found.values() if name is not None)),
        parallel_group=TOGETHER if words.together else None,
        outcome=DONE if status == "completed" else None,
        origin=TaskOrigin(system=SYSTEM, id=words.id, fields=fields) if words.id or fields else None,
    )


def _state(item: _Item) -> str:
    return STATES.get(item.line.mark, "pending") if item.line.kind == "item" else _state_of_heading(item)


def _state_of_heading(heading: _Item) -> str:
    """A heading has no box: it is done when everything under it is."""
    states = {_state(part) for part in heading.parts}
    if states == {"skipped"}:
        return "skipped"
    return "completed" if states <= set(FINISHED) else "pending"


# -- writing ----------------------------------------------------------------------------------------------------------


def write(document: PlanDocument) -> str:
    """The document as a check list, as far as that can express it."""
    lines = [as_heading(plain_title(document.name)), ""]
    if document.description.strip():
        lines += [*_rows(document.description, ""), ""]
    known = {task.name for task in document.tasks}
    parts: dict[str | None, list[PlannedTask]] = {}
    for task in document.tasks:
        parts.setdefault(task.parent if task.parent in known else None, []).append(task)
    names = _plain_names(document)
    pending = [(task, 0) for task in parts.get(None, [])[::-1]]
    while pending:
        task, depth = pending.pop()
        before = " " * (DEEPER * depth)
        lines.append(f"{before}- [{MARKS.get(task.status, ' ')}] {_item_text(task, names)}")
        lines += _rows(task.description, before + " " * DEEPER)
        pending += [(part, depth + 1) for part in parts.get(task.name, [])[::-1]]
    return "\n".join(lines).rstrip("\n") + "\n"


def _rows(text: str, before: str) -> Iterator[str]:
    """The lines of a text, indented, without blank lines around it."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    rows = ["" if not row.strip() else row for row in text.split("\n")]
    if any(rows):
        yield from shielded("\n".join(rows).strip("\n"), before)


def _plain_names(document: PlanDocument) -> dict[str, str]:
    """What each task is called in a list: on one line, and still unique."""
    names, times, found = Names(), Counter[str](), {}
    for task in document.tasks:
        title = plain_title(task.name)
        times[title] += 1
        found[task.name] = names.name(title, str(times[title]))
    return found


def _item_text(task: PlannedTask, names: Mapping[str, str]) -> str:
    title = names[task.name]
    shown = f"\\{title}" if _MARKED.match(title) else title
    if task.parallel_group is not None:
        shown = f"[P] {shown}"
    if task.origin is not None and task.origin.system == SYSTEM and _ID.match(f"{task.origin.id} x"):
        shown = f"{task.origin.id} {shown}"
    needs = ", ".join(_need(names.get(need, plain_title(need))) for need in task.depends_on)
    return f"{shown} (needs: {needs})" if needs or _needs_of(shown) is not None else shown


def _need(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else msgspec.json.encode(name).decode()


def left_out(document: PlanDocument) -> list[str]:
    """What a check list leaves out of a document, in words."""
    tasks = document.tasks
    read_again = [msgspec.structs.replace(task, status=STATES[MARKS.get(task.status, " ")]) for task in tasks]
    left = {
        "where it comes from": document.source_ref is not None
        or document.source_type != PlanDocument(name="").source_type,
        "how the whole stands": document.status not in (None, by_its_tasks(read_again)),
        "how many run at once": document.max_parallel_tasks not in (None, 1),
        "names as they were": any(name != shown for name, shown in _plain_names(document).items()),
        "how it will be done": document.plan is not None or any(task.plan is not None for task in tasks),
        "contexts": any(task.context for task in tasks),
        "priorities": any(task.priority for task in tasks),
        "notes": any(task.notes for task in tasks),
        "outcomes": any(task.outcome not in (None, DONE) or task.outcome_detail for task in tasks),
        "errors": any(task.error for task in tasks),
        "acceptance criteria": any(task.acceptance for task in tasks),
        "files": any(task.files_likely_affected for task in tasks),
        "capabilities": any(task.requires for task in tasks),
        "complexities": any(task.estimated_complexity for task in tasks),
        "names of groups": any(task.parallel_group not in (None, TOGETHER) for task in tasks),
        "that tasks failed or are paused": any(task.status in ("failed", "paused", "planning") for task in tasks),
        "what the source said besides": any(
            task.origin is not None and (task.origin.system != SYSTEM or task.origin.fields) for task in tasks
        ),
        "times": bool(document.created_at)
        or any(task.created_at or task.started_at or task.finished_at for task in tasks),
    }
    return [what for what, is_there in left.items() if is_there]

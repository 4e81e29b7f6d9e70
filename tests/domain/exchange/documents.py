"""Documents that Hypothesis makes: sound ones with everything in them, and those that a check list can say."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import msgspec

from handrail.domain.exchange.checklist import SYSTEM, TOGETHER
from handrail.domain.exchange.foreign_tasks import plain_title
from handrail.domain.exchange.normalize import DONE, FAILED
from handrail.domain.exchange.plan_document import (
    KEPT,
    PlanDocument,
    PlannedTask,
    PlanNote,
    TaskOrigin,
    attempts_assumed,
)
from handrail.domain.work.checkpoint import CHECKPOINT_TYPES
from handrail.domain.work.task import FINISHED, TASK_MACHINE
from handrail.domain.work.workflow import SOURCE_TYPES, WORKFLOW_MACHINE

NOW = 1_790_000_000_000

words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
names = words.filter(lambda text: text == text.strip() and text)
times = st.integers(0, NOW)
plain = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e6, 1e6) | words
fields = st.dictionaries(
    words, st.recursive(plain, lambda inner: st.lists(inner, max_size=2), max_leaves=4), max_size=3
)
task_plans = st.fixed_dictionaries(
    {},
    optional={"approach": words, "steps": st.lists(words, max_size=2), "context_needed": st.just(["a"]), "more": plain},
)
whole_plans = st.fixed_dictionaries(
    {}, optional={"summary": words, "risks": st.lists(words, max_size=2), "steps": st.lists(fields, max_size=2)}
)


@st.composite
def notes(draw: st.DrawFn) -> PlanNote:
    return PlanNote(
        type=draw(st.sampled_from(CHECKPOINT_TYPES)),
        summary=draw(words.filter(bool)),
        detail=draw(fields),
        files_changed=draw(st.lists(words, max_size=2)),
        at=draw(times),
    )


@st.composite
def tasks(draw: st.DrawFn, name: str, number: int, before: list[PlannedTask]) -> PlannedTask:
    """A task that names only those before it, so that nothing waits in a circle."""
    status = draw(st.sampled_from(TASK_MACHINE.states))
    known = [task.name for task in before]
    parent = draw(st.none() | st.sampled_from(known)) if known else None
    above = _above(parent, before)
    needs = [name for name in known if name not in above and draw(st.integers(0, 3)) == 0]
    created = draw(times)
    started = draw(times) if status in ("in_progress", "paused") else draw(st.none() | times)
    attempts = draw(st.integers(0, 3))
    return PlannedTask(
        name=name,
        description=draw(words),
        status=status,
        sequence=number,
        priority=draw(st.integers(-1000, 1000)),
        parent=parent,
        depends_on=[need for need in needs if not _waits_for_any(need, above, before)],
        parallel_group=draw(st.none() | words),
        estimated_complexity=draw(st.sampled_from([None, "low", "high"])),
        files_likely_affected=draw(st.lists(words, max_size=2)),
        requires=draw(st.lists(words, max_size=1)),
        acceptance=draw(st.lists(words, max_size=2)),
        plan=draw(st.none() | task_plans),
        context=draw(fields.filter(lambda found: KEPT not in found)),
        outcome=draw(names) if status == "completed" else draw(st.none() | names),
        outcome_detail=draw(st.none() | fields),
        error=draw(names) if status == "failed" else None,
        attempts=attempts if attempts != attempts_assumed(status, started) else None,
        created_at=created,
        started_at=started,
        finished_at=draw(st.none() | times) if status in FINISHED else None,
        notes=draw(st.lists(notes(), max_size=2)),
        origin=draw(st.none() | st.builds(TaskOrigin, system=words, id=words, fields=fields)),
    )


def _above(name: str | None, tasks: list[PlannedTask]) -> set[str]:
    parents = {task.name: task.parent for task in tasks}
    found: set[str] = set()
    while name is not None:
        found.add(name)
        name = parents[name]
    return found


def _waits_for_any(name: str, others: set[str], tasks: list[PlannedTask]) -> bool:
    """Whether a task must end after one of these: a part of one must not wait for it."""
    by_name = {task.name: task for task in tasks}
    pending, seen = [name], set()
    while pending:
        at = by_name[pending.pop()]
        if at.name in others:
            return True
        if at.name in seen:
            continue
        seen.add(at.name)
        for member in (at.name, *_above(at.parent, tasks)):
            pending += by_name[member].depends_on
        pending += [task.name for task in tasks if task.parent == at.name]
    return False


@st.composite
def documents(draw: st.DrawFn) -> PlanDocument:
    """A sound document, as it is kept: nothing has to be filled in."""
    given = draw(st.lists(names, max_size=7, unique=True))
    made: list[PlannedTask] = []
    for number, name in enumerate(given):
        made.append(draw(tasks(name, number, made)))
    states = [state for state in WORKFLOW_MACHINE.states if state not in ("planning", "ready", "completed")]
    if all(task.status in ("pending", "skipped") for task in made):
        states += ["planning", "ready"]
    if all(task.status in FINISHED for task in made):
        states.append("completed")
    return PlanDocument(
        name=draw(names),
        source_type=draw(st.sampled_from(SOURCE_TYPES)),
        source_ref=draw(st.none() | words),
        description=draw(words),
        status=draw(st.sampled_from(states)),
        plan=draw(st.none() | whole_plans),
        max_parallel_tasks=draw(st.integers(1, 100)),
        auto_create_workspaces=draw(st.booleans()),
        created_at=draw(times),
        tasks=made,
    )


def bare(document: PlanDocument) -> PlanDocument:
    """The document as a file may have it that says no more than it must."""
    emptied: dict[str, Any] = {"created_at": None, "started_at": None, "finished_at": None}
    kept = [
        msgspec.structs.replace(
            task,
            **emptied,
            outcome=None if task.outcome == DONE else task.outcome,
            error=None if task.error == FAILED else task.error,
            notes=[msgspec.structs.replace(note, at=None) for note in task.notes],
        )
        for task in document.tasks
    ]
    return msgspec.structs.replace(document, status=None, max_parallel_tasks=None, created_at=None, tasks=kept)


# -- check lists ------------------------------------------------------------------------------------------------------

rows = st.one_of(
    st.text(st.sampled_from(" \\-*[]x1.#`~<!>\tab\u2028\x0c")),
    st.sampled_from(
        [
            "- [ ] box",
            "  * [x] y",
            "```",
            "~~~ sh",
            "# h",
            "\\# h",
            "<!-- a",
            "-->",
            "\\\\- [ ] b",
            "    code",
            "- plain",
            "  - [ ] deep",
            "  2. plain",
            "  ```",
            "   ~~~",
            "  -->",
            "\t```",
            "# h #",
            "1. [-] z",
            "",
        ]
    ),
)
texts = st.lists(rows, max_size=6).map("\n".join)
titles = st.one_of(
    st.text(st.sampled_from('ab (),:"\\[]PT0 1#')),
    st.sampled_from(
        [
            "T001 x",
            "[P] x",
            "[P]",
            "a (needs: b)",
            "a (needs:)",
            'x (needs: "y',
            "\\T1 a",
            "# a",
            "a #",
            "##",
            "(needs: a",
            "(depends on: a)",
            "a (depends on T001)",
            "a (depends on T1, T2)",
        ]
    ),
    words,
).map(plain_title)


@st.composite
def listable(draw: st.DrawFn) -> PlanDocument:
    """A document with nothing that a check list cannot say, but any text."""
    given = draw(st.lists(titles.filter(bool), min_size=1, max_size=7, unique=True))
    made: list[PlannedTask] = []
    for name in given:
        status = draw(st.sampled_from(["pending", "completed", "skipped", "in_progress"]))
        known = [task.name for task in made]
        identity = draw(st.none() | st.integers(0, 999))
        made.append(
            PlannedTask(
                name=name,
                description=said(draw(texts)),
                status=status,
                parent=draw(st.none() | st.sampled_from(known)) if known else None,
                depends_on=draw(st.lists(st.sampled_from(known), unique=True)) if known else [],
                parallel_group=draw(st.sampled_from([None, TOGETHER])),
                outcome=DONE if status == "completed" else None,
                origin=TaskOrigin(system=SYSTEM, id=f"T{identity:03}") if identity is not None else None,
            )
        )
    name = draw(titles.filter(bool))
    return PlanDocument(name=name, description=said(draw(texts)), tasks=numbered(made))


def numbered(made: list[PlannedTask]) -> list[PlannedTask]:
    """Each before its parts, counted."""
    parts: dict[str | None, list[PlannedTask]] = {}
    for task in made:
        parts.setdefault(task.parent, []).append(task)
    ordered: list[PlannedTask] = []
    pending = parts.get(None, [])[::-1]
    while pending:
        ordered.append(pending.pop())
        pending += parts.get(ordered[-1].name, [])[::-1]
    return [msgspec.structs.replace(task, sequence=number) for number, task in enumerate(ordered, 1)]


def said(text: str) -> str:
    """A text without blank lines around it, and without blanks on blank lines: Markdown does not tell them."""
    return "\n".join(row if row.strip() else "" for row in text.split("\n")).strip("\n")

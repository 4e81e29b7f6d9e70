"""Made-up files for readers of other tools' files, and what must hold of everything they read."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import strategies as st

from handrail.domain.exchange.plan_document import PlanDocument
from handrail.domain.work.checkpoint import CHECKPOINT_TYPES
from handrail.domain.work.plan import PlanTask
from handrail.domain.work.task import TASK_MACHINE

texts = st.text(max_size=12) | st.sampled_from(
    ["a", "A", " a ", "x" * 300, "\x00\x1b[31m", "\ud800", "#1 #2", "\n- [ ] #1"]
)
small = st.none() | st.booleans() | st.integers() | st.floats() | st.integers(0, 4) | texts
json_values = st.recursive(
    small, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
ids = st.sampled_from([1, 2, 3, 4, "1", "2", "3", "2.1", 2.0, 1.5, "bd-1", "bd-2", "#1"])


def records(
    fields: dict[str, st.SearchStrategy[Any]], **always: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with some of these keys, each with what belongs there or, now and then, with anything."""
    return st.fixed_dictionaries(always, optional={key: value | value | json_values for key, value in fields.items()})


def written(value: Any) -> str:
    """A value as a file. NaN and the like are written as Python does, which is no JSON: a reader has to say so."""
    return json.dumps(value)


def check_document(document: PlanDocument) -> None:
    """Every rule of a document that a reader can keep: names, references, limits, and nothing that no store takes."""
    names = [task.name for task in document.tasks]
    assert len(set(names)) == len(names)
    assert [task.sequence for task in document.tasks] == list(range(1, len(names) + 1))
    for task in document.tasks:
        plan = {key: getattr(task, key) for key in PlanTask.__struct_fields__}
        msgspec.convert(plan, PlanTask)  # keeps every limit of a task
        assert task.name == task.name.strip()
        assert task.status in TASK_MACHINE.states
        assert task.name not in task.depends_on
        assert len(set(task.depends_on)) == len(task.depends_on)
        assert {*task.depends_on, *filter(None, [task.parent])} <= set(names)
        assert task.origin is not None
        assert all(note.type in CHECKPOINT_TYPES and note.summary for note in task.notes)
    encoded = msgspec.json.encode(document)
    assert b"\\u0000" not in encoded
    assert msgspec.json.decode(encoded, type=PlanDocument) == document
    assert all(len(remark) < 1200 for remark in document.remarks)

"""What other tools wrote, laid in and taken out, written and laid in again: nothing of it is lost on the way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.exchange import jsonl
from handrail.domain.exchange.foreign_tasks import milliseconds
from handrail.domain.exchange.formats import GUIDE, PLANS, format_of, read_plan
from handrail.domain.exchange.normalize import fitted
from handrail.domain.exchange.plan_document import PlanDocument
from handrail.outside.plan_files import read_text
from tests.domain.exchange import samples
from tests.domain.exchange.documents import NOW
from tests.domain.exchange.laid import check_counters, lay, more, take
from tests.domain.exchange.samples import SAMPLES, write_all
from tests.domain.exchange.test_importer import new_store

CHECK_LIST = "# Plan\n\n## One\n- [x] T001 a\n- [ ] T002 [P] b (needs: T001)\n## Two\n- [ ] c\n  - [-] d\n"
FORMS = {**SAMPLES, "todo.md": "markdown"}
LEFT_OUT = samples.BEADS_LEFT_OUT
PLAN_FILES = [name for name, form in FORMS.items() if form != GUIDE]


@pytest.fixture
def document(request: pytest.FixtureRequest, tmp_path: Path) -> PlanDocument:
    """What a file holds, as it is kept."""
    name: str = request.getfixturevalue("name")
    write_all(tmp_path)
    (tmp_path / "todo.md").write_text(CHECK_LIST, encoding="utf-8")
    text = read_text(tmp_path / name)
    form = format_of(text, name)
    assert form == FORMS[name]
    return fitted(read_plan(form, text, name="Plan", source_ref=name), NOW)


def test_every_format_has_a_sample() -> None:
    assert set(FORMS.values()) == {GUIDE, *PLANS} - {"handrail"}


@pytest.mark.parametrize("name", PLAN_FILES)
def test_nothing_is_lost(name: str, document: PlanDocument) -> None:
    assert document.source_ref is not None, name
    first, second = new_store(), new_store()
    key = lay(first, document).workflow.id
    check_counters(first, key, document)
    taken = take(first, key)
    assert taken == msgspec.structs.replace(document, remarks=[])
    lines = jsonl.write(taken)
    again = take(second, lay(second, jsonl.read(lines, "unused")).workflow.id)
    assert jsonl.write(again) == lines
    assert first.verify() == second.verify() == []


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("tasks.json", samples.task_master_tasks()),
        ("issues.jsonl", [{**one, "_type": ""} for one in samples.beads_issues() if one.get("id") not in LEFT_OUT]),
        ("gh-issues.json", samples.gh_issues()),
    ],
)
def test_every_text_and_number_of_a_source_is_found_again(
    name: str, tasks: list[dict[str, Any]], document: PlanDocument
) -> None:
    """Somewhere: in a field of ours, in a note, or in what is kept of the source."""
    here = list(leaves(msgspec.to_builtins(document.tasks)))
    lines = {line.strip(" -") for text in here if isinstance(text, str) for line in text.splitlines()}
    for said in leaves(tasks):
        if said in (None, "", False) or not {said, str(said), f"#{said}", milliseconds(said) or said}.isdisjoint(here):
            continue
        missing = {line.strip(" -") for line in str(said).splitlines() if not line.startswith(("<info", "</info"))}
        assert missing <= lines, f"{name}: {said}"


def leaves(value: Any) -> Iterator[Any]:
    """The texts, numbers and truths of plain data."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    if inner is None:
        yield value
    else:
        for one in inner:
            yield from leaves(one)


@pytest.mark.parametrize("name", PLAN_FILES)
def test_a_second_time_adds_nothing(name: str, document: PlanDocument) -> None:
    store = new_store()
    still_open = msgspec.structs.replace(document, status="ready")
    key = lay(store, still_open).workflow.id
    assert more(store, key, still_open).added == 0, name

"""Our own lines: nothing is lost in them, the same plan is the same bytes, and what is wrong is refused by its line."""

from __future__ import annotations

import contextlib

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.exchange import jsonl
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask, PlanNote, TaskOrigin
from handrail.kernel.errors import InvalidParams, Refusal
from tests.domain.exchange.documents import documents

HEAD = '{"handrail":1,"name":"p"}\n'


@given(documents())
def test_what_is_written_is_read_again_the_same(document: PlanDocument) -> None:
    assert jsonl.read(jsonl.write(document), "unused") == document


def test_the_form_is_this_one() -> None:
    document = PlanDocument(
        name="Plan",
        status="ready",
        remarks=["r"],
        tasks=[
            PlannedTask(name="a", notes=[PlanNote(summary="s", detail={"b": 1, "a": {"d": 1, "c": 2}}, at=7)]),
            PlannedTask(name="b", parent="a", depends_on=["a"], origin=TaskOrigin(system="x", id="1")),
        ],
    )
    assert jsonl.write(document).splitlines() == [
        '{"handrail":1,"name":"Plan","status":"ready","remarks":["r"]}',
        '{"task":"a","status":"pending"}',
        '{"note":"a","summary":"s","detail":{"a":{"c":2,"d":1},"b":1},"at":7}',
        '{"task":"b","status":"pending","parent":"a","depends_on":["a"],"origin":{"system":"x","id":"1"}}',
    ]


def test_the_bytes_do_not_depend_on_where_a_value_came_from() -> None:
    copied = "".join(["pend", "ing"])  # equal to the default, and not the same object
    one = PlanDocument(name="p", tasks=[PlannedTask(name="a", status=copied)])
    assert jsonl.write(one) == jsonl.write(PlanDocument(name="p", tasks=[PlannedTask(name="a")]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ("{}", "handrail: 1"),
        ('{"handrail":"1","name":"p"}', "handrail: 1"),
        ('{"handrail":2,"name":"p"}', "handrail: 1"),
        ("[1]", "no object"),
        ('{"handrail":1,"name":3}', "line 1: Expected `str`"),
        (HEAD + "{", "line 2"),
        (HEAD + "\n\n[]", "line 4: it is no object"),
        (HEAD + '{"task":"a"}\n{"task":"a"}', 'line 3: a second task "a"'),
        (HEAD + '{"note":"a","summary":"s"}', "line 2: a note on a task"),
        (HEAD + '{"note":["a"],"summary":"s"}', "line 2: a note on a task"),
        (HEAD + '{"step":"a"}', "neither a task nor a note"),
        (HEAD + '{"task":"a","sequence":"1"}', "line 2: Expected `int`"),
    ],
)
def test_what_is_wrong_is_refused_by_its_line(text: str, said: str) -> None:
    with pytest.raises(InvalidParams, match=said):
        jsonl.read(text, "n")


def test_fields_of_a_later_handrail_are_named() -> None:
    found = jsonl.read(HEAD + '{"task":"a","mood":"good"}', "n")
    assert found.tasks == [PlannedTask(name="a")]
    assert found.remarks == ["unknown fields were left out: task.mood"]


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [*PlannedTask.__struct_fields__, *PlanNote.__struct_fields__, "task", "note", "handrail", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@given(st.lists(anything, max_size=4))
def test_made_up_lines_end_in_a_document_or_a_refusal(values: list[object]) -> None:
    text = HEAD + "".join(msgspec.json.encode(value).decode() + "\n" for value in values)
    with contextlib.suppress(Refusal):
        jsonl.read(text, "n")

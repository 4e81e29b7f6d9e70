"""Charts: a strict grammar of what is written, whatever the names are."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.domain.exchange import mermaid
from handrail.domain.exchange.plan_document import PlanDocument, PlannedTask
from tests.domain.exchange.documents import documents

SAFE_LABEL = re.compile(r"(?:[^\W_]|[ .,\-_/'!?()]|#[0-9]+;)*")
NUMBERED = re.compile(r"#([0-9]+);")
NODE = re.compile(r'( +)(t[0-9]+|more)\["(.*)"\]')
BOX = re.compile(r'( +)subgraph (t[0-9]+)\["(.*)"\]')
ARROW = re.compile(r"  (t[0-9]+) --> (t[0-9]+)")
NOTE = re.compile(r"  %% [0-9]+ of [0-9]+ tasks are drawn, and all but [0-9]+ of their arrows")
LOOK = re.compile(r"  classDef (\w+) fill:#[0-9a-f]{6},stroke:#[0-9a-f]{6},color:#[0-9a-f]{6}")
CLASS = re.compile(r"  class (t[0-9]+(?:,t[0-9]+)*) (\w+)")


class Drawn:
    """A chart, read by the grammar; anything else in it is an error."""

    def __init__(self, text: str) -> None:
        first, *lines = text.removesuffix("\n").split("\n")
        assert first == "flowchart TD"
        self.labels: dict[str, str] = {}
        self.inside: dict[str, list[str]] = {}
        self.arrows: list[tuple[str, str]] = []
        self.classes: dict[str, str] = {}
        looks: set[str] = set()
        boxes: list[str] = []
        for line in lines:
            if (found := NODE.fullmatch(line) or BOX.fullmatch(line)) is not None:
                indent, key, label = found.groups()
                assert len(indent) == 2 * (len(boxes) + 1)
                assert SAFE_LABEL.fullmatch(label), label
                assert key not in self.labels
                self.labels[key] = label
                self.inside[key] = list(boxes)
                if BOX.fullmatch(line):
                    boxes.append(key)
            elif line.strip() == "end":
                boxes.pop()
            elif arrow := ARROW.fullmatch(line):
                self.arrows.append((arrow[1], arrow[2]))
            elif look := LOOK.fullmatch(line):
                looks.add(look[1])
            elif given_class := CLASS.fullmatch(line):
                assert given_class[2] in looks
                self.classes |= dict.fromkeys(given_class[1].split(","), given_class[2])
            else:
                assert NOTE.fullmatch(line), line
        assert not boxes
        for one, other in self.arrows:
            assert {one, other} <= self.labels.keys()
            assert one not in self.inside[other], "an arrow into its own box"
            assert other not in self.inside[one], "an arrow out of its own box"


@given(documents())
def test_every_chart_keeps_to_the_grammar(document: PlanDocument) -> None:
    drawn = Drawn(mermaid.write(document))
    assert len(drawn.labels) == len(document.tasks)
    assert set(drawn.classes) == set(drawn.labels)


@given(st.text(max_size=80))
def test_a_label_is_only_a_label(name: str) -> None:
    assert SAFE_LABEL.fullmatch(mermaid.label(name))


@pytest.mark.parametrize(
    "name",
    [
        '"]; click t1 "javascript:alert(1)"',
        "%%{init: {}}%%",
        "end",
        "<script>",
        "a\nb --> c",
        "`**x**`",
        "style a:#1;",
        "#quot;",
    ],
)
def test_hostile_names_stay_names(name: str) -> None:
    drawn = Drawn(mermaid.write(PlanDocument(name="p", tasks=[PlannedTask(name=name), PlannedTask(name="b")])))
    assert list(drawn.labels) == ["t1", "t2"]
    assert not re.search(r'[%"<>`:{}\[\]]', drawn.labels["t1"])


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("1. Plan", "1#46; Plan"),
        ("2) Plan", "2#41; Plan"),
        ("- Plan", "#45; Plan"),
        ("+ Plan", "#43; Plan"),
        ("---", "#45;--"),
        ("**Plan** it", "#42;#42;Plan#42;#42; it"),
        ("__init__.py", "#95;#95;init#95;#95;.py"),
        ("see www.example.org", "see www#46;example.org"),
        ("ask ada@example.org", "ask ada#64;example.org"),
        ("Set direction LR", "Set directio#110; LR"),
        ("user_id - 1.5 (of 2)", "user_id - 1.5 (of 2)"),
    ],
)
def test_viewers_that_read_markdown_show_the_name(name: str, written: str) -> None:
    """Mermaid 11.4 draws `Unsupported markdown: list` for the first of these as it is, and eats what it takes for
    emphasis; every version drops a line that says a direction."""
    assert mermaid.label(name) == written
    assert NUMBERED.sub(lambda found: chr(int(found[1])), written) == name


def test_a_name_that_cannot_be_shown_leaves_the_state() -> None:
    drawn = Drawn(mermaid.write(PlanDocument(name="p", tasks=[PlannedTask(name="\ufeff")])))
    assert drawn.labels == {"t1": "pending"}


def test_parts_stand_in_a_box_and_states_show() -> None:
    tasks = [
        PlannedTask(name="part", parent="whole", depends_on=["first"]),
        PlannedTask(name="first", status="in_progress"),
        PlannedTask(name="whole", depends_on=["first", "part"]),
        PlannedTask(name="done", status="completed"),
    ]
    drawn = Drawn(mermaid.write(PlanDocument(name="p", tasks=tasks)))
    by_label = {label: key for key, label in drawn.labels.items()}
    part, first, whole = by_label["part - blocked"], by_label["first - in progress"], by_label["whole - blocked"]
    assert drawn.inside[part] == [whole]
    assert set(drawn.arrows) == {(first, part), (first, whole)}
    assert drawn.classes[by_label["done - completed"]] == "completed"


def test_a_chart_of_long_names_stays_within_what_viewers_draw() -> None:
    tasks = [PlannedTask(name=f"{number} " + "界<" * 40) for number in range(500)]
    chart = mermaid.draw(PlanDocument(name="p", tasks=tasks))
    assert len(chart.text) <= 50_000
    assert 0 < chart.drawn < 500
    assert len(Drawn(chart.text).labels) == chart.drawn + 1
    assert f"{500 - chart.drawn} more tasks are not drawn" in chart.text
    assert mermaid.draw(PlanDocument(name="p", tasks=tasks), whole=True).drawn == 500


def test_too_many_arrows_are_counted() -> None:
    tasks = [PlannedTask(name=f"a{number}") for number in range(40)]
    tasks += [PlannedTask(name=f"b{number}", depends_on=[f"a{one}" for one in range(40)]) for number in range(40)]
    document = PlanDocument(name="p", tasks=tasks)
    text = mermaid.write(document)
    assert len(Drawn(text).arrows) == 500
    assert "1100 more arrows are not drawn" in text
    assert len(Drawn(mermaid.write(document, whole=True)).arrows) == 1600

"""Reading flows: what a sound one is, and that every mistake is refused where it stands."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.flow import MOST_PHASES, Flow, is_flow_id, read_flow, weakens
from handrail.kernel.errors import InvalidFlow
from tests.domain.pipeline.bundled import bundled, document_of, nothing_else, own

MAKE, JUDGE, ASK, DO, LOOK, RUN = range(6)


def test_the_bundled_flows_are_sound_and_skip_what_the_document_says() -> None:
    assert bundled("light").skip == ["phase-2", "phase-3b"]
    assert bundled("standard").skip == ["phase-4b", "checkpoint-b"]
    assert bundled("full").skip == []
    assert bundled("light").phases == bundled("standard").phases == bundled("full").phases


def test_an_own_flow_needs_no_other() -> None:
    flow = read_flow(own(), nothing_else)
    assert [phase.kind for phase in flow.phases] == ["agent", "review", "gate", "tasks", "task-reviews", "exec"]
    assert flow.phase("judge").retries == 1, "a person is asked after two verdicts that fail"


@pytest.mark.parametrize(
    ("phase", "changes", "why"),
    [
        (MAKE, {"id": "Make It"}, "an id is small letters"),
        (JUDGE, {"id": "make"}, "another phase has this id"),
        (MAKE, {"kind": "agnet"}, "agnet"),
        (MAKE, {"surprise": 1}, "surprise"),
        (MAKE, {"agent": None}, "kind agent needs agent"),
        (MAKE, {"output": None}, "kind agent needs output"),
        (JUDGE, {"passes": []}, "needs passes"),
        (JUDGE, {"fails": []}, "needs fails"),
        (JUDGE, {"revises": None}, "needs revises"),
        (ASK, {"options": []}, "needs options"),
        (DO, {"plan": None}, "needs plan"),
        (RUN, {"commands": []}, "needs commands"),
        (RUN, {"commands": [[]]}, "length"),
        (RUN, {"commands": ["rm -rf /"]}, "array"),
        (MAKE, {"passes": ["PASS"]}, "kind agent has no passes"),
        (JUDGE, {"contains": "x"}, "kind review has no contains"),
        (ASK, {"agent": "judge"}, "kind gate has no agent"),
        (RUN, {"inputs": ["made.md"]}, "kind exec has no inputs"),
        (JUDGE, {"retries": -1}, "retries"),
        (JUDGE, {"retries": 21}, "retries"),
        (JUDGE, {"revises": "mkae"}, "did you mean make"),
        (JUDGE, {"revises": "do"}, "does not come before it"),
        (JUDGE, {"revises": "judge"}, "does not come before it"),
        (ASK, {"returns_to": "judge"}, "of kind review, not agent"),
        (ASK, {"returns_to": None}, "go together"),
        (ASK, {"options": ["go"]}, "go together"),
        (ASK, {"options": ["reject"]}, "one that goes on"),
        (ASK, {"options": ["reject", "go"]}, "reject cannot be the first option"),
        (ASK, {"options": ["go on", "reject"]}, "go on cannot be an option"),
        (ASK, {"options": ["Go", "reject"]}, "Go cannot be an option"),
        (ASK, {"auto_after": "make"}, "of kind agent, not review"),
        (LOOK, {"revises": "make"}, "has no tasks"),
        (RUN, {"after_answer": {"make": "go"}}, "of kind agent, not gate"),
        (RUN, {"after_answer": {"ask": "og"}}, "never answered og"),
        (JUDGE, {"passes": ["FAIL"]}, "both pass and fail"),
        (JUDGE, {"passes": ["pass"]}, "pass cannot be a verdict"),
        (JUDGE, {"passes": ["PASS 1"]}, "PASS 1 cannot be a verdict"),
        (MAKE, {"agent": "../../etc"}, "cannot be an agent's name"),
        (MAKE, {"instead": {"judge": "../x"}}, "cannot be an agent's name"),
        (MAKE, {"instead": {"jugde": "x"}}, "did you mean judge"),
        (MAKE, {"only_for": ["github"]}, "no request comes from github"),
        (MAKE, {"unless": ["rain"]}, "rain"),
        (MAKE, {"output": "../made.md"}, "no plain name"),
        (MAKE, {"output": "a/made.md"}, "no plain name"),
        (MAKE, {"output": ".made.md"}, "no plain name"),
        (MAKE, {"output": "made.txt"}, "no plain name"),
        (MAKE, {"output": "made-{X}.md"}, "no plain name"),
        (MAKE, {"output": "made.md\n"}, "no plain name"),
        (MAKE, {"output": "made-{N}.md"}, "only phases of kind tasks"),
        (MAKE, {"output": "request.md"}, "another's file"),
        (JUDGE, {"output": "made.md"}, "another's file"),
        (LOOK, {"output": "did-{N}.md"}, "another's file"),
        (DO, {"output": "did.md"}, "output needs {N}"),
        (DO, {"plan": "list-{N}.md"}, "one file for all"),
        (JUDGE, {"inputs": ["maed.md"]}, "did you mean made.md"),
        (MAKE, {"inputs": ["verdict.md"]}, "nobody writes verdict.md before it"),
        (ASK, {"shows": "list.md"}, "nobody writes list.md before it"),
        (RUN, {"commands": [["echo", "{titel}"]]}, "did you mean title"),
        (RUN, {"commands": [["echo", "a\0b"]]}, "commands has the control character U+0000"),
        (MAKE, {"label": "Make\x1b[2J"}, "label has the control character U+001B"),
        (MAKE, {"label": "Make\nit"}, "label has the control character U+000A"),
        (MAKE, {"label": "Make\u2028it"}, "label has the control character U+2028"),
        (MAKE, {"label": " \u3000"}, "label has nothing in it"),
        (MAKE, {"model": "son\x85net"}, "model has the control character U+0085"),
        (MAKE, {"contains": "## \x07"}, "contains has the control character U+0007"),
    ],
)
def test_a_mistake_is_refused_and_names_its_phase(phase: int, changes: dict[str, Any], why: str) -> None:
    document = own()
    document["phases"][phase] |= changes
    with pytest.raises(InvalidFlow) as refused:
        read_flow(document, nothing_else)
    assert why in refused.value.message
    if "id" not in changes:
        assert refused.value.details["phase"] == own()["phases"][phase]["id"]
    assert refused.value.hint


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"name": "My Flow"}, "cannot be a flow's name"),
        ({"name": None}, "name"),
        ({"phases": []}, "has no phases"),
        ({"phases": None}, "phases"),
        ({"skip": ["jugde"]}, "did you mean judge"),
        ({"skip": ["make", "judge", "ask", "do", "look", "run"]}, "skips all"),
        ({"skip": ["do"]}, "it revises do, which is skipped"),
        ({"skip": ["make", "judge"]}, "phase ask: reject returns to make, which is skipped"),
        ({"description": "a\tb\nc\x08"}, "the description of own has a control character"),
        ({"extends": "other"}, "which is not there"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_mistake_in_the_flow_is_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidFlow, match=r".") as refused:
        read_flow(own() | changes, nothing_else)
    assert why in refused.value.message


def test_there_is_one_task_list_and_one_review_of_it() -> None:
    """Verdicts belong to tasks: a second review would find all of them passed, and pass unseen."""
    for phase in (DO, LOOK):
        document = own()
        second = copy.deepcopy(document["phases"][phase]) | {"id": "again", "output": "again-{N}.md"}
        document["phases"].append(second)
        with pytest.raises(InvalidFlow, match="one phase of kind"):
            read_flow(document, nothing_else)


def test_there_is_an_end_to_the_number_of_phases() -> None:
    phase = own()["phases"][MAKE]
    phases = [phase | {"id": f"make-{number}", "output": f"made-{number}.md"} for number in range(MOST_PHASES + 1)]
    assert len(read_flow({"name": "long", "phases": phases[1:]}, nothing_else).phases) == MOST_PHASES
    with pytest.raises(InvalidFlow):
        read_flow({"name": "long", "phases": phases}, nothing_else)


def test_a_flow_that_extends_another_has_its_phases_and_the_skips_of_both() -> None:
    base = read_flow(own() | {"skip": ["run"]}, nothing_else)
    flow = read_flow({"name": "less", "extends": "own", "skip": ["ask", "run"]}, lambda _: base)
    assert (flow.name, flow.skip, flow.phases) == ("less", ["run", "ask"], base.phases)
    with pytest.raises(InvalidFlow, match="phases of its own"):
        read_flow(own() | {"extends": "own"}, lambda _: base)


def test_a_flow_may_skip_a_review_together_with_what_it_reviews() -> None:
    assert read_flow(own() | {"skip": ["do", "look"]}, nothing_else).skip == ["do", "look"]


def test_a_flow_may_skip_a_gate_together_with_what_it_returns_to() -> None:
    assert read_flow(own() | {"skip": ["make", "judge", "ask"]}, nothing_else).skip == ["make", "judge", "ask"]


@pytest.mark.parametrize(
    ("make", "judge", "ask", "why"),
    [
        ({"only_for": ["text"]}, {}, {}, "revises names make, which is done only for text"),
        ({"only_for": ["text"]}, {"only_for": ["text"]}, {}, "returns_to names make, which is done only for text"),
        ({"only_for": ["text"]}, {"only_for": ["text"]}, {"only_for": ["text", "jira_issue"]}, "only for text"),
        ({"unless": ["skip_pr"]}, {"unless": ["skip_pr"]}, {}, "returns_to names make, which is done only without"),
        ({"only_for": ["text"]}, {"only_for": ["text"]}, {"only_for": ["text"]}, None),
        ({}, {"only_for": ["text"]}, {"unless": ["skip_pr"]}, None),
    ],
)
def test_what_is_sent_back_has_a_phase_to_go_to(
    make: dict[str, Any], judge: dict[str, Any], ask: dict[str, Any], why: str | None
) -> None:
    document = own()
    for phase, changes in ((MAKE, make), (JUDGE, judge), (ASK, ask)):
        document["phases"][phase] |= changes
    if why is None:
        assert read_flow(document, nothing_else).phases
        return
    with pytest.raises(InvalidFlow) as refused:
        read_flow(document, nothing_else)
    assert why in refused.value.message
    assert refused.value.details["phase"] in ("judge", "ask")


def test_a_second_agent_may_write_the_same_document_but_none_may_write_a_review() -> None:
    document = own()
    document["phases"].insert(1, {"id": "hone", "label": "Hone", "kind": "agent", "agent": "a", "output": "made.md"})
    assert read_flow(document, nothing_else).phases[1].output == "made.md"
    document["phases"].append({"id": "fake", "label": "F", "kind": "agent", "agent": "a", "output": "verdict.md"})
    with pytest.raises(InvalidFlow, match="another's file"):
        read_flow(document, nothing_else)


def test_what_is_no_document_at_all_is_refused() -> None:
    documents: list[Any] = [None, [], "flow", 3, {"phases": [1]}, {"name": "x", "phases": [None]}]
    for document in documents:
        with pytest.raises(InvalidFlow):
            read_flow(document, nothing_else)


def test_names_of_flows_are_names_of_files() -> None:
    assert is_flow_id("our-own-2")
    assert not any(map(is_flow_id, ("", "Own", "a/b", "..", "a--b", "a\n", "ä", "a" * 101)))


@pytest.mark.parametrize("name", ["light", "standard", "full"])
def test_no_flow_weakens_itself_and_a_longer_one_weakens_nothing(name: str) -> None:
    assert weakens(bundled(name), bundled(name)) == []
    assert weakens(bundled("full"), bundled(name)) == []


def test_what_a_flow_skips_of_the_bundled_one_is_named() -> None:
    skips = ["phase-3b", "checkpoint-a", "phase-6"]
    flow = read_flow({"name": "own", "extends": "full", "skip": skips}, bundled)
    assert weakens(flow, bundled("full")) == [
        "phase-3b (Design Review) is left out",
        "checkpoint-a (Human Reviews Design) is left out",
        "phase-6 (Code Review) is left out",
    ]
    assert weakens(flow, bundled("light")) == [
        "checkpoint-a (Human Reviews Design) is left out",
        "phase-6 (Code Review) is left out",
    ]


OWN = read_flow(own(), nothing_else)


@pytest.mark.parametrize(
    ("phase", "changes", "less"),
    [
        (MAKE, {"label": "Another"}, []),
        (JUDGE, {"id": "other"}, []),
        (LOOK, {"id": "other"}, []),
        (JUDGE, {"retries": 9}, []),
        (JUDGE, {"passes": ["PASS", "FAIL"], "fails": ["NO"]}, ["judge lets FAIL pass"]),
        (LOOK, {"passes": ["FAIL"], "fails": ["NO"]}, ["look lets FAIL pass"]),
        (JUDGE, {"only_for": ["text"]}, ["judge is only for text"]),
        (ASK, {"only_for": ["text"]}, ["ask is only for text"]),
        (ASK, {"unless": ["skip_pr"]}, ["ask is left out with --nopr"]),
        (ASK, {"options": ["go"], "returns_to": None}, ["ask cannot be answered with reject"]),
        (ASK, {"shows": "verdict.md"}, []),
        (RUN, {"commands": [["false"]]}, []),
    ],
)
def test_a_gate_or_review_that_lets_more_through_is_named(phase: int, changes: dict[str, Any], less: list[str]) -> None:
    document = own()
    document["phases"][phase] |= changes
    for other in document["phases"]:
        if other.get("auto_after") == "judge":
            other["auto_after"] = document["phases"][JUDGE]["id"]
    assert weakens(read_flow(document, nothing_else), OWN) == less


def test_a_gate_that_is_asked_too_late_or_about_something_else_is_named() -> None:
    document = own()
    document["phases"][ASK]["shows"] = "made.md"
    strict = read_flow(document, nothing_else)
    document["phases"][ASK]["shows"] = "verdict.md"
    assert weakens(read_flow(document, nothing_else), strict) == ["ask shows verdict.md, not made.md"]
    document["phases"][ASK]["shows"] = "made.md"
    del document["phases"][RUN]["after_answer"]
    document["phases"].append(document["phases"].pop(ASK))
    assert weakens(read_flow(document, nothing_else), strict) == ["ask comes only after do"]


def test_a_gate_under_another_name_is_known_by_what_it_shows() -> None:
    document = own()
    document["phases"][ASK]["shows"] = "made.md"
    strict = read_flow(document, nothing_else)
    document["phases"][ASK]["id"] = "question"
    document["phases"][RUN]["after_answer"] = {"question": "go"}
    assert weakens(read_flow(document, nothing_else), strict) == []
    document["phases"][ASK]["shows"] = "verdict.md"
    assert weakens(read_flow(document, nothing_else), strict) == ["ask (Ask) is left out"]


def test_auto_that_opens_what_it_did_not_open_is_named() -> None:
    document = own()
    del document["phases"][ASK]["auto_after"]
    assert weakens(OWN, read_flow(document, nothing_else)) == ["--auto opens ask"]
    assert weakens(read_flow(document, nothing_else), OWN) == []


def test_what_is_posted_without_being_asked_is_named_and_what_is_not_posted_is_not() -> None:
    full = bundled("full")
    silent = read_flow({"name": "own", "extends": "full", "skip": ["post-to-source"]}, bundled)
    assert weakens(silent, full) == [], "nobody is asked, and nothing is posted"
    document = msgspec.to_builtins(full)
    for phase in document["phases"]:
        phase.pop("after_answer", None)
    assert weakens(read_flow(document, nothing_else), full) == [
        "post-comment does not wait for an answer at post-to-source (Post to Source)",
        "post-note does not wait for an answer at post-to-source (Post to Source)",
    ]


_PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from(["make", "judge", "PASS", "{N}.md", "", "é", "tasks"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "kind", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def mutated(draw: st.DrawFn) -> Any:
    """A sound flow with a few of its values replaced, removed or added."""
    document: Any = own() if draw(st.booleans()) else document_of("full")
    for _ in range(draw(st.integers(1, 3))):
        holder: Any = document
        while True:
            keys = list(range(len(holder))) if isinstance(holder, list) else list(holder)
            if not keys:
                break
            key = draw(st.sampled_from(keys))
            if isinstance(holder[key], (dict, list)) and draw(st.integers(0, 3)):
                holder = holder[key]
                continue
            if isinstance(holder, dict) and draw(st.integers(0, 3)) == 0:
                del holder[key]
            else:
                holder[key] = draw(_PLAIN)
            break
    return document


@settings(max_examples=150)
@given(document=mutated())
def test_a_flow_that_was_tampered_with_is_read_or_refused(document: Any) -> None:
    try:
        flow = read_flow(document, nothing_else)
    except InvalidFlow:
        return
    assert isinstance(flow, Flow)
    assert read_flow(msgspec.to_builtins(flow), nothing_else) == flow

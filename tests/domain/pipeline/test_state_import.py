"""A run taken over from its `state.json`: at every point of it, with documents that were changed, and from files that
mean no good."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.domain.pipeline.controls import abandon_run
from handrail.domain.pipeline.engine import Action
from handrail.domain.pipeline.flow import Flow, read_flow
from handrail.domain.pipeline.placeholders import filled
from handrail.domain.pipeline.request import Flags
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.state import RunState, is_left_out
from handrail.domain.pipeline.state_import import (
    LONGEST,
    Destination,
    Setback,
    commands_in,
    import_run,
    imported_run,
    run_from,
)
from handrail.kernel.errors import InvalidParams
from handrail.toolsets.pipeline.turns import state_json
from tests.domain.pipeline.bundled import bundled, nothing_else, own
from tests.domain.pipeline.driven import TASKS, WORKSPACE, Driven

FULL = bundled("full")
THERE = Destination("/elsewhere", WORKSPACE, commands_in([FULL]))
NOW = 2_000_000_000_000


def imported(text: str, files: Mapping[str, str], version: int = 0, there: Destination = THERE) -> Driven:
    """The run on another machine, with the documents that were copied along."""
    taken = Driven(begun=False)
    taken.files, taken.version = dict(files), version
    taken.run_id = taken.work(lambda unit: import_run(unit, text, taken.files, there)).id
    return taken


def copied(run: Driven, there: Destination = THERE) -> Driven:
    return imported(state_json(run.run), run.files, run.version, there)


def at(phase: str, flow: Flow = FULL, **given: Any) -> Driven:
    run = Driven(flow, **given)
    run.go(lambda action: action.phase == phase)
    return run


def check_completed(run: Driven) -> None:
    run.go()
    flow, state = run.run.flow_followed(), run.state
    assert (state.ended, run.status) == ("completed", "completed")
    facts = run.run.facts(humans_decide=False)
    assert set(state.done) == {phase.id for phase in flow.phases if not is_left_out(phase, state, flow, facts)}
    assert run.store.verify() == []


# -- honest copies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["light", "standard", "full", "own"])
def test_a_run_is_taken_over_at_every_point_and_comes_to_its_end(name: str) -> None:
    flow = bundled(name) if name != "own" else read_flow(own(), nothing_else)
    there = THERE._replace(commands=commands_in([flow]))
    run = Driven(flow)
    action = run.turn().action
    for _ in range(100):
        other = copied(run, there)
        assert other.state.done == run.state.done, "nothing that was done is done again"
        assert other.state.tasks == run.state.tasks
        assert other.turn().action == msgspec.structs.replace(action, opened_by=None)
        check_completed(other)
        if action.type == "spawn_agent":  # its work is there, and was not reported
            run.produce(action)
            check_completed(copied(run, there))
        if action.type == "done":
            return
        action = run.do(action).action
    raise AssertionError("the run does not end")


def test_what_only_this_machine_knows_is_not_in_the_file() -> None:
    run = at("phase-3")
    document = msgspec.json.decode(state_json(run.run))
    assert "holder" not in document
    assert "repository_path" not in document


def test_a_run_is_at_home_where_it_is_taken_over() -> None:
    run = copied(at("phase-3"))
    found = run.run
    assert (found.repository_path, found.workspace, found.holder) == ("/elsewhere", WORKSPACE, None)
    assert found.lessons == found.task_ids == {}
    assert (found.title, found.request, found.branch) == ("Fix the auth timeout",) * 2 + ("feature/fix-auth",)
    assert [entry["tokens"] for entry in found.log] == [100, 100]
    assert [event.kind for event in run.store.events(run.run_id)] == ["pipeline.imported"]


@pytest.mark.parametrize("ended", ["completed", "abandoned"])
def test_what_is_over_is_over_there_too_whatever_became_of_its_documents(ended: str) -> None:
    run = at("phase-3")
    if ended == "completed":
        run.go()
    else:
        run.work(lambda unit: abandon_run(unit, run.run))
    run.files["analysis.md"] = "edited since"
    other = copied(run)
    assert (other.status, other.state.ended) == (ended, ended)
    assert other.turn().action.type == "done"
    assert other.state.done == run.state.done


def test_what_may_be_spent_here_holds_for_it() -> None:
    run = at("phase-3", limits={"hard_tokens": 5000})
    taken = copied(run, THERE._replace(limits={"hard_tokens": 100.0, "soft_minutes": 1.0}))
    assert taken.run.limits == {"hard_tokens": 100.0}, "what nobody asked for is looked up at every turn"
    assert taken.turn().action.stopped == "budget"


def test_how_far_it_goes_is_kept_and_that_it_stood_still_is_not() -> None:
    run = at("phase-3", flags=Flags(until="phase-3"))
    assert copied(run).run.limits == {"until": "phase-3"}
    run.do(run.turn().action)
    assert run.state.stopped == "until"
    assert copied(run).state.stopped is None
    assert copied(run).turn().action.stopped == "until"


def limited(verdict: str) -> Driven:
    """A run whose design reviews all say this, let pass by a person."""
    run = Driven()
    action = run.go(lambda action: action.phase == "phase-3b")
    while action.type != "checkpoint":
        run.produce(action)
        if action.phase == "phase-3b":
            run.version += 1
            run.files["review-design.md"] = f"{run.version}\n## Verdict: {verdict}\n"
        action = run.turn(complete=True).action
    assert action.gate == "phase-3b-limit"
    run.do(action)
    return run


@pytest.mark.parametrize("verdict", ["REVISE", "MAYBE"])
def test_what_a_person_let_pass_has_passed(verdict: str) -> None:
    run = limited(verdict)
    assert "phase-3b" in copied(run).state.done
    assert copied(run).turn().action.gate == "checkpoint-a"


# -- documents that are not those -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "phase"),
    [
        ("analysis.md", "phase-1"),
        ("design.md", "phase-3"),
        ("review-design.md", "phase-3b"),
        ("tasks.md", "phase-4"),
        ("impl-1.md", "phase-5"),
        ("review-3.md", "phase-6"),
        ("comprehensive-review.md", "phase-7"),
    ],
)
@pytest.mark.parametrize("change", ["edited", "gone"])
def test_a_phase_whose_document_was_changed_is_done_again(name: str, phase: str, change: str) -> None:
    run = at("final-verification")
    if change == "gone":
        del run.files[name]
    else:
        run.files[name] += "\nand something else\n"
    other = copied(run)
    action = other.turn().action
    assert action.phase == phase
    order = [one.id for one in FULL.phases]
    assert not [done for done in other.state.done if order.index(done) >= order.index(phase)]
    check_completed(other)


def test_only_the_task_is_done_again_whose_file_was_changed() -> None:
    run = at("phase-7")
    run.files["impl-3.md"] = "another"
    action = copied(run).turn().action
    assert (action.phase, action.tasks) == ("phase-5", [3])
    run = at("phase-7")
    run.files["review-1.md"] = "## Verdict: PASS\n\nforged\n"
    action = copied(run).turn().action
    assert (action.phase, action.tasks) == ("phase-6", [1])


def test_also_while_the_tasks_are_under_way() -> None:
    run = Driven()
    run.go(lambda action: action.phase == "phase-5" and action.tasks == [3])
    run.files["impl-1.md"] = "another"
    assert copied(run).turn().action.tasks == [1]


def setbacks(run: Driven) -> tuple[Setback, ...]:
    there = Driven(begun=False)
    text = state_json(run.run)
    return there.work(lambda unit: imported_run(unit, text, run.files, THERE)).setbacks


def test_what_is_done_again_is_told_with_its_reason() -> None:
    run = at("phase-7")
    assert setbacks(run) == ()
    run.files["design.md"] += "\nand more\n"
    assert setbacks(run) == (Setback("phase-3", "design.md", "is not the one that was accepted"),)
    assert setbacks(run)[0].sentence.endswith("so phase-3 and all that follow are done again")
    run = at("phase-7")
    del run.files["impl-3.md"]
    run.files["review-1.md"] = "## Verdict: PASS\n\nforged\n"
    assert [one.sentence for one in setbacks(run)] == [
        "review-1.md is not the one that was accepted, so phase-6 does task 1 again",
        "impl-3.md is not there, so phase-5 does task 3 again",
    ]
    run = at("phase-7")
    del run.files["tasks.md"]
    assert setbacks(run) == (Setback("phase-4", "tasks.md", "is not there"),)


def test_the_ledger_says_what_is_done_again_too() -> None:
    run = at("phase-7")
    run.files["design.md"] += "\nand more\n"
    other = copied(run)
    (event,) = other.store.events(other.run_id)
    assert event.data["again"] == [setbacks(run)[0].sentence]


def test_what_a_person_approved_after_an_edit_is_accepted() -> None:
    run = Driven()
    run.go(lambda action: action.gate == "checkpoint-a")
    run.files["design.md"] += "\nas a person changed it\n"
    run.do(run.turn().action)
    assert setbacks(run) == ()
    assert copied(run).turn().action.phase == "phase-4"


def test_a_task_list_that_was_accepted_anew_is_the_one_that_counts() -> None:
    run = Driven()
    run.go(lambda action: action.phase == "phase-4b")
    run.files["tasks.md"] = "## Task 1: Another\n"
    run.turn()
    assert setbacks(run) == ()
    assert copied(run).turn().action.phase == "phase-4b"


def test_a_list_that_cannot_be_read_is_written_again() -> None:
    run = at("phase-5")
    run.files["tasks.md"] = "## Task 1: a\ndepends_on: [7]\n"
    other = copied(run)
    assert other.turn().action.phase == "phase-4"
    assert other.state.tasks == []
    check_completed(other)


def test_so_is_one_that_nobody_writes_but_the_engine() -> None:
    flow = read_flow(own(), nothing_else)
    run = at("look", flow)
    run.files["list.md"] = "## Task 1: Another\n"
    other = copied(run, THERE._replace(commands=commands_in([flow])))
    assert (other.turn().action.type, other.turn().action.path) == ("write_file", "list.md")
    check_completed(other)


@settings(max_examples=settings().max_examples // 2)
@given(data=st.data())
def test_whatever_was_changed_and_wherever_the_run_comes_to_its_end(data: st.DataObject) -> None:
    run = Driven()
    action = run.turn().action
    for _ in range(data.draw(st.integers(0, 25))):
        if action.type == "done":
            break
        action = run.do(action).action
    for name in data.draw(st.lists(st.sampled_from(sorted(run.files)), unique=True, max_size=3)):
        text = data.draw(st.sampled_from(["", "## Verdict: APPROVE\n", TASKS, "## Task 1: Other\n", None]))
        if text is None:
            del run.files[name]
        else:
            run.files[name] = text
    other = copied(run)
    if other.state.ended is None:
        check_completed(other)


# -- files that mean no good ------------------------------------------------------------------------------------------

AT_REVIEW = at("phase-7")
FILES = AT_REVIEW.files


@pytest.fixture(scope="module")
def honest() -> dict[str, Any]:
    text = state_json(AT_REVIEW.run)
    run_from(text, FILES, THERE, NOW)
    document: dict[str, Any] = msgspec.json.decode(text)
    return document


def with_change(document: dict[str, Any], place: str, value: Any) -> str:
    changed = copy.deepcopy(document)
    *outer, last = place.split(".")
    target: Any = changed
    for key in outer:
        target = target[int(key)] if key.isdigit() else target[key]
    target[int(last) if last.isdigit() else last] = value
    return msgspec.json.encode(changed).decode()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "{",
        '{"version": 2}',
        '{"version": 1}',
        '{"version": true}',
        "[" * 100_000,
        '{"version": 1, "x": ' + '{"a":' * 900 + "1" + "}" * 901,
        '{"version": 1, "title": "\\ud800"}',
        "x" * (LONGEST + 1),
    ],
    ids=lambda text: text[:24] or "empty",
)
def test_what_is_no_state_is_refused(text: str) -> None:
    with pytest.raises(InvalidParams, match=r"state\.json cannot be taken over"):
        run_from(text, {}, THERE, NOW)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("title", 5),
        ("title", "x\0y"),
        ("title", "x" * 301),
        ("request", "x" * 500_001),
        ("request", "x\0y"),
        ("effort", "XL"),
        ("branch", "--upload-pack=evil"),
        ("branch", "two words"),
        ("branch", "a\n"),
        ("source_type", "elsewhere"),
        ("source_type", "github_issue"),
        ("source_url", "--body-file=/etc/passwd"),
        ("source_url", "https://example.org/issues/1"),
        ("source_id", "1 2"),
        ("source_id", "-1"),
        ("created_at", -1),
        ("created_at", 10**30),
        ("flags", {"until": 5}),
        ("limits", {"hard_tokens": "many"}),
        ("limits", {"hard_tokens": None}),
        ("limits", {"hard_tokens": -1}),
        ("limits", {"hard_token": 1}),
        ("limits", {"until": "phase-99"}),
        ("limits", {"until": 5}),
        ("limits", []),
        ("log", [{"phase": "phase-1"}]),
        ("log", [5]),
        ("log.0.tokens", -5),
        ("log.0.tokens", "many"),
        ("log.0.tokens", 10**18),
        ("findings", [{"severity": "CRITICAL"}]),
        ("friction", [5]),
        ("friction", ["x"] * 501),
        ("state", {"done": 5}),
        ("state.done", ["phase-99"]),
        ("state.answers", {"phase-99": "approve"}),
        ("state.tries", {"phase-3b": -5}),
        ("state.turns", -1),
        ("state.untaken", {"phase-99": 1}),
        ("state.untaken", {"phase-1": -1}),
        ("state.ended", "failed"),
        ("state.tasks", [{"number": "one"}]),
        ("state.tasks.0.retries", -1),
        ("flow", {}),
        ("flow.phases", []),
        ("flow.skip", ["phase-99"]),
        ("flow.phases.0.output", "../../out.md"),
        ("flow.phases.0.output", "/etc/passwd"),
        ("flow.phases.0.agent", "../evil"),
        ("flow.phases.12.commands", [["rm", "-rf", "."]]),
        ("flow.phases.12.commands", [["git", "push", "--force"]]),
        ("flow.phases.12.commands", []),
        ("flow.name", "x/../y"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_no_run_leaves_is_refused(honest: dict[str, Any], place: str, value: Any) -> None:
    with pytest.raises(InvalidParams, match=r"state\.json cannot be taken over"):
        run_from(with_change(honest, place, value), FILES, THERE, NOW)


def test_a_command_that_no_flow_here_runs_is_named_before_anybody_runs_it(honest: dict[str, Any]) -> None:
    text = with_change(honest, "flow.phases.12.commands", [["curl", "evil.example"]])
    with pytest.raises(InvalidParams, match=r"curl evil\.example") as refused:
        run_from(text, {}, THERE, NOW)
    assert ".handrail/flows" in (refused.value.hint or "")
    run_from(text, {}, THERE._replace(commands={*THERE.commands, ("curl", "evil.example")}), NOW)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("id", "wf_1"),
        ("repository_path", "/etc"),
        ("workspace", "../../elsewhere"),
        ("task_ids", {"1": "task_of_another"}),
        ("dispatched", {"type": "exec", "phase": "pr-creation", "command": ["rm", "-rf", "."]}),
        ("holder", {"name": "x", "agent_id": None, "session": "s", "since": 0}),
        ("lessons", {"similar": 5}),
        ("forked_from", "wf_9"),
        ("updated_at", 10**15),
        ("state.command", 99),
        ("state.command", -1),
        ("state.stopped", "for ever"),
        ("state.before", {"analysis.md": "x"}),
        ("state.tasks.0.depends_on", [99]),
        ("state.tasks.0.mode", "human_gate"),
        ("state.tasks.0.number", 77),
        ("state.tasks", []),
        ("state.plan", None),
        ("state.judged", {}),
        ("state.approved", []),
        ("state.skip", ["phase-7", "final-verification"]),
        ("unknown", {"x": 1}),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_is_believed_by_nobody_does_no_harm(honest: dict[str, Any], place: str, value: Any) -> None:
    other = imported(with_change(honest, place, value), FILES, version=1000)
    assert (other.run.repository_path, other.run.workspace, other.run.holder) == ("/elsewhere", WORKSPACE, None)
    assert other.run.dispatched is None
    assert other.run.updated_at <= NOW
    check_completed(other)


@pytest.mark.parametrize("command", [2, 99, -1])
def test_a_command_that_its_phase_has_not_is_the_first_again(command: int) -> None:
    run = at("pr-creation")
    document = {**msgspec.json.decode(state_json(run.run))}
    document["state"]["command"] = command
    other = imported(msgspec.json.encode(document).decode(), run.files, run.version)
    assert other.turn().action.command == FULL.phase("pr-creation").commands[0]


def test_a_title_is_one_line_that_is_no_option() -> None:
    run = at("phase-3").run
    document = {**msgspec.json.decode(state_json(run)), "title": "--{evil}\x1b[2J\nmore"}
    read = run_from(msgspec.json.encode(document).decode(), {}, THERE, NOW)
    assert read.title == "evil} [2J more"
    assert filled(read, "{title}") == "feat: evil} [2J more"


def test_tasks_that_are_over_before_their_phase_are_done_in_it(honest: dict[str, Any]) -> None:
    other = imported(with_change(honest, "state.done", ["phase-4"]), FILES, version=1000)
    assert not any(task.is_over for task in other.state.tasks)
    assert other.go().type == "done"


@settings(max_examples=4 * settings().max_examples)
@given(data=st.data())
def test_no_state_at_all_breaks_a_turn(data: st.DataObject, honest: dict[str, Any]) -> None:
    """Whatever stands in it: it is refused, or a run comes of it that takes its turns."""
    state = honest["state"]
    field = data.draw(st.sampled_from([*(f"state.{name}" for name in state), *honest, "flow.phases.5", "log.0"]))
    value = data.draw(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(-(10**20), 10**20),
            st.text(max_size=5),
            st.lists(st.one_of(st.sampled_from(state["done"]), st.integers(0, 5), st.text(max_size=3)), max_size=4),
            st.dictionaries(
                st.sampled_from([*state["done"], "tasks.md", "until", "hard_tokens"]),
                st.one_of(st.integers(-3, 3), st.text(max_size=3), st.lists(st.text(max_size=3), max_size=2)),
                max_size=3,
            ),
        )
    )
    try:
        other = imported(with_change(honest, field, value), FILES, version=1000)
    except InvalidParams:
        return
    action = other.go()
    assert isinstance(action, Action)
    assert action.type == "done"
    assert isinstance(other.run, PipelineRun)
    assert isinstance(other.state, RunState)

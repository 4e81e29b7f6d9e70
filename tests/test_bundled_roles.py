"""The roles that come with Handrail: every agent that a bundled flow names has one, and what they show as examples can
be read by the program that reads what agents write. No flow of ours, bundled or in a document, hands out a prompt with
a place in it that nobody fills."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from handrail.domain.pipeline.documents import findings_in, judgement_in, tasks_in
from handrail.domain.pipeline.flow import Flow, Phase, read_flow
from handrail.domain.pipeline.lessons import WANTED, friction_in
from handrail.domain.pipeline.prompt import PROMPT_TOKENS, Parts, assemble
from handrail.domain.pipeline.state import TaskState
from handrail.kernel.tokens import estimate_tokens
from handrail.outside.role_files import BUNDLED, RoleFiles
from tests.docs.pages import PAGES, read, relative

FLOWS = BUNDLED.parent / "flows"
NAMES = sorted(file.stem for file in BUNDLED.glob("*.md"))
LINES = 80


def flow_named(name: str) -> Flow:
    return read_flow(yaml.safe_load((FLOWS / f"{name}.yaml").read_text(encoding="utf-8")), flow_named)


PHASES = [phase for file in sorted(FLOWS.glob("*.yaml")) for phase in flow_named(file.stem).phases]
AGENTS = sorted({name for phase in PHASES for name in (phase.agent, *phase.instead.values()) if name is not None})
REVIEWS: dict[str, Phase] = {phase.agent or "": phase for phase in PHASES if phase.kind in ("review", "task-reviews")}
REVIEWERS = sorted(name for name in NAMES if name.endswith("-reviewer"))


def text_of(name: str) -> str:
    return (BUNDLED / f"{name}.md").read_text(encoding="utf-8")


def example_in(name: str) -> str:
    """What stands in the role's one fenced block."""
    (block,) = re.findall(r"^```markdown\n(.*?)^```$", text_of(name), flags=re.MULTILINE | re.DOTALL)
    assert isinstance(block, str)
    return block


def test_every_agent_of_a_bundled_flow_has_a_role_and_every_role_an_agent(tmp_path: Path) -> None:
    assert AGENTS == NAMES
    roles = RoleFiles(tmp_path)
    for name in AGENTS:
        assert roles.role(name).source == "bundled"


def test_it_is_settled_for_every_role_what_it_is_told_of_earlier_runs() -> None:
    assert sorted(WANTED) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_role_is_short_plain_and_has_only_places_that_are_filled(name: str) -> None:
    text = text_of(name)
    assert text.startswith("# ")
    assert len(text.splitlines()) <= LINES
    assert max(map(len, text.splitlines())) <= 120
    assert estimate_tokens(text) < PROMPT_TOKENS // 4
    assert set(re.findall(r"\{[^{}]*\}", text)) <= {"{workspace}", "{branch}", "{spec-name}", "{N}"}


@pytest.mark.parametrize("name", REVIEWERS)
def test_a_reviewers_own_example_can_be_read(name: str) -> None:
    example = example_in(name)
    phase = REVIEWS.get(name)
    passes, fails = (phase.passes, phase.fails) if phase is not None else (["PASS", "PASS_WITH_NOTES"], ["FAIL"])
    verdict = judgement_in(example, passes, fails).verdict
    assert verdict is not None
    assert example.rstrip().splitlines()[-1] == f"## Verdict: {verdict}"
    severities = [finding.severity for finding in findings_in(example)]
    assert severities == sorted(severities, key=("CRITICAL", "MINOR").index)
    assert ("CRITICAL" in severities) == (verdict in ("REVISE", "FAIL"))
    for word in (*passes, *fails):
        assert f"`{word}`" in text_of(name)


@pytest.mark.parametrize("name", REVIEWERS)
def test_a_role_is_not_itself_a_verdict(name: str) -> None:
    passes = ("APPROVE", "APPROVE_WITH_NOTES", "PASS", "PASS_WITH_NOTES")
    assert judgement_in(text_of(name), passes, ("REVISE", "FAIL")).verdict is None


def test_every_review_of_a_bundled_flow_has_a_reviewer() -> None:
    assert set(REVIEWS) <= set(REVIEWERS)


def documented_flows() -> dict[str, Flow]:
    """The flows that pages show whole, by page and name."""
    shown = (
        (page, yaml.safe_load("\n".join(block.lines)))
        for page in PAGES
        for block in read(page)[0]
        if block.language == "yaml"
    )
    return {
        f"{relative(page)} {document['name']}": read_flow(document, flow_named)
        for page, document in shown
        if isinstance(document, dict) and "phases" in document
    }


EVERY_FLOW = {**{file.stem: flow_named(file.stem) for file in FLOWS.glob("*.yaml")}, **documented_flows()}


def prompts_of(flow: Flow) -> dict[str, str]:
    """What each agent of a flow is told, of each phase, for one task where the phase has tasks."""
    task = TaskState(number=7, title="Wrap the fetch", mode="sequential")
    return {
        f"{phase.id}, {agent}": assemble(
            Parts(
                role=text_of(agent),
                workspace=".specs/20261116-work",
                spec_name="work",
                inputs=[name.replace("{N}", "7") for name in phase.inputs],
                output=phase.output,
                contains=phase.contains,
                verdicts=(*phase.passes, *phase.fails),
                tasks=[task] if phase.kind in ("tasks", "task-reviews") else [],
            )
        )
        for phase in flow.phases
        for agent in (phase.agent, *phase.instead.values())
        if agent is not None
    }


def test_the_flows_that_pages_show_are_found() -> None:
    assert {"docs/flows.md patch", "docs/tour.md note", "docs/recipes/pipeline-in-ci.md site"} <= set(EVERY_FLOW)


@pytest.mark.parametrize("name", sorted(EVERY_FLOW))
def test_no_prompt_of_a_flow_has_a_place_that_nobody_fills(name: str) -> None:
    prompts = prompts_of(EVERY_FLOW[name])
    assert prompts
    for where, prompt in prompts.items():
        assert re.findall(r"\{[^{}]*\}", prompt) == [], where
        assert "no list of tasks" not in prompt, f"{where}: a role for tasks in a phase without any"


def test_the_task_lists_example_is_a_task_list() -> None:
    first, second = tasks_in(example_in("task-decomposer"))
    assert (first.title, first.mode, first.depends_on) == ("Parse the price list", "parallel", ())
    assert first.files == ("src/prices.py", "tests/test_prices.py")
    assert (second.title, second.mode, second.depends_on) == ("Show prices in the cart", "sequential", (1,))
    assert second.text.startswith("The cart asks")


def test_the_summary_has_the_heading_under_which_friction_is_looked_for() -> None:
    assert "`## Improvement Report`" in text_of("summarizer")
    assert friction_in("## Open\n- not this\n## Improvement Report\n- Tests: slow.\n") == ["Tests: slow."]

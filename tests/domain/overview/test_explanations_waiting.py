"""Every way a task can wait, each told in one sentence that names what is in the way and what would move it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from handrail.domain.claims.claim import claim
from handrail.domain.crew.agent import Agent, CrewRules
from handrail.domain.crew.presence import present
from handrail.store.unit import Unit
from tests.domain.overview.test_explanations import ACTOR, MINUTE, Plan, _task, chain, draft

RULES = CrewRules()


def agent(plan: Plan, name: str, *capabilities: str) -> Agent:
    """An agent that is here."""
    made = Agent(
        id=f"ag_{name}",
        name=name,
        runtime="codex",
        role="worker",
        status="online",
        capabilities=list(capabilities),
        current_task_id=None,
        workspace_path=None,
        metadata={},
        secret_hash="",
        created_at=plan.clock.now_ms(),
    )
    plan.store.run(ACTOR, lambda unit: unit.record("agent.registered", made, present(unit, made.id, RULES)))
    return made


def claimed(plan: Plan, task: str, by: Agent, *, start: bool = False) -> None:
    def work(unit: Unit) -> None:
        assert claim(unit, _task(unit, task), by, RULES, start=start).granted

    plan.store.run(ACTOR, work)


def part_of_a_blocked_one() -> Plan:
    return Plan(draft("test"), draft("build", "test"), draft("deploy", parent="build"))


def deep_part_of_a_blocked_one() -> Plan:
    return Plan(
        draft("test"), draft("release", "test"), draft("build", parent="release"), draft("deploy", parent="build")
    )


def open_parts() -> Plan:
    return Plan(draft("deploy"), draft("copy", parent="deploy"))


def waits_for_one_that_is_claimed() -> Plan:
    plan = Plan(draft("test"), draft("deploy", "test"))
    claimed(plan, "test", agent(plan, "Anna"))
    return plan


def claimed_by_somebody() -> Plan:
    plan = Plan(draft("deploy"))
    claimed(plan, "deploy", agent(plan, "Anna"))
    return plan


def begun_by_somebody() -> Plan:
    plan = Plan(draft("deploy"))
    claimed(plan, "deploy", agent(plan, "Anna"), start=True)
    return plan


def left_by_somebody() -> Plan:
    plan = begun_by_somebody()
    plan.clock.advance(5 * MINUTE)
    return plan


def no_free_place() -> Plan:
    plan = Plan(draft("test"), draft("deploy"), at_once=1)
    plan.move("test", "in_progress")
    return plan


def paused_workflow() -> Plan:
    plan = Plan(draft("deploy"))
    plan.move("deploy", "in_progress", "paused")
    plan.set_workflow("paused")
    return plan


def gate_of_the_workflow() -> Plan:
    plan = Plan(draft("deploy"))
    plan.ask("checkpoint-a")
    return plan


def question_to_a_person() -> Plan:
    plan = Plan(draft("deploy"))
    plan.move("deploy", "in_progress")
    plan.ask("To which host?", "deploy")
    return plan


def failed_and_open_again() -> Plan:
    plan = Plan(draft("deploy"))
    plan.move("deploy", "in_progress", "failed", "pending")
    return plan


def failed() -> Plan:
    plan = Plan(draft("deploy"))
    plan.move("deploy", "in_progress", "failed", error="no route")
    return plan


def nobody_can() -> Plan:
    plan = Plan(draft("deploy", requires=["network", "gpu"]))
    agent(plan, "Anna", "network")
    agent(plan, "Ben")
    return plan


def nobody_is_here_who_can() -> Plan:
    plan = Plan(draft("deploy", requires=["gpu"]))
    agent(plan, "Anna", "gpu")
    plan.clock.advance(60 * MINUTE)
    return plan


def somebody_can() -> Plan:
    plan = Plan(draft("deploy", requires=["gpu"]))
    agent(plan, "Anna", "gpu")
    return plan


def finished() -> Plan:
    plan = Plan(draft("deploy"))
    plan.move("deploy", "in_progress", "completed", outcome="it runs")
    plan.clock.advance(3 * MINUTE)
    return plan


def closed_workflow() -> Plan:
    plan = chain()
    plan.set_workflow("abandoned")
    return plan


@pytest.mark.parametrize(
    ("made", "sentence"),
    [
        (
            chain,
            '"deploy" waits for "build", which waits for "test"; "test" is ready: start it.',
        ),
        (
            part_of_a_blocked_one,
            '"deploy" waits, as part of "build", for "test", which is ready: start it.',
        ),
        (
            deep_part_of_a_blocked_one,
            '"deploy" waits, as part of "release", for "test", which is ready: start it.',
        ),
        (open_parts, '"deploy" waits for its subtask "copy", which is ready: start it.'),
        (claimed_by_somebody, '"deploy" is ready and claimed by Anna: wait until it is started, or release it.'),
        (
            waits_for_one_that_is_claimed,
            '"deploy" waits for "test", which is ready and claimed by Anna: wait until it is started, or release it.',
        ),
        (begun_by_somebody, '"deploy" has been in progress for a moment with Anna; nothing blocks it.'),
        (
            left_by_somebody,
            ('"deploy" was left by Anna, who was last heard from 5 minutes ago: take it over, or release it.'),
        ),
        (no_free_place, '"deploy" is ready, but the plan is for 1 task at a time and 1 is already running.'),
        (
            paused_workflow,
            ('"deploy" has been paused for a moment, but workflow "Ship it" is paused: resume the workflow first.'),
        ),
        (
            gate_of_the_workflow,
            ('"deploy" is ready, but its workflow waits for a person to answer "checkpoint-a" (asked a moment ago).'),
        ),
        (
            question_to_a_person,
            '"deploy" waits for a person to answer "To which host?" (asked a moment ago).',
        ),
        (failed, '"deploy" failed a moment ago ("no route"): retry it or skip it.'),
        (failed_and_open_again, '"deploy" is ready again, after 1 try: start it.'),
        (nobody_can, '"deploy" is ready, but needs "gpu", which no agent here has.'),
        (nobody_is_here_who_can, '"deploy" is ready, but needs "gpu", which no agent here has.'),
        (somebody_can, '"deploy" is ready: start it.'),
        (finished, '"deploy" was completed 3 minutes ago: "it runs".'),
        (closed_workflow, '"deploy" will not move: workflow "Ship it" was abandoned a moment ago.'),
    ],
    ids=lambda given: given.__name__ if callable(given) else "",
)
def test_every_way_to_wait_is_told_in_one_sentence(made: Callable[[], Plan], sentence: str) -> None:
    assert made().why("deploy").sentence == sentence

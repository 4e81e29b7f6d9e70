"""Runs as `handrail pipeline` lists and shows them: data for programs, lines for people. Nothing is printed here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from handrail.domain.crew.agent import Agent
from handrail.domain.gates.gate import Gate
from handrail.domain.overview.pipeline import command_to_go_on
from handrail.domain.pipeline.budget import LIMITS, estimate, spent
from handrail.domain.pipeline.driver_lock import shown_holder
from handrail.domain.pipeline.run import PipelineRun
from handrail.domain.pipeline.run_gates import DECISION
from handrail.domain.pipeline.run_status import STOPPED
from handrail.domain.pipeline.start import costs_of, finished_runs
from handrail.domain.pipeline.state import is_left_out
from handrail.domain.pipeline.turns import limits_of
from handrail.kernel.clock import spoken_time
from handrail.kernel.ledger import HANDRAIL
from handrail.kernel.query import Query
from handrail.operation import Call
from handrail.surfaces.cli.columns import bold, counted, dim, fit, one_line, pad, widest, width, wrapped
from handrail.surfaces.cli.plans.runs import spoken, standing
from handrail.toolsets.pipeline.turns import rules_of

LOOKED_AT = 500
"""How many answers to the gates of one run are read."""
LEAST_TITLE = 20
_MARKS = {"done": "✓", "given": "○", "skipped": "–", "open": "·"}


def amount(value: float) -> str:
    """A number for people: `1,000,000`, `2.50`."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


# -- as data ----------------------------------------------------------------------------------------------------------


def brief(call: Call, run: PipelineRun) -> dict[str, Any]:
    """Where a run is and what it has cost."""
    one = standing(call.work, run)
    have = spent(run.log, call.budget.prices)
    return {
        "workspace": run.workspace,
        "workflow_id": run.id,
        "title": run.title,
        "flow": one.flow,
        "phase": one.phase,
        "under_way": one.under_way,
        "ended": one.ended,
        "stopped": one.stopped,
        "waits_at": one.waits_at,
        "gate_id": one.gate_id,
        "stands": spoken(one),
        "go_on_with": command_to_go_on(run, one, rules_of(call)),
        "tokens": have.tokens,
        "minutes": round(have.minutes, 1),
        "money": round(have.money, 2) if call.budget.prices else None,
        "quiet_ms": call.work.now_ms() - run.updated_at,
    }


def shown_run(call: Call, run: PipelineRun) -> dict[str, Any]:
    """A run with its phases."""
    flow, state, facts = run.flow_followed(), run.run_state(), run.facts(humans_decide=call.humans_decide)
    answers = _answers(call, run)
    phases = []
    for phase in flow.phases:
        costs = [entry for entry in run.log if entry["phase"] == phase.id]
        left_out = is_left_out(phase, state, flow, facts)
        status = "given" if phase.id in state.given else "done" if phase.id in state.done else "open"
        phases.append(
            {
                "id": phase.id,
                "label": phase.label,
                "status": "skipped" if left_out else status,
                "times": sum(entry.get("times", 1) for entry in costs),
                "tokens": sum(entry["tokens"] for entry in costs),
                "answer": answers.get(phase.id) if status == "done" else None,
            }
        )
    expected = estimate(costs_of(finished_runs(call.work, run.repository_path), run.effort, call.budget.prices))
    parent = call.work.get(PipelineRun, run.forked_from) if run.forked_from is not None else None
    return {
        **brief(call, run),
        "branch": run.branch,
        "effort": run.effort,
        "limits": {**run.limits, **limits_of(run, rules_of(call))},
        "forked_from": run.forked_from,
        "fork_of": parent.workspace if parent is not None else None,
        "held_by": _holder(call, run),
        "expected": expected,
        "phases": phases,
    }


def _holder(call: Call, run: PipelineRun) -> dict[str, Any] | None:
    """Who drives a run; an agent with its name."""
    if run.holder is None:
        return None
    shown = shown_holder(run.holder)
    agent = call.work.get(Agent, shown.get("agent_id") or "")
    return {"name": agent.name, **shown} if agent is not None else shown


def _answers(call: Call, run: PipelineRun) -> dict[str, dict[str, Any]]:
    """The last answer at each phase's gate, including gates opened because agents had tried often enough."""
    conditions = (("workflow_id", run.id), ("kind", DECISION), ("status", "answered"))
    newest = call.work.select(Gate, Query(conditions, ("-answered_at", "-id"), LOOKED_AT))
    found: dict[str, dict[str, Any]] = {}
    for gate in reversed(newest):
        told = {"gate": gate.question, "answer": gate.answer, "by": gate.answered_by, "channel": gate.channel}
        found[gate.question.removesuffix("-limit").removesuffix("-failed")] = told
    return found


# -- as lines ---------------------------------------------------------------------------------------------------------


def listed_lines(run: dict[str, Any], room: int) -> Iterator[str]:
    """A run in a list, on two or three lines."""
    where = f"{run['stands']}, {spoken_time(run['quiet_ms'])} ago"
    free = room - width(where) - 2
    if free >= min(width(one_line(run["title"])), LEAST_TITLE):
        yield f"{bold(fit(run['title'], free))}  {where}"
    else:
        yield bold(fit(run["title"], room))
        yield from wrapped(where, room, "  ")
    cost = f"{run['flow']}, {counted(run['tokens'], 'token')}"
    yield f"  {dim(fit(run['workspace'], room - width(cost) - 4))}  {cost}"


def shown_run_lines(found: dict[str, Any], room: int) -> Iterator[str]:
    """One run: what it is, every phase, what it cost, what it waits for."""
    yield from wrapped(f"{found['title']} ({found['flow']}, effort {found['effort']})", room)
    yield from wrapped(_run_words(found), room)
    labels = widest((phase["label"] for phase in found["phases"]), room // 3)
    ids = widest((phase["id"] for phase in found["phases"]), room // 3)
    for phase in found["phases"]:
        yield _phase_line(phase, labels, ids, room)
    yield from wrapped(f"Spent: {_spent(found)}.{_expected(found['expected'])}", room)
    if found["waits_at"]:
        yield from wrapped(
            f"It waits for you at {found['waits_at']}: `handrail approve` shows it and asks; "
            "`handrail reject --say …` sends it back.",
            room,
        )
    if found["stopped"]:
        yield from wrapped(f"It is {STOPPED[found['stopped']]}: {found['go_on_with']}", room)


def _run_words(found: dict[str, Any]) -> str:
    words = [found["workspace"]]
    if found["forked_from"] is not None:
        words.append(f"a fork of {found['fork_of'] or found['forked_from']}")
    words.append(found["stands"])
    if (holder := found["held_by"]) is not None:
        named = " ".join(filter(None, (holder.get("name"), holder.get("agent_id") and f"({holder['agent_id']})")))
        words.append(f"driven by {named or 'somebody without a name'}")
    return ", ".join(words)


def _phase_line(phase: dict[str, Any], labels: int, ids: int, room: int) -> str:
    told = [f"{counted(phase['tokens'], 'token')} in {counted(phase['times'], 'turn')}"] if phase["times"] else []
    told += ["there before it began"] if phase["status"] == "given" else []
    told += [_answer_words(phase)] if phase["answer"] is not None else []
    told += ["left out"] if phase["status"] == "skipped" else []
    rest = fit(", ".join(told), room - 8 - labels - ids)
    key = f"{dim(pad(phase['id'], ids))}  {rest}" if rest else dim(fit(phase["id"], ids))
    return f"  {_MARKS[phase['status']]} {pad(phase['label'], labels)}  {key}"


def _answer_words(phase: dict[str, Any]) -> str:
    answer = phase["answer"]
    if answer["channel"] == HANDRAIL.channel:
        return "opened by --auto"
    at = f" at {answer['gate']}" if answer["gate"] != phase["id"] else ""
    return f"{answer['answer']} by {answer['by']}{at}"


def _spent(found: dict[str, Any]) -> str:
    minutes = f"{found['minutes']:g} {'minute' if found['minutes'] == 1 else 'minutes'}"
    money = f", {found['money']:,.2f} at your prices" if found["money"] is not None else ""
    limits = ", ".join(f"{name} {amount(value)}" for name, value in found["limits"].items() if name in LIMITS)
    return f"{counted(found['tokens'], 'token')}, {minutes}{money}{f' (limits: {limits})' if limits else ''}"


def _expected(expected: dict[str, Any] | None) -> str:
    if expected is None:
        return ""
    half, most = expected["tokens"]["p50"], expected["tokens"]["p90"]
    if expected["runs"] == 1:
        return f" The one run of this effort that has ended took {counted(most, 'token')}."
    return f" Of {expected['runs']:,} runs of this effort half took at most {half:,} tokens, nine of ten {most:,}."

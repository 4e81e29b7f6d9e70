"""What comes next: a larger plan, half done, and a run that waits for you, so that the page has something to show.

It is left unfinished on purpose: open work is what people look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.demo import texts
from handrail.demo.play import DemoAgent, Play
from handrail.demo.run import DemoRun, Orchestrated

LANGUAGE = DemoRun(texts.NEXT_REQUEST, "guess-the-language", (texts.FIRST_GUESS, texts.SECOND_GUESS))
READ, FOLD, CUT = "read any encoding", "fold letters", "cut without blanks"
BY_LANGUAGE, FUZZ = "count by language", "fuzz the reader"
"""The tasks of the plan that something happens to."""


def what_comes_next(play: Play) -> None:
    """A plan of a dozen tasks under way, and a second run waiting at its gate."""
    play.stage.title("What comes next")
    play.ada.call("workflow_update_status", id=play.workflow, status="completed")
    play.ada.says("closes the plan: all of it is done")
    workflow, tasks = _make_plan(play)
    _do_task(play, play.ben, workflow, FOLD, texts.FOLDING, "Letters fold by NFKC, then by case.")
    _do_task(play, play.ada, workflow, READ, texts.READING, "Three encodings are tried, in order.", review=True)
    _log_decisions(play, tasks[BY_LANGUAGE])
    _start_tasks(play, workflow, tasks)
    Orchestrated(play, LANGUAGE).go(to_the_gate=True)
    play.ada.says("leaves the run at its gate: it waits for you")


def _make_plan(play: Play) -> tuple[str, dict[str, str]]:
    made = play.ada.call(
        "workflow_create",
        name="Every language",
        source_type="prompt",
        source_content="Count words in every language, whatever the encoding.",
        max_parallel_tasks=4,
    )
    listed: Any = texts.NEXT_PLAN["tasks"]
    tasks = [{"description": f"To {task['name']}", "sequence": number, **task} for number, task in enumerate(listed, 1)]
    play.ada.call("workflow_set_plan", id=made["id"], plan={**texts.NEXT_PLAN, "tasks": tasks})
    play.ada.says(f'plans "{made["name"]}": {len(tasks)} tasks in four groups')
    offered = play.ada.call("workflow_next_tasks", workflow_id=made["id"], limit=20)["tasks"]
    waiting = play.ada.call("workflow_progress", workflow_id=made["id"])["blocked_tasks"]
    return made["id"], {task["name"]: task["id"] for task in (*offered, *waiting)}


def _do_task(
    play: Play,
    agent: DemoAgent,
    workflow: str,
    task: str,
    files: Mapping[str, str],
    summary: str,
    *,
    review: bool = False,
) -> None:
    """A task from its claim to its end, in the main working copy; files written outside its areas are reported."""
    areas = [next(iter(files))]
    begun = agent.call(
        "start_task",
        workflow_id=workflow,
        name=task,
        goal=f"To {task}",
        areas=areas,
        directory=str(play.ground.project),
    )
    agent.call("task_claim", task_id=begun["task_id"], agent_id=agent.id)
    agent.call("log_milestone", task_id=begun["task_id"], message="It runs, without tests yet", progress=60)
    play.stage.beat()
    play.ground.write(play.ground.project, files)
    outcome: dict[str, Any] = {"summary": summary, "achievements": [f"{areas[0]} is new"], "limitations": []}
    if review:
        outcome |= {"manual_review_needed": True, "manual_review_reason": "Is latin-1 a good last guess?"}
    done = agent.call(
        "complete_task",
        task_id=begun["task_id"],
        status="success",
        outcome=outcome,
        metadata={"tests_status": "passed"},
        checks=[{"command": "pytest -q", "exit_code": 0}],
    )
    told = "as planned" if done["verification"]["scope_match"] else f"{len(files) - 1} file outside its areas"
    agent.says(f'completes "{task}": {told}{", and asks you to look at it" if review else ""}')


def _log_decisions(play: Play, task_id: str) -> None:
    """Two decisions, the second of which replaces the first."""
    question = "What is a language here?"
    options = ["a script", "a locale", "what the file says"]
    first = play.ben.call(
        "log_decision",
        task_id=task_id,
        category="architecture",
        question=question,
        options_considered=options,
        chosen="a script",
        reasoning="It can be seen in the letters",
    )
    play.ben.call(
        "log_decision",
        task_id=task_id,
        category="trade_off",
        question=question,
        options_considered=options,
        chosen="what the file says, else a guess",
        reasoning="Many languages share a script",
        trade_offs="A wrong label is believed",
        supersedes=first["id"],
    )
    play.ben.says(f'decides again: "{question}" what the file says, else a guess')


def _start_tasks(play: Play, workflow: str, tasks: Mapping[str, str]) -> None:
    """What each agent is doing: one in a worktree, one retrying after a failure, one asking you something."""
    ada, ben, cleo = play.agents
    for agent, task in ((ada, FUZZ), (ben, BY_LANGUAGE), (cleo, CUT)):
        agent.call("task_claim", task_id=tasks[task], agent_id=agent.id, start=True)
        play.stage.beat()
    ada.call("task_update_status", id=tasks[FUZZ], status="failed", error="A lone surrogate got through")
    play.stage.beat()
    ada.call("task_claim", task_id=tasks[FUZZ], agent_id=ada.id, start=True)
    space = ben.call("workspace_create", workflow_id=workflow, task_ids=[tasks[BY_LANGUAGE]], create=True)
    play.ground.write(Path(space["path"]), texts.LANGUAGES)
    ben.call("log_milestone", task_id=tasks[BY_LANGUAGE], message="One counter a language", progress=40)
    cleo.call("checkpoint_add", task_id=tasks[CUT], type="progress", summary="Thai is cut by a word list of 4,000")
    cleo.call("bb_set", key="scripts:without-blanks", value=["Thai", "Lao", "Khmer"], tags=["reading"])
    cleo.call("reserve_paths", agent_id=cleo.id, paths=["words/cutting.py"], task_id=tasks[CUT], reason="word lists")
    cleo.call(
        "message_send",
        sender_id=cleo.id,
        recipient_id="human",
        message_type="query",
        subject="May I add a word list?",
        body="Cutting Thai needs one, of 80 kB. It may be used by anybody.",
        workflow_id=workflow,
        task_id=tasks[CUT],
        requires_ack=True,
    )
    cleo.says('asks you: "May I add a word list?"')

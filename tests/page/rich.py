"""A rich data set for the page: three repositories' worth of work in every state, made through the real tools.

`python -m tests.page.rich FOLDER` builds it, so that `handrail up --root FOLDER/notes` has something to show;
`--tasks N` makes a plan of N tasks instead.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NamedTuple

from handrail.domain.gates.gate import Gate, close_review, open_reviews
from handrail.domain.pipeline.turns import answer_gate
from handrail.kernel.ledger import Actor
from handrail.kernel.records import Query
from tests.page import rich_texts as texts
from tests.page.rich_stage import Agent, Stage, new_repository, write

YOU = Actor("you", "page")
STORY_MINUTES = 195
MOST_TURNS = 60
FINISHED_OF_MANY = 300
"""Tasks of a plan of many that are finished, at most."""


class Facts(NamedTuple):
    """What was built, by id."""

    project: Path
    home: Path
    workflow: str
    """The one with the plan of thirty tasks."""
    site: str
    done: str
    run: str
    """The workflow of the pipeline run that waits at a gate."""
    ended_run: str
    gate: str
    """The gate that waits."""
    tasks: dict[str, str]
    """Ids of the plan's tasks by name."""
    agents: dict[str, str]
    lost: str
    """The agent that is not there any more."""


class Crew(NamedTuple):
    planner: Agent
    builder: Agent
    tester: Agent
    scout: Agent

    @property
    def everybody(self) -> dict[str, str]:
        return {agent.name: agent.id for agent in self}


def build(folder: Path) -> Facts:
    """Everything, in `folder`: the repository `notes` with its store, the repository `site`, and a home."""
    project, home = folder / "notes", folder / "home"
    home.mkdir(parents=True)
    new_repository(project, texts.START)
    new_repository(folder / "site", texts.OTHER_START)
    write(project, {".handrail/config.toml": texts.CONFIG})
    stage = Stage(project, home, minutes=STORY_MINUTES)
    try:
        return _story(stage, folder, home)
    finally:
        stage.close()


def _story(stage: Stage, folder: Path, home: Path) -> Facts:
    crew = Crew(
        Agent(stage, "planner", "claude_code", role="coordinator"),
        Agent(stage, "builder", "codex"),
        Agent(stage, "tester", "opencode", capabilities=["network"]),
        Agent(stage, "scout", "claude_code"),
    )
    done = _finished_workflow(stage, crew)
    workflow, tasks = _planned(crew.planner, "Notes without a net", texts.PLAN)
    _first_hour(stage, crew, workflow, tasks)
    _second_hour(stage, crew, workflow, tasks)
    site, _ = _planned(crew.planner, "The site", texts.SITE_PLAN, repository_path=str(folder / "site"))
    ended_run = _run(stage, crew, texts.ENDED_REQUEST, "export-notes", answers=("reject", "approve"))
    run = _run(stage, crew, texts.REQUEST, "links-that-expire", answers=())
    _last_minutes(stage, crew, workflow, tasks)
    gate = stage.handrail.ledger.run(
        YOU,
        lambda unit: unit.select(Gate, Query((("workflow_id", run), ("status", "open")), ("created_at",), 1))[0],
    )
    return Facts(
        project=stage.project,
        home=home,
        workflow=workflow,
        site=site,
        done=done,
        run=run,
        ended_run=ended_run,
        gate=gate.id,
        tasks=tasks,
        agents=crew.everybody,
        lost=crew.scout.id,
    )


# -- the plan of thirty -----------------------------------------------------------------------------------------------


def _planned(agent: Agent, name: str, plan: dict[str, Any], **more: Any) -> tuple[str, dict[str, str]]:
    made = agent.call(
        "workflow_create",
        name=name,
        source_type="prompt",
        source_content=f"{plan['summary']}. {texts.CELLS}",
        max_parallel_tasks=8,
        **more,
    )
    agent.call("workflow_set_plan", id=made["id"], plan=plan)
    return made["id"], agent.stage.tasks_of(made["id"])


def _finished_workflow(stage: Stage, crew: Crew) -> str:
    workflow, tasks = _planned(crew.builder, "Faster start", texts.DONE_PLAN)
    for task_id in tasks.values():
        _do(stage, crew.builder, task_id, minutes=7)
    crew.builder.call("workflow_update_status", id=workflow, status="completed")
    return workflow


def _do(stage: Stage, agent: Agent, task_id: str, *, minutes: int, outcome: str = "It is done, and tested.") -> None:
    """Claims a task, works on it, says how far it is, and completes it."""
    agent.call("task_claim", task_id=task_id, agent_id=agent.id, start=True)
    stage.after(minutes // 2)
    agent.call("checkpoint_add", task_id=task_id, type="progress", summary="Half of it stands")
    stage.after(minutes - minutes // 2)
    agent.call("task_update_status", id=task_id, status="completed", outcome=outcome)


def _first_hour(stage: Stage, crew: Crew, workflow: str, tasks: dict[str, str]) -> None:
    """The ground: done tasks, journals with real changes, a decision that another replaces, a failure and a retry."""
    crew.planner.call("bb_set", key="sync:leader", value={"agent": "planner", "since": "the beginning"}, tags=["crew"])
    _do(stage, crew.scout, tasks[texts.SURVEY], minutes=14)
    _do(stage, crew.planner, tasks[texts.SCHEMA], minutes=18)
    _journalled(stage, crew.builder, workflow, texts.LOG, ["notes/log.py", "notes/store.py"], texts.LOG_FILES)
    first = _decision(crew.builder, tasks[texts.CLOCKS], "Which clock orders changes?", "wall clocks", "They are there")
    crew.tester.call("task_claim", task_id=tasks[texts.CLOCKS], agent_id=crew.tester.id, start=True)
    stage.after(6)
    crew.tester.call("task_update_status", id=tasks[texts.CLOCKS], status="failed", error="Two devices disagreed")
    stage.after(2)
    crew.tester.call("task_update_status", id=tasks[texts.CLOCKS], status="in_progress")
    _decision(
        crew.tester,
        tasks[texts.CLOCKS],
        "Which clock orders changes?",
        "Lamport clocks",
        f"Wall clocks lie; {texts.HOSTILE} does too",
        supersedes=first,
    )
    stage.after(9)
    crew.tester.call("task_update_status", id=tasks[texts.CLOCKS], status="completed", outcome="Order holds")
    _journalled(stage, crew.planner, workflow, texts.RENAME, ["notes/search.py"], texts.SEARCH_FILES)


def _second_hour(stage: Stage, crew: Crew, workflow: str, tasks: dict[str, str]) -> None:
    """Binary files, changes out of scope, reviews, a claim that is lost, failures, what is skipped and paused."""
    _journalled(stage, crew.tester, workflow, texts.ICONS, ["assets/**"], texts.ICON_FILES)
    _journalled(stage, crew.builder, workflow, texts.RISKY, ["notes/titles.py"], texts.HOSTILE_FILES, review=True)
    stage.handrail.ledger.run(
        YOU,
        lambda unit: close_review(unit, open_reviews(unit, workflow, 1)[0], YOU, "ok", "Seen; README may change too"),
        writing=True,
    )
    crew.scout.call("task_claim", task_id=tasks[texts.PROTOCOL], agent_id=crew.scout.id, start=True)
    crew.scout.call("checkpoint_add", task_id=tasks[texts.PROTOCOL], type="progress", summary=texts.ESCAPES)
    crew.planner.call("task_update_status", id=tasks[texts.TELEMETRY], status="skipped", outcome="Nobody wants it")
    crew.builder.call("task_claim", task_id=tasks[texts.INDEX], agent_id=crew.builder.id, start=True)
    stage.after(5)
    crew.builder.call(
        "task_update_status", id=tasks[texts.INDEX], status="failed", error=f"Out of memory at {texts.LONG_WORD}"
    )
    crew.builder.call("task_release", task_id=tasks[texts.INDEX], agent_id=crew.builder.id)
    _do(stage, crew.tester, tasks[texts.KEYS], minutes=12)
    crew.planner.call(
        "workflow_add_tasks",
        id=workflow,
        tasks=[texts.task("Ask for a second device", texts.MERGE, group="checks", sequence=5)],
        reason="The merge was only ever tried on one",
    )


def _last_minutes(stage: Stage, crew: Crew, workflow: str, tasks: dict[str, str]) -> None:
    """What is under way now: open work, a question, messages, a board, everybody but the scout present."""
    stage.after(stage.minutes_left - 24)
    crew.planner.call("task_claim", task_id=tasks[texts.MERGE], agent_id=crew.planner.id, start=True)
    space = crew.planner.call("workspace_create", workflow_id=workflow, task_ids=[tasks[texts.MERGE]], create=True)
    write(Path(space["path"]), texts.MERGE_FILES)
    crew.builder.call("task_claim", task_id=tasks[texts.EDITOR], agent_id=crew.builder.id)
    _begin(crew.builder, workflow, texts.EDITOR, ["notes/editor.py"], str(stage.project))
    write(stage.project, texts.EDITOR_FILES)
    crew.tester.call("task_claim", task_id=tasks[texts.MIGRATE], agent_id=crew.tester.id, start=True)
    stage.after(6)
    crew.tester.call("task_update_status", id=tasks[texts.MIGRATE], status="paused")
    crew.tester.call(
        "log_issue",
        task_id=tasks[texts.MIGRATE],
        type="unclear_requirement",
        description=f"May notes older than a year be dropped? {texts.HOSTILE}",
        resolution="Kept until somebody says",
        requires_human_review=True,
    )
    crew.planner.call("log_milestone", task_id=tasks[texts.MERGE], message="Two histories meet", progress=40)
    stage.after(5)
    _messages(crew, workflow, tasks)
    for key, value in (("sync:version", 3), ("sync:notes", texts.HOSTILE), ("default:status", {"merge": "half"})):
        crew.builder.call("bb_set", key=key, value=value, tags=["sync"])
    crew.builder.call("reserve_paths", agent_id=crew.builder.id, paths=["notes/editor.py"], reason="drafts")
    stage.after(6)
    crew.planner.call("log_milestone", task_id=tasks[texts.MERGE], message="Deletes win over edits", progress=70)
    crew.planner.call("checkpoint_add", task_id=tasks[texts.MERGE], type="progress", summary="Deletes win over edits")
    stage.until_now()
    for agent in (crew.planner, crew.builder, crew.tester):
        agent.call("agent_heartbeat", agent_id=agent.id)


# -- steps ------------------------------------------------------------------------------------------------------------


def _begin(agent: Agent, workflow: str, name: str, areas: list[str], directory: str) -> str:
    begun = agent.call(
        "start_task", workflow_id=workflow, name=name, goal=f"To do: {name}", areas=areas, directory=directory
    )
    return str(begun["task_id"])


def _journalled(
    stage: Stage,
    agent: Agent,
    workflow: str,
    name: str,
    areas: list[str],
    files: dict[str, str | bytes | None],
    *,
    review: bool = False,
) -> None:
    """A task whose change is in the journal, as git saw it."""
    task_id = _begin(agent, workflow, name, areas, str(stage.project))
    agent.call("task_claim", task_id=task_id, agent_id=agent.id)
    stage.after(4)
    agent.call("log_milestone", task_id=task_id, message=f"{name}: begun", progress=20)
    write(stage.project, files)
    stage.after(5)
    outcome: dict[str, Any] = {
        "summary": f"{name}: it works, and the tests say so.",
        "achievements": ["Tests pass"],
        "limitations": ["Only tried on small files"],
    }
    if review:
        outcome |= {"manual_review_needed": True, "manual_review_reason": f"README changed too; {texts.HOSTILE}"}
    agent.call(
        "complete_task",
        task_id=task_id,
        status="success",
        outcome=outcome,
        metadata={"tests_status": "passed", "commands_executed": ["pytest -q"]},
        checks=[{"command": "pytest -q", "exit_code": 0}, {"command": "ruff check .", "exit_code": 0}],
    )


def _decision(agent: Agent, task_id: str, question: str, chosen: str, why: str, **more: Any) -> str:
    made = agent.call(
        "log_decision",
        task_id=task_id,
        category="trade_off",
        question=question,
        options_considered=["wall clocks", "Lamport clocks", "vector clocks"],
        chosen=chosen,
        reasoning=why,
        trade_offs="Simple, and enough for one person",
        **more,
    )
    return str(made["id"])


def _messages(crew: Crew, workflow: str, tasks: dict[str, str]) -> None:
    asked = crew.tester.call(
        "message_send",
        sender_id=crew.tester.id,
        recipient_id="human",
        message_type="query",
        subject=f"May I drop old notes? {texts.HOSTILE}",
        body=f"The migration stops at {texts.TURNED}.\n{texts.CELLS}\n{texts.LONG_WORD}",
        priority="high",
        workflow_id=workflow,
        task_id=tasks[texts.MIGRATE],
        requires_ack=True,
    )
    assert asked["id"]
    first = crew.planner.call(
        "message_send",
        sender_id=crew.planner.id,
        recipient_id=crew.builder.id,
        message_type="query",
        subject="Who keeps drafts?",
        body="The merge does not know them.",
        workflow_id=workflow,
    )
    crew.builder.call(
        "message_send",
        sender_id=crew.builder.id,
        recipient_id=crew.planner.id,
        message_type="response",
        subject="Who keeps drafts?",
        body="The editor, in a file beside the log.",
        reply_to_id=first["id"],
    )
    crew.planner.call(
        "message_broadcast", sender_id=crew.planner.id, message_type="notification", body="The schema is frozen now."
    )
    crew.builder.call(
        "message_send",
        sender_id=crew.builder.id,
        recipient_id="human",
        message_type="status_update",
        subject="Drafts",
        body="They survive a crash now.",
    )


# -- the pipeline -----------------------------------------------------------------------------------------------------


def _run(stage: Stage, crew: Crew, request: str, slug: str, answers: tuple[str, ...]) -> str:
    """A run up to a gate that nobody answers any more; its workflow."""
    driver = crew.planner
    asked = driver.call("pipeline_init", arguments=request, current_branch="main")
    ready = driver.call(
        "pipeline_init_with_context",
        workspace=asked["workspace"],
        task_text=asked["core_text"],
        flags=asked["flags"],
        user_confirmation={"effort": "M", "workspace_slug": slug},
    )
    workspace, workflow = str(ready["workspace"]), str(ready["workflow_id"])
    left, designs = list(answers), 0
    action = driver.call("pipeline_next_action", workspace=workspace)
    for _ in range(MOST_TURNS):
        if action["type"] == "done" or (action["type"] in ("checkpoint", "human_gate") and not left):
            return workflow
        stage.after(1)
        if action["type"] in ("checkpoint", "human_gate"):
            _answer(stage, workflow, workspace, left.pop(0))
            action = driver.call("pipeline_next_action", workspace=workspace)
            continue
        name = action["output_file"]
        designs += name == "design.md"
        write(stage.project / workspace, {name: _document(name, designs)})
        action = driver.call(
            "pipeline_next_action",
            workspace=workspace,
            previous_action_complete=True,
            previous_action_id=action["action_id"],
            previous_tokens=18_000,
            previous_duration_ms=55_000,
            previous_model="large",
        )
    raise AssertionError("the run did not come to its gate")


def _document(name: str, designs: int) -> str:
    if name == "review-design.md":
        return texts.REVISE if designs == 1 else f"{texts.APPROVE}\nLook {designs}.\n"
    known = {"analysis.md": texts.ANALYSIS, "investigation.md": texts.INVESTIGATION, "tasks.md": texts.TASKS}
    return known.get(name, f"{texts.DESIGN}\nDraft {designs}.\n")


def _answer(stage: Stage, workflow: str, workspace: str, word: str) -> None:
    call = stage.handrail.call
    files = call.world.specs(call.here.repository).texts(workspace)
    waiting = Query((("workflow_id", workflow), ("status", "open")), ("created_at",), 1)
    call.ledger.run(
        YOU,
        lambda unit: answer_gate(unit, unit.select(Gate, waiting)[0], word, "Say how it is tested", files),
        writing=True,
    )


# -- a plan of many tasks ---------------------------------------------------------------------------------------------


def build_many(folder: Path, count: int) -> Facts:
    """One workflow of `count` tasks in layers of ten, some of them done, some under way."""
    project, home = folder / "notes", folder / "home"
    home.mkdir(parents=True)
    new_repository(project, texts.START)
    write(project, {".handrail/config.toml": texts.CONFIG})
    stage = Stage(project, home, minutes=STORY_MINUTES)
    try:
        worker = Agent(stage, "builder", "codex")
        plan = {"summary": "Many", "approach": "One after the other", "tasks": many_tasks(count)}
        workflow, tasks = _planned_many(worker, plan)
        for number, task_id in enumerate(list(tasks.values())[: min(count // 3, FINISHED_OF_MANY)]):
            worker.call("task_update_status", id=task_id, status="in_progress")
            worker.call("task_update_status", id=task_id, status="completed", outcome="Done")
            stage.after(number % 3 // 2)
        stage.until_now()
        for task in worker.call("workflow_next_tasks", workflow_id=workflow, limit=6)["tasks"]:
            worker.call("task_claim", task_id=task["id"], agent_id=worker.id, start=True)
        agents = {worker.name: worker.id}
        return Facts(project, home, workflow, "", "", "", "", "", tasks, agents, "")
    finally:
        stage.close()


def many_tasks(count: int) -> list[dict[str, Any]]:
    """Layers of ten; each waits for one or two of the layer before."""
    made = []
    for number in range(count):
        layer, place = divmod(number, 10)
        needs = [f"Task {number - 10}"] if layer else []
        if layer and place % 3 == 0:
            needs.append(f"Task {layer * 10 - 10 + (place + 1) % 10}")
        made.append(texts.task(f"Task {number}", *needs, group=f"part {layer // 4}", sequence=layer + 1))
    return made


def _planned_many(agent: Agent, plan: dict[str, Any]) -> tuple[str, dict[str, str]]:
    made = agent.call(
        "workflow_create", name="Many tasks", source_type="prompt", source_content="Many", max_parallel_tasks=16
    )
    agent.call("workflow_set_plan", id=made["id"], plan=plan)
    return made["id"], agent.stage.tasks_of(made["id"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="Where it is built; it must not be there yet.")
    parser.add_argument("--tasks", type=int, help="A plan of so many tasks instead.")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True)
    facts = build_many(folder, given.tasks) if given.tasks else build(folder)
    for name, value in facts._asdict().items():
        if name != "tasks":
            sys.stdout.write(f"{name}: {value}\n")
    sys.stdout.write(f"Look at it: handrail up --root {facts.project}\n")


if __name__ == "__main__":
    main()

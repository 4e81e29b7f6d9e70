"""The first acts: a plan, claims with worktrees, a blocked reservation, a conflict forecast, journals, merges."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from handrail.demo import texts
from handrail.demo.play import DemoAgent, Play
from handrail.domain.journal.changes import LETTERS, totals, totals_in_words
from handrail.domain.journal.entry import JournalEntry
from handrail.domain.journal.journal import LOOKING, snapshot_of

PARSE, COUNT, USAGE, JOIN = (task["name"] for task in texts.PLAN["tasks"])  # type: ignore[index]


def plan(play: Play) -> None:
    """Three agents arrive, and one of them plans."""
    play.stage.title("A plan")
    for agent, runtime in zip(play.agents, ("claude_code", "codex", "opencode"), strict=True):
        made = agent.call("agent_register", name=agent.name, runtime=runtime)
        agent.id = made["id"]
        agent.says(f"is here ({runtime.replace('_', ' ')}, {made['status']})")
    made = play.ada.call(
        "workflow_create",
        name="Count words",
        source_type="prompt",
        source_content="A command that counts the words of a file.",
        max_parallel_tasks=3,
    )
    play.workflow = made["id"]
    planned = play.ada.call("workflow_set_plan", id=play.workflow, plan=texts.PLAN)
    play.ada.says(f'plans "{made["name"]}": {planned["tasks_created"]} tasks, {planned["status"]}')
    offered = play.ben.call("workflow_next_tasks", workflow_id=play.workflow)
    names = {task["id"]: task["name"] for task in offered["tasks"]}
    play.tasks = {name: task_id for task_id, name in names.items()}
    together = ", ".join(f'"{names[task_id]}"' for task_id in offered["batch"])
    play.ben.says(f"asks what is next: {together} are safe side by side")
    waiting = play.ben.call("workflow_progress", workflow_id=play.workflow)["blocked_tasks"]
    for task in waiting:
        play.tasks[task["name"]] = task["id"]
        play.ben.says(f'sees that "{task["name"]}" waits for {_listed(task["blocked_by"])}')


def claims(play: Play) -> None:
    """Each takes a task and gets a worktree; one that comes late is told so."""
    play.stage.title("Claims and worktrees")
    _claim(play, play.ada, PARSE)
    late = play.ben.call("task_claim", task_id=play.tasks[PARSE], agent_id=play.ben.id)
    play.ben.says(f'wants "{PARSE}" too, and is told: {late["held_by_name"]} has it')
    _claim(play, play.ben, COUNT)
    _claim(play, play.cleo, USAGE)
    early = play.cleo.refused("task_claim", task_id=play.tasks[JOIN], agent_id=play.cleo.id, start=True)
    play.cleo.says(f'tries "{JOIN}" as well: refused, {early.code}')
    _reserve(play, play.ada, PARSE, "words/parse.py")
    _reserve(play, play.ben, COUNT, "words/")
    _reserve(play, play.ben, COUNT, "words/count.py")


def foresight(play: Play) -> None:
    """Two agents change the same line, in two worktrees; this is known before anybody merges."""
    play.stage.title("A conflict, foreseen")
    _begin(play, play.ada, PARSE, ["words/parse.py"])
    _begin(play, play.cleo, USAGE, ["README.md"])
    _edit(play, play.ada, PARSE, texts.PARSE)
    _edit(play, play.cleo, USAGE, texts.USAGE)
    clash = _report_conflicts(play, play.cleo)
    assert clash, "both changed the same line"
    play.cleo.call(
        "message_send",
        sender_id=play.cleo.id,
        recipient_id=play.ada.id,
        message_type="query",
        subject="README.md is mine",
        body="We both change its third line. Would you leave it to me?",
        task_id=play.tasks[PARSE],
    )
    inbox = play.ada.call("message_list", agent_id=play.ada.id)
    for message in inbox["messages"]:
        sender = next(agent.name for agent in play.agents if agent.id == message["sender_id"])
        play.ada.says(f'reads a message from {sender}: "{message["subject"]}"')
        play.ada.call("message_mark_read", message_ids=[message["id"]])
    _edit(play, play.ada, PARSE, texts.TAKEN_BACK, doing="takes back")
    _report_conflicts(play, play.ada)


def journals(play: Play) -> None:
    """What each did is in the journal, as git saw it; then it is merged, and the task that waited is done."""
    play.stage.title("Journal and merge")
    _begin(play, play.ben, COUNT, ["words/count.py"])
    _edit(play, play.ben, COUNT, texts.COUNT)
    play.ben.call(
        "log_decision",
        task_id=play.tasks[COUNT],
        category="library_choice",
        question="What counts the words?",
        options_considered=["a dict", "collections.Counter"],
        chosen="collections.Counter",
        reasoning="It sorts by frequency already",
    )
    play.ben.says('notes a decision: "What counts the words?" collections.Counter')
    _complete(play, play.ada, PARSE, "Words are cut at white space, in small letters.")
    _complete(play, play.ben, COUNT, "Each word is counted.")
    _complete(play, play.cleo, USAGE, "The usage stands in the README.")
    _show_patch(play, play.cleo, USAGE)
    for agent, task in ((play.ada, PARSE), (play.ben, COUNT), (play.cleo, USAGE)):
        _merge(play, agent, task)
    _claim(play, play.cleo, JOIN)
    _begin(play, play.cleo, JOIN, ["words/__main__.py"])
    _edit(play, play.cleo, JOIN, texts.JOIN)
    _complete(play, play.cleo, JOIN, "python -m words FILE prints the counts.")
    _merge(play, play.cleo, JOIN)
    progress = play.ada.call("workflow_progress", workflow_id=play.workflow)
    play.ada.says(f"looks: {progress['by_status']['completed']} of {progress['total_tasks']} tasks completed")


# -- steps ------------------------------------------------------------------------------------------------------------


def _claim(play: Play, agent: DemoAgent, task: str) -> None:
    """A claim, and a worktree for it. `start_task` begins the work, so that there is a snapshot to start from."""
    claim = agent.call("task_claim", task_id=play.tasks[task], agent_id=agent.id)
    agent.says(f'claims "{task}" (fence {claim["fence"]})')
    made = agent.call("workspace_create", workflow_id=play.workflow, task_ids=[play.tasks[task]], create=True)
    play.spaces[task] = made
    agent.says(f"gets a worktree of {made['base_branch']}, on {made['branch'].rpartition('-')[0]}-…")


def _reserve(play: Play, agent: DemoAgent, task: str, path: str) -> None:
    asked = agent.call("reserve_paths", agent_id=agent.id, paths=[path], task_id=play.tasks[task], reason=f"to {task}")
    if asked["granted"]:
        agent.says(f"keeps {path}")
    for conflict in asked.get("conflicts", ()):
        agent.says(f"asks for {path} and is told: {conflict['name']} keeps {conflict['path']} ({conflict['reason']})")


def _begin(play: Play, agent: DemoAgent, task: str, areas: list[str]) -> None:
    begun = agent.call(
        "start_task",
        workflow_id=play.workflow,
        name=task,
        goal=f"To {task}",
        areas=areas,
        directory=str(_folder(play, task)),
    )
    assert begun["task_id"] == play.tasks[task], "the task of the plan, not another one of its name"
    agent.says(f'begins "{task}" with a {begun["snapshot_type"]} snapshot')


def _edit(play: Play, agent: DemoAgent, task: str, files: Mapping[str, str], doing: str = "edits") -> None:
    play.ground.write(_folder(play, task), files)
    agent.says(f"{doing} {', '.join(files)}")


def _report_conflicts(play: Play, agent: DemoAgent) -> bool:
    """Asks git what would not merge, and reports it."""
    seen = agent.call("workspace_list", workflow_id=play.workflow)
    if seen.get("problem"):
        agent.says(f"asks what will merge: {seen['problem']}")
    of_space = {space["id"]: task for task, space in play.spaces.items()}
    for clash in seen.get("conflicts", ()):
        pair = " and ".join(f'"{of_space.get(clash[side], "base")}"' for side in ("one", "other"))
        agent.says(f"asks what will merge: conflict in {', '.join(clash['paths'])} between {pair}")
    if not seen.get("conflicts") and not seen.get("problem"):
        agent.says("asks what will merge: everything")
    return bool(seen.get("conflicts") or seen.get("problem"))


def _complete(play: Play, agent: DemoAgent, task: str, summary: str) -> None:
    done = agent.call("complete_task", task_id=play.tasks[task], status="success", outcome={"summary": summary})
    entry = play.handrail.ledger.run(LOOKING, lambda unit: unit.get(JournalEntry, play.tasks[task]))
    assert entry is not None, "a task that was begun with a snapshot has one"
    assert entry.report is not None, "it has just been completed"
    files = done["files_changed"]
    names = ", ".join(f"{LETTERS[kind]} {path}" for kind in LETTERS for path in files[kind])
    scope = "as planned" if done["verification"]["scope_match"] else "outside its areas"
    agent.says(f'completes "{task}": {names} ({totals_in_words(totals(entry.report["files"]))}), {scope}')


def _show_patch(play: Play, agent: DemoAgent, task: str) -> None:
    """Shows what the task changed, from its two snapshots: `handrail diff` prints the same."""
    entry = play.handrail.ledger.run(LOOKING, lambda unit: unit.get(JournalEntry, play.tasks[task]))
    assert entry is not None, "completed before this"
    assert entry.after is not None, "completed before this"
    tracker = play.handrail.call.world.tracker()
    patch = b"".join(tracker.patch(snapshot_of(entry.before), snapshot_of(entry.after))).decode()
    agent.says("has this change in the journal:")
    for line in patch.partition("\n@@")[2].splitlines()[1:]:
        if line.startswith(("+", "-")):
            play.stage.patch(line)


def _merge(play: Play, agent: DemoAgent, task: str) -> None:
    folder = _folder(play, task)
    play.ground.git(folder, "add", "-A")
    play.ground.git(folder, "commit", "-qm", task.capitalize(), who=agent.name)
    done = agent.call("workspace_update", id=play.spaces[task]["id"], status="merged", merge=True, remove=True)
    agent.says(f'merges "{task}" into main ({done["status"]})')


def _folder(play: Play, task: str) -> Path:
    return Path(play.spaces[task]["path"])


def _listed(names: list[str]) -> str:
    return " and ".join(f'"{name}"' for name in names)

"""The play, act by act, on a throw-away repository.

The first acts: a plan, claims with worktrees, a blocked reservation, a conflict forecast, journals, merges.

The last acts: a pipeline whose first design is sent back by its review, a gate only a person opens, and the end.

The engine decides what comes next; the play only carries out its actions, as an orchestrating agent would.

What comes next: a larger plan, half done, and a run that waits for you, so that the page has something to show.

It is left unfinished on purpose: open work is what people look at.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from handrail.demo import texts
from handrail.demo.stage import DemoAgent, Ground, Play, Stage, lay_out
from handrail.domain.journal.entry import LETTERS, JournalEntry, totals, totals_in_words
from handrail.domain.journal.journal import LOOKING, snapshot_of
from handrail.domain.pipeline.engine import QUESTIONS
from handrail.wiring import LazyLedger

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


MOST_TURNS = 200
"""The most turns of the loop; anyone who rejects that often has seen enough."""
DESIGN, REVIEW = "design.md", "review-design.md"
VERDICT = "## Verdict: "


class DemoRun(NamedTuple):
    """What a run starts with, and its designs, one per attempt."""

    request: str
    slug: str
    designs: tuple[str, ...]


COUNTS_AS_JSON = DemoRun(texts.REQUEST, "counts-as-json", (texts.FIRST_DESIGN, texts.SECOND_DESIGN))


class Orchestrated:
    """A run, driven by Ada; Ben reviews."""

    def __init__(self, play: Play, wanted: DemoRun = COUNTS_AS_JSON) -> None:
        self._play = play
        self._wanted = wanted
        self._designs = 0
        self._said: list[str] = []
        self._workspace = self._begin_run()

    def _begin_run(self) -> str:
        ada = self._play.ada
        asked = ada.call("pipeline_init", arguments=self._wanted.request, current_branch="main")
        ready = ada.call(
            "pipeline_init_with_context",
            workspace=asked["workspace"],
            task_text=asked["core_text"],
            flags=asked["flags"],
            user_confirmation={"effort": "M", "workspace_slug": self._wanted.slug},
        )
        ada.says(f'begins a run: "{asked["core_text"]}", effort {ready["effort"]}, flow {ready["flow_template"]}')
        return str(ready["workspace"])

    def next(self, **reported: Any) -> dict[str, Any]:
        return self._play.ada.call("pipeline_next_action", workspace=self._workspace, **reported)

    def go(self, *, to_the_gate: bool = False) -> dict[str, Any]:
        """Does what the engine says until it is done, or until a person is needed."""
        action = self.next()
        for _ in range(MOST_TURNS):
            if action["type"] == "done" or (to_the_gate and action["type"] in QUESTIONS):
                return action
            if action["type"] in QUESTIONS:
                action = self._wait_for_you(action)
            else:
                self._write(action)
                action = self.next(previous_action_complete=True, previous_action_id=action["action_id"])
        return action

    def _write(self, action: dict[str, Any]) -> None:
        """Writes the requested document, and reports whose turn it was."""
        name = action["output_file"]
        agent: DemoAgent = self._play.ben if name == REVIEW else self._play.ada
        text = self._text(name)
        self._play.ground.write(self._play.ground.project / self._workspace, {name: text})
        verdict = next((line.removeprefix(VERDICT) for line in text.splitlines() if line.startswith(VERDICT)), None)
        agent.says(f"{action['display_message']}: {verdict or f'writes {name}'}")

    def _text(self, name: str) -> str:
        if name == DESIGN:
            self._designs += 1
            written = self._wanted.designs
            if self._designs <= len(written):
                return written[self._designs - 1]
            return texts.NEXT_DESIGN + "".join(f"{number}. {said}\n" for number, said in enumerate(self._said, 1))
        if name == REVIEW:
            return texts.REVISE if self._designs == 1 else f"{texts.APPROVE}\nThis is look {self._designs}.\n"
        return {"analysis.md": texts.ANALYSIS, "investigation.md": texts.INVESTIGATION}[name]

    def _wait_for_you(self, action: dict[str, Any]) -> dict[str, Any]:
        """The gate: an agent cannot open it, you can."""
        play = self._play
        if not self._said:
            refusal = play.ada.refused("pipeline_next_action", workspace=self._workspace, user_response="approve")
            play.ada.says(f"tries to approve it herself: refused, {refusal.code}")
        play.stage.title("A gate that waits for you")
        answer, said = play.stage.decide(play.handrail.call)
        self._said.append(said or f"{answer}, without a word")
        play.tell("You", f"answer {action['name']}: {answer}" + (f', "{said}"' if said else ""))
        return self.next()


def pipeline(play: Play) -> None:
    """A run up to the gate of its design, and past it once you say so."""
    play.stage.title("A pipeline")
    ended = Orchestrated(play).go()
    play.ada.says(f"is told: {ended['summary']}")


def ending(play: Play) -> None:
    """How much of it is in the ledger, and that the ledger is sound."""
    play.stage.title("What is left of it")
    store = play.handrail.ledger.open()
    events, after = 0, 0
    while page := store.feed(after=after):
        events, after = events + len(page), page[-1].position
    problems = store.verify()
    sound = "verified: every row and every hash agrees" if not problems else f"not sound: {problems[0]}"
    play.tell("Ledger", f"{events} events, {sound}")


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


ACTS = (plan, claims, foresight, journals, pipeline, what_comes_next, ending)


def perform(ground: Ground, stage: Stage, ledger: LazyLedger | None = None) -> None:
    """Runs all of it, from an empty folder to the last line; uses the project's own store unless another is given."""
    lay_out(ground)
    play = Play(ground, stage, ledger)
    try:
        for act in ACTS:
            act(play)
    finally:
        play.handrail.ledger.open().engine.close()

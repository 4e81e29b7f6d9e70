"""`handrail status`, `next`, `show`, `why` and `done` as a person uses them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.gates.gate import Gate
from handrail.kernel.clock import FixedClock
from handrail.kernel.ids import CountingIds
from handrail.kernel.ledger import Actor
from handrail.store.open_engine import open_engine
from handrail.store.store import Store
from handrail.surfaces.cli.columns import width
from handrail.surfaces.cli.main import cli

TASKS = [
    {"name": "wrap", "description": "Wrap the fetch", "sequence": 1, "priority": 5, "acceptance": ["it retries"]},
    {"name": "test", "description": "Test it", "sequence": 3, "depends_on": ["wrap"]},
    {"name": "test proxy", "description": "With a proxy", "sequence": 4, "parent": "test"},
    {"name": "docs", "description": "Say so", "sequence": 2},
    {"name": "deploy", "description": "Ship it", "sequence": 5, "depends_on": ["test", "docs"]},
]
HOSTILE = "\x1b[31mre\x07d\n日本語の名前 " + "x" * 150


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def run(project: Path, *argv: str, env: dict[str, str] | None = None, color: bool = False) -> click.testing.Result:
    home = {"HOME": str(project.parent / "home"), "LOGNAME": "ann", "COLUMNS": "80"}
    runner = click.testing.CliRunner(env={**home, **(env or {})})
    return runner.invoke(cli, [*argv, "--root", str(project)], prog_name="handrail", color=color)


def shown(project: Path, *argv: str) -> str:
    done = run(project, *argv)
    assert done.exit_code == 0, done.output
    return done.stdout


def run_json(project: Path, *argv: str) -> Any:
    done = run(project, *argv, "--json")
    assert done.exit_code == 0, done.output
    return msgspec.json.decode(done.stdout)


def call(project: Path, tool: str, *more: str, **arguments: Any) -> Any:
    text = msgspec.json.encode(arguments).decode()
    return run_json(project, "call", tool, text, "--toolsets", "workflow,task,checkpoint", *more)


def begin(project: Path, name: str = "Retry imports", tasks: list[dict[str, Any]] | None = None, *more: str) -> str:
    made = call(project, "workflow_create", *more, name=name, source_type="prompt", source_content="Survive hang-ups.")
    plan = {"summary": "Retry", "approach": "With backoff", "risks": ["slow tests"], "tasks": tasks or TASKS}
    call(project, "workflow_set_plan", *more, id=made["id"], plan=plan)
    return str(made["id"])


def task_id(project: Path, name: str) -> str:
    return str(run_json(project, "show", name)["id"])


def move(project: Path, name: str, *statuses: str) -> None:
    for status in statuses:
        words = {"outcome": "Retries five times", "error": "the proxy hangs"}
        call(project, "task_update_status", id=task_id(project, name), status=status, **words)


def refused(project: Path, *argv: str) -> str:
    done = run(project, *argv)
    assert done.exit_code == 1, done.output
    assert done.stdout == ""
    return done.stderr


# -- nothing there ----------------------------------------------------------------------------------------------------


def test_looking_makes_no_store(project: Path) -> None:
    assert "No workflow is open here." in shown(project, "status")
    assert "workflow_create" in shown(project, "status")
    assert run_json(project, "status") == {
        "workflows": [],
        "questions": [],
        "more_workflows": 0,
        "elsewhere": 0,
        "unread_messages": 0,
    }
    assert "NOTHING_OPEN" in refused(project, "next")
    assert "NOT_FOUND" in refused(project, "show", "x")
    assert "NOT_FOUND" in refused(project, "why", "x")
    assert "RUN_NOT_FOUND" in refused(project, "done", "x")
    assert not (project / ".handrail").exists()


def test_a_store_nobody_knows_is_refused_as_everywhere(project: Path) -> None:
    assert "STORE_UNUSABLE" in refused(project, "status", "--db", "mysql://h/d")


# -- status -----------------------------------------------------------------------------------------------------------


def test_status_shows_how_far_everything_is(project: Path) -> None:
    key = begin(project)
    before = shown(project, "status")
    assert f"Retry imports  {key}  ready" in before
    assert "0/5 done, 2 ready, 3 blocked" in before
    assert '"Retry imports" is idle; "wrap" is ready: start it' in before
    move(project, "wrap", "in_progress")
    assert re.search(r"▶ wrap  for .+; no checkpoint yet", shown(project, "status"))
    call(project, "checkpoint_add", task_id=task_id(project, "wrap"), type="progress", summary="Backs off")
    assert re.search(r"▶ wrap  for .+ ago: Backs off", shown(project, "status"))
    move(project, "wrap", "completed")
    move(project, "docs", "in_progress", "failed")
    after = shown(project, "status")
    assert "[####----------------] 1/5 done\n    1 failed, 1 ready, 1 with open subtasks, 1 blocked\n" in after
    assert re.search(r"✗ docs  failed .+ ago: the proxy hangs", after)
    assert all(width(line) <= 80 for line in after.splitlines())


def test_every_line_about_a_task_whose_agent_is_gone_says_so(project: Path) -> None:
    begin(project, "Import", [{"name": "parse", "description": "", "sequence": 1}])
    crew = ("--toolsets", "agent", "--set", "heartbeat_ms=10")
    agent = call(project, "agent_register", *crew, name="Ben", runtime="codex")["id"]
    call(project, "task_claim", *crew, task_id=task_id(project, "parse"), agent_id=agent, start=True)
    while not run_json(project, "status")["workflows"][0]["left"]:
        continue  # its claim lasts for a few hundredths of a second
    told = " ".join(shown(project, "show", "parse").split())
    assert f"sequence 1, left by Ben ({agent})" in told
    assert "with Ben" not in told
    told = " ".join(shown(project, "status").split())
    assert "0/1 done, 1 left by its agent" in told
    assert "▶ parse in progress, left by Ben, who was last heard from" in told
    assert "under way" not in told
    (workflow,) = run_json(project, "status")["workflows"]
    assert (workflow["left"], workflow["running"][0]["left"]) == (1, True)


def test_status_as_json_is_for_programs(project: Path) -> None:
    key = begin(project)
    move(project, "wrap", "in_progress")
    call(project, "checkpoint_add", task_id=task_id(project, "wrap"), type="progress", summary="Backs off")
    (workflow,) = run_json(project, "status")["workflows"]
    assert (workflow["id"], workflow["status"]) == (key, "in_progress")
    assert (workflow["total_tasks"], workflow["finished_tasks"], workflow["ready_tasks"]) == (5, 0, 1)
    assert workflow["by_status"]["blocked"] == 3
    (running,) = workflow["running"]
    assert (running["name"], running["last_checkpoint"]["summary"]) == ("wrap", "Backs off")
    assert running["for_ms"] >= 0
    assert workflow["why"].startswith('"Retry imports" is under way:')


def test_status_of_one_workflow_shows_it_even_when_it_has_ended(project: Path) -> None:
    begin(project, "one")
    begin(project, "two")
    assert len(run_json(project, "status")["workflows"]) == 2
    assert [one["name"] for one in run_json(project, "status", "two")["workflows"]] == ["two"]
    shown(project, "done", "two", "--abandon")
    assert [one["name"] for one in run_json(project, "status")["workflows"]] == ["one"]
    assert [one["status"] for one in run_json(project, "status", "two")["workflows"]] == ["abandoned"]


def test_status_says_how_many_more_there_are(project: Path) -> None:
    tasks = [{"name": f"t{n}", "description": "", "sequence": n} for n in range(7)]
    begin(project, tasks=tasks)
    for task in tasks:
        move(project, str(task["name"]), "in_progress")
    assert "and 2 more under way or failed" in shown(project, "status")
    assert "more under way" not in shown(project, "status", "Retry imports")


def test_status_shows_what_waits_for_a_person(project: Path) -> None:
    key = begin(project)
    engine = open_engine("", project=project, version="0", durable=False)
    question = Gate(
        id="gate_1",
        workflow_id=key,
        task_id=task_id(project, "wrap"),
        status="open",
        question="Is the schema right?",
        options=["approve", "reject"],
        content_hash="",
        answer=None,
        feedback=None,
        answered_by=None,
        channel=None,
        created_at=1,
        answered_at=None,
    )
    store = Store(engine, clock=FixedClock(), ids=CountingIds())
    store.run(Actor("tester", "test"), lambda unit: unit.record("gate.opened", question))
    engine.close()
    assert "Waiting for you\n  ? Is the schema right? (approve / reject), for " in shown(project, "status")
    assert run_json(project, "status")["questions"][0]["id"] == "gate_1"
    assert 'a person to answer "Is the schema right?"' in shown(project, "why", "deploy").replace("\n", " ")


def test_one_store_for_all_repositories_shows_this_one_first(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    begin(other, "Elsewhere", None, "--global")
    here = shown(project, "status", "--global")
    assert "No workflow is open here." in here
    assert "1 open in other repositories of this store: handrail status --all" in here
    assert [one["name"] for one in run_json(project, "status", "--global", "--all")["workflows"]] == ["Elsewhere"]
    assert f"in {str(other)[:60]}" in shown(project, "status", "--global", "--all")


# -- next -------------------------------------------------------------------------------------------------------------


def test_next_is_the_best_first_and_says_why(project: Path) -> None:
    key = begin(project)
    text = shown(project, "next")
    assert "1 may run at once, 0 are under way: start the first" in text
    assert re.search(r"1 ○ wrap  task_\w+\n +Wrap the fetch\n +priority 5, the next has 0; unblocks 2\n", text)
    assert re.search(r"2 ○ docs  task_\w+\n +Say so\n +unblocks 1\n", text)
    (found,) = run_json(project, "next")["workflows"]
    assert (found["workflow_id"], found["workflow_name"]) == (key, "Retry imports")
    assert [(task["name"], task["reason"]) for task in found["tasks"]] == [
        ("wrap", "priority 5, the next has 0"),
        ("docs", ""),
    ]
    assert found["recommended_count"] == 1


def test_next_says_to_wait_where_as_much_runs_as_may(project: Path) -> None:
    begin(project)
    move(project, "wrap", "in_progress")
    text = shown(project, "next")
    assert "1 may run at once, 1 is under way: wait until one ends" in text
    assert "nothing else is ready" in text
    assert re.search(r"^ +○ docs  task_", text, re.MULTILINE), "what has to wait has no number"


def test_next_shows_no_more_than_asked_for_and_still_says_why(project: Path) -> None:
    begin(project)
    (found,) = run_json(project, "next", "--limit", "1")["workflows"]
    assert [task["reason"] for task in found["tasks"]] == ["priority 5, the next has 0"]


def test_next_without_anything_ready_says_what_is_the_matter(project: Path) -> None:
    begin(project, tasks=[{"name": "only", "description": "", "sequence": 1}])
    move(project, "only", "in_progress")
    assert '"Retry imports" is under way: "only" has been in progress' in shown(project, "next")


def test_next_goes_through_every_open_workflow_or_the_one_named(project: Path) -> None:
    begin(project, "one")
    begin(project, "two")
    assert [found["workflow_name"] for found in run_json(project, "next")["workflows"]] == ["two", "one"]
    assert [found["workflow_name"] for found in run_json(project, "next", "one")["workflows"]] == ["one"]


# -- show -------------------------------------------------------------------------------------------------------------


def test_a_workflow_is_shown_as_a_tree_with_a_mark_for_each_state(project: Path) -> None:
    begin(project)
    move(project, "wrap", "in_progress", "completed")
    move(project, "test proxy", "in_progress", "failed")
    text = shown(project, "show", "Retry imports")
    tree = text[text.index("\nTasks\n") :].splitlines()[2:]
    assert tree == [
        "  ✓ wrap          completed: Retries five times",
        "  ○ docs          ready",
        "  · test          waits for its subtasks",
        "    ✗ test proxy  failed: the proxy hangs",
        "  · deploy        waits for test, docs",
    ]
    assert "Survive hang-ups." in text
    assert "slow tests" in text
    document = run_json(project, "show", "Retry imports")
    assert [task["name"] for task in document["tasks"]] == ["wrap", "docs", "test", "test proxy", "deploy"]
    assert document["tasks"][3]["parent_task_id"] == document["tasks"][2]["id"]


def test_a_tree_that_is_cut_says_so(project: Path) -> None:
    begin(project)
    assert "and 3 more: --limit shows more of them" in shown(project, "show", "Retry imports", "--limit", "2")


def test_a_task_is_shown_with_everything_about_it(project: Path) -> None:
    begin(project)
    key = task_id(project, "wrap")
    plan = {"approach": "A decorator", "steps": ["write it", "use it"], "files_to_modify": ["fetch.py"]}
    call(project, "task_set_plan", id=key, plan=plan)
    move(project, "wrap", "in_progress")
    for number in range(7):
        call(
            project,
            "checkpoint_add",
            task_id=key,
            type="progress",
            summary=f"step {number}",
            files_changed=[f"file{number}.py"],
        )
    move(project, "wrap", "completed")
    text = shown(project, "show", "wrap")
    for part in (
        "Wrap the fetch",
        "it retries",
        "A decorator",
        "1. write it",
        "modifies fetch.py",
        "Retries five times",
    ):
        assert part in text
    assert "Checkpoints, the newest 5 of 7" in text
    assert "step 6" in text
    assert "step 1\n" not in text
    assert "file0.py" in text
    assert "2 tasks waited for it." in text
    document = run_json(project, "show", "wrap", "--checkpoints", "2")
    assert [one["summary"] for one in document["checkpoints"]] == ["step 6", "step 5"]
    assert len(document["files_changed"]) == 7
    assert (document["status"], document["workflow_name"]) == ("completed", "Retry imports")


def test_a_task_is_shown_with_what_it_waits_for_and_its_parts(project: Path) -> None:
    begin(project)
    text = shown(project, "show", "test")
    assert "Waits for\n  ○ wrap  ready" in text
    assert "Subtasks\n  · test proxy  waits for 1 task" in text
    assert 'part of "test"' in shown(project, "show", "test proxy")
    assert [need["name"] for need in run_json(project, "show", "deploy")["needs"]] == ["docs", "test"]


# -- which one is meant -----------------------------------------------------------------------------------------------


def test_a_thing_is_meant_by_id_by_the_beginning_of_its_id_or_by_its_name(project: Path) -> None:
    workflow = begin(project)
    task = task_id(project, "wrap")
    for text, key in ((task, task), (task[:-2], task), ("wr", task), (workflow, workflow), ("Retry", workflow)):
        assert run_json(project, "show", text)["id"] == key
    assert run_json(project, "show", "test")["name"] == "test"


def test_what_could_mean_several_is_refused_with_the_candidates(project: Path) -> None:
    begin(project, "one")
    begin(project, "two")
    said = refused(project, "why", "deploy")
    assert "SEVERAL_OPEN" in said
    for name in ("one", "two"):
        assert re.search(rf'task_\w+ \(blocked, in "{name}"\)', said)
    assert "SEVERAL_OPEN: task_ could mean any of" in refused(project, "show", "task_")
    assert "SEVERAL_OPEN: wf_ could mean any of 2" in refused(project, "done", "wf_")


def test_what_changes_a_thing_guesses_nothing(project: Path) -> None:
    begin(project)
    assert "did you mean Retry imports?" in refused(project, "done", "Retry", "--abandon")
    for command in (("done", "", "--abandon"), ("done", " "), ("release", ""), ("show", ""), ("status", "")):
        done = run(project, *command)
        assert (done.exit_code, "The name is empty." in done.stderr) == (2, True), command
    (project / "more.md").write_text("# More\n- [ ] one\n", encoding="utf-8")
    assert "did you mean" in refused(project, "import", str(project / "more.md"), "--into", "Retry")
    assert "there is no task or workflow wra" in refused(project, "release", "wra")
    assert shown(project, "done", "retry  imports", "--abandon").startswith('"Retry imports" is abandoned')


def test_a_name_is_meant_as_it_is_shown(project: Path) -> None:
    begin(project, "two\nlines")
    begin(project, "cafe\u0301")
    assert run_json(project, "show", "two lines")["name"] == "two\nlines"
    assert run_json(project, "show", "Caf\u00e9")["name"] == "cafe\u0301"


def test_a_mistyped_name_gets_the_nearest(project: Path) -> None:
    begin(project)
    assert "did you mean deploy?" in refused(project, "why", "delpoy")
    assert "did you mean Retry imports?" in refused(project, "done", "Rety imports")


def test_only_a_workflow_is_done(project: Path) -> None:
    begin(project)
    assert "RUN_NOT_FOUND" in refused(project, "done", "wrap")
    assert "is a task, not a workflow" in refused(project, "done", task_id(project, "wrap"))
    assert "is a workflow; agents hold tasks" in refused(project, "release", "Retry imports")


def test_names_of_other_repositories_are_not_meant(project: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    begin(other, "Elsewhere", None, "--global")
    assert "NOT_FOUND" in refused(project, "why", "deploy", "--global")


def test_bytes_that_are_no_text_find_nothing(project: Path) -> None:
    begin(project)
    assert "NOT_FOUND" in refused(project, "show", "\udcff")


# -- why --------------------------------------------------------------------------------------------------------------


def test_why_follows_the_waiting_to_what_can_move(project: Path) -> None:
    begin(project)
    move(project, "docs", "in_progress", "completed")
    move(project, "wrap", "in_progress", "failed")
    text = shown(project, "why", "deploy")
    said = " ".join(text.split())
    assert re.match(
        r'"deploy" waits for "test", which waits for "wrap"; "wrap" failed .+ ago \("the proxy hangs"\): '
        r"retry it or skip it\. ✗ wrap task_\w+$",
        said,
    )
    found = run_json(project, "why", "deploy")
    assert found["path"] == ["deploy", "test", "wrap"]
    assert (found["causes"][0]["name"], found["causes"][0]["moves"]) == ("wrap", ["pending", "in_progress", "skipped"])


def test_why_of_a_workflow_says_what_would_move_it(project: Path) -> None:
    begin(project)
    assert shown(project, "why", "Retry imports").startswith('"Retry imports" is idle; "wrap" is ready: start it')


# -- done -------------------------------------------------------------------------------------------------------------


def test_a_workflow_with_open_tasks_is_not_done_and_they_are_named(project: Path) -> None:
    begin(project)
    move(project, "wrap", "in_progress", "completed")
    said = refused(project, "done", "Retry imports")
    assert "TASKS_OPEN" in said
    assert "(deploy)" in said
    assert f"`handrail done {task_id(project, 'Retry imports')} --abandon`" in said, "a command, not a tool's move"
    assert run_json(project, "status")["workflows"][0]["status"] == "in_progress"


def test_a_finished_workflow_is_done_by_the_person_and_can_be_taken_back(project: Path) -> None:
    key = begin(project, tasks=TASKS[:1])
    move(project, "wrap", "in_progress", "completed")
    for argv in (["status"], ["next"], ["show", key], ["why", key]):
        assert f"complete it (`handrail done {key}`)" in " ".join(shown(project, *argv).split())
    done = run_json(project, "done", "Retry imports", "--reason", "shipped")
    assert done == {"id": key, "name": "Retry imports", "status": "completed", "open_tasks": 0, "reason": "shipped"}
    event = run_json(project, "log")[-1]
    assert (event["actor"], event["channel"], event["kind"]) == ("ann", "cli", "workflow.completed")
    assert event["data"] == {"reason": "shipped"}
    assert "ILLEGAL_TRANSITION" in refused(project, "done", key)
    shown(project, "undo")
    assert run_json(project, "status")["workflows"][0]["status"] == "in_progress"


def test_an_unfinished_workflow_can_be_abandoned(project: Path) -> None:
    begin(project)
    assert shown(project, "done", "Retry imports", "--abandon") == (
        '"Retry imports" is abandoned with 5 tasks open. `handrail undo` takes it back.\n'
    )
    assert run_json(project, "status")["workflows"] == []


def test_a_reason_that_is_too_long_is_refused(project: Path) -> None:
    key = begin(project)
    done = run(project, "done", key, "--abandon", "--reason", "x" * 5000)
    assert (done.exit_code, "reason must have at most" in done.stderr) == (2, True)


# -- on a terminal ----------------------------------------------------------------------------------------------------


def hostile_plan(project: Path) -> str:
    tasks = [
        {"name": HOSTILE, "description": HOSTILE * 3, "sequence": 1},
        {"name": "part", "description": "", "sequence": 1, "parent": HOSTILE},
        {"name": ("inner " * 20).strip(), "description": "", "sequence": 1, "parent": "part"},
        {"name": "後" * 100, "description": "", "sequence": 2, "depends_on": [HOSTILE]},
    ]
    key = begin(project, HOSTILE, tasks)
    move(project, ("inner " * 20).strip(), "in_progress")
    call(
        project,
        "checkpoint_add",
        task_id=task_id(project, ("inner " * 20).strip()),
        type="progress",
        summary=HOSTILE * 2,
    )
    return key


def test_every_line_fits_and_no_text_of_an_agent_commands_the_terminal(project: Path) -> None:
    key = hostile_plan(project)
    wide = task_id(project, "後" * 100)
    for argv in (("status",), ("next",), ("show", key), ("show", wide), ("show", "part"), ("why", wide), ("why", key)):
        for line in shown(project, *argv).splitlines():
            assert width(line) <= 80, (argv, line)
            assert line.isprintable(), (argv, line)


def test_colour_is_for_terminals_that_want_it(project: Path) -> None:
    begin(project)
    assert "\x1b[" not in run(project, "status").stdout
    assert "\x1b[" in run(project, "status", color=True).stdout
    assert "\x1b[" not in run(project, "status", color=True, env={"NO_COLOR": "1"}).stdout


@pytest.mark.parametrize("command", ["status", "next", "show", "why", "done"])
def test_every_command_takes_the_common_options(command: str) -> None:
    done = click.testing.CliRunner().invoke(cli, [command, "--help"])
    assert all(option in done.output for option in ("--root", "--db", "--global", "--json"))

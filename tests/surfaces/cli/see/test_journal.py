"""`handrail journal`, `report` and `decisions` as a person uses them, after an agent worked in a real repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from handrail.domain.journal.timeline import TimelineMoment
from handrail.surfaces.cli.columns import width
from handrail.surfaces.cli.see.journal import _text
from tests.surfaces.cli.journalled import Project

ROOT = Path(__file__).parents[4]
HOSTILE = "\x1b[31mre\x07d\n# 日本語 <script>](x) " + "x" * 150
PLAN = [{"step": "1", "goal": "Middleware"}, {"step": "then", "goal": "Routes"}]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def authenticated(project: Project) -> tuple[str, str]:
    """A workflow with one task that did a bit of everything, and the task."""
    workflow = project.workflow(description="Let people sign in", plan=PLAN)
    task = project.task(workflow, areas=["auth"], plan_step="1")
    project.write("src/auth.py", "def check():\n    return True\n")
    project.commit("auth")
    project.tool("log_milestone", task_id=task, message="Running tests...", progress=75)
    first = project.decide(task, options_considered=["jose", "pyjwt"], trade_offs="Larger")
    project.decide(task, chosen="pyjwt", supersedes=first)
    project.issue(task, review=True)
    project.write("utils.py", "x = 1\n")
    project.complete(
        task,
        "Tokens are verified",
        achievements=["Tests pass"],
        limitations=["No refresh tokens"],
        next_steps=["Refresh tokens"],
        metadata={"packages_added": ["pyjwt"], "commands_executed": ["pytest"], "tests_status": "passed"},
    )
    return workflow, task


# -- journal ----------------------------------------------------------------------------------------------------------


def test_a_workflows_journal_tells_what_happened_in_order_as_the_page_shows(project: Project) -> None:
    workflow, _ = authenticated(project)
    page = (ROOT / "docs" / "journal-for-people.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    assert project.shown("journal", workflow, width=100) == block


def test_a_tasks_journal_tells_all_of_it(project: Project) -> None:
    _, task = authenticated(project)
    text = project.shown("journal", task)
    assert text.startswith('Setup JWT  task_1  completed\nin "Add authentication" (wf_1)\n')
    assert "achieved: Tests pass" in text
    assert "limitation: No refresh tokens" in text
    assert "next: Refresh tokens" in text


def test_a_decision_that_no_longer_holds_is_marked_wherever_it_is_shown(project: Project) -> None:
    _, task = authenticated(project)
    decided = [line.split("◆ ")[1] for line in project.shown("journal", task).splitlines() if "◆" in line]
    kinds = [line.split(":")[0] for line in decided]
    assert kinds == ["decided (library choice, superseded)", "decided (library choice)"]
    (first, second) = [one for one in project.json("journal", task)["moments"] if one["kind"] == "decision"]
    assert (first["superseded_by"], second.get("superseded_by")) == (second["id"], None)
    assert re.findall(r"decision.*?,", project.shown("show", task)) == ["decision,", "decision (superseded),"]
    notes = [one for one in project.json("show", task)["checkpoints"] if one["type"] == "decision"]
    assert [one.get("superseded_by") for one in notes] == [None, second["id"]]
    found = project.json("search", "jose", "--kind", "decision")["found"]
    assert [one["superseded_by"] for one in found] == [second["id"]]
    assert "superseded, 2026-01-15" in project.shown("search", "jose")
    assert "superseded" not in project.shown("search", "jose", "--kind", "task")
    assert "superseded" not in project.shown("search", "pyjwt", "--kind", "decision", "--limit", "1")


def test_an_issue_and_its_resolution_are_told_apart(project: Project) -> None:
    task = project.task(project.workflow())
    project.issue(task, "The docs do not say how many retries")
    assert "The docs do not say how many retries → Read the source" in " ".join(project.shown("show", task).split())


def test_an_imported_note_is_found_under_the_time_at_which_it_was_written(project: Project, tmp_path: Path) -> None:
    workflow, _ = authenticated(project)
    plan = tmp_path / "plan.jsonl"
    project.shown("export", workflow, "--format", "jsonl", "-o", str(plan))
    other = Project(tmp_path / "other")
    other.shown("import", str(plan))
    (found,) = other.json("search", "jose", "--kind", "decision")["found"]
    assert found["written_at"] == "2026-01-15T10:08:00Z"
    assert other.json("search", "jose", "--kind", "decision", "--since", "1d")["found"] == []
    assert len(other.json("search", "jose", "--kind", "decision", "--since", "2026-01-15")["found"]) == 1


def test_json_has_every_moment_with_its_time_and_parts(project: Project) -> None:
    _, task = authenticated(project)
    found = project.json("journal", task)
    assert (found["workflow_id"], found["task_status"], found["earlier"]) == ("wf_1", "completed", False)
    kinds = [moment["kind"] for moment in found["moments"]]
    assert kinds == ["began", "milestone", "decision", "decision", "issue", "asked", "ended"]
    assert found["moments"][0]["at"] == "2026-01-15T10:06:00Z"
    assert found["moments"][1]["progress"] == 75
    ended = found["moments"][-1]
    assert (ended["status"], ended["duration_ms"], ended["unexpected"]) == ("success", 14 * 60_000, ["utils.py"])
    assert [change["path"] for change in ended["files"]] == ["src/auth.py", "utils.py"]


def test_without_a_name_it_is_the_workflow_that_moved_last(project: Project) -> None:
    assert "NOTHING_OPEN" in project.refused("journal")
    assert not (project.top / ".handrail").exists()
    authenticated(project)
    project.task(project.workflow("Second"))
    text = project.shown("journal")
    assert text.startswith("Second  wf_2")
    assert "1 other workflow is open here; name one to see what happened in it." in text


def test_the_newest_moments_are_shown_and_the_cut_is_named(project: Project) -> None:
    workflow, _ = authenticated(project)
    found = project.json("journal", workflow, "--limit", "2")
    assert ([moment["kind"] for moment in found["moments"]], found["earlier"]) == (["asked", "ended"], True)
    assert "earlier moments are not shown" in project.shown("journal", workflow, "--limit", "2")


def test_every_attempt_at_a_task_is_there(project: Project) -> None:
    workflow = project.workflow()
    task = project.task(workflow, "Try")
    project.write("first.txt", "x\n")
    project.complete(task, "The proxy hangs", "failed")
    project.task(workflow, "Try", goal="Once more")
    project.write("second.txt", "x\n")
    project.complete(task, "It works")
    moments = project.json("journal", task)["moments"]
    ends = [(moment["kind"], moment.get("status")) for moment in moments if moment["kind"] in ("began", "ended")]
    assert ends == [("began", None), ("ended", "failed"), ("ended", "success")]
    said = ["Verify tokens", "The proxy hangs", "Taken up again: Once more", "It works"]
    assert [moment["text"] for moment in moments] == said
    assert [change["path"] for change in moments[3]["files"]] == ["first.txt", "second.txt"]


def test_an_attempt_under_way_leaves_the_failed_one_as_it_was(project: Project) -> None:
    workflow = project.workflow()
    task = project.task(workflow, "Try")
    project.complete(task, "The proxy hangs", "failed")
    project.task(workflow, "Try")
    failed = project.json("journal", task)["moments"][1]
    assert (failed["status"], failed["duration_ms"]) == ("failed", 10 * 60_000)


def test_tasks_of_a_plan_are_told_of_without_a_journal(project: Project) -> None:
    made = project.tool("workflow_create", name="Plan", source_type="prompt", source_content="Do it")
    tasks = [{"name": name, "description": f"Do {name}", "sequence": 1} for name in ("one", "two", "three")]
    project.tool("workflow_set_plan", id=made["id"], plan={"summary": "s", "approach": "a", "tasks": tasks})
    one, two, three = (project.json("show", name)["id"] for name in ("one", "two", "three"))
    project.tool("task_update_status", id=one, status="in_progress")
    project.tool("checkpoint_add", task_id=one, type="progress", summary="Half of it")
    project.tool("task_update_status", id=one, status="completed", outcome="All of it")
    project.tool("task_update_status", id=two, status="in_progress")
    project.tool("task_update_status", id=two, status="failed", error="No network")
    project.tool("task_update_status", id=three, status="skipped")
    told = [line[10:] for line in project.shown("journal", "Plan").splitlines()[4:]]
    assert told == [
        "▶ one    began: Do one",
        "· one    progress: Half of it",
        "✓ one    completed after 2 minutes: All of it",
        "▶ two    began: Do two",
        "✗ two    failed after 1 minute: No network",
        "– three  skipped",
    ]


def test_a_tasks_journal_has_its_subtasks(project: Project) -> None:
    workflow = project.workflow()
    main = project.task(workflow, "Main")
    part = project.task(workflow, "Part", parent_task_id=main)
    project.task(workflow, "Beside")
    project.complete(part)
    assert re.findall(r"  [▶✓] (\w+)", project.shown("journal", main)) == ["Main", "Part", "Part"]


def test_the_end_of_a_workflow_is_a_moment(project: Project) -> None:
    workflow, _ = authenticated(project)
    project.shown("done", workflow)
    assert project.shown("journal", workflow).splitlines()[-1].endswith("✓            the workflow was completed")


def test_a_file_outside_the_areas_is_marked_and_not_told_of_twice(project: Project) -> None:
    workflow, task = authenticated(project)
    for thing in (workflow, task):
        assert project.shown("journal", thing).count("outside") == 1
    assert project.json("journal", task)["moments"][-1]["warnings"], "programs get what the tool said"


def test_files_outside_the_areas_that_are_not_listed_are_counted(project: Project) -> None:
    workflow = project.workflow()
    task = project.task(workflow, "Many", areas=["auth"])
    for number in range(30):
        project.write(f"file{number:02}.txt", "x\n")
    project.complete(task, "Done")
    assert "⚠️ 30 files lie outside its areas (auth)" in project.shown("journal", workflow)


def test_where_nothing_was_asked_for_nothing_is_promised() -> None:
    assert _text(TimelineMoment(at=0, kind="created", text="")) == "the workflow was made"
    assert _text(TimelineMoment(at=0, kind="began", text="")) == "began"
    assert _text(TimelineMoment(at=0, kind="created", text="More speed")) == "asked for: More speed"


# -- report -----------------------------------------------------------------------------------------------------------


def test_a_report_tells_of_goal_plan_work_and_what_is_left(project: Project) -> None:
    workflow, _ = authenticated(project)
    text = project.shown("report", workflow)
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == [
        "Goal",
        "Plan",
        "Totals",
        "Critical path",
        "Tasks",
        "Outside the declared areas",
        "Decisions",
        "Issues",
        "Limitations",
        "Questions to people",
    ]
    for part in (
        "> Let people sign in",
        "1. Middleware\n2. then: Routes",
        "- Tasks: 1 of 1 (completed or skipped; 1 done)",
        "- Agents at work: 14 minutes (added up over all of them)",
        "- Changes: +3 −0 (lines in 2 changes of 2 files)",
        "- Out of scope: 1 (files outside their task's areas)",
        "- Decisions: 2 (1 of them superseded)",
        "- Issues: 1 (1 with a resolution)",
        "- Asked of people: 1 (1 look that nothing waited for; 1 still open)",
        "| Setup JWT | ✓ done |  | 1 | 14 minutes | 2 files, +3 −0 |",
        "### Setup JWT (done: success)",
        "`task_1`; begun 2026-01-15 10:06 UTC; took 14 minutes; areas: `auth`; step 1 of the plan",
        "Goal:\n\n> Verify tokens\n",
        "Outcome:\n\n> Tokens are verified\n",
        "- Achieved: Tests pass",
        "- Limitation: No refresh tokens",
        "- Next: Refresh tokens",
        "- Commands: `pytest`",
        "- Packages added: `pyjwt`",
        "- Tests, as the agent says: passed",
        "- ⚠️ Outside its areas (auth): `utils.py`",
        "Changed: 2 files, +3 −0\n\n- added `src/auth.py` +2\n- added `utils.py` +1\n",
        "- `utils.py` by Setup JWT",
        "### Which library? (superseded)\n\nlibrary choice; 2026-01-15 10:08 UTC",
        "; `cp_2`; superseded by `cp_3`",
        "> jose\n\n> It is maintained\n",
        "- Considered: jose, pyjwt",
        "- Trade-offs: Larger",
        "- documentation gap, in Setup JWT, 2026-01-15 10:10 UTC: The docs are old",
        "  - Resolved: Read the source",
        "  - A person was asked to look at it",
        "- Setup JWT: No refresh tokens",
        "- Setup JWT: The docs are old (review `gate_1`, asked 2026-01-15 10:10 UTC, in Setup JWT)\n  - Open for ",
    ):
        assert part in text, part


def test_a_report_of_nothing_much_has_no_empty_sections(project: Project) -> None:
    text = project.shown("report", project.workflow("Small"))
    assert re.findall(r"^## (.+)$", text, flags=re.MULTILINE) == ["Goal", "Totals"]
    assert "- Tasks: 0 (nothing is planned yet)\n" in text


def test_every_command_writes_the_same_report(project: Project) -> None:
    workflow, _ = authenticated(project)
    assert project.shown("report", workflow) == project.shown("export", workflow, "--format", "md")


def test_a_report_shows_hostile_text_as_it_was_typed(project: Project) -> None:
    typed = "&lt;b&gt; <i>x</i> `a|b` | \\| half ` [x](y) a &amp;"
    shown = "&amp;lt;b&amp;gt; &lt;i>x&lt;/i> `a|b` | &#92;| half &#96; [x&#93;(y) a &amp;amp;"
    in_cell = "&amp;lt;b&amp;gt; &lt;i>x&lt;/i> &#96;a&#124;b&#96; &#124; &#92;&#124; half &#96; [x&#93;(y) a &amp;amp;"
    workflow = project.workflow(typed, description=typed)
    task = project.task(workflow, typed, "Goal " + typed)
    project.decide(task, typed, "Chosen " + typed)
    project.complete(task, "Outcome\n" + typed)
    text = project.shown("report", workflow)
    assert f"# {shown}\n" in text
    assert f"## Goal\n\n> {shown}\n" in text
    assert f"| {in_cell} | ✓ done |" in text
    assert f"\n### {shown} (done: success)\n" in text
    assert f"> Goal {shown}\n" in text
    assert f"> Outcome\n> {shown}\n" in text
    assert f"> Chosen {shown}\n" in text


def test_a_report_goes_into_a_file_that_is_not_there_yet(project: Project, tmp_path: Path) -> None:
    workflow, _ = authenticated(project)
    file = tmp_path / "report.md"
    assert project.shown("report", workflow, "--output", str(file)) == f"wrote {file}\n"
    assert file.read_text(encoding="utf-8") == project.shown("report", workflow)
    file.write_text("mine", encoding="utf-8")
    assert "is there already" in project.refused("report", workflow, "--output", str(file), code=2)
    assert file.read_text(encoding="utf-8") == "mine"
    assert project.json("report", workflow, "--output", str(file), "--force") == {"output": str(file)}
    assert file.read_text(encoding="utf-8") == project.json("report", workflow)["markdown"]
    assert "cannot be written" in project.refused("report", workflow, "--output", str(tmp_path / "no" / "file"))


def test_a_report_in_a_pipe_is_utf_8_even_where_names_are_not(project: Project) -> None:
    workflow = project.workflow()
    task = project.task(workflow)
    project.write(b"caf\xe9.txt", "x\n")
    project.complete(task)
    assert '- added `"caf\\351.txt"` +1' in project.run("report", workflow).stdout_bytes.decode()


# -- decisions --------------------------------------------------------------------------------------------------------


def test_decisions_are_listed_with_their_reasons_and_what_replaced_them(project: Project) -> None:
    assert "Nothing was decided here yet" in project.shown("decisions")
    authenticated(project)
    assert project.shown("decisions").splitlines() == [
        "Which library? (superseded)",
        "  jose: It is maintained",
        "  trade-offs: Larger",
        "  cp_2, library choice, 2026-01-15, in Setup JWT",
        "  superseded by cp_3: Which library? pyjwt: It is maintained",
        "",
        "Which library?",
        "  pyjwt: It is maintained",
        "  cp_3, library choice, 2026-01-15, in Setup JWT",
    ]
    first, second = project.json("decisions")["decisions"]
    assert (first["superseded_by"], second["superseded_by"]) == ("cp_3", None)
    assert (first["options_considered"], first["created_at"]) == (["jose", "pyjwt"], "2026-01-15T10:08:00Z")


def test_decisions_of_one_workflow_or_of_all_also_of_ended_ones(project: Project) -> None:
    workflow, _ = authenticated(project)
    project.shown("done", workflow)
    second = project.workflow("Second")
    task = project.task(second)
    project.tool("checkpoint_add", task_id=task, type="decision", summary="Use SQLite")
    assert [one["question"] for one in project.json("decisions", "Second")["decisions"]] == ["Use SQLite"]
    assert [one["id"] for one in project.json("decisions")["decisions"]] == ["cp_2", "cp_3", "cp_6"]


def test_other_repositories_decisions_are_not_exported(tmp_path: Path) -> None:
    store = str(tmp_path / "shared.db")
    mine = Project(tmp_path / "mine", db=store)
    mine.decide(mine.task(mine.workflow()))
    other = Project(tmp_path / "other", db=store)
    assert other.json("decisions") == {"decisions": []}
    assert len(other.json("decisions", "wf_1")["decisions"]) == 1


def test_decisions_become_files_that_point_to_each_other(project: Project, tmp_path: Path) -> None:
    workflow, _ = authenticated(project)
    folder = tmp_path / "adr"
    assert project.shown("decisions", "--adr", str(folder)).splitlines() == [
        f"written     {folder / '0001-which-library.md'}",
        f"written     {folder / '0002-which-library.md'}",
    ]
    text = (folder / "0001-which-library.md").read_text(encoding="utf-8")
    assert "- Status: superseded by [0002-which-library.md](0002-which-library.md)" in text
    task = project.task(workflow, "Again")
    project.decide(task, "Which library, again?", "authlib", supersedes="cp_3")
    files = project.json("decisions", "--adr", str(folder))["files"]
    assert [(Path(one["file"]).name, one["fate"]) for one in files] == [
        ("0001-which-library.md", "unchanged"),
        ("0002-which-library.md", "updated"),
        ("0003-which-library-again.md", "written"),
    ]
    assert "superseded by [0003-" in (folder / "0002-which-library.md").read_text(encoding="utf-8")


# -- hostile texts ----------------------------------------------------------------------------------------------------


def test_every_line_fits_and_no_text_of_an_agent_commands_the_terminal(project: Project, tmp_path: Path) -> None:
    workflow = project.workflow(HOSTILE, description=HOSTILE * 3, plan=[{"step": HOSTILE, "goal": HOSTILE}])
    task = project.task(workflow, HOSTILE, HOSTILE * 2, areas=[HOSTILE])
    project.tool("log_milestone", task_id=task, message=HOSTILE, progress=33.3)
    project.decide(task, HOSTILE, HOSTILE, reasoning=HOSTILE, trade_offs=HOSTILE, options_considered=[HOSTILE])
    project.issue(task, HOSTILE * 2, review=True)
    project.write("\x1b[31m" + "long" * 40 + ".txt", "x\n")
    project.complete(task, HOSTILE, achievements=[HOSTILE], limitations=[HOSTILE], next_steps=[HOSTILE])
    project.task(workflow, "後" * 100)
    for argv in (("journal",), ("journal", task), ("decisions",), ("review",), ("status",), ("diff", task, "--stat")):
        for line in project.shown(*argv).splitlines():
            assert width(line) <= 80, (argv, line)
            assert line.isprintable(), (argv, line)
    files = project.json("decisions", "--adr", str(tmp_path / "adr"))["files"]
    for text in (project.shown("report", workflow), Path(files[0]["file"]).read_text(encoding="utf-8")):
        assert all(line.isprintable() for line in text.splitlines())
        outside_code = re.sub(r"`[^`]*`", "", text)
        assert "<script" not in outside_code
        assert "](x)" not in outside_code
        assert not re.search(r"^# 日", text, flags=re.MULTILINE)


@pytest.mark.parametrize("command", ["journal", "report", "decisions", "review"])
def test_every_command_takes_the_common_options(project: Project, command: str) -> None:
    shown = project.run(command, "--help").output
    assert all(option in shown for option in ("--root", "--db", "--global", "--json"))

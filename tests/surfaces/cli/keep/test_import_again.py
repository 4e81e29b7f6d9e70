"""`handrail import` and `handrail export` where it matters what was there before: sources, locks, files, terminals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.outside import plan_files
from handrail.surfaces.cli.keep import export as export_command
from tests.surfaces.cli.keep.test_import_export import GUIDE, LIST, imported, project, refused, run, run_json, shown

__all__ = ["project"]
BEADS = '{"id": "bd-1", "title": "A", "issue_type": "task", "status": "open"}\n'
TASKS = '{"%s": {"tasks": [{"id": 1, "title": "%s", "status": "%s"}, {"id": 2, "title": "Next", "status": "pending"}]}}'


def write(file: Path, text: str) -> str:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return str(file)


# -- sources ----------------------------------------------------------------------------------------------------------


def test_files_of_one_name_outside_of_the_project_are_two_sources(project: Path) -> None:
    one = write(project.parent / "o1" / "tasks.json", TASKS % ("master", "A", "pending"))
    two = write(project.parent / "o2" / "tasks.json", TASKS % ("master", "B", "pending"))
    first = run_json(project, "import", one)
    assert "is here already" in refused(project, "import", one)
    second = run_json(project, "import", two)
    assert second["workflow"] != first["workflow"]
    added = run_json(project, "import", two, "--into", first["workflow"])
    assert (added["added"], added["known"]) == (1, 1)
    assert any("come from another source: Next" in remark for remark in added["remarks"])
    lines = shown(project, "export", first["workflow"], "--format", "jsonl")
    assert str(project.parent) not in lines, "nothing about this machine travels"


def test_the_same_text_twice_on_standard_input_is_one_source(project: Path) -> None:
    first = run_json(project, "import", "-", given=BEADS)
    assert f"--into {first['workflow']}" in refused(project, "import", "-", given=BEADS)
    again = run_json(project, "import", "-", "--into", first["workflow"], given=BEADS + BEADS.replace("1", "2"))
    assert (again["added"], again["known"]) == (1, 1)


def test_a_plan_of_another_tag_is_named_after_it(project: Path) -> None:
    file = write(project / "tasks.json", TASKS % ("feature", "A", "pending"))
    assert run_json(project, "import", file)["name"] == "feature"
    assert run_json(project, "import", write(project / "b.json", TASKS % ("master", "A", "pending")))["name"] == "b"


def test_the_only_tag_is_the_same_source_by_any_way_and_never_another_tag(project: Path) -> None:
    file = write(project / "tasks.json", TASKS % ("feature", "A", "pending"))
    first = run_json(project, "import", file)
    assert f"--into {first['workflow']}" in refused(project, "import", file, "--tag", "feature")
    both = (TASKS % ("feature", "A", "pending"))[:-1] + ", " + (TASKS % ("master", "Other", "pending"))[1:]
    assert run_json(project, "import", write(project / "tasks.json", both))["workflow"] != first["workflow"]
    added = run_json(project, "import", file, "--into", first["workflow"])
    assert (added["added"], added["known"]) == (1, 1), "task 1 of another tag is another task"


def test_an_empty_name_is_refused(project: Path) -> None:
    assert "The name is empty." in refused(project, "import", write(project / "todo.md", LIST), "--name", " ")


def test_one_file_in_two_repositories_of_a_shared_store_is_two_plans(project: Path) -> None:
    other = project.parent / "other"
    write(other / "todo.md", LIST)
    first = imported(project, "todo.md", "--global")
    second = imported(other, "todo.md", "--global")
    assert first["workflow"] != second["workflow"]
    assert "is here already" in refused(other, "import", str(other / "todo.md"), "--global")


def test_a_locked_plan_takes_nothing(project: Path) -> None:
    first = imported(project)
    lock = msgspec.json.encode({"graph_id": first["workflow"], "holder": "somebody else"}).decode()
    shown(project, "call", "graph_lock", lock)
    write(project / "todo.md", LIST + "- [ ] New\n")
    assert "LOCK_HELD" in refused(project, "import", str(project / "todo.md"), "--into", first["workflow"])
    assert "LOCK_HELD" in refused(project, "import", str(project / "todo.md"), "--into", first["workflow"], "--dry-run")


def test_what_is_under_way_elsewhere_blocks_nothing(project: Path) -> None:
    told = run_json(project, "import", write(project / "tasks.json", TASKS % ("master", "Docs", "in-progress")))
    assert told["tasks"] == {"pending": 1, "in_progress": 1}
    assert any(
        "so paused: Docs; to resume one, once nothing it waits for is open" in remark for remark in told["remarks"]
    )
    asked = msgspec.json.encode({"workflow_id": told["workflow"]}).decode()
    offered = run_json(project, "call", "workflow_next_tasks", asked)
    assert (offered["recommended_count"], [task["name"] for task in offered["tasks"]]) == (1, ["Next"])
    assert '"task":"Docs","status":"in_progress"' in shown(project, "export", "--format", "jsonl")
    assert "- [/] Docs" in shown(project, "export", "--format", "checklist")


def test_oddities_beside_what_is_there_are_said(project: Path) -> None:
    by_name = "taken for the tasks of that name that are here, so what the file says about them was left out"
    first = run_json(project, "import", write(project / "a.md", "- [x] whole\n- [ ] open\n"))
    more = write(project / "b.md", "- [ ] whole\n  - [ ] part\n- [ ] open\n- [x] early (needs: open)\n")
    for argv in (("--dry-run",), ()):
        told = run_json(project, "import", more, "--into", first["workflow"], *argv)
        assert told["remarks"] == [
            f"{by_name}: whole, open",
            "in another state in the file, and left as they are here (1 task): whole",
            "completed before something they depend on: early",
            "finished, but with open parts: whole",
        ]


# -- names and files --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("argv", [(), ("--name", os.fsdecode(b"x\xff")), ("--dry-run",)])
def test_names_that_are_no_text_are_taken_as_far_as_they_are(project: Path, argv: tuple[str, ...]) -> None:
    file = os.fsdecode(os.fsencode(project) + b"/inv\xff.md")
    Path(file).write_text("- [ ] a\n")
    told = run_json(project, "import", file, *argv)
    assert told["file"] == "inv?.md"
    assert shown(project, "status")
    out = os.fsdecode(os.fsencode(project) + b"/out\xff.jsonl")
    if "--dry-run" not in argv:
        assert run_json(project, "export", "-o", out)["output"].endswith("out?.jsonl")


def test_a_guide_that_would_read_as_an_option_is_called_otherwise(project: Path) -> None:
    write(project / "guide.json", msgspec.json.encode({**GUIDE, "id": "../../../evil"}).decode())
    assert imported(project, "guide.json")["guide"] == "evil"
    write(project / "guide.json", msgspec.json.encode({**GUIDE, "id": "-look"}).decode())
    assert imported(project, "guide.json")["guide"] == "look"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_an_export_is_written_whole_or_not_at_all(
    project: Path, monkeypatch: pytest.MonkeyPatch, force: tuple[str, ...]
) -> None:
    imported(project)
    target = project / "plan.jsonl"
    if force:
        target.write_text("as it was")
    before = sorted(file.name for file in project.iterdir())

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        for owner, name in ((Path, "replace"), (Path, "rename"), (os, "link")):
            patch.setattr(owner, name, full)
        assert "No space left" in refused(project, "export", "-o", str(target), *force)
    assert sorted(file.name for file in project.iterdir()) == before
    assert not force or target.read_text() == "as it was"


def test_a_device_is_written_to_and_not_replaced(project: Path) -> None:
    imported(project)
    pipe = project / "pipe.jsonl"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        shown(project, "export", "-o", str(pipe), "--force")
        assert os.read(reader, 20).startswith(b'{"handrail":1')
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_an_ending_that_means_nothing_is_refused(project: Path) -> None:
    imported(project)
    assert "--format" in refused(project, "export", "-o", str(project / "x.pdf"))
    assert not (project / "x.pdf").exists()
    assert shown(project, "export", "-o", str(project / "x.pdf"), "--format", "html")
    done = run(project, "export", "-o", str(project / "list.md"))
    assert "--format checklist writes the plan as a check list" in done.stderr
    assert "--format checklist" not in run(project, "export", "-o", str(project / "a.md"), "--format", "md").stderr


def test_a_file_gets_all_that_a_plan_says_and_a_line_about_it_steers_nothing(project: Path) -> None:
    """On a terminal: tests/hostile/terminal_text."""
    task = {"task": "a", "description": "\x1b[31mred\x9b\n\ttab"}
    lines = (msgspec.json.encode(line).decode() for line in ({"handrail": 1, "name": "Odd"}, task))
    assert run(project, "import", "-", given="\n".join(lines)).exit_code == 0
    assert "\x1b" in shown(project, "export", "--format", "checklist"), "a file gets all of it"
    assert "\x1b" not in shown(project, "export", "-o", str(project / "a\x1b[2J.jsonl"))


def test_looking_ahead_needs_no_store_and_makes_none(project: Path) -> None:
    db = project / "new.db"
    told = run(project, "import", "-", "--dry-run", "--name", "Later", given="- [ ] one\n", db=str(db))
    assert told.exit_code == 0, told.output
    assert not db.exists()


def test_a_report_is_no_plan_and_the_refusal_says_what_is(project: Path) -> None:
    imported(project)
    shown(project, "export", "-o", str(project / "report.json"))
    said = refused(project, "import", str(project / "report.json"))
    assert "a report that Handrail wrote" in said
    assert "--format jsonl" in said


def test_what_was_imported_can_be_exported_and_imported_however_deep_and_large(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = '{"a": ' * 60 + "1" + "}" * 60
    issue = f'{{"id": "bd-1", "title": "A", "issue_type": "task", "metadata": {deep}}}\n'
    run_json(project, "import", write(project / "issues.jsonl", issue))
    lines = shown(project, "export", "--format", "jsonl")
    assert len(lines) > len(issue)
    monkeypatch.setattr(plan_files.text_of, "__defaults__", (len(issue),))
    monkeypatch.setattr(plan_files.read_text, "__defaults__", (len(issue),))
    run_json(project, "import", write(project / "plan.jsonl", lines), db="other.db")
    assert shown(project, "export", "--format", "jsonl", db="other.db") == lines
    monkeypatch.setattr(plan_files.read_text, "__defaults__", (len(lines) // 8,))
    assert "larger than" in refused(project, "import", str(project / "plan.jsonl"), db="third.db")


def test_an_export_that_is_too_large_to_be_read_says_so(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(project)
    monkeypatch.setattr(export_command, "LARGEST", 10)
    assert "the most that `handrail import` reads" in run(project, "export", "--format", "jsonl").stderr

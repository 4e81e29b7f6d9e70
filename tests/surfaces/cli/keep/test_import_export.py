"""`handrail import` and `handrail export` as a person uses them: plans come and go without loss."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click.testing
import msgspec
import pytest

from handrail.domain.exchange import importer
from handrail.outside import plan_files
from handrail.store.sqlite import SqliteEngine
from handrail.surfaces.cli.main import cli
from tests.domain.exchange.samples import SAMPLES, write_all
from tests.domain.exchange.test_importer import new_store
from tests.domain.exchange.test_plan_document_every_field import NOT_TAKEN, rows_of, travelling
from tests.page import rich

LIST = """\
# Offline mode

Notes survive a lost connection.

- [x] T001 Write the format down
- [ ] T002 [P] Queue changes (needs: T001)
  In order, with the time.
- [ ] Sync when back (needs: Queue changes)
  - [/] Resolve conflicts
- [-] Sync by hand
"""
GUIDE = {
    "id": "look-first",
    "name": "Look first",
    "description": "Look before you leap.",
    "version": "1.0.0",
    "steps": [{"id": "look", "title": "Look", "prompt": "Look at it."}],
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "todo.md").write_text(LIST, encoding="utf-8")
    return folder


def run(project: Path, *argv: str, given: str | bytes = "", db: str | None = None) -> click.testing.Result:
    env = {"HOME": str(project.parent / "home"), "LOGNAME": "ann", "COLUMNS": "80"}
    more = ["--db", str(project / db)] if db is not None else []
    runner = click.testing.CliRunner(env=env)
    return runner.invoke(cli, [*argv, "--root", str(project), *more], prog_name="handrail", input=given)


def shown(project: Path, *argv: str, **more: Any) -> str:
    done = run(project, *argv, **more)
    assert done.exit_code == 0, done.output
    return done.stdout


def run_json(project: Path, *argv: str, **more: Any) -> Any:
    return msgspec.json.decode(shown(project, *argv, "--json", **more))


def refused(project: Path, *argv: str, **more: Any) -> str:
    done = run(project, *argv, **more)
    assert done.exit_code in (1, 2), done.output
    assert done.exception is None or isinstance(done.exception, SystemExit)
    return done.stderr


def imported(project: Path, file: str = "todo.md", *argv: str, **more: Any) -> Any:
    return run_json(project, "import", str(project / file), *argv, **more)


# -- importing --------------------------------------------------------------------------------------------------------


def test_a_list_becomes_a_workflow(project: Path) -> None:
    told = shown(project, "import", str(project / "todo.md"))
    assert "todo.md: a Markdown check list, 5 tasks (2 pending, 1 in progress, 1" in told
    assert '"Offline mode" (wf_' in told
    assert "`handrail undo` takes the import" in told
    tree = shown(project, "show", "Offline mode")
    assert "Queue changes" in tree
    assert "2/5 done" in shown(project, "status")
    assert shown(project, "db", "verify").strip()


def test_a_dry_run_makes_nothing(project: Path) -> None:
    told = imported(project, "todo.md", "--dry-run")
    assert told["dry_run"] is True
    assert told["workflow"] is None
    assert told["tasks"] == {"pending": 2, "in_progress": 1, "completed": 1, "skipped": 1}
    assert not (project / ".handrail").exists()
    assert "would be imported" in shown(project, "import", str(project / "todo.md"), "--dry-run")


def test_a_second_time_is_refused_with_what_to_do(project: Path) -> None:
    first = imported(project)
    said = refused(project, "import", str(project / "todo.md"))
    assert f"--into {first['workflow']} adds what is new" in said
    assert "--name NAME makes a second workflow" in said
    assert refused(project, "import", str(project / "todo.md"), "--dry-run")
    second = imported(project, "todo.md", "--name", "Offline mode, again")
    assert second["name"] == "Offline mode, again"
    assert second["workflow"] != first["workflow"]


def test_into_adds_what_is_new_and_nothing_else(project: Path) -> None:
    first = imported(project)
    (project / "todo.md").write_text(LIST.replace("[ ] T002", "[x] T002") + "- [ ] New (needs: T002)\n")
    dry = imported(project, "todo.md", "--into", first["workflow"], "--dry-run")
    assert (dry["added"], dry["known"]) == (1, 5)
    told = shown(project, "import", str(project / "todo.md"), "--into", "Offline mode")
    assert '"Offline mode": 1 task added; 5 tasks left as they are.' in told
    assert run_json(project, "show", "Queue changes")["status"] == "pending"
    assert "Nothing is new" in shown(project, "import", str(project / "todo.md"), "--into", "Offline mode")
    assert refused(project, "import", str(project / "todo.md"), "--into", "x", "--name", "y")


def test_undo_takes_an_import_back(project: Path) -> None:
    imported(project)
    shown(project, "undo")
    assert "No workflow is open here." in shown(project, "status")
    assert imported(project)["added"] == 5


def test_in_order_makes_each_wait(project: Path) -> None:
    imported(project, "todo.md", "--in-order")
    lines = [msgspec.json.decode(line) for line in shown(project, "export", "--format", "jsonl").splitlines()[1:]]
    needs = {line["task"]: line.get("depends_on", []) for line in lines}
    assert needs["Queue changes"] == ["Write the format down"]
    assert needs["Sync when back"] == ["Queue changes", "Write the format down"]
    assert needs["Sync by hand"] == ["Sync when back"]


def test_standard_input_is_read(project: Path) -> None:
    told = run_json(project, "import", "-", given="- [ ] one\n- [x] two\n")
    assert (told["file"], told["name"], told["added"]) == ("standard input", "Imported plan", 2)


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_whatever_a_shell_wrote_is_read(project: Path, encoding: str) -> None:
    (project / "todo.md").write_bytes(LIST.replace("\n", "\r\n").encode(encoding))
    assert imported(project)["name"] == "Offline mode"


def test_a_circle_is_refused_and_nothing_is_made(project: Path) -> None:
    (project / "todo.md").write_text("- [ ] a (needs: b)\n- [ ] b (needs: a)\n")
    said = refused(project, "import", str(project / "todo.md"))
    assert "INVALID_PLAN" in said
    assert '"a" needs "b"' in said
    assert "No workflow is open here." in shown(project, "status")


@pytest.mark.parametrize(
    ("content", "argv"),
    [
        (b"\xff\xfe\x00", ()),
        (b"\x80\x81", ()),
        (b"nothing here", ()),
        (b"", ("--from", "markdown")),
        (b"", ("--from", "handrail")),
        (b"[" * 100_000, ("--from", "github")),
        (b'{"handrail":1}\n' + b'{"task":"a","origin":{"system":"x","fields":' + b'{"a":' * 3000, ()),
        (b'{"handrail":2,"name":"later"}\n', ()),
        (b'{"handrail":1,"name":"a"}\n{"task":"b","depends_on":["c"]}\n', ()),
        (b'{"handrail":1,"name":"a"}\n{"note":"b","summary":"c"}\n', ()),
        (b"- [ ] a\n", ("--tag", "x")),
    ],
)
def test_hostile_files_end_in_a_refusal(project: Path, content: bytes, argv: tuple[str, ...]) -> None:
    (project / "file").write_bytes(content)
    assert "refused" in refused(project, "import", str(project / "file"), *argv)
    assert "No workflow is open here." in shown(project, "status")


def test_a_file_that_is_not_there_or_too_large_is_refused(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "is not there" in refused(project, "import", str(project / "nothing"))
    monkeypatch.setattr(plan_files.text_of, "__defaults__", (10,))
    monkeypatch.setattr(plan_files.read_text, "__defaults__", (10,))
    assert "larger than" in refused(project, "import", str(project / "todo.md"))
    assert "larger than" in refused(project, "import", "-", given="- [ ] something long\n")


def test_names_of_a_file_do_not_reach_the_terminal_as_they_are(project: Path) -> None:
    (project / "todo.md").write_text("- [ ] a\x1b[31m (needs: b\x1b[2J)\n")
    assert "\x1b" not in shown(project, "import", str(project / "todo.md"))


@pytest.mark.parametrize("name", SAMPLES)
def test_files_of_other_tools_are_taken(project: Path, name: str) -> None:
    write_all(project)
    told = imported(project, name)
    assert told["format"] == SAMPLES[name]
    if "guide" in told:
        assert "0 with problems" in shown(project, "guide", "validate", told["guide"])
    else:
        assert shown(project, "show", told["workflow"])
        assert shown(project, "db", "verify").startswith("ledger and tables agree")


def test_a_guide_becomes_a_guide(project: Path) -> None:
    (project / "guide.json").write_bytes(msgspec.json.encode(GUIDE))
    dry = imported(project, "guide.json", "--dry-run")
    assert (dry["guide"], dry["steps"]) == ("look-first", 1)
    assert not Path(dry["written"]).exists()
    assert "guide validate look-first" in shown(project, "import", str(project / "guide.json"))
    assert "1 checked, 0 with problems" in shown(project, "guide", "validate", "look-first")
    assert "is there already" in refused(project, "import", str(project / "guide.json"))
    assert refused(project, "import", str(project / "guide.json"), "--in-order")


def test_a_guide_is_called_as_a_guide_can_be(project: Path) -> None:
    (project / "guide.json").write_bytes(msgspec.json.encode(GUIDE))
    written = imported(project, "guide.json", "--name", "Look\n" + "x" * 200)["written"]
    assert msgspec.json.decode(Path(written).read_bytes())["name"] == "Look " + "x" * 123
    assert "1 checked, 0 with problems" in shown(project, "guide", "validate", "look-first")


# -- huge plans -------------------------------------------------------------------------------------------------------


def test_a_huge_plan_is_laid_in_pieces_and_finished_after_an_interruption(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "".join(f"- [ ] t{number} (needs: t{number + 1})\n" for number in range(24)) + "- [ ] t24\n"
    (project / "todo.md").write_text(lines)
    monkeypatch.setattr(importer.lay_new, "__defaults__", (10,))
    monkeypatch.setattr(importer.lay_into, "__defaults__", (10,))
    real, calls = importer._lay, []

    def interrupted(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(*args)

    with monkeypatch.context() as patch:
        patch.setattr(importer, "_lay", interrupted)
        stopped = run(project, "import", str(project / "todo.md"))
    assert stopped.exit_code != 0
    assert "20 tasks are there, 5 are not" in stopped.stderr
    assert "again with --into wf_" in stopped.stderr
    assert "planning" in shown(project, "status")
    rest = imported(project, "todo.md", "--into", "todo")
    assert (rest["added"], rest["known"], rest["status"]) == (5, 20, "ready")
    assert "handrail done" in shown(project, "import", str(project / "todo.md"), "--name", "all at once")


# -- exporting --------------------------------------------------------------------------------------------------------


def test_everything_comes_out_and_goes_in_again_byte_for_byte(project: Path, tmp_path: Path) -> None:
    facts = rich.build(tmp_path / "rich")
    for workflow in (facts.workflow, facts.site, facts.done, facts.run, facts.ended_run):
        source = tmp_path / "rich" / "notes"
        first = project / f"{workflow}.jsonl"
        shown(source, "export", workflow, "-o", str(first))
        told = run_json(project, "import", str(first), db=f"{workflow}.db")
        usual = ("before something they depend on", "nobody works on it here, so paused")
        assert all(any(words in remark for words in usual) for remark in told["remarks"])
        assert shown(project, "export", told["workflow"], "--format", "jsonl", db=f"{workflow}.db") == first.read_text()
        assert shown(project, "db", "verify", db=f"{workflow}.db").startswith("ledger and tables agree")
        _check_rows(source / ".handrail" / "handrail.db", workflow, project / f"{workflow}.db", told["workflow"])


def _check_rows(first: Path, workflow: str, second: Path, copy: str) -> None:
    """Holds every row of a workflow against its copy's, as far as rows travel."""
    engines = [SqliteEngine(file, version="0", durable=False) for file in (first, second)]
    try:
        here, there = map(new_store, engines)
        for kind in NOT_TAKEN:
            before, after = rows_of(here, kind, workflow), rows_of(there, kind, copy)
            assert sorted_rows(before) == sorted_rows(after)
    finally:
        for engine in engines:
            engine.close()


def sorted_rows(rows: list[Any]) -> list[str]:
    return sorted(msgspec.json.encode(travelling(row), order="deterministic").decode() for row in rows)


def test_a_check_list_comes_out_as_it_went_in(project: Path) -> None:
    imported(project)
    out = run(project, "export", "--format", "checklist")
    assert out.stdout == LIST.replace("needs: T001", "needs: Write the format down")
    assert "A check list leaves out: where it comes from, times." in out.stderr
    (project / "again.md").write_text(out.stdout)
    imported(project, "again.md", db="other.db")
    assert shown(project, "export", "--format", "checklist", db="other.db") == out.stdout


def test_the_ending_says_the_form(project: Path) -> None:
    imported(project)
    for name, begin in (("a.jsonl", '{"handrail":1'), ("a.mmd", "flowchart TD\n"), ("a.md", "#"), ("a.json", "{")):
        assert shown(project, "export", "-o", str(project / name)) == f"wrote {project / name}\n"
        assert (project / name).read_text().startswith(begin)
    assert "add --force" in refused(project, "export", "-o", str(project / "a.mmd"))
    assert run_json(project, "export", "-o", str(project / "a.mmd"), "--force")["output"] == str(project / "a.mmd")


def test_a_large_chart_says_what_it_leaves_out(project: Path) -> None:
    (project / "todo.md").write_text("".join(f"- [ ] t{number}\n" for number in range(510)))
    imported(project)
    done = run(project, "export", "--format", "mermaid")
    assert "500 of 510 tasks are drawn; --all" in done.stderr
    assert "10 more tasks are not drawn" in done.stdout
    assert "not drawn" not in shown(project, "export", "--format", "mermaid", "--all")


@pytest.mark.parametrize("strange", [5, "text", {"a": 1}, None, [1, None, "said"]])
def test_a_report_bears_whatever_another_tools_file_says_of_an_outcome(project: Path, strange: object) -> None:
    detail = {"limitations": strange, "achievements": strange, "checks": strange, "metadata": strange}
    task = {"task": "Done", "status": "completed", "outcome": "It is done.", "outcome_detail": detail}
    lines = (msgspec.json.encode(line).decode() for line in ({"handrail": 1, "name": "Odd"}, task))
    assert run(project, "import", "-", given="\n".join(lines)).exit_code == 0
    for command in (["report", "Odd"], ["export", "Odd", "--format", "html", "-o", "-"], ["show", "Odd"]):
        done = run(project, *command)
        assert done.exit_code == 0, done.output

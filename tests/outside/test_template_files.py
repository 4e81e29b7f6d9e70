"""Templates in folders: which file wins, and what becomes of those that cannot be used."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from handrail.domain.work.templates import BrokenTemplate, FileTemplate
from handrail.kernel import limits
from handrail.outside.template_files import TemplateFiles, standard_templates
from handrail.outside.user_files import UserFolder

SOUND = "tasks:\n  - {name: one, description: first}\n  - {name: two, description: '{{what}}'}\n"


class Folders:
    """A project's and a user's folder of templates."""

    def __init__(self, root: Path) -> None:
        self.project = root / "project" / ".handrail" / "templates"
        self.user = root / "home" / ".handrail" / "templates"
        self.project.mkdir(parents=True)
        self.user.mkdir(parents=True)
        sources = standard_templates(home=root / "home", project=root / "project")
        assert [source.label for source in sources] == ["project", "user", "bundled"]
        self.files = TemplateFiles(sources[:2])

    def write(self, name: str, text: str | bytes = SOUND, *, user: bool = False) -> Path:
        file = (self.user if user else self.project) / name
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def found(self) -> dict[str, FileTemplate | BrokenTemplate]:
        return {entry.id: entry for entry in self.files.entries()}

    def broken(self) -> BrokenTemplate:
        (entry,) = self.files.entries()
        assert isinstance(entry, BrokenTemplate)
        return entry


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_a_file_is_a_template_by_its_stem(folders: Folders) -> None:
    file = folders.write("move.yaml", f"description: Move it\n{SOUND}")
    os.utime(file, ns=(0, 5_000_000_000))
    (entry,) = folders.files.entries()
    assert isinstance(entry, FileTemplate)
    assert (entry.id, entry.source, entry.file, entry.created_at) == ("file:move", "project", str(file), 5000)
    assert (entry.blueprint.name, entry.blueprint.description) == ("move", "Move it")
    assert [variable.name for variable in entry.blueprint.variables] == ["what"]


def test_yaml_yml_and_json_are_read_and_nothing_else(folders: Folders) -> None:
    for name in ("a.yaml", "b.YML", ".hidden.yaml", "notes.txt", "c.yaml~"):
        folders.write(name)
    folders.write("d.json", msgspec.json.encode({"tasks": [{"name": "x", "description": "y"}]}))
    (folders.project / "folder.yaml").mkdir()
    assert list(folders.found()) == ["file:a", "file:b", "file:d"]


def test_a_task_without_a_sequence_has_its_place_in_the_list(folders: Folders) -> None:
    folders.write(
        "a.yaml",
        "tasks:\n  - {name: one, description: ''}\n  - {name: two, description: '', sequence: 9}\n"
        "  - {name: three, description: ''}\n",
    )
    entry = folders.found()["file:a"]
    assert isinstance(entry, FileTemplate)
    assert [task.sequence for task in entry.blueprint.tasks] == [1, 9, 3]


def test_the_project_wins_over_the_user_even_with_a_broken_file(folders: Folders) -> None:
    folders.write("same.yaml", "name: theirs\n" + SOUND, user=True)
    folders.write("mine.yaml", user=True)
    folders.write("same.json", b"{")
    found = folders.found()
    assert list(found) == ["file:same", "file:mine"]
    assert isinstance(found["file:same"], BrokenTemplate)
    folders.write("same.json", msgspec.json.encode({"tasks": [{"name": "x", "description": "y"}]}))
    assert folders.found()["file:same"].source == "project"


def test_the_next_call_sees_an_edit_and_a_removal(folders: Folders) -> None:
    file = folders.write("a.yaml", "tasks: [")
    assert isinstance(folders.found()["file:a"], BrokenTemplate)
    folders.write("a.yaml")
    assert isinstance(folders.found()["file:a"], FileTemplate)
    file.unlink()
    assert folders.found() == {}


def test_two_files_of_one_folder_cannot_have_one_id(folders: Folders) -> None:
    folders.write("a.json", msgspec.json.encode({"tasks": [{"name": "x", "description": "y"}]}))
    folders.write("a.yaml")
    first, second = folders.files.entries()
    assert isinstance(first, FileTemplate)
    assert isinstance(second, BrokenTemplate)
    assert "a.json in this folder already has the id file:a" in second.reason


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("tasks: [", ":1:9", "this is not valid YAML"),
        ("- x\n", ":1:1", "the template must be an object, not a list"),
        ("name: x\n", ":1:1", "tasks is required"),
        ("tasks: []\n", ":1:1", "tasks must have at least 1 entry"),
        ("name: {{x}}\n" + SOUND, ":1:8", "a text that begins with {{ needs quotes around it"),
        ("nmae: x\n" + SOUND, ":1:1", "unknown key nmae; did you mean name?"),
        (SOUND + "  - {name: three}\n", ":4:5", "tasks[2].description is required"),
        (SOUND + "  - {name: t, description: x, depend_on: [one]}\n", ":4:5", "did you mean depends_on?"),
        (SOUND + "  - {name: t, description: x, sequence: first}\n", ":4:31", "tasks[2].sequence must be an integer"),
        (
            "variables:\n  - name: v\n    default: 3\n" + SOUND,
            ":3:5",
            "a string or null, not an integer; put it in quotes",
        ),
        ("variables:\n  - name: a b\n" + SOUND, ":2:5", "variables[0].name must match"),
        (
            SOUND + "  - {name: two, description: x}\n",
            "",
            'two tasks are named "two"; give each task a different name',
        ),
        (SOUND + "  - {name: t, description: x, depends_on: [tow]}\n", "", "did you mean two?"),
        ("description: 'a {{b c}}'\n" + SOUND, "", r"write \{{ for braces"),
        (b"name: \xff\n", "", "the file is not UTF-8"),
        ("a" * (limits.TEMPLATE_FILE_BYTES + 1), "", "the file is larger than"),
        ("", ":1:1", "the template must be an object, not null"),
    ],
)
def test_a_broken_file_says_where_and_why(folders: Folders, text: str | bytes, place: str, reason: str) -> None:
    file = folders.write("a.yaml", text)
    broken = folders.broken()
    assert broken.where == f"{file}{place}"
    assert reason in broken.reason


def test_what_is_no_readable_file_is_told_and_not_waited_for(folders: Folders) -> None:
    os.mkfifo(folders.project / "pipe.yaml")
    (folders.project / "gone.yaml").symlink_to("nowhere")
    (folders.project / "loop.yaml").symlink_to("loop.yaml")
    folders.write("fine.yaml")
    reasons = {entry.stem: getattr(entry, "reason", "") for entry in folders.files.entries()}
    assert "it is a pipe, not a regular file" in reasons["pipe"]
    assert reasons["gone"] == "the file is a symbolic link to nothing"
    assert "cannot be read" in reasons["loop"]
    assert reasons["fine"] == ""


def test_a_folder_that_is_a_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "templates"
    file.write_text("", encoding="utf-8")
    (entry,) = TemplateFiles([UserFolder("project", file)]).entries()
    assert isinstance(entry, BrokenTemplate)
    assert (entry.id, entry.where) == ("", str(file))


def test_past_the_limit_files_are_not_read_and_that_is_said(folders: Folders) -> None:
    for number in range(limits.TEMPLATE_FILES + 2):
        folders.write(f"t{number:04}.json", b'{"tasks": [{"name": "x", "description": "y"}]}')
    *sound, last = folders.files.entries()
    assert len(sound) == limits.TEMPLATE_FILES
    assert isinstance(last, BrokenTemplate)
    assert f"from t{limits.TEMPLATE_FILES:04}.json on" in last.reason


def test_a_folder_given_twice_counts_once(tmp_path: Path) -> None:
    templates = tmp_path / ".handrail" / "templates"
    templates.mkdir(parents=True)
    (templates / "a.yaml").write_text(SOUND, encoding="utf-8")
    entries = TemplateFiles(standard_templates(home=tmp_path, project=tmp_path)).entries()
    assert [entry.source for entry in entries if entry.stem == "a"] == ["project"]

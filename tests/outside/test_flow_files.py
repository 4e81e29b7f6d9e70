"""Flows in folders: which file wins, what becomes of those that cannot be followed, and what the page says of them."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import msgspec
import pytest

from handrail.domain.pipeline.flow import Flow, Phase
from handrail.domain.pipeline.flow_shelf import BrokenFlow, FlowShelf, LoadedFlow
from handrail.kernel.errors import InvalidFlow, NotFound
from handrail.outside import flow_files
from handrail.outside.flow_files import FlowFiles, standard_flows
from handrail.outside.user_files import UserFolder

PAGE = Path(__file__).parents[2] / "docs" / "flows.md"


def sound(name: str, **changes: str) -> str:
    phase = {"id": "make", "label": "Make", "kind": "agent", "agent": "maker", "output": "made.md"} | changes
    return f"name: {name}\nphases:\n  - {msgspec.json.encode(phase).decode()}\n"


class Folders:
    """A project's and a user's folder of flows, before the bundled ones."""

    def __init__(self, root: Path) -> None:
        sources = standard_flows(home=root / "home", project=root / "project")
        assert [source.label for source in sources] == ["project", "user", "bundled"]
        self.project, self.user, self.bundled = (source.folder for source in sources)
        self.project.mkdir(parents=True)
        self.user.mkdir(parents=True)
        self.files = FlowFiles(sources)

    def write(self, file: str, text: str | bytes, *, user: bool = False) -> Path:
        path = (self.user if user else self.project) / file
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def broken(self) -> BrokenFlow:
        (entry,) = self.files.problems()
        return entry


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_the_bundled_flows_are_found_by_name(folders: Folders) -> None:
    shelf: FlowShelf = folders.files
    assert list(shelf.names()) == ["full", "light", "standard"]
    assert shelf.find("standard").skip == ["phase-4b", "checkpoint-b"]
    assert len(shelf.find("light").phases) == 18
    assert folders.files.problems() == ()


def test_a_name_that_nothing_has_is_refused_with_the_nearest(folders: Folders) -> None:
    for name in ("standrad", "Standard", "../standard", "", "x" * 5000, "a\0b"):
        with pytest.raises(NotFound) as refused:
            folders.files.find(name)
        assert "full, light, standard" in refused.value.hint
        assert len(refused.value.message) < 300
    with pytest.raises(NotFound, match="did you mean standard"):
        folders.files.find("standrad")


def test_yaml_yml_and_json_are_read_and_nothing_else(folders: Folders) -> None:
    folders.write("a.yaml", sound("a"))
    folders.write("b.YML", sound("b"))
    folders.write("c.json", msgspec.json.encode({"name": "c", "extends": "full"}))
    for other in (".hidden.yaml", "notes.txt", "d.yaml~"):
        folders.write(other, sound("d"))
    (folders.project / "folder.yaml").mkdir()
    assert folders.files.names() == ("a", "b", "c", "full", "light", "standard")
    assert folders.files.problems() == ()


def test_the_project_wins_over_the_user_and_both_over_the_bundled(folders: Folders) -> None:
    user = folders.write("light.yaml", sound("light", label="User's"), user=True)
    assert folders.files.find("light").phases[0].label == "User's"
    folders.write("light.yml", sound("light", label="Project's"))
    entry = folders.files.entry("light")
    assert isinstance(entry, LoadedFlow)
    assert (entry.flow.phases[0].label, entry.source) == ("Project's", "project")
    assert entry.shadows == (str(user), str(folders.bundled / "light.yaml"))
    assert folders.files.names() == ("full", "light", "standard")


def test_what_comes_with_handrail_is_known_whatever_stands_before_it(folders: Folders) -> None:
    light, full = folders.files.find("light"), folders.files.find("full")
    folders.write("full.yaml", sound("full"))
    folders.write("light.yaml", sound("light"), user=True)
    assert (folders.files.bundled("light"), folders.files.bundled("full")) == (light, full)
    assert folders.files.bundled("own") is None


def test_a_broken_file_is_not_replaced_by_an_older_one_of_its_name(folders: Folders) -> None:
    folders.write("standard.yaml", sound("standard"), user=True)
    folders.write("standard.yaml", "name: standard\nphases: [")
    assert folders.files.names() == ("full", "light")
    with pytest.raises(InvalidFlow, match=r"standard\.yaml:2:"):
        folders.files.find("standard")


def test_the_next_call_sees_an_edit_and_a_removal(folders: Folders) -> None:
    file = folders.write("own.yaml", sound("own"))
    assert folders.files.find("own").phases[0].label == "Make"
    folders.write("own.yaml", sound("own", label="Edited"))
    assert folders.files.find("own").phases[0].label == "Edited"
    file.unlink()
    with pytest.raises(NotFound):
        folders.files.find("own")


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", ":1:1", "must be an object"),
        ("- a", ":1:1", "must be an object"),
        ("name: own\nname: own", ":2:1", "already given"),
        ("name: other\nextends: full", ":1:1", "the file is called own and the flow in it other"),
        ("name: own", ":1:1", "has no phases"),
        ("name: own\nextends: ful", ":2:1", "extends ful, which is not there"),
        ("name: own\nextends: own", ":2:1", "in a circle: own → own"),
        ("name: own\nextends: full\nskip: [phase-9]", ":3:1", "skips phase-9, which is not one of its phases"),
        ("name: own\nextends: full\nskip: [phase-3]", ":3:1", "revises phase-3, which is skipped"),
        ("name: own\nextends: full\nskip: [phase-3, phase-3b]", ":3:1", "returns to phase-3, which is skipped"),
        ('name: own\nextends: full\ndescription: "a\\ab"', ":3:1", "the description of own has a control character"),
        (sound("own", label="Say \0"), ":3:5", "phase make: label has the control character U+0000"),
        ("name: own\nextends: full\nphase: 1", ":1:1", "did you mean phases"),
        ("name: own\nphases:\n  - {id: a, label: A, kind: agent, agnet: x}", ":3:5", "did you mean agent"),
        ("name: own\nphases:\n  - {id: a, label: A}", ":3:5", "kind is required"),
        ("name: own\nphases:\n  - {id: a,\n     label: A, kind: 3}", ":4:16", "phase a: "),
        (sound("own") + "  - {id: make, label: B, kind: gate, options: [go]}", ":4:5", "another phase has this id"),
        (sound("own") + "  - 7", ":4:5", "phase number 2: "),
        (b"name: own\xff", "", "not UTF-8"),
        ("name: &n own\nextends: *n", ":1:7", "anchors"),
        ("a: &a [x]\nb: [*a, *a, *a]", ":1:4", "anchors"),
        ("name: !!python/object:os.system own", ":1:7", "tags"),
        ("name: own\n---\nname: own", ":2:1", "second document"),
        ("[" * 500, "", "deep"),
    ],
)
def test_a_broken_file_says_where_and_why(folders: Folders, text: str | bytes, place: str, reason: str) -> None:
    file = folders.write("own.yaml", text)
    entry = folders.broken()
    assert reason in entry.reason
    assert entry.where.startswith(f"{file}{place}")
    assert entry.name == "own"
    with pytest.raises(InvalidFlow):
        folders.files.find("own")


def test_a_mistake_in_a_phase_names_the_phase(folders: Folders) -> None:
    folders.write("own.yaml", sound("own") + "  - {id: b, label: B, kind: review}\n")
    assert folders.broken().phase == "b"
    with pytest.raises(InvalidFlow) as refused:
        folders.files.find("own")
    assert refused.value.details == {"phase": "b"}


def test_flows_extend_each_other_across_folders(folders: Folders) -> None:
    folders.write("short.yaml", "name: short\nextends: light\nskip: [phase-7]", user=True)
    folders.write("shorter.yaml", "name: shorter\nextends: short\nskip: [final-verification]")
    flow = folders.files.find("shorter")
    assert flow.skip == ["phase-2", "phase-3b", "phase-7", "final-verification"]
    assert flow.phases == folders.files.find("full").phases


def test_a_circle_is_refused_with_its_way(folders: Folders) -> None:
    for name, other in (("a", "b"), ("b", "c"), ("c", "a")):
        folders.write(f"{name}.yaml", f"name: {name}\nextends: {other}")
    with pytest.raises(InvalidFlow, match="a → b → c → a"):
        folders.files.find("a")
    assert len(folders.files.problems()) == 3
    folders.write("standard.yaml", "name: standard\nextends: standard")
    with pytest.raises(InvalidFlow, match="standard → standard"):
        folders.files.find("standard")


def test_a_tower_of_flows_has_an_end(folders: Folders) -> None:
    for number in range(150):
        base = f"f{number + 1}" if number < 149 else "full"
        folders.write(f"f{number}.yaml", f"name: f{number}\nextends: {base}")
    assert folders.files.find("f145").phases
    with pytest.raises(InvalidFlow, match="more than 10 flows"):
        folders.files.find("f0")


def test_a_flow_upon_a_broken_one_is_broken_and_says_which(folders: Folders) -> None:
    folders.write("base.yaml", "name: base")
    folders.write("own.yaml", "name: own\nextends: base")
    with pytest.raises(InvalidFlow, match=r"it extends base, which cannot be followed: .*base\.yaml.*has no phases"):
        folders.files.find("own")


def test_two_files_of_one_folder_cannot_have_one_name(folders: Folders) -> None:
    folders.write("own.json", msgspec.json.encode({"name": "own", "extends": "full"}))
    folders.write("own.yaml", sound("own"))
    assert "own.json in this folder already has the name own" in folders.broken().reason
    assert len(folders.files.find("own").phases) == 18


def test_what_is_no_readable_file_is_told_and_not_waited_for(folders: Folders) -> None:
    (folders.project / "gone.yaml").symlink_to("nowhere.yaml")
    (folders.project / "round.yaml").symlink_to("round.yaml")
    os.mkfifo(folders.project / "pipe.yaml")
    folders.write("big.yaml", b"#" * (flow_files.FILE_BYTES + 1))
    reasons = {entry.name: entry.reason for entry in folders.files.problems()}
    assert "symbolic link to nothing" in reasons["gone"]
    assert "cannot be read" in reasons["round"]
    assert "not a regular file" in reasons["pipe"]
    assert "larger than" in reasons["big"]
    for name in reasons:
        with pytest.raises(InvalidFlow):
            folders.files.find(name)


def test_a_link_to_a_flow_is_that_flow_under_its_own_name(folders: Folders) -> None:
    kept = folders.project.parent / "own.yaml"
    kept.write_text(sound("own"), encoding="utf-8")
    (folders.project / "own.yaml").symlink_to(kept)
    assert folders.files.find("own").name == "own"


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_a_name_that_is_no_text_is_told(folders: Folders) -> None:
    Path(os.fsdecode(os.fsencode(folders.project) + b"/\xff.yaml")).write_text(sound("x"), encoding="utf-8")
    assert "not UTF-8" in folders.broken().reason
    assert folders.broken().where.encode()
    with pytest.raises(NotFound) as refused:
        folders.files.find("x")
    assert refused.value.hint.encode()


def test_a_folder_that_cannot_be_read_hides_no_flow_of_the_team(tmp_path: Path) -> None:
    """What lies in it might have been meant: the bundled one must not take its place."""
    (tmp_path / "flows").write_text("a file")
    files = FlowFiles([UserFolder("project", tmp_path / "flows"), *standard_flows(home=tmp_path, project=tmp_path)[2:]])
    (entry,) = files.problems()
    assert "the folder cannot be read" in entry.reason
    assert files.names() == ()
    with pytest.raises(InvalidFlow, match="the folder cannot be read"):
        files.find("standard")


def test_past_the_limit_files_are_not_listed_and_that_is_said(
    folders: Folders, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_files, "FILES", 3)
    for number in range(5):
        folders.write(f"f{number}.yaml", sound(f"f{number}"))
    assert folders.files.names() == ("f0", "f1", "f2", "full", "light", "standard")
    assert "from f3.yaml on" in folders.broken().reason
    assert folders.files.find("f4").name == "f4"


def test_a_folder_given_twice_counts_once(folders: Folders) -> None:
    folders.write("own.yaml", sound("own"))
    files = FlowFiles([UserFolder("project", folders.project), UserFolder("user", folders.project)])
    assert [(entry.name, entry.source) for entry in files.entries()] == [("own", "project")]


def test_a_byte_order_mark_and_windows_lines_are_read(folders: Folders) -> None:
    folders.write("own.yaml", b"\xef\xbb\xbf" + sound("own").replace("\n", "\r\n").encode())
    assert folders.files.find("own").phases[0].id == "make"


def test_the_page_names_every_field() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for field in (*Flow.__struct_fields__, *Phase.__struct_fields__):
        assert f"`{field}`" in page, field


def test_the_examples_of_the_page_can_be_followed(folders: Folders) -> None:
    page = PAGE.read_text(encoding="utf-8")
    example, two_phases = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    folders.write("patch.yaml", example)
    assert [phase.kind for phase in folders.files.find("patch").phases] == ["agent", "review", "gate", "exec"]
    folders.write("jira.yaml", sound("jira", output="summary.md") + two_phases)
    assert [phase.kind for phase in folders.files.find("jira").phases] == ["agent", "gate", "exec"]

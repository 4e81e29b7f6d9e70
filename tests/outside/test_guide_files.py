"""The shelf over real folders: who wins, what is broken and where, and that every change is seen by the next call."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

import handrail
from handrail.domain.guides.shelf import BrokenGuide, GuideShelf, LoadedGuide, Position
from handrail.kernel.limits import GUIDE_FILE_BYTES, GUIDE_FILES
from handrail.outside.guide_files import GuideFiles, standard_sources
from handrail.outside.linear_matcher import LinearMatcher
from handrail.outside.user_files import UserFolder

HOUR_NS = 3600 * 1_000_000_000


class CountingMatcher(LinearMatcher):
    """Counts patterns checked. Guides here have one pattern each, so it counts guides read."""

    read = 0

    def pattern_problem(self, pattern: str, flags: str) -> str | None:
        self.read += 1
        return super().pattern_problem(pattern, flags)


def data(guide_id: str, **changes: Any) -> dict[str, Any]:
    rule = {"type": "regex", "message": "m", "pattern": "a"}
    step = {"id": "only", "title": "Only", "prompt": "Do it.", "validationCriteria": [rule]}
    return {"id": guide_id, "name": "N", "description": "D", "version": "1.0.0", "steps": [step], **changes}


def put(folder: Path, file_name: str, guide_id: str, **changes: Any) -> Path:
    """A guide file. Written as JSON, which is YAML too."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / file_name
    file.write_bytes(msgspec.json.encode(data(guide_id, **changes)))
    return file


def age(*folders: Path) -> None:
    """Makes folders look untouched for long, so that the next name that comes or goes shows in their stamp for sure."""
    for folder in folders:
        if folder.is_dir():
            os.utime(folder, ns=(HOUR_NS, HOUR_NS))


def shelf(*folders: Path, matcher: LinearMatcher | None = None, later_ns: int = HOUR_NS) -> GuideFiles:
    """A shelf whose clock runs an hour ahead, so that files just written count as settled."""
    age(*folders)
    return GuideFiles(
        [UserFolder(folder.name, folder) for folder in folders],
        matcher=matcher or LinearMatcher(),
        server_version="1.0.0",
        now_ns=lambda: time.time_ns() + later_ns,
    )


def ids(found: GuideFiles) -> list[str]:
    return [loaded.guide.id for loaded in found.guides()]


def only_problem(found: GuideFiles) -> BrokenGuide:
    (problem,) = found.problems()
    return problem


def test_it_is_a_shelf(tmp_path: Path) -> None:
    found: GuideShelf = shelf(tmp_path)
    assert found.guides() == ()
    assert found.problems() == ()
    assert found.find("any") is None


def test_guides_of_every_suffix_are_found_and_sorted_by_id(tmp_path: Path) -> None:
    put(tmp_path, "1.yml", "ccc")
    put(tmp_path, "2.json", "bbb")
    put(tmp_path, "3.yaml", "aaa")
    put(tmp_path, "4.JSON", "ddd")
    found = shelf(tmp_path)
    assert ids(found) == ["aaa", "bbb", "ccc", "ddd"]
    loaded = found.find("bbb")
    assert loaded == found.guides()[1]
    assert isinstance(loaded, LoadedGuide)
    assert (loaded.file, loaded.source, loaded.shadows) == (tmp_path / "2.json", tmp_path.name, ())


def test_other_files_hidden_files_and_folders_are_left_alone(tmp_path: Path) -> None:
    put(tmp_path, "notes.txt", "aaa")
    put(tmp_path, ".hidden.yaml", "bbb")
    put(tmp_path / "folder.yaml", "inner.yaml", "ccc")
    (tmp_path / ".#lock.yaml").symlink_to("nobody@nowhere")
    found = shelf(tmp_path)
    assert (found.guides(), found.problems()) == ((), ())


def test_a_missing_folder_is_no_problem_and_is_seen_when_it_comes(tmp_path: Path) -> None:
    found = shelf(tmp_path / "later")
    assert (found.guides(), found.problems()) == ((), ())
    put(tmp_path / "later", "a.yaml", "aaa")
    assert ids(found) == ["aaa"]


def test_a_folder_that_is_a_file_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x", encoding="utf-8")
    problem = only_problem(shelf(tmp_path / "file"))
    assert problem.file == tmp_path / "file"
    assert problem.reason == "the folder cannot be read: Not a directory"
    assert problem.position is None


# -- who wins ---------------------------------------------------------------------------------------------------------


def test_a_later_source_wins_and_names_what_it_shadows(tmp_path: Path) -> None:
    first = put(tmp_path / "one", "a.yaml", "same", name="First")
    second = put(tmp_path / "two", "b.yaml", "same", name="Second")
    put(tmp_path / "three", "c.yaml", "same", name="Third")
    found = shelf(tmp_path / "one", tmp_path / "two", tmp_path / "three").find("same")
    assert isinstance(found, LoadedGuide)
    assert (found.guide.name, found.source, found.shadows) == ("Third", "three", (first, second))


def test_a_broken_file_of_a_later_source_is_not_passed_over_for_an_older_good_one(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.yaml", "same")
    put(tmp_path / "two", "b.yaml", "same", name="")
    found = shelf(tmp_path / "one", tmp_path / "two")
    broken = found.find("same")
    assert isinstance(broken, BrokenGuide)
    assert (broken.source, broken.path, broken.reason) == ("two", "name", "must not be empty")
    assert ids(found) == []


def test_a_file_that_cannot_be_parsed_shadows_by_its_stem(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.yaml", "same")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "same.json").write_text("{", encoding="utf-8")
    assert isinstance(shelf(tmp_path / "one", tmp_path / "two").find("same"), BrokenGuide)


def test_a_broken_file_of_an_earlier_source_is_still_listed(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.yaml", "same", name="")
    put(tmp_path / "two", "b.yaml", "same")
    found = shelf(tmp_path / "one", tmp_path / "two")
    assert ids(found) == ["same"]
    assert only_problem(found).file == tmp_path / "one" / "a.yaml"
    assert found.guides()[0].shadows == (tmp_path / "one" / "a.yaml",)


def test_of_two_files_with_one_id_in_a_folder_the_first_by_name_wins(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(
        "name: N\nid: same\ndescription: D\nversion: '1.0.0'\nsteps:\n- {id: one, title: T, prompt: P}\n"
    )
    put(tmp_path, "a.yaml", "same")
    found = shelf(tmp_path)
    assert [loaded.file.name for loaded in found.guides()] == ["a.yaml"]
    problem = only_problem(found)
    assert (problem.id, problem.file.name, problem.path, problem.position) == ("same", "b.yaml", "id", Position(2, 1))
    assert problem.reason == "a.yaml in this folder already has the id same; give one of them another"
    assert isinstance(found.find("same"), LoadedGuide)


def test_a_broken_file_that_comes_second_keeps_its_own_reason(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", "same")
    put(tmp_path, "b.yaml", "same", version="x")
    found = shelf(tmp_path)
    assert isinstance(found.find("same"), LoadedGuide)
    assert only_problem(found).path == "version"


def test_a_broken_file_that_comes_first_holds_the_id(tmp_path: Path) -> None:
    put(tmp_path, "a.yaml", "same", version="x")
    put(tmp_path, "b.yaml", "same")
    found = shelf(tmp_path)
    assert isinstance(found.find("same"), BrokenGuide)
    assert ids(found) == []
    assert [problem.file.name for problem in found.problems()] == ["a.yaml", "b.yaml"]


def test_a_folder_given_again_is_as_strong_as_its_last_place(tmp_path: Path) -> None:
    for name in ("one", "two"):
        put(tmp_path / name, "a.json", "aaa", name=name)
    again = [UserFolder(label, tmp_path / name) for label, name in (("weak", "one"), ("mid", "two"), ("strong", "one"))]
    found = GuideFiles(again, matcher=LinearMatcher(), server_version="1.0.0")
    (loaded,) = found.guides()
    assert (loaded.guide.name, loaded.source) == ("one", "strong")
    assert loaded.shadows == (tmp_path / "two" / "a.json",)
    assert found.problems() == ()


def test_a_folder_given_twice_counts_once_where_it_is_strongest(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.yaml", "aaa")
    (tmp_path / "two").symlink_to("one")
    twice = [UserFolder("weak", tmp_path / "one"), UserFolder("strong", tmp_path / "two")]
    found = GuideFiles(twice, matcher=LinearMatcher(), server_version="1.0.0").find("aaa")
    assert isinstance(found, LoadedGuide)
    assert (found.source, found.shadows) == ("strong", ())


# -- what is broken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("broken.json", '{\n "id": "own-id",\n}', ("broken", (3, 1), "", "trailing comma")),
        ("broken.yaml", "id: own-id\nname: a: b\n", ("broken", (2, 8), "", "not valid YAML")),
        ("twice.json", '{"id": "own-id",\n "id": "own-id"}', ("twice", (2, 2), "id", "already given in line 1")),
        ("twice.yaml", "steps:\n- id: a\n  id: b\n", ("twice", (3, 3), "steps[0].id", "already given in line 2")),
        ("empty.yaml", "", ("empty", (1, 1), "", "the file is empty")),
        ("empty.json", "", ("empty", (1, 1), "", "it ends too early")),
        ("list.yaml", "- a\n", ("list", (1, 1), "", "the file holds a list")),
        ("own.yaml", "id: own-id\nname: N\n", ("own-id", (1, 1), "", 'the key "description" is missing')),
        ("stem.yaml", "id: Not An Id\n", ("stem", (1, 1), "id", "may only have the small letters")),
        ("number.yaml", "id: 12345\n", ("number", (1, 1), "id", "must be text, not a number: put it in quotes")),
        ("version.yaml", "id: own-id\nversion: 1.0\n", ("own-id", (2, 1), "version", "put it in quotes")),
        (
            "deep.yaml",
            "id: own-id\nname: N\ndescription: D\nversion: 1.0.0\nsteps:\n- id: one\n  title: T\n  promt: P\n",
            ("own-id", (8, 3), "steps[0].promt", "did you mean prompt?"),
        ),
        (
            "rule.json",
            msgspec.json.format(msgspec.json.encode(data("own-id"))).decode().replace('"a"', '"("'),
            ("own-id", (15, 11), "steps[0].validationCriteria[0].pattern", "does not compile"),
        ),
    ],
)
def test_a_broken_file_has_its_id_place_and_reason(
    tmp_path: Path, name: str, text: str, expected: tuple[str, tuple[int, int], str, str]
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    found = shelf(tmp_path)
    problem = only_problem(found)
    guide_id, place, path, words = expected
    assert problem.position is not None
    assert (problem.id, (problem.position.line, problem.position.column), problem.path) == (guide_id, place, path)
    assert words in problem.reason
    assert found.find(guide_id) == problem
    assert found.guides() == ()


def test_a_guide_for_a_newer_server_is_listed_as_broken(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa", minServerVersion="9.0.0")
    assert only_problem(shelf(tmp_path)).reason == "this guide needs Handrail 9.0.0 or newer; this is 1.0.0"


def test_a_file_that_is_not_utf8_says_where(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes("id: ok-é\nname: caf".encode() + b"\xe9\n")
    problem = only_problem(shelf(tmp_path))
    assert (problem.id, problem.position) == ("latin", Position(2, 10))
    assert problem.reason == "the file is not UTF-8: byte 0xE9 is no character; save it as UTF-8"


@pytest.mark.parametrize("name", ["a.json", "a.yaml"])
def test_a_byte_order_mark_is_no_problem(tmp_path: Path, name: str) -> None:
    file = put(tmp_path, name, "aaa")
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert ids(shelf(tmp_path)) == ["aaa"]


def test_a_file_may_be_as_large_as_the_bound_and_no_larger(tmp_path: Path) -> None:
    file = put(tmp_path, "big.json", "aaa")
    file.write_bytes(file.read_bytes().ljust(GUIDE_FILE_BYTES))
    assert ids(shelf(tmp_path)) == ["aaa"]
    file.write_bytes(file.read_bytes() + b" ")
    problem = only_problem(shelf(tmp_path))
    assert (problem.id, problem.reason) == ("big", "the file is larger than 1048576 bytes; a guide is far smaller")


def test_more_files_than_the_bound_are_a_problem_and_not_silence(tmp_path: Path) -> None:
    for number in range(GUIDE_FILES + 2):
        (tmp_path / f"g{number:04}.json").write_bytes(b"{")
    found = shelf(tmp_path)
    first, *files = found.problems()
    assert len(files) == GUIDE_FILES
    assert first.file == tmp_path
    assert first.reason == "1002 guide files are here; from g1000.json on they are not read (at most 1000 are)"


def test_links_that_lead_nowhere_or_in_circles_are_problems(tmp_path: Path) -> None:
    (tmp_path / "loop.yaml").symlink_to("loop.yaml")
    (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
    found = shelf(tmp_path)
    assert [(problem.id, problem.reason) for problem in found.problems()] == [
        ("gone", "the file is a symbolic link to nothing"),
        ("loop", "the file is a symbolic link that leads back to itself"),
    ]
    assert isinstance(found.find("loop"), BrokenGuide)


def test_a_link_to_a_guide_is_followed(tmp_path: Path) -> None:
    real = put(tmp_path / "elsewhere", "real.yaml", "aaa")
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "link.yaml").symlink_to(real)
    assert ids(shelf(tmp_path / "here")) == ["aaa"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    assert only_problem(shelf(tmp_path)).reason == "this is not a regular file"


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
def test_a_file_that_cannot_be_read_is_tried_again_at_every_call(tmp_path: Path) -> None:
    link = tmp_path / "odd.yaml"
    link.symlink_to("/proc/self/mem")
    found = shelf(tmp_path)
    assert only_problem(found).reason == "the file cannot be read: Input/output error"
    assert only_problem(found).id == "odd"
    link.unlink()
    assert found.problems() == ()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not keep such names")
def test_a_name_that_is_not_utf8_is_a_problem_that_can_be_sent(tmp_path: Path) -> None:
    put(tmp_path, os.fsdecode(b"bad\xff.yaml"), "aaa")
    found = shelf(tmp_path)
    problem = only_problem(found)
    assert found.guides() == ()
    assert problem.reason == r"the name of the file bad\udcff.yaml is not UTF-8; rename it"
    msgspec.json.encode([problem.id, str(problem.file), problem.reason])


def test_problems_are_sorted_by_file(tmp_path: Path) -> None:
    for name in ("b.json", "a.yaml", "c.yml"):
        (tmp_path / name).write_bytes(b"{")
    assert [problem.file.name for problem in shelf(tmp_path).problems()] == ["a.yaml", "b.json", "c.yml"]


# -- every change is seen ---------------------------------------------------------------------------------------------


def test_nothing_is_read_again_while_nothing_changes(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa")
    put(tmp_path, "b.yaml", "bbb")
    matcher = CountingMatcher()
    found = shelf(tmp_path, matcher=matcher)
    before = found.guides()
    assert found.guides() is before
    assert found.problems() == ()
    assert found.find("aaa") is before[0]
    assert matcher.read == 2


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa")
    file = put(tmp_path, "b.json", "bbb")
    matcher = CountingMatcher()
    found = shelf(tmp_path, matcher=matcher)
    found.guides()
    put(tmp_path, "b.json", "bbb", name="Another name")
    os.utime(file, ns=(1, 1))
    assert [loaded.guide.name for loaded in found.guides()] == ["N", "Another name"]
    assert matcher.read == 3


def test_an_edit_that_keeps_size_and_time_of_change_is_seen(tmp_path: Path) -> None:
    file = put(tmp_path, "a.json", "aaa", name="One")
    os.utime(file, ns=(5 * HOUR_NS, 5 * HOUR_NS))
    found = shelf(tmp_path)
    assert found.guides()[0].guide.name == "One"
    put(tmp_path, "a.json", "aaa", name="Two")
    os.utime(file, ns=(5 * HOUR_NS, 5 * HOUR_NS))
    assert found.guides()[0].guide.name == "Two"


def test_a_file_put_in_the_place_of_another_is_seen(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa", name="One")
    found = shelf(tmp_path)
    assert found.guides()[0].guide.name == "One"
    put(tmp_path / "new", "a.json", "aaa", name="Two").replace(tmp_path / "a.json")
    assert found.guides()[0].guide.name == "Two"


def test_a_file_too_fresh_to_trust_its_clock_is_read_again(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa")
    matcher = CountingMatcher()
    found = shelf(tmp_path, matcher=matcher, later_ns=0)
    found.guides()
    found.guides()
    assert matcher.read == 2


def test_new_and_removed_files_are_seen(tmp_path: Path) -> None:
    first = put(tmp_path, "a.json", "aaa")
    found = shelf(tmp_path)
    assert ids(found) == ["aaa"]
    put(tmp_path, "b.json", "bbb")
    assert ids(found) == ["aaa", "bbb"]
    age(tmp_path)
    assert ids(found) == ["aaa", "bbb"]
    first.unlink()
    assert ids(found) == ["bbb"]
    assert found.find("aaa") is None


def test_a_folder_too_fresh_to_trust_its_clock_is_listed_again(tmp_path: Path) -> None:
    """Two names that come within one tick of a coarse clock leave one stamp; the second is seen all the same."""
    put(tmp_path, "a.json", "aaa")
    found = shelf(tmp_path, later_ns=0)
    moment = time.time_ns()
    os.utime(tmp_path, ns=(moment, moment))
    assert ids(found) == ["aaa"]
    put(tmp_path, "b.json", "bbb")
    os.utime(tmp_path, ns=(moment, moment))
    assert ids(found) == ["aaa", "bbb"]


def test_a_shadowed_guide_comes_back_when_what_hid_it_goes(tmp_path: Path) -> None:
    put(tmp_path / "one", "a.json", "aaa")
    hider = put(tmp_path / "two", "a.json", "aaa", version="x")
    found = shelf(tmp_path / "one", tmp_path / "two")
    assert isinstance(found.find("aaa"), BrokenGuide)
    hider.unlink()
    assert isinstance(found.find("aaa"), LoadedGuide)


def test_a_mended_file_is_seen(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa", version="x")
    found = shelf(tmp_path)
    assert isinstance(found.find("aaa"), BrokenGuide)
    put(tmp_path, "a.json", "aaa")
    assert isinstance(found.find("aaa"), LoadedGuide)
    assert found.problems() == ()


# -- where guides come from -------------------------------------------------------------------------------------------


def test_the_standard_sources_in_order(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    storage = os.pathsep.join([str(tmp_path / "abs"), "", "~/mine", "rel"])
    assert standard_sources(home=home, project=project, storage_path=storage) == (
        UserFolder("bundled", Path(handrail.__file__).parent / "guides"),
        UserFolder("user", home / ".handrail" / "guides"),
        UserFolder("WORKFLOW_STORAGE_PATH", tmp_path / "abs"),
        UserFolder("WORKFLOW_STORAGE_PATH", home / "mine"),
        UserFolder("WORKFLOW_STORAGE_PATH", project / "rel", project),
        UserFolder("project", project / ".handrail" / "guides", project),
        UserFolder("project", project / "workflows", project),
    )


def test_without_a_project_there_are_only_bundled_and_user_guides(tmp_path: Path) -> None:
    found = standard_sources(home=tmp_path, project=None, storage_path=None)
    assert [source.label for source in found] == ["bundled", "user"]


def test_importing_the_shelf_imports_no_engine() -> None:
    code = (
        "import sys, handrail.outside.guide_files; "
        "assert not {'yaml', 're2', 'jsonschema_rs', 'difflib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_reading_json_guides_imports_no_yaml(tmp_path: Path) -> None:
    put(tmp_path, "a.json", "aaa")
    code = (
        "import sys; from pathlib import Path; from handrail.outside.guide_files import *; "
        "from handrail.outside.linear_matcher import LinearMatcher; "
        "f = GuideFiles([UserFolder('x', Path(sys.argv[1]))], matcher=LinearMatcher(), server_version='1.0.0'); "
        "assert len(f.guides()) == 1; assert 'yaml' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)


def test_a_projects_link_stays_in_the_project_and_a_users_leads_where_it_will(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    put(tmp_path / "elsewhere", "far.yaml", "far")
    put(project / "shared", "near.yaml", "near")
    for folder, target in (
        (home / ".handrail/guides", tmp_path / "elsewhere/far.yaml"),
        (project / ".handrail/guides", project / "shared/near.yaml"),
        (project / "workflows", tmp_path / "elsewhere/far.yaml"),
    ):
        folder.mkdir(parents=True)
        (folder / "link.yaml").symlink_to(target)
    sources = standard_sources(home=home, project=project, storage_path=None)[1:]
    found = GuideFiles(sources, matcher=LinearMatcher(), server_version="1.0.0")
    assert ids(found) == ["far", "near"]
    (problem,) = found.problems()
    assert (problem.id, problem.file) == ("link", project / "workflows" / "link.yaml")
    assert "leads out of the project" in problem.reason
    at_home = standard_sources(home=home, project=home, storage_path=None)[1:]
    assert ids(GuideFiles(at_home, matcher=LinearMatcher(), server_version="1.0.0")) == ["far"]

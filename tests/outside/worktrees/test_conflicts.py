"""The forecast: which worktrees would not merge, with what is not committed; and that leaving pairs out never changes
the answer."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.outside.tracking.discovery import discover
from handrail.outside.tracking.git_process import Deadline
from handrail.outside.worktrees import conflicts, worktrees_at
from handrail.outside.worktrees.conflicts import pairs_to_merge
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.merge import merge_trees
from tests.outside.tracking.playground import Playground, contents_of, environment, write_global_config
from tests.outside.worktrees.grove import Grove


def clashes(grove: Grove, *names: str, base: str = "main") -> dict[tuple[str, str], tuple[str, ...]]:
    found = grove.trees.foresee({name: grove.path(name) for name in names}, base)
    assert found.problems == {}
    return {(clash.one, clash.other): clash.paths for clash in found.clashes}


def test_the_same_lines_changed_without_a_commit_are_foreseen(grove: Grove) -> None:
    grove.make("one").write("a.txt", "1\ntwo\nthree\n")
    grove.make("two").write("a.txt", "2\ntwo\nthree\n")
    grove.make("far").write("b.txt", "other\n")
    assert clashes(grove, "one", "two", "far") == {("one", "two"): ("a.txt",)}


def test_untracked_files_of_the_same_name_are_foreseen(grove: Grove) -> None:
    grove.make("one").write("new.txt", "1\n")
    grove.make("two").write("new.txt", "2\n")
    grove.make("same").write("new.txt", "2\n")
    assert clashes(grove, "one", "two", "same") == {("one", "two"): ("new.txt",), ("one", "same"): ("new.txt",)}


def test_a_base_that_moved_on_is_foreseen(grove: Grove) -> None:
    grove.make("one").write("a.txt", "1\ntwo\nthree\n")
    grove.repo.write("a.txt", "0\ntwo\nthree\n")
    grove.repo.commit()
    assert clashes(grove, "one") == {("", "one"): ("a.txt",)}


def test_a_renamed_file_that_the_other_edits_is_clean(grove: Grove) -> None:
    one, two = grove.make("one"), grove.make("two")
    one.path("src/app.py").rename(one.path("src/main.py"))
    two.append("src/app.py")
    assert clashes(grove, "one", "two") == {}


def test_a_file_against_a_folder_is_foreseen_under_its_own_name(grove: Grove) -> None:
    one, two = grove.make("one"), grove.make("two")
    one.write("thing", "a file\n")
    two.write("thing/inside", "in a folder\n")
    assert clashes(grove, "one", "two") == {("one", "two"): ("thing",)}


def test_a_file_put_into_a_folder_that_was_moved_away_is_foreseen(grove: Grove) -> None:
    one, two, _three = grove.make("one"), grove.make("two"), grove.make("three")
    one.path("src").rename(one.path("lib"))
    two.write("src/new.py")
    assert clashes(grove, "one", "two", "three") == {("one", "two"): ("lib/new.py",)}


def test_binary_files_and_deletions_are_foreseen(grove: Grove) -> None:
    grove.repo.write("image", b"\0\1" * 100)
    grove.repo.commit()
    grove.make("one").write("image", b"\0\2" * 100)
    grove.make("two").write("image", b"\0\3" * 100)
    grove.make("gone").remove("image")
    found = clashes(grove, "one", "two", "gone")
    assert found == dict.fromkeys(itertools.combinations(("one", "two", "gone"), 2), ("image",))


def test_nothing_is_written_into_the_users_repository(grove: Grove) -> None:
    one, two = grove.make("one"), grove.make("two")
    one.write("a.txt", "1\n")
    two.write("a.txt", "2\n")
    two.git("add", "a.txt")
    before = contents_of(grove.top), contents_of(one.top), contents_of(two.top)
    assert len(clashes(grove, "one", "two")) == 1
    assert (contents_of(grove.top), contents_of(one.top), contents_of(two.top)) == before


def test_hidden_edits_count(grove: Grove) -> None:
    one = grove.make("one")
    one.git("update-index", "--skip-worktree", "a.txt")
    one.write("a.txt", "1\n")
    grove.make("two").write("a.txt", "2\n")
    assert clashes(grove, "one", "two") == {("one", "two"): ("a.txt",)}


def test_a_broken_worktree_is_a_problem_and_hides_nobody(grove: Grove) -> None:
    grove.make("one").write("a.txt", "1\n")
    grove.make("two").write("a.txt", "2\n")
    broken = grove.make("broken")
    broken.path(".git").write_text("gitdir: /nowhere\n")
    names = ("one", "broken", "two", "never")
    found = grove.trees.foresee({name: grove.path(name) for name in names}, "main")
    assert [(clash.one, clash.other) for clash in found.clashes] == [("one", "two")]
    assert found.problems.keys() == {"broken", "never"}


def test_an_unknown_base_and_an_old_git_are_problems(grove: Grove, monkeypatch: pytest.MonkeyPatch) -> None:
    grove.make("one")
    assert "nowhere" in grove.trees.foresee({"one": grove.path("one")}, "nowhere").problems[""]
    monkeypatch.setattr(conflicts, "can_merge", lambda: False)
    found = grove.trees.foresee({"one": grove.path("one")}, "main")
    assert "git 2.39 or newer" in found.problems[""]
    assert found.clashes == ()


def test_a_forecast_that_takes_too_long_says_so(grove: Grove) -> None:
    tree = grove.make("one")
    tree.write("a.txt", "1\n")
    problems: dict[str, str] = {}
    tips = {"": grove.git("rev-parse", "main"), "one": tree.commit()}
    assert conflicts._clashes(git_of(grove, Deadline(-1)), tips, problems) == []
    assert "too long" in problems[""]


def test_the_forecast_is_what_real_merges_say(grove: Grove) -> None:
    """Every pair, by `git merge` in a clone."""
    for number in range(6):
        tree = grove.make(f"t{number}")
        tree.write("a.txt", f"{number % 3}\ntwo\nthree\n")
        tree.write(f"own{number}", "x\n")
        tree.write("src/app.py", "".join(f"line {n}{' changed' if n == number * 5 else ''}\n" for n in range(40)))
    names = [f"t{number}" for number in range(6)]
    found = clashes(grove, *names)
    for name in names:
        Playground(Path(grove.path(name))).commit()
    expected = set()
    for one, other in itertools.combinations(names, 2):
        grove.git("checkout", "-q", "--detach", f"work/{one}")
        done = subprocess.run(
            ["git", "merge", "-q", f"work/{other}"], cwd=grove.top, capture_output=True, check=False, env=environment()
        )
        if done.returncode:
            expected.add((one, other))
            grove.git("merge", "--abort")
    assert found.keys() == expected
    assert expected


# -- leaving pairs out ------------------------------------------------------------------------------------------------


def git_of(grove: Grove, deadline: Deadline | None = None) -> Git:
    repository = discover(str(grove.top), Deadline(60))
    assert repository is not None
    return Git(repository, deadline or Deadline(60))


PATHS = ("a", "b", "d/a", "d/b", "d/s/a", "e/a", "e", "f/x")
STEP = st.one_of(
    st.tuples(st.just("write"), st.sampled_from(PATHS), st.integers(0, 3)),
    st.tuples(st.just("drop"), st.sampled_from(PATHS), st.just(0)),
    st.tuples(st.just("move"), st.sampled_from([("d", "g"), ("d", "e"), ("a", "c"), ("d/a", "d/c")]), st.just(0)),
    st.tuples(st.just("merge"), st.integers(0, 3), st.just(0)),
    st.tuples(st.just("root"), st.just("sub"), st.just(0)),
)


class Plan:
    """Commits written as a stream, without a working tree; their names are known after `done`."""

    def __init__(self, top: Path) -> None:
        self.git = Playground(top)
        self.begin()

    def begin(self) -> None:
        self.trees: dict[int, dict[str, str]] = {}
        self._stream = ""

    def commit(self, files: dict[str, str], parents: list[int]) -> int:
        mark = len(self.trees) + 1
        self.trees[mark] = files
        who = "committer Somebody <somebody@example.org> 1700000000 +0000"
        self._stream += f"commit refs/heads/x\nmark :{mark}\n{who}\ndata 1\nx\n"
        self._stream += "".join(f"{'merge' if n else 'from'} :{parent}\n" for n, parent in enumerate(parents))
        self._stream += "deleteall\n"
        for path, content in files.items():
            self._stream += f"M 100644 inline {path}\ndata {len(content)}\n{content}\n"
        return mark

    def done(self, marks: list[int]) -> list[str]:
        asked = "".join(f"get-mark :{mark}\n" for mark in marks)
        self._stream = "reset refs/heads/x\n\n" + self._stream
        given = (self._stream + asked).encode()
        return self.git.git("fast-import", "--quiet", "--force", "--cat-blob-fd=1", given=given).split()


def stepped(files: dict[str, str], step: tuple[str, object, int]) -> dict[str, str]:
    kind, what, number = step
    files = dict(files)
    if kind == "write":
        path = str(what)
        files = {name: text for name, text in files.items() if not name.startswith(path + "/")}
        files = {name: text for name, text in files.items() if not path.startswith(name + "/")}
        files[path] = "".join(f"{n}\n" for n in range(10)) + f"{path if number else ''}{number}\n"
    elif kind == "drop":
        files.pop(str(what), None)
    elif kind == "move":
        assert isinstance(what, tuple)
        old, new = map(str, what)
        moved = {name: text for name, text in files.items() if name == old or name.startswith(old + "/")}
        kept = {name: text for name, text in files.items() if name not in moved}
        target = {new + name[len(old) :]: text for name, text in moved.items()}
        clear = not any(a == b or a.startswith(b + "/") or b.startswith(a + "/") for a in target for b in kept)
        files = {**kept, **target} if clear else files
    elif kind == "root":
        moved = {f"{what}/{name}": text for name, text in files.items() if not name.startswith(f"{what}/")}
        files = {**{name: text for name, text in files.items() if name.startswith(f"{what}/")}, **moved}
    return files


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    top = tmp_path_factory.mktemp("plan")
    subprocess.run(["git", "init", "-q", str(top)], check=True)
    return Plan(top)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(sides=st.lists(st.lists(STEP, min_size=1, max_size=4), min_size=3, max_size=4))
def test_leaving_pairs_out_never_changes_the_answer(plan: Plan, sides: list[list[tuple[str, object, int]]]) -> None:
    write_global_config()
    base = {name: "".join(f"{n}\n" for n in range(10)) + name for name in ("a", "d/a", "d/b", "d/s/a", "f/x")}
    plan.begin()
    marks = [plan.commit(base, [])] * len(sides)
    for number, side in enumerate(sides):
        for step in side:
            if step[0] == "merge":
                other = marks[int(str(step[1])) % len(marks)]
                files = {**plan.trees[other], **plan.trees[marks[number]]}
                clear = not any(a.startswith(b + "/") for a in files for b in files)
                files = files if clear else plan.trees[marks[number]]
                marks[number] = plan.commit(files, list(dict.fromkeys((marks[number], other))))
            else:
                marks[number] = plan.commit(stepped(plan.trees[marks[number]], step), [marks[number]])
    tips = plan.done(marks)
    repository = discover(str(plan.git.top), Deadline(60))
    assert repository is not None
    git = Git(repository, Deadline(60))
    chosen = set(pairs_to_merge(git, tips))
    every = list(itertools.combinations(range(len(tips)), 2))
    merges = list(merge_trees(git, [(tips[one], tips[other]) for one, other in every]))
    conflicting = {pair for pair, merged in zip(every, merges, strict=True) if merged.conflicts is not None}
    assert conflicting <= chosen


def test_pairs_that_touch_nothing_of_each_other_are_left_out(plan: Plan) -> None:
    plan.begin()
    base = plan.commit({"a": "1\n", "b": "1\n", "c": "1\n"}, [])
    tips = plan.done([plan.commit({**plan.trees[base], name: "2\n"}, [base]) for name in ("a", "b", "c")])
    repository = discover(str(plan.git.top), Deadline(60))
    assert repository is not None
    assert pairs_to_merge(Git(repository, Deadline(60)), tips) == []


def test_a_project_in_a_linked_worktree_sees_the_same(grove: Grove) -> None:
    one = grove.make("one")
    one.write("a.txt", "1\n")
    two = Path(grove.path("two"))
    worktrees_at(one.top).make(str(two), "work/two", "main")
    Playground(two).write("a.txt", "2\n")
    found = worktrees_at(one.top).foresee({"one": str(one.top), "two": str(two)}, "main")
    assert [clash.paths for clash in found.clashes] == [("a.txt",)]

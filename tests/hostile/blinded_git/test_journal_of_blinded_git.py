"""A real server on a pipe, a real repository: whatever blinds git, `complete_task` tells what changed, or that it
cannot know."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.outside.tracking.playground import GLOBAL_CONFIG, Playground, make_base, write_global_config
from tests.process.peer import handrail_serve
from tests.process.served import Served

MISLEADING = {
    "GIT_DIR": "/nowhere",
    "GIT_INDEX_FILE": "/nowhere/index",
    "GIT_WORK_TREE": "/nowhere",
    "GIT_CONFIG_COUNT": "1",
    "GIT_CONFIG_KEY_0": "core.ignoreStat",
    "GIT_CONFIG_VALUE_0": "true",
    "GIT_CEILING_DIRECTORIES": "/",
}
BLIND = {
    "core.ignoreStat": "true",
    "core.ignoreCase": "true",
    "core.trustctime": "false",
    "core.checkStat": "minimal",
    "core.fileMode": "false",
    "core.symlinks": "false",
}


class Attacked(NamedTuple):
    """A repository with a server in it."""

    repo: Playground
    server: Served
    workflow: str

    def told(self, work: Callable[[Playground], object]) -> tuple[dict[str, set[str]], dict[str, Any]]:
        """What a task is told that does this work: its files by kind of change, and the whole answer."""
        task = self.server.call("start_task", workflow_id=self.workflow, name="Work", goal="Work")["task_id"]
        work(self.repo)
        done = self.server.call("complete_task", task_id=task, status="success", outcome={"summary": "Done"})
        return {change: set(paths) for change, paths in done["files_changed"].items() if paths}, done


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("blinded")
    (folder / "home").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder / "home"))
        write_global_config()
        repo = make_base(folder / "repo")
        repo.link("link", "a.txt")
        repo.commit("a link")
    return folder


@pytest.fixture(scope="module")
def running(base: Path) -> Iterator[Served]:
    environment = {**MISLEADING, "HOME": str(base / "home")}
    with handrail_serve(base / "repo", "--profile", "all", env=environment) as process:
        yield Served(process)


@pytest.fixture
def attacked(base: Path, running: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[Attacked]:
    """One server for all attacks; each begins with a clean tree and ends without its settings."""
    monkeypatch.setenv("HOME", str(base / "home"))
    repo = Playground(base / "repo")
    config = repo.read(".git/config")
    workflow = running.call("start_workflow", name="Under attack")["workflow_id"]
    yield Attacked(repo, running, workflow)
    repo.write(".git/config", config)
    (base / "home" / ".gitconfig").write_text(GLOBAL_CONFIG, encoding="utf-8")
    for name in ("exclude", "attributes"):
        (repo.top / ".git/info" / name).unlink(missing_ok=True)
    (repo.top / ".git/index").unlink()  # with every mark in it
    repo.git("checkout", "-q", "-f", "main")
    repo.git("clean", "-qffdx", "-e", ".handrail")


def set_up(repo: Playground, settings: Mapping[str, str]) -> None:
    for key, value in settings.items():
        repo.git("config", key, value)


def stealthily(repo: Playground, name: str) -> None:
    facts = repo.path(name).stat()
    repo.write(name, repo.read(name).swapcase())
    os.utime(repo.path(name), ns=(facts.st_atime_ns, facts.st_mtime_ns))


def edit(repo: Playground) -> None:
    repo.append("a.txt", "edited\n")
    repo.append("a.txt", "and again\n")


def variants(repo: Playground) -> None:
    repo.write("B.TXT", "another\n")
    repo.path("docs/guide.md").rename(repo.path("docs/GUIDE.md"))


def no_link(repo: Playground) -> None:
    repo.remove("link")
    repo.write("link", "a.txt")


BY_SETTING: dict[str, tuple[Callable[[Playground], object], dict[str, set[str]]]] = {
    "core.ignoreStat": (edit, {"modified": {"a.txt"}}),
    "core.ignoreCase": (variants, {"added": {"B.TXT", "docs/GUIDE.md"}, "deleted": {"docs/guide.md"}}),
    "core.trustctime": (lambda repo: stealthily(repo, "src/app.py"), {"modified": {"src/app.py"}}),
    "core.checkStat": (lambda repo: stealthily(repo, "src/lib.py"), {"modified": {"src/lib.py"}}),
    "core.fileMode": (lambda repo: repo.path("b.txt").chmod(0o755), {"modified": {"b.txt"}}),
    "core.symlinks": (no_link, {"modified": {"link"}}),
}


@pytest.mark.parametrize("setting", BY_SETTING)
@pytest.mark.parametrize("whose", ["the repository's", "the user's"])
def test_a_setting_hides_nothing(attacked: Attacked, setting: str, whose: str) -> None:
    work, expected = BY_SETTING[setting]
    if whose == "the user's":
        section, _, name = setting.partition(".")
        write_global_config(f"[{section}]\n\t{name} = {BLIND[setting]}\n")
        attacked.repo.git("config", "--unset", setting, check=False)
    else:
        set_up(attacked.repo, {setting: BLIND[setting]})
    attacked.repo.append("a.txt", "dirty before\n")
    told, done = attacked.told(work)
    assert told == expected
    assert not done.get("partial")


def test_all_of_them_together_hide_nothing(attacked: Attacked) -> None:
    set_up(attacked.repo, BLIND)

    def work(repo: Playground) -> None:
        for work, _ in BY_SETTING.values():
            work(repo)

    told, done = attacked.told(work)
    wanted: dict[str, set[str]] = {}
    for _, expected in BY_SETTING.values():
        for change, paths in expected.items():
            wanted.setdefault(change, set()).update(paths)
    assert told == wanted
    assert not done.get("partial")


def test_settings_made_during_the_task_hide_nothing(attacked: Attacked) -> None:
    def work(repo: Playground) -> None:
        set_up(repo, {**BLIND, "status.showUntrackedFiles": "no", "core.fsmonitor": "true"})
        repo.git("status")
        edit(repo)
        repo.git("update-index", "--assume-unchanged", "src/app.py")
        repo.git("update-index", "--skip-worktree", "src/lib.py")
        repo.append("src/app.py")
        repo.append("src/lib.py")
        repo.write("new.txt")

    told, _ = attacked.told(work)
    assert told == {"modified": {"a.txt", "src/app.py", "src/lib.py"}, "added": {"new.txt"}}


def test_a_file_named_almost_like_handrail_s_is_told(attacked: Attacked) -> None:
    names = {".handrail/handrail.db_backdoor.py", ".handrail/payload.gate", "payload.gate"}

    def work(repo: Playground) -> None:
        for name in names:
            repo.write(name, "payload\n")

    told, _ = attacked.told(work)
    assert told == {"added": names}
    for name in names:
        attacked.repo.remove(name)


def test_text_inside_ident_is_told(attacked: Attacked) -> None:
    repo = attacked.repo
    repo.write(".gitattributes", "*.py ident\n")
    repo.write("id.py", "key = '$Id: aaaa $'\n")
    repo.commit("ident")
    told, _ = attacked.told(lambda repo: repo.write("id.py", "key = '$Id: bbbb $'\n"))
    assert told == {"modified": {"id.py"}}


def test_a_file_saved_unchanged_is_not_told_whatever_its_line_ends(attacked: Attacked) -> None:
    repo = attacked.repo
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit("line ends")

    def work(repo: Playground) -> None:
        repo.write("docs/.gitattributes", "x\n")
        repo.write(".gitattributes", "* text\n")
        repo.write("windows.txt", b"one\r\ntwo\r\n")

    told, _ = attacked.told(work)
    assert set().union(*told.values()) == {"docs/.gitattributes", ".gitattributes"}


def test_a_choice_in_a_conflict_is_the_task_s(attacked: Attacked) -> None:
    repo = attacked.repo
    repo.git("checkout", "-q", "-b", "theirs")
    repo.write("docs/guide.md", "theirs\n")
    repo.write("theirs.txt")
    repo.commit("theirs")
    repo.git("checkout", "-q", "main")
    repo.write("docs/guide.md", "ours\n")
    repo.commit("ours")

    def work(repo: Playground) -> None:
        repo.git("merge", "-q", "theirs", check=False)
        repo.git("checkout", "-q", "--theirs", "docs/guide.md")
        repo.commit("merged")

    told, done = attacked.told(work)
    assert told == {"modified": {"docs/guide.md"}}
    assert [file["path"] for file in done["external"]] == ["theirs.txt"]


def test_commits_by_plumbing_are_the_task_s(attacked: Attacked) -> None:
    def work(repo: Playground) -> None:
        index = {"GIT_INDEX_FILE": str(repo.top / ".git" / "plumbing")}
        blob = repo.git("hash-object", "-w", "--stdin", given=b"plumbed\n")
        repo.git("read-tree", "HEAD", extra=index)
        repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},a.txt", extra=index)
        tip = repo.git("commit-tree", repo.git("write-tree", extra=index), "-p", "HEAD", "-m", "plumbed")
        repo.git("reset", "-q", "--hard", tip)

    told, done = attacked.told(work)
    assert told == {"modified": {"a.txt"}}
    assert not done.get("external")


def at_the_top(repo: Playground) -> None:
    repo.append(".gitignore", "src/\nhidden.py\n")


def by_itself(repo: Playground) -> None:
    repo.write("src/.gitignore", "*\n")
    repo.write(".git/info/exclude", "hidden.py\n")


def by_the_repository(repo: Playground) -> None:
    repo.write(".git/info/exclude", "*\n")


def by_the_user(repo: Playground) -> None:
    repo.write("../mine", "*.py\n")
    repo.git("config", "core.excludesFile", str(repo.top.parent / "mine"))


@pytest.mark.parametrize(
    ("hide", "changed"),
    [
        (at_the_top, {"modified": {".gitignore"}}),
        (by_itself, {"added": {"src/.gitignore"}}),
        (by_the_repository, {}),
        (by_the_user, {}),
    ],
)
def test_rules_that_begin_to_hide_hide_nothing(
    attacked: Attacked, hide: Callable[[Playground], None], changed: dict[str, set[str]]
) -> None:
    attacked.repo.write("src/scratch.py", "before\n")

    def work(repo: Playground) -> None:
        hide(repo)
        repo.write("hidden.py")
        repo.write("src/deep/hidden.py")
        repo.append("src/scratch.py")
        repo.git("rm", "-q", "--cached", "src/lib.py")
        repo.append("src/lib.py")

    told, done = attacked.told(work)
    wanted = {"added": {"hidden.py", "src/deep/hidden.py"}, "modified": {"src/scratch.py", "src/lib.py"}}
    assert told == {change: paths | changed.get(change, set()) for change, paths in wanted.items()}
    assert not done.get("partial")


def test_a_file_among_handrail_s_own_is_told(attacked: Attacked) -> None:
    names = {".handrail/snapshots/evil.py", ".handrail/snapshots/git-x/index", ".handrail/worktrees/evil.py"}
    names |= {".handrail/handrail.db.part-7/evil.py", ".handrail/handrail.db.schema-1/x/evil.py"}  # a file's name

    def work(repo: Playground) -> None:
        for name in names:
            repo.write(name, "payload\n")

    told, _ = attacked.told(work)
    assert told == {"added": names}
    for name in names:
        attacked.repo.remove(name)


def test_rules_that_change_out_of_sight_are_told(attacked: Attacked) -> None:
    def work(repo: Playground) -> None:
        repo.write(".git/info/attributes", "*.py ident\n")
        repo.append("b.txt")

    told, done = attacked.told(work)
    assert "b.txt" in told["modified"]
    assert done["partial"]
    assert "changed during the task" in " ".join(done["verification"]["warnings"] + done.get("warnings", []))

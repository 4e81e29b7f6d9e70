"""The fifth part of the case matrix: ignore rules that change while a task works, and hide what it does, themselves
included. What they hid when it began stays hidden; what they began to hide is told."""

from __future__ import annotations

import os
from pathlib import Path

from tests.outside.tracking.cases import Case, Expected, Work, settle
from tests.outside.tracking.playground import GLOBAL_CONFIG, Playground, write_global_config

EVERYTHING = "*\n"


def work_in_src(repo: Playground) -> None:
    repo.write("src/payload.py")
    repo.write("src/deep/er/payload.py")
    repo.append("src/app.py")
    repo.append("src/untracked.py")


def before_work_in_src(repo: Playground) -> None:
    repo.write("src/untracked.py")
    repo.write("src/left.py")
    repo.write("src/run.log")


WORK_IN_SRC = Expected(
    added={b"src/payload.py", b"src/deep/er/payload.py"},
    modified={b"src/app.py", b"src/untracked.py"},
    external={b"src/left.py": "ignore_rules"},
    is_literal=False,
)


def with_rules(*, added: set[bytes] = frozenset(), modified: set[bytes] = frozenset()) -> Expected:  # type: ignore[assignment]
    """That work, and the files with the rules."""
    return WORK_IN_SRC._replace(added={*WORK_IN_SRC.added, *added}, modified={*WORK_IN_SRC.modified, *modified})


def rules_that_ignore_themselves(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    repo.write("src/.gitignore", EVERYTHING)
    work_in_src(repo)
    repo.append("src/run.log")
    return with_rules(added={b"src/.gitignore"})


def rules_at_the_top_that_ignore_all(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    repo.write(".gitignore", EVERYTHING)
    repo.git("rm", "-q", "--cached", ".gitignore")
    work_in_src(repo)
    return with_rules(modified={b".gitignore"})


def rules_added_to_those_of_the_tree(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    repo.append(".gitignore", "/src/*.py\n/src/deep/\n")
    work_in_src(repo)
    return with_rules(modified={b".gitignore"})


def rules_that_are_committed(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    repo.append(".gitignore", "src/*\n")
    repo.git("add", ".gitignore")
    repo.git("commit", "-qm", "rules")
    work_in_src(repo)
    return with_rules(modified={b".gitignore"})


def rules_of_the_repository(repo: Playground) -> Work:
    before_work_in_src(repo)
    repo.write(".git/info/exclude", "# nothing\n*.o\n")
    yield
    repo.write(".git/info/exclude", "*.py\n*.o\ndeep\n")
    work_in_src(repo)
    repo.write("src/x.o")
    return WORK_IN_SRC


def rules_of_the_user(repo: Playground) -> Work:
    before_work_in_src(repo)
    repo.write("../mine", "*.o\n")
    write_global_config(f"[core]\n\texcludesFile = {repo.top.parent / 'mine'}\n")
    yield
    repo.write("../mine", "*.o\n*.py\n")
    work_in_src(repo)
    repo.write("src/x.o")
    return WORK_IN_SRC


def other_rules_of_the_user(repo: Playground) -> Work:
    before_work_in_src(repo)
    repo.write("../mine", "src/\n")
    yield
    repo.git("config", "core.excludesFile", str(repo.top.parent / "mine"))
    work_in_src(repo)
    return WORK_IN_SRC


def rules_of_the_user_in_the_usual_place(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    place = Path(os.environ["HOME"], ".config/git")
    place.mkdir(parents=True)
    (place / "ignore").write_text("*.py\n")
    work_in_src(repo)
    return WORK_IN_SRC


def rules_inside_the_tree_by_a_setting(repo: Playground) -> Work:
    before_work_in_src(repo)
    repo.write("rules", "nothing\n")
    repo.git("config", "core.excludesFile", str(repo.path("rules")))
    yield
    repo.write("rules", "*.py\nrules\n")
    work_in_src(repo)
    return with_rules(modified={b"rules"})


def rules_included_from_elsewhere(repo: Playground) -> Work:
    before_work_in_src(repo)
    yield
    repo.write("../mine", "src/\n")
    repo.write("../more", f"[core]\n\texcludesFile = {repo.top.parent / 'mine'}\n")
    (Path(os.environ["HOME"]) / ".gitconfig").write_text(
        GLOBAL_CONFIG + f"[include]\n\tpath = {repo.top.parent / 'more'}\n", encoding="utf-8"
    )
    work_in_src(repo)
    return WORK_IN_SRC


def hidden_rules_are_widened(repo: Playground) -> Work:
    before_work_in_src(repo)
    repo.write("src/.gitignore", "/.gitignore\n*.o\n")
    yield
    repo.write("src/.gitignore", EVERYTHING)
    work_in_src(repo)
    repo.write("src/x.o")
    return WORK_IN_SRC


def hidden_rules_are_removed(repo: Playground) -> Work:
    repo.write("docs/.gitignore", EVERYTHING)
    repo.write("docs/secret.txt")
    settle(repo)
    yield
    repo.remove("docs/.gitignore")
    repo.write("docs/new.txt")
    return Expected(added={b"docs/new.txt"}, external={b"docs/secret.txt": "ignore_rules"}, is_literal=False)


def what_hidden_rules_hid_stays_hidden(repo: Playground) -> Work:
    repo.write("docs/.gitignore", EVERYTHING)
    repo.write("docs/secret.txt")
    repo.write("out/.gitignore", "/.gitignore\n/made/\n")
    yield
    repo.append("docs/secret.txt")
    repo.write("docs/more.txt")
    repo.write("out/made/x.txt")
    repo.write("out/seen.txt")
    repo.write(".git/info/exclude", "*.bak\n")
    repo.write("out/new.bak")
    return Expected(added={b"out/seen.txt", b"out/new.bak"}, is_literal=False)


def rules_become_a_link(repo: Playground) -> Work:
    """Git does not follow it: what the rules hid comes into sight."""
    repo.write("../elsewhere", EVERYTHING)
    repo.write("src/.gitignore", "/.gitignore\n*.txt\n")
    repo.write("src/old.txt")
    settle(repo)
    yield
    repo.remove("src/.gitignore")
    repo.link("src/.gitignore", str(repo.top.parent / "elsewhere"))
    repo.write("src/new.txt")
    return Expected(
        added={b"src/.gitignore", b"src/new.txt"}, external={b"src/old.txt": "ignore_rules"}, is_literal=False
    )


def untracked_edited_and_ignored(repo: Playground) -> Work:
    yield
    repo.git("rm", "-q", "--cached", "b.txt", "docs/guide.md")
    repo.write(".git/info/exclude", "b.txt\nguide.md\n")
    repo.append("b.txt")
    return Expected(modified={b"b.txt"}, deleted={b"docs/guide.md"}, is_literal=False)


def an_ignored_file_that_was_tracked_is_untracked_and_edited(repo: Playground) -> Work:
    repo.write("kept.log")
    repo.git("add", "-f", "kept.log")
    repo.git("commit", "-qm", "kept")
    yield
    repo.git("rm", "-q", "--cached", "kept.log")
    repo.append("kept.log")
    return Expected(modified={b"kept.log"}, is_literal=False)


def a_large_file_is_edited_and_ignored(repo: Playground) -> Work:
    repo.write("huge.bin", b"\1" * 3_000_000)
    repo.write("other.bin", b"\1" * 3_000_000)
    yield
    repo.write("huge.bin", b"\2" * 3_000_000)
    repo.write("new.bin", b"\2" * 3_000_000)
    repo.append(".gitignore", "*.bin\n")
    return Expected(
        added={b"new.bin"},
        modified={b"huge.bin", b".gitignore"},
        external={b"other.bin": "ignore_rules"},
        is_literal=False,
    )


def line_ends_in_what_is_hidden(repo: Playground) -> Work:
    repo.write(".gitattributes", "* text\n")
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit()
    repo.write("edited.txt", b"one\r\ntwo\r\n")
    yield
    repo.git("rm", "-q", "--cached", "windows.txt")
    repo.write(".git/info/exclude", "windows.txt\nedited.txt\n")
    repo.append("edited.txt")
    return Expected(modified={b"edited.txt"}, deleted={b"windows.txt"}, is_literal=False)


def a_link_and_a_mode_in_hiding(repo: Playground) -> Work:
    repo.write("tool.sh")
    repo.link("way", "a.txt")
    yield
    repo.path("tool.sh").chmod(0o755)
    repo.remove("way")
    repo.link("way", "b.txt")
    repo.link("new", "b.txt")
    repo.write(".git/info/exclude", "tool.sh\nway\nnew\n")
    return Expected(added={b"new"}, modified={b"tool.sh", b"way"}, is_literal=False)


def made_by_tools(repo: Playground) -> Work:
    """They are named, not listed."""
    yield
    for folder in (".pytest_cache", ".venv", "web/node_modules"):
        repo.write(f"{folder}/.gitignore", EVERYTHING)
        repo.write(f"{folder}/deep/file")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, is_literal=False)


def results_that_are_ignored_at_once(repo: Playground) -> Work:
    yield
    repo.append(".gitignore", "/dist/\n/target\n")
    repo.write("dist/app.js")
    repo.write("target/debug/app")
    return Expected(added={b"dist/app.js", b"target/debug/app"}, modified={b".gitignore"}, is_literal=False)


def a_repository_inside_that_ignores_all(repo: Playground) -> Work:
    repo.write("lib/run.log")
    yield
    for place in ("lib", "other/deep"):
        inner = repo.at(place)
        inner.top.mkdir(parents=True, exist_ok=True)
        inner.git("init", "-q")
        inner.write("payload.py")
    repo.write("lib/.git/info/exclude", EVERYTHING)
    repo.write("other/deep/.gitignore", EVERYTHING)
    return Expected(
        added={b"lib/payload.py", b"other/deep/payload.py", b"other/deep/.gitignore"}, external=None, is_literal=False
    )


def a_repository_inside_goes_out_of_sight(repo: Playground) -> Work:
    for place in ("lib", "vendor"):
        inner = repo.at(place)
        inner.top.mkdir()
        inner.git("init", "-q")
        inner.write("code.py")
        inner.write("rest.py")
        inner.commit("inner")
    yield
    repo.append(".gitignore", "/lib/\n")
    repo.append("lib/code.py")
    repo.write("lib/new.py")
    repo.write("vendor/.git/info/exclude", EVERYTHING)
    repo.append("vendor/code.py")
    repo.write("vendor/new.py")
    modified = {b".gitignore", b"lib/code.py", b"vendor/code.py"}
    return Expected(added={b"lib/new.py", b"vendor/new.py"}, modified=modified, is_literal=False)


def a_repository_made_in_a_hidden_folder(repo: Playground) -> Work:
    yield
    repo.write("src/in/.gitignore", EVERYTHING)
    inner = repo.at("src/in/er")
    inner.top.mkdir()
    inner.git("init", "-q")
    inner.write("payload.py")
    return Expected(added={b"src/in/.gitignore", b"src/in/er/payload.py"}, is_literal=False)


def names_that_look_like_patterns(repo: Playground) -> Work:
    names = (b"src/[a].py", b"src/*.py", b"src/!x", b"src/#x", b"src/caf\xe9.py", b"src/new\nline", b"src/ sp ")
    repo.write("src/.gitignore", "/.gitignore\n\\[b\\].py\n")
    repo.write("src/[b].py")
    yield
    repo.write("src/.gitignore", EVERYTHING)
    for name in names:
        repo.write(name)
    repo.append("src/[b].py")
    return Expected(added=set(names), is_literal=False)


def among_handrail_s_own_files(repo: Playground) -> Work:
    state = ".handrail/snapshots/git-0123456789abcdef0123"
    repo.write(".handrail/.gitignore", "/handrail.db\n/snapshots/\n")
    repo.write(f"{state}/index")
    repo.write(".handrail/worktrees/.gitignore", EVERYTHING)
    yield
    repo.write(f"{state}/index", "more\n")
    repo.write(f"{state}/kept/snap_1.json", "{}")
    repo.write(f"{state}/objects/00/{'0' * 38}", b"\1")
    repo.write(".handrail/worktrees/.lock", "")
    payloads = (
        *(".handrail/snapshots/evil.py", f"{state}/evil.py", f"{state}/kept/evil.py", f"{state}/index.py"),
        *(f"{state}/objects/00/evil.py", ".handrail/snapshots/git-x/index", ".handrail/snapshots/.hidden/evil.py"),
        *(".handrail/worktrees/evil.py", ".handrail/worktrees/none/evil.py", ".handrail/worktrees/.made/evil.py"),
    )
    for name in payloads:
        repo.write(name)
    return Expected(added={os.fsencode(name) for name in payloads}, is_literal=False)


CASES: list[Case] = [
    rules_that_ignore_themselves,
    rules_at_the_top_that_ignore_all,
    rules_added_to_those_of_the_tree,
    rules_that_are_committed,
    rules_of_the_repository,
    rules_of_the_user,
    other_rules_of_the_user,
    rules_of_the_user_in_the_usual_place,
    rules_inside_the_tree_by_a_setting,
    rules_included_from_elsewhere,
    hidden_rules_are_widened,
    hidden_rules_are_removed,
    what_hidden_rules_hid_stays_hidden,
    rules_become_a_link,
    untracked_edited_and_ignored,
    an_ignored_file_that_was_tracked_is_untracked_and_edited,
    a_large_file_is_edited_and_ignored,
    line_ends_in_what_is_hidden,
    a_link_and_a_mode_in_hiding,
    made_by_tools,
    results_that_are_ignored_at_once,
    a_repository_inside_that_ignores_all,
    a_repository_inside_goes_out_of_sight,
    a_repository_made_in_a_hidden_folder,
    names_that_look_like_patterns,
    among_handrail_s_own_files,
]

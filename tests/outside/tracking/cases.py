"""The first half of the case matrix: what tasks do to files. A case prepares, yields when the task begins, works, and
returns what the task's own changes are."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Generator, Mapping, Set
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tests.outside.tracking.playground import Playground


class Expected(NamedTuple):
    """What a task changed. `None` for external: nobody asks."""

    added: Set[bytes] = frozenset()
    modified: Set[bytes] = frozenset()
    deleted: Set[bytes] = frozenset()
    external: Mapping[bytes, str] | None = MappingProxyType({})
    origins: Mapping[bytes, str] = MappingProxyType({})
    renamed: set[tuple[bytes, bytes]] | None = None
    is_literal: bool = True
    """The bytes on disk tell the same: no filter, no line ends, no ignore rule in between."""
    commits: int | None = None


Case = Callable[[Playground], Generator[None, None, Expected]]
Work = Generator[None, None, Expected]


def two_committed_and_one_not(repo: Playground) -> Work:
    yield
    repo.append("a.txt")
    repo.append("src/app.py")
    repo.commit()
    repo.append("b.txt")
    origins = {b"a.txt": "committed", b"src/app.py": "committed", b"b.txt": "working_tree"}
    return Expected(modified={b"a.txt", b"src/app.py", b"b.txt"}, origins=origins, commits=1)


def dirty_before_and_left_alone(repo: Playground) -> Work:
    repo.append("a.txt")
    yield
    repo.append("b.txt")
    return Expected(modified={b"b.txt"})


def dirty_before_and_edited_again(repo: Playground) -> Work:
    repo.append("a.txt")
    yield
    repo.append("a.txt", "again\n")
    return Expected(modified={b"a.txt"}, origins={b"a.txt": "working_tree"})


def dirty_before_and_committed_as_it_was(repo: Playground) -> Work:
    repo.append("a.txt")
    yield
    repo.commit()
    return Expected(commits=1)


def dirty_before_and_discarded(repo: Playground) -> Work:
    repo.append("a.txt")
    yield
    repo.git("checkout", "--", "a.txt")
    return Expected(modified={b"a.txt"})


def a_new_untracked_file(repo: Playground) -> Work:
    yield
    repo.write("new/deep/file.txt")
    return Expected(added={b"new/deep/file.txt"}, origins={b"new/deep/file.txt": "untracked"})


def a_new_staged_file_and_a_staged_deletion(repo: Playground) -> Work:
    yield
    repo.write("new.txt")
    repo.git("add", "new.txt")
    repo.git("rm", "-q", "b.txt")
    repo.append("a.txt")
    repo.git("add", "a.txt")
    origins = {b"new.txt": "staged", b"b.txt": "staged", b"a.txt": "staged"}
    return Expected(added={b"new.txt"}, deleted={b"b.txt"}, modified={b"a.txt"}, origins=origins)


def staged_and_edited_further(repo: Playground) -> Work:
    yield
    repo.append("a.txt")
    repo.git("add", "a.txt")
    repo.append("a.txt", "unstaged\n")
    repo.remove("b.txt")
    origins = {b"a.txt": "working_tree", b"b.txt": "working_tree"}
    return Expected(modified={b"a.txt"}, deleted={b"b.txt"}, origins=origins)


def untracked_before_and_left_alone(repo: Playground) -> Work:
    repo.write("notes/one.txt")
    yield
    repo.write("notes/two.txt")
    return Expected(added={b"notes/two.txt"})


def untracked_before_edited_and_deleted(repo: Playground) -> Work:
    repo.write("notes/one.txt")
    repo.write("notes/two.txt")
    yield
    repo.append("notes/one.txt")
    repo.remove("notes/two.txt")
    return Expected(modified={b"notes/one.txt"}, deleted={b"notes/two.txt"}, origins={b"notes/one.txt": "untracked"})


def untracked_before_and_committed_as_it_was(repo: Playground) -> Work:
    repo.write("notes/one.txt")
    yield
    repo.commit()
    return Expected(commits=1)


def a_staged_rename(repo: Playground) -> Work:
    yield
    repo.git("mv", "src/lib.py", "src/library.py")
    moved = (b"src/lib.py", b"src/library.py")
    return Expected(added={moved[1]}, deleted={moved[0]}, renamed={moved}, origins={moved[1]: "staged"})


def a_plain_move_with_a_small_edit(repo: Playground) -> Work:
    yield
    content = repo.read("src/lib.py")
    repo.remove("src/lib.py")
    repo.write("core/lib.py", content + b"# moved\n")
    moved = (b"src/lib.py", b"core/lib.py")
    return Expected(added={moved[1]}, deleted={moved[0]}, renamed={moved})


def a_rename_in_case_only(repo: Playground) -> Work:
    yield
    repo.path("a.txt").rename(repo.path("A.txt"))
    return Expected(added={b"A.txt"}, deleted={b"a.txt"}, renamed={(b"a.txt", b"A.txt")})


def edited_and_changed_back(repo: Playground) -> Work:
    yield
    content = repo.read("a.txt")
    repo.append("a.txt")
    repo.write("a.txt", content)
    return Expected()


def committed_and_reverted(repo: Playground) -> Work:
    yield
    repo.append("a.txt")
    repo.commit()
    repo.git("revert", "--no-edit", "HEAD")
    return Expected(commits=2)


def created_and_deleted(repo: Playground) -> Work:
    yield
    repo.write("brief.txt")
    repo.commit()
    repo.remove("brief.txt")
    repo.commit()
    repo.write("briefer.txt")
    repo.remove("briefer.txt")
    return Expected(commits=2)


def added_in_a_commit_and_edited_after(repo: Playground) -> Work:
    yield
    repo.write("new.txt")
    repo.commit()
    repo.append("new.txt")
    return Expected(added={b"new.txt"}, origins={b"new.txt": "working_tree"})


def ignored_output_changes(repo: Playground) -> Work:
    repo.write("build/out.o", b"\0\1")
    repo.write("run.log")
    yield
    repo.write("build/out.o", b"\0\2")
    repo.write("build/more.o")
    repo.append("run.log")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"})


def an_untracked_file_becomes_ignored(repo: Playground) -> Work:
    repo.write("scratch.tmp")
    yield
    repo.append(".gitignore", "*.tmp\n")
    external = {b"scratch.tmp": "ignore_rules"}
    return Expected(modified={b".gitignore"}, external=external, is_literal=False)


def an_ignored_file_becomes_visible(repo: Playground) -> Work:
    repo.write("old.log")
    long_ago = 1_600_000_000
    os.utime(repo.path("old.log"), (long_ago, long_ago))
    settle(repo)
    yield
    repo.write(".gitignore", "build/\n")
    return Expected(modified={b".gitignore"}, external={b"old.log": "ignore_rules"}, is_literal=False)


def an_ignored_file_is_staged_by_force(repo: Playground) -> Work:
    repo.write("run.log")
    yield
    repo.git("add", "-f", "run.log")
    return Expected(added={b"run.log"}, origins={b"run.log": "staged"})


def an_ignored_file_is_committed_by_force(repo: Playground) -> Work:
    repo.write("run.log")
    yield
    repo.git("add", "-f", "run.log")
    repo.commit(add=False)
    repo.append("run.log")
    return Expected(added={b"run.log"}, origins={b"run.log": "working_tree"})


def links_retargeted_replaced_and_dangling(repo: Playground) -> Work:
    repo.link("current", "a.txt")
    repo.commit()
    yield
    repo.remove("current")
    repo.link("current", "b.txt")
    repo.remove("a.txt")
    repo.link("a.txt", "b.txt")
    repo.link("dangling", "nowhere/at/all")
    return Expected(modified={b"current", b"a.txt"}, added={b"dangling"})


def a_folder_replaced_by_a_link_to_elsewhere(repo: Playground) -> Work:
    outside = repo.top.parent / "outside"
    outside.mkdir()
    (outside / "app.py").write_text("secret\n")
    yield
    repo.remove("src")
    repo.link("src", str(outside))
    return Expected(added={b"src"}, deleted={b"src/app.py", b"src/lib.py"})


AWKWARD = [
    b"with space.txt",
    b"new\nline.txt",
    b"tab\there.txt",
    b'quote".txt',
    b'"starts with a quote',
    b"back\\slash.txt",
    "caf\u00e9.txt".encode(),
    "cafe\u0301.txt".encode(),
    b"-dash.txt",
    b"--option",
    b"*glob?.txt",
    b"[brackets].txt",
    b":(top)magic.txt",
    b"#hash.txt",
    b"!bang.txt",
    b"trailing ",
    b" leading",
    b"not-utf8-\xff\xfe.txt",
    b"\xe6\x97\xa5\xe6\x9c\xac/\xf0\x9f\x8e\x89.txt",
    b"~tilde",
    b"$HOME",
    b"a=b",
    b"CON",
]


def awkward_names(repo: Playground) -> Work:
    for name in AWKWARD:
        repo.write(name)
    repo.commit()
    yield
    for name in AWKWARD:
        repo.append(name)
        repo.write(b"new/" + name)
    added = {b"new/" + name for name in AWKWARD}
    return Expected(modified=set(AWKWARD), added=added)


def only_the_mode_changes(repo: Playground) -> Work:
    yield
    repo.path("a.txt").chmod(0o755)
    return Expected(modified={b"a.txt"})


def hidden_by_index_marks(repo: Playground) -> Work:
    repo.git("update-index", "--assume-unchanged", "a.txt")
    repo.git("update-index", "--skip-worktree", "b.txt")
    yield
    repo.append("a.txt")
    repo.append("b.txt")
    return Expected(modified={b"a.txt", b"b.txt"})


def intent_to_add_at_the_start(repo: Playground) -> Work:
    repo.write("planned.txt")
    repo.git("add", "-N", "planned.txt")
    yield
    repo.append("planned.txt")
    return Expected(modified={b"planned.txt"})


def a_file_becomes_a_folder_and_a_folder_a_file(repo: Playground) -> Work:
    yield
    repo.remove("b.txt")
    repo.write("b.txt/inside.txt")
    repo.remove("src")
    repo.write("src")
    return Expected(deleted={b"b.txt", b"src/app.py", b"src/lib.py"}, added={b"b.txt/inside.txt", b"src"})


def a_file_becomes_a_folder_and_back(repo: Playground) -> Work:
    yield
    content = repo.read("b.txt")
    repo.remove("b.txt")
    repo.write("b.txt/inside.txt")
    repo.remove("b.txt")
    repo.write("b.txt", content)
    return Expected()


def untracked_by_the_task_and_ignored(repo: Playground) -> Work:
    yield
    repo.git("rm", "-q", "--cached", "b.txt")
    repo.append(".gitignore", "b.txt\n")
    repo.commit()
    origins = {b"b.txt": "committed", b".gitignore": "committed"}
    return Expected(deleted={b"b.txt"}, modified={b".gitignore"}, origins=origins, is_literal=False)


def untracked_by_the_task_and_still_in_sight(repo: Playground) -> Work:
    yield
    repo.git("rm", "-q", "--cached", "b.txt")
    return Expected()


def empty_files_and_an_empty_folder(repo: Playground) -> Work:
    yield
    repo.write("empty.txt", b"")
    repo.path("nothing/inside").mkdir(parents=True)
    return Expected(added={b"empty.txt"})


def a_pipe_and_a_socket(repo: Playground) -> Work:
    os.mkfifo(repo.path("pipe"))
    yield
    listener = socket.socket(socket.AF_UNIX)
    here = Path.cwd()
    os.chdir(repo.top)  # the path of a socket is short
    try:
        listener.bind("socket")
    finally:
        os.chdir(here)
        listener.close()
    repo.remove("b.txt")
    os.mkfifo(repo.path("b.txt"))
    return Expected(deleted={b"b.txt"})


def a_folder_of_forty_files_moves(repo: Playground) -> Work:
    for number in range(40):
        repo.write(f"pkg/m{number}.py", f"number = {number}\n" * (number + 3))
    repo.commit()
    yield
    repo.path("pkg").rename(repo.path("package"))
    old = {b"pkg/m%d.py" % number for number in range(40)}
    new = {b"package/m%d.py" % number for number in range(40)}
    renamed = {(b"pkg/m%d.py" % number, b"package/m%d.py" % number) for number in range(40)}
    return Expected(added=new, deleted=old, renamed=renamed)


def written_in_the_same_moment_as_the_index(repo: Playground) -> Work:
    repo.write("racy.txt", "aaaa\n")
    repo.git("add", "racy.txt")
    repo.git("commit", "-qm", "racy")
    yield
    repo.write("racy.txt", "bbbb\n")
    return Expected(modified={b"racy.txt"})


def written_again_in_the_same_moment_before_the_start(repo: Playground) -> Work:
    """The index is as old as the file: only its own time tells that the file may have changed since."""
    moment = (1_700_000_000, 1_700_000_000)
    repo.write("racy.txt", "aaaa\n")
    os.utime(repo.path("racy.txt"), moment)
    repo.commit("racy")
    repo.write("racy.txt", "bbbb\n")
    os.utime(repo.path("racy.txt"), moment)
    os.utime(repo.path(".git/index"), moment)
    yield
    repo.write("racy.txt", "aaaa\n")
    return Expected(modified={b"racy.txt"})


def size_and_time_are_restored(repo: Playground) -> Work:
    facts = repo.path("a.txt").stat()
    yield
    content = repo.read("a.txt")
    repo.write("a.txt", content.upper())
    os.utime(repo.path("a.txt"), ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return Expected(modified={b"a.txt"})


def the_team_s_files_in_the_state_folder(repo: Playground) -> Work:
    repo.write(".handrail/config.toml", "profile = 'solo'\n")
    repo.write(".handrail/handrail.db", b"rows")
    yield
    repo.append(".handrail/config.toml", "x = 1\n")
    repo.write(".handrail/handrail.db", b"more rows")
    repo.write(".handrail/handrail.db-wal", b"pages")
    repo.write(".handrail/handrail.db.gate", b"")
    repo.write(".handrail/snapshots/git-0123456789abcdef0123/index", b"")
    return Expected(modified={b".handrail/config.toml"}, is_literal=False)


def settle(repo: Playground, ns: int = 20_000_000) -> None:
    """Waits until the file system's clock has moved on by more than its grain."""
    probe = repo.top.parent / "clock"
    probe.write_bytes(b"")
    start = probe.stat().st_mtime_ns
    while probe.stat().st_mtime_ns - start < ns:
        os.utime(probe)


CASES: list[Case] = [
    two_committed_and_one_not,
    dirty_before_and_left_alone,
    dirty_before_and_edited_again,
    dirty_before_and_committed_as_it_was,
    dirty_before_and_discarded,
    a_new_untracked_file,
    a_new_staged_file_and_a_staged_deletion,
    staged_and_edited_further,
    untracked_before_and_left_alone,
    untracked_before_edited_and_deleted,
    untracked_before_and_committed_as_it_was,
    a_staged_rename,
    a_plain_move_with_a_small_edit,
    a_rename_in_case_only,
    edited_and_changed_back,
    committed_and_reverted,
    created_and_deleted,
    added_in_a_commit_and_edited_after,
    ignored_output_changes,
    an_untracked_file_becomes_ignored,
    an_ignored_file_becomes_visible,
    an_ignored_file_is_staged_by_force,
    an_ignored_file_is_committed_by_force,
    links_retargeted_replaced_and_dangling,
    a_folder_replaced_by_a_link_to_elsewhere,
    awkward_names,
    only_the_mode_changes,
    hidden_by_index_marks,
    intent_to_add_at_the_start,
    a_file_becomes_a_folder_and_a_folder_a_file,
    a_file_becomes_a_folder_and_back,
    untracked_by_the_task_and_ignored,
    untracked_by_the_task_and_still_in_sight,
    empty_files_and_an_empty_folder,
    a_pipe_and_a_socket,
    a_folder_of_forty_files_moves,
    written_in_the_same_moment_as_the_index,
    written_again_in_the_same_moment_before_the_start,
    size_and_time_are_restored,
    the_team_s_files_in_the_state_folder,
]

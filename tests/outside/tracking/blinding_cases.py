"""The fourth part of the case matrix: settings, attributes and habits under which git does not see a change, or sees
one where there is none."""

from __future__ import annotations

import os
from collections.abc import Mapping

from tests.outside.tracking.cases import Case, Expected, Work
from tests.outside.tracking.history_cases import others_branch
from tests.outside.tracking.playground import Playground, write_global_config

BLINDING: Mapping[str, Mapping[str, str]] = {
    "ignore_stat": {"core.ignoreStat": "true"},
    "ignore_case": {"core.ignoreCase": "true"},
    "trust_ctime": {"core.trustctime": "false"},
    "check_stat": {"core.checkStat": "minimal", "core.trustctime": "false"},
    "file_mode": {"core.fileMode": "false"},
    "symlinks": {"core.symlinks": "false"},
    "safecrlf": {"core.safecrlf": "true", "core.autocrlf": "input"},
    "many_files": {"feature.manyFiles": "true", "index.version": "4", "core.splitIndex": "true"},
    "big_files": {"core.bigFileThreshold": "1"},
    "protections": {"core.protectNTFS": "true", "core.protectHFS": "true", "core.precomposeUnicode": "true"},
    "untracked": {"status.showUntrackedFiles": "no", "core.untrackedCache": "true"},
    "caches": {"core.preloadIndex": "false", "core.fsmonitor": "true", "core.commitGraph": "false"},
    "outside_of_patterns": {"sparse.expectFilesOutsideOfPatterns": "true", "index.sparse": "true"},
    "all": {
        "core.ignoreStat": "true",
        "core.ignoreCase": "true",
        "core.trustctime": "false",
        "core.checkStat": "minimal",
        "core.fileMode": "false",
        "core.symlinks": "false",
    },
}


def under(name: str, settings: Mapping[str, str], *, of_the_user: bool) -> Case:
    """All that such settings could hide, in one task."""

    def case(repo: Playground) -> Work:
        if of_the_user:
            parts = [
                f"[{key.partition('.')[0]}]\n\t{key.partition('.')[2]} = {value}\n" for key, value in settings.items()
            ]
            write_global_config("".join(parts))
            for key in settings:
                repo.git("config", "--unset-all", key, check=False)
        else:
            for key, value in settings.items():
                repo.git("config", key, value)
        repo.link("link", "a.txt")
        repo.git("add", "link")
        repo.git("commit", "-qm", "a link")
        repo.append("a.txt", "dirty before\n")
        os.utime(repo.path("docs/guide.md"), (1_600_000_000, 1_600_000_000))
        repo.git("status", "--short")
        yield
        repo.append("a.txt", "again\n")
        repo.write("A.TXT", "another file\n")
        repo.path("b.txt").chmod(0o755)
        repo.remove("link")
        repo.write("link", "a.txt")
        repo.path("src/lib.py").rename(repo.path("src/LIB.py"))
        repo.write("git~1", "a reserved name\n")
        repo.write("docs/guide.md", repo.read("docs/guide.md").upper())
        os.utime(repo.path("docs/guide.md"), (1_600_000_000, 1_600_000_000))
        repo.write("src/mixed.txt", b"one\r\ntwo\n")
        modified = {b"a.txt", b"b.txt", b"link", b"docs/guide.md"}
        added = {b"A.TXT", b"src/LIB.py", b"git~1", b"src/mixed.txt"}
        return Expected(added=added, modified=modified, deleted={b"src/lib.py"}, is_literal=False)

    case.__name__ = f"blinded_by_{name}{'_of_the_user' if of_the_user else ''}"
    return case


def an_edit_after_two_looks(repo: Playground) -> Work:
    repo.git("config", "core.ignoreStat", "true")
    repo.write("new.txt")
    yield
    repo.append("new.txt")
    repo.git("add", "new.txt")
    repo.append("new.txt", "after it was staged\n")
    return Expected(modified={b"new.txt"})


def slipped_in_within_one_second(repo: Playground) -> Work:
    """A file and a folder whose times are set back, before the task and in it."""
    long_ago = (1_600_000_000, 1_600_000_000)
    repo.write("src/old.txt", "aaaa\n")
    for name in ("src/old.txt", "src", "docs"):
        os.utime(repo.path(name), long_ago)
    yield
    repo.write("src/old.txt", "bbbb\n")
    repo.write("docs/slipped.txt")
    for name in ("src/old.txt", "src", "docs"):
        os.utime(repo.path(name), long_ago)
    return Expected(modified={b"src/old.txt"}, added={b"docs/slipped.txt"})


def marks_set_by_the_task(repo: Playground) -> Work:
    yield
    repo.git("update-index", "--assume-unchanged", "a.txt")
    repo.git("update-index", "--skip-worktree", "b.txt")
    repo.append("a.txt")
    repo.append("b.txt")
    return Expected(modified={b"a.txt", b"b.txt"})


def a_large_file_is_marked_and_edited(repo: Playground) -> Work:
    repo.write("huge.bin", b"\1" * 3_000_000)
    repo.commit()
    yield
    repo.git("update-index", "--assume-unchanged", "huge.bin")
    repo.write("huge.bin", b"\2" * 3_000_000)
    return Expected(modified={b"huge.bin"}, is_literal=False)


def sparse_is_given_up(repo: Playground) -> Work:
    repo.git("sparse-checkout", "set", "--cone", "src")
    yield
    repo.git("sparse-checkout", "disable")
    repo.append("docs/guide.md", "now in the tree\n")
    return Expected(modified={b"docs/guide.md"}, is_literal=False)


def sparse_begins_in_the_task(repo: Playground) -> Work:
    yield
    repo.git("sparse-checkout", "set", "--cone", "src")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, is_literal=False)


def sparse_marks_by_hand(repo: Playground) -> Work:
    repo.git("sparse-checkout", "set", "--cone", "src")
    yield
    repo.git("update-index", "--skip-worktree", "a.txt", "b.txt")
    repo.append("a.txt")
    repo.remove("b.txt")
    return Expected(modified={b"a.txt"}, deleted={b"b.txt"})


def a_file_outside_of_the_patterns_is_edited(repo: Playground) -> Work:
    repo.git("config", "sparse.expectFilesOutsideOfPatterns", "true")
    repo.git("sparse-checkout", "set", "--cone", "src")
    repo.write("docs/guide.md", "back in the tree\n")
    yield
    repo.append("docs/guide.md")
    return Expected(modified={b"docs/guide.md"})


def crlf_saved_unchanged_after_text_was_added(repo: Playground) -> Work:
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit()
    yield
    repo.write(".gitattributes", "* text\n")
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    return Expected(added={b".gitattributes"})


def crlf_saved_unchanged_under_text(repo: Playground) -> Work:
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.write("edited.txt", b"one\r\ntwo\r\n")
    repo.commit()
    repo.write(".gitattributes", "* text\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "-qm", "attributes")
    yield
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.write("edited.txt", b"one\r\nthree\r\n")
    return Expected(modified={b"edited.txt"}, is_literal=False)


def crlf_saved_unchanged_after_text_was_removed(repo: Playground) -> Work:
    repo.write(".gitattributes", "* text eol=crlf\n")
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit()
    yield
    repo.remove(".gitattributes")
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    return Expected(deleted={b".gitattributes"})


def line_ends_are_reconfigured(repo: Playground) -> Work:
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit()
    yield
    repo.write(".gitattributes", "windows.txt text\n")
    repo.git("config", "core.autocrlf", "true")
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.append("a.txt")
    return Expected(added={b".gitattributes"}, modified={b"a.txt"})


IDENT = "key = '$Id: {} $'\n"


def text_inside_ident(repo: Playground) -> Work:
    repo.write(".gitattributes", "*.py ident\n")
    for name in ("same.py", "longer.py", "left.py"):
        repo.write(name, IDENT.format("aaaa"))
    repo.write("plain.py", "key = '$Id$'\n")
    repo.commit()
    repo.git("checkout", "-q", "--", ".")
    yield
    repo.write("same.py", IDENT.format("bbbb"))
    repo.write("longer.py", IDENT.format("import os; os.system('sh')"))
    repo.write("plain.py", IDENT.format("payload"))
    repo.write("new.py", IDENT.format("payload"))
    modified = {b"same.py", b"longer.py", b"plain.py"}
    return Expected(modified=modified, added={b"new.py"}, external={})


def ident_as_git_writes_it(repo: Playground) -> Work:
    repo.write(".gitattributes", "*.py ident\n")
    repo.write("one.py", "key = '$Id$'\n")
    repo.write("two.py", "key = '$Id$'\n")
    repo.commit()
    repo.git("checkout", "-q", "-b", "other")
    repo.write("one.py", "key = '$Id$'\nmore\n")
    repo.commit()
    repo.git("checkout", "-q", "main")
    yield
    repo.remove("two.py")
    repo.git("checkout", "-q", "--", "two.py")  # now with an id inside
    repo.git("checkout", "-q", "other")
    return Expected(external={b"one.py": "switch"}, is_literal=False)


def ident_is_given_up(repo: Playground) -> Work:
    repo.write(".gitattributes", "*.py ident\n")
    repo.write("one.py", "key = '$Id$'\n")
    repo.commit()
    repo.remove("one.py")
    repo.git("checkout", "-q", "--", "one.py")  # now with an id inside
    yield
    repo.remove(".gitattributes")
    repo.write("one.py", repo.read("one.py"))
    return Expected(deleted={b".gitattributes"})


def line_ends_edited_where_only_ident_was_set(repo: Playground) -> Work:
    repo.write(".gitattributes", "* ident\n")
    repo.write("mixed.txt", b"one\r\ntwo\n")
    repo.commit()
    yield
    repo.remove(".gitattributes")
    repo.write("mixed.txt", b"one\ntwo\n")
    return Expected(deleted={b".gitattributes"}, modified={b"mixed.txt"})


def files_that_look_like_handrail_s(repo: Playground) -> Work:
    repo.write(".handrail/.gitignore", "handrail.db*\n*.gate\nsnapshots/\n")  # as it used to be
    repo.write(".handrail/handrail.db", b"rows")
    yield
    repo.write(".handrail/handrail.db-wal", b"pages")
    repo.write(".handrail/handrail.db_backdoor.py", "payload\n")
    repo.write(".handrail/payload.gate", "payload\n")
    repo.write(".handrail/guides/handrail.db", "payload\n")
    repo.write("payload.gate", "payload\n")
    repo.write("src/.handrail/handrail.db", "payload\n")
    added = {
        b".handrail/handrail.db_backdoor.py",
        b".handrail/payload.gate",
        b"payload.gate",
        b"src/.handrail/handrail.db",
    }
    return Expected(added=added, is_literal=False)


def conflict(repo: Playground) -> list[bytes]:
    """A branch that conflicts in docs/guide.md and brings some files without a conflict."""
    others = others_branch(repo)
    repo.append("docs/guide.md", "ours\n")
    repo.commit()
    return [path for path in others if path != b"docs/guide.md"]


def a_conflict_resolved_with_theirs(repo: Playground) -> Work:
    clean = conflict(repo)
    yield
    repo.git("merge", "-q", "other", check=False)
    repo.git("checkout", "-q", "--theirs", "docs/guide.md")
    repo.commit("merged")
    return Expected(modified={b"docs/guide.md"}, external=dict.fromkeys(clean, "merge"))


def a_conflict_resolved_with_ours(repo: Playground) -> Work:
    clean = conflict(repo)
    yield
    repo.git("merge", "-q", "other", check=False)
    repo.git("checkout", "-q", "--ours", "docs/guide.md")
    repo.commit("merged")
    return Expected(external=dict.fromkeys(clean, "merge"))


def own_work_given_up_for_theirs(repo: Playground) -> Work:
    clean = conflict(repo)
    yield
    repo.append("docs/guide.md", "own\n")
    repo.commit("own")
    repo.git("merge", "-q", "other", check=False)
    repo.git("checkout", "-q", "--theirs", "docs/guide.md")
    repo.commit("merged")
    return Expected(modified={b"docs/guide.md"}, external=dict.fromkeys(clean, "merge"))


def a_merge_with_an_option_that_decides(repo: Playground) -> Work:
    clean = conflict(repo)
    yield
    repo.git("merge", "-q", "--no-edit", "-X", "theirs", "other")
    return Expected(modified={b"docs/guide.md"}, external=dict.fromkeys(clean, "merge"))


def a_merge_changed_before_it_was_committed(repo: Playground) -> Work:
    others = others_branch(repo)
    repo.append("b.txt", "ours\n")
    repo.commit()
    yield
    repo.git("merge", "-q", "--no-commit", "--no-ff", "other")
    repo.append("up/other0.py", "slipped in\n")
    repo.append("a.txt", "slipped in\n")
    repo.commit("merged")
    return Expected(modified={b"up/other0.py", b"a.txt"}, external=dict.fromkeys(others, "merge"))


def plumbed(repo: Playground, *, parent: str = "HEAD", name: str = "a.txt", content: bytes = b"plumbed\n") -> str:
    """A commit that no branch and no log knows."""
    blob = repo.git("hash-object", "-w", "--stdin", given=content)
    index = {"GIT_INDEX_FILE": str(repo.top / ".git" / "plumbing")}
    repo.git("read-tree", parent, extra=index)
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", extra=index)
    tree = repo.git("write-tree", extra=index)
    (repo.top / ".git" / "plumbing").unlink()
    return repo.git("commit-tree", tree, "-p", parent, "-m", "by plumbing")


def plumbing_and_a_hard_reset(repo: Playground) -> Work:
    yield
    first = plumbed(repo)
    second = plumbed(repo, parent=first, name="new.txt")
    repo.git("reset", "-q", "--hard", second)
    return Expected(modified={b"a.txt"}, added={b"new.txt"}, origins={b"a.txt": "committed"}, commits=2)


def plumbing_and_an_updated_ref(repo: Playground) -> Work:
    yield
    first = plumbed(repo)
    repo.git("update-ref", "refs/heads/main", plumbed(repo, parent=first, name="b.txt"))
    repo.git("reset", "-q", "--hard")
    return Expected(modified={b"a.txt", b"b.txt"}, commits=2)


def plumbing_and_a_switch_to_it(repo: Playground) -> Work:
    yield
    repo.git("branch", "elsewhere", plumbed(repo))
    repo.git("checkout", "-q", "elsewhere")
    return Expected(modified={b"a.txt"}, commits=1)


def plumbing_and_a_merge_of_it(repo: Playground) -> Work:
    yield
    tip = plumbed(repo)
    repo.append("b.txt")
    repo.commit()
    repo.git("merge", "-q", "--no-edit", tip)
    return Expected(modified={b"a.txt", b"b.txt"})


def plumbing_under_a_graft(repo: Playground) -> Work:
    root = repo.git("rev-list", "--max-parents=0", "HEAD")
    yield
    tip = plumbed(repo)
    (repo.top / ".git/info").mkdir(exist_ok=True)
    (repo.top / ".git/info/grafts").write_text(f"{tip} {root}\n")
    repo.git("reset", "-q", "--hard", tip)
    return Expected(modified={b"a.txt"})


def a_reset_to_what_was_fetched(repo: Playground) -> Work:
    remote = repo.top.parent / "elsewhere"
    repo.git("clone", "-q", str(repo.top), str(remote))
    Playground(remote).append("a.txt", "theirs\n")
    Playground(remote).commit("theirs")
    yield
    repo.git("fetch", "-q", str(remote))
    repo.git("reset", "-q", "--hard", "FETCH_HEAD")
    return Expected(external={b"a.txt": "reset"}, commits=0)


def plumbing_that_is_pushed(repo: Playground) -> Work:
    remote = repo.top.parent / "remote.git"
    repo.git("clone", "-q", "--bare", str(repo.top), str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("fetch", "-q", "origin")
    yield
    repo.git("reset", "-q", "--hard", plumbed(repo))
    repo.git("push", "-q", "origin", "main")
    return Expected(modified={b"a.txt"}, commits=1)


def a_pull_of_a_conflict_that_others_resolved(repo: Playground) -> Work:
    remote = Playground(repo.top.parent / "elsewhere")
    repo.git("clone", "-q", str(repo.top), str(remote.top))
    conflict(remote)
    remote.git("merge", "-q", "other", check=False)
    remote.write("docs/guide.md", "resolved by others\n")
    remote.commit("merged")
    repo.git("remote", "add", "origin", str(remote.top))
    yield
    repo.git("pull", "-q", "--ff-only", "origin", "main")
    others = [b"docs/guide.md", *(b"up/other%d.py" % number for number in range(5))]
    return Expected(external=dict.fromkeys(others, "pull"), commits=0)


def a_file_that_git_cannot_encode(repo: Playground) -> Work:
    repo.write(".gitattributes", "*.txt working-tree-encoding=UTF-16\n")
    yield
    repo.write("a.txt", b"\x00\xd8odd\n\x00")
    repo.write("c.txt", "not sixteen bits")
    return Expected(modified={b"a.txt"}, added={b"c.txt"}, is_literal=False)


def a_nested_repository_is_blinded(repo: Playground) -> Work:
    inner = repo.at("vendor/inner")
    inner.top.mkdir(parents=True)
    inner.git("init", "-q")
    inner.write("code.py", "code\n")
    inner.commit()
    for key, value in BLINDING["all"].items():
        inner.git("config", key, value)
    inner.append("code.py", "dirty before\n")
    yield
    inner.append("code.py", "edited\n")
    inner.write("CODE.py", "another\n")
    return Expected(modified={b"vendor/inner/code.py"}, added={b"vendor/inner/CODE.py"}, is_literal=False)


CASES: list[Case] = [
    *(under(name, settings, of_the_user=False) for name, settings in BLINDING.items()),
    under("all", BLINDING["all"], of_the_user=True),
    an_edit_after_two_looks,
    slipped_in_within_one_second,
    marks_set_by_the_task,
    a_large_file_is_marked_and_edited,
    sparse_is_given_up,
    sparse_begins_in_the_task,
    sparse_marks_by_hand,
    a_file_outside_of_the_patterns_is_edited,
    crlf_saved_unchanged_after_text_was_added,
    crlf_saved_unchanged_under_text,
    crlf_saved_unchanged_after_text_was_removed,
    line_ends_are_reconfigured,
    text_inside_ident,
    ident_as_git_writes_it,
    ident_is_given_up,
    line_ends_edited_where_only_ident_was_set,
    files_that_look_like_handrail_s,
    a_conflict_resolved_with_theirs,
    a_conflict_resolved_with_ours,
    own_work_given_up_for_theirs,
    a_merge_with_an_option_that_decides,
    a_merge_changed_before_it_was_committed,
    plumbing_and_a_hard_reset,
    plumbing_and_an_updated_ref,
    plumbing_and_a_switch_to_it,
    plumbing_and_a_merge_of_it,
    plumbing_under_a_graft,
    a_reset_to_what_was_fetched,
    plumbing_that_is_pushed,
    a_pull_of_a_conflict_that_others_resolved,
    a_file_that_git_cannot_encode,
    a_nested_repository_is_blinded,
]

"""The third part of the case matrix: unusual repositories."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

from tests.outside.tracking.cases import Case, Expected, Work
from tests.outside.tracking.playground import Playground, write_global_config


def anew(repo: Playground, *options: str) -> None:
    """The same folder with a fresh repository and no commits."""
    shutil.rmtree(repo.top / ".git")
    repo.git("init", "-q", *options)


def no_commits_yet(repo: Playground) -> Work:
    anew(repo)
    yield
    repo.append("a.txt")
    repo.write("new.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"}, origins={b"new.txt": "untracked"})


def no_commits_yet_and_something_staged(repo: Playground) -> Work:
    anew(repo)
    repo.git("add", "a.txt")
    yield
    repo.git("add", "b.txt")
    repo.append("b.txt")
    repo.remove("a.txt")
    return Expected(modified={b"b.txt"}, deleted={b"a.txt"})


def the_first_commit_is_the_task_s(repo: Playground) -> Work:
    anew(repo)
    yield
    repo.write("new.txt")
    repo.commit("initial")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"}, origins={b"new.txt": "committed"}, commits=1)


def with_submodule(repo: Playground) -> Playground:
    library = repo.top.parent / "library"
    shutil.copytree(repo.top, library, symlinks=True)
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "lib")
    repo.commit("with a submodule")
    return repo.at("lib")


def a_file_inside_a_submodule(repo: Playground) -> Work:
    inner = with_submodule(repo)
    inner.append("b.txt", "dirty before\n")
    yield
    inner.append("a.txt")
    inner.write("new.txt")
    return Expected(modified={b"lib/a.txt"}, added={b"lib/new.txt"}, origins={b"lib/new.txt": "untracked"})


def a_commit_inside_a_submodule(repo: Playground) -> Work:
    inner = with_submodule(repo)
    yield
    inner.append("a.txt")
    inner.commit()
    origins = {b"lib/a.txt": "committed", b"lib": "working_tree"}
    return Expected(modified={b"lib/a.txt", b"lib"}, origins=origins)


def a_submodule_that_was_never_fetched(repo: Playground) -> Work:
    with_submodule(repo)
    repo.git("submodule", "--quiet", "deinit", "-f", "lib")
    yield
    repo.append("a.txt")
    return Expected(modified={b"a.txt"})


def embed(repo: Playground, *, commit: bool = True) -> Playground:
    inner = repo.at("vendor/inner")
    inner.top.mkdir(parents=True)
    inner.git("init", "-q")
    inner.write("code.py", "code\n")
    inner.write("other.py", "other\n")
    if commit:
        inner.commit()
    return inner


def an_embedded_repository(repo: Playground) -> Work:
    inner = embed(repo)
    yield
    inner.append("code.py")
    repo.append("a.txt")
    return Expected(modified={b"vendor/inner/code.py", b"a.txt"})


def an_embedded_repository_without_commits(repo: Playground) -> Work:
    inner = embed(repo, commit=False)
    yield
    inner.append("code.py")
    inner.write("new.py")
    return Expected(modified={b"vendor/inner/code.py"}, added={b"vendor/inner/new.py"})


def a_repository_is_cloned_into_the_tree(repo: Playground) -> Work:
    yield
    embed(repo)
    return Expected(added={b"vendor/inner/code.py", b"vendor/inner/other.py"}, is_literal=False)


def repositories_in_repositories_appear(repo: Playground) -> Work:
    yield
    inner = embed(repo)
    inner.write("huge.bin", b"\1" * 3_000_000)
    deeper = inner.at("deeper")
    deeper.top.mkdir(parents=True)
    deeper.git("init", "-q")
    deeper.write("x.txt")
    names = ("code.py", "other.py", "huge.bin", "deeper/x.txt")
    return Expected(added={f"vendor/inner/{name}".encode() for name in names}, is_literal=False)


def an_embedded_repository_is_removed(repo: Playground) -> Work:
    embed(repo)
    yield
    repo.remove("vendor")
    return Expected(deleted={b"vendor/inner/code.py", b"vendor/inner/other.py"}, is_literal=False)


def an_embedded_repository_loses_its_git(repo: Playground) -> Work:
    inner = embed(repo)
    yield
    shutil.rmtree(inner.top / ".git")
    inner.append("code.py")
    return Expected(modified={b"vendor/inner/code.py"}, is_literal=False)


def a_repository_two_levels_down(repo: Playground) -> Work:
    inner = embed(repo)
    deeper = inner.at("deeper")
    deeper.top.mkdir(parents=True)
    deeper.git("init", "-q")
    deeper.write("x.txt")
    deeper.commit()
    yield
    deeper.append("x.txt")
    return Expected(modified={b"vendor/inner/deeper/x.txt"})


def a_shallow_clone(repo: Playground) -> Work:
    shallow = repo.top.parent / "shallow"
    repo.git("clone", "-q", "--depth=1", f"file://{repo.top}", str(shallow))
    shutil.rmtree(repo.top)
    shallow.rename(repo.top)
    yield
    repo.append("a.txt")
    repo.commit()
    repo.append("b.txt")
    return Expected(modified={b"a.txt", b"b.txt"}, commits=1)


def a_sparse_checkout(repo: Playground) -> Work:
    repo.git("sparse-checkout", "set", "--cone", "src")
    yield
    repo.append("src/app.py")
    repo.write("src/new.py")
    return Expected(modified={b"src/app.py"}, added={b"src/new.py"})


def the_sparse_checkout_changes(repo: Playground) -> Work:
    repo.git("sparse-checkout", "set", "--cone", "src")
    yield
    repo.git("sparse-checkout", "set", "--cone", "docs")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, is_literal=False)


def line_ends_only(repo: Playground) -> Work:
    repo.git("config", "core.autocrlf", "true")
    repo.append("b.txt", "x\n")
    repo.commit()
    yield
    repo.write("a.txt", repo.read("a.txt").replace(b"\n", b"\r\n"))
    repo.append("src/app.py", "edited\r\n")
    return Expected(modified={b"src/app.py"}, is_literal=False)


def line_ends_that_are_committed_as_they_are(repo: Playground) -> Work:
    repo.write("windows.txt", b"one\r\ntwo\r\n")
    repo.commit()
    repo.write(".gitattributes", "* text=auto\n")
    repo.git("add", ".gitattributes")
    repo.git("commit", "-qm", "attributes")
    yield
    repo.write("windows.txt", b"one\r\ntwo\r\nthree\r\n")
    return Expected(modified={b"windows.txt"})


def a_filter_of_the_user(repo: Playground) -> Work:
    write_global_config('[filter "upper"]\n\tclean = tr a-z A-Z\n\tsmudge = cat\n')
    repo.write(".gitattributes", "*.up filter=upper\n")
    repo.write("one.up", "one\n")
    repo.write("two.up", "two\n")
    repo.commit()
    yield
    repo.write("one.up", "ONE\n")  # the same after the filter
    repo.append("two.up")
    return Expected(modified={b"two.up"}, is_literal=False)


def a_filter_of_the_repository(repo: Playground) -> Work:
    repo.git("config", "filter.upper.clean", "tr a-z A-Z")
    repo.write(".gitattributes", "*.up filter=upper\n")
    repo.write("one.up", "one\n")
    repo.write("two.up", "two\n")
    repo.commit()
    yield
    repo.append("two.up")
    return Expected(modified={b"two.up"}, is_literal=False)


LFS = "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize {}\n"


def lfs_files_without_git_lfs(repo: Playground) -> Work:
    write_global_config(
        '[filter "lfs"]\n\tclean = git-lfs-is-not-here\n\tprocess = git-lfs-is-not-here\n\trequired = true\n'
    )
    content = {"one.bin": b"\0one" * 50, "two.bin": b"\0two" * 50}
    for name, data in content.items():
        repo.write(name, LFS.format(hashlib.sha256(data).hexdigest(), len(data)))
    repo.write(".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text\n")
    plain = ("-c", "filter.lfs.clean=", "-c", "filter.lfs.process=", "-c", "filter.lfs.required=false")
    repo.git(*plain, "add", "-A")
    repo.git(*plain, "commit", "-qm", "pointers")
    for name, data in content.items():
        repo.write(name, data)
    yield
    repo.write("one.bin", content["one.bin"])
    repo.write("two.bin", content["two.bin"] + b"more")
    repo.write("three.bin", b"\0three")
    return Expected(modified={b"two.bin"}, added={b"three.bin"}, is_literal=False)


def a_linked_worktree_is_edited_elsewhere(repo: Playground) -> Work:
    linked = repo.top.parent / "linked"
    repo.git("worktree", "add", "-q", "-b", "side", str(linked))
    yield
    Playground(linked).append("a.txt")
    Playground(linked).commit("elsewhere")
    repo.append("b.txt")
    return Expected(modified={b"b.txt"}, commits=0)


def inside_a_linked_worktree(repo: Playground) -> Work:
    main = repo.top.parent / "main"
    repo.top.rename(main)
    Playground(main).git("worktree", "add", "-q", "-b", "side", str(repo.top))
    yield
    repo.append("a.txt")
    repo.commit()
    repo.append("b.txt")
    Playground(main).append("src/app.py")
    Playground(main).commit("in the other tree")
    return Expected(modified={b"a.txt", b"b.txt"}, origins={b"a.txt": "committed"}, commits=1)


def a_worktree_inside_the_tree(repo: Playground) -> Work:
    repo.git("worktree", "add", "-q", "-b", "side", "trees/side")
    yield
    repo.at("trees/side").append("a.txt")
    return Expected(modified={b"trees/side/a.txt"})


def sha256_objects(repo: Playground) -> Work:
    anew(repo, "--object-format=sha256")
    repo.commit()
    repo.append("b.txt", "dirty\n")
    yield
    repo.append("a.txt")
    repo.commit()
    repo.write("new.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"})


def split_index_and_other_features(repo: Playground) -> Work:
    repo.git("config", "core.splitIndex", "true")
    repo.git("config", "core.untrackedCache", "true")
    repo.git("config", "index.version", "4")
    repo.git("update-index", "--split-index", "--untracked-cache", "--index-version", "4")
    repo.append("b.txt", "dirty\n")
    repo.git("add", "b.txt")
    yield
    repo.append("a.txt")
    repo.git("add", "a.txt")
    repo.write("new.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"}, origins={b"a.txt": "staged"})


def settings_of_the_repository_that_would_mislead(repo: Playground) -> Work:
    for key, value in {
        "status.showUntrackedFiles": "no",
        "diff.ignoreSubmodules": "all",
        "status.relativePaths": "true",
        "diff.mnemonicPrefix": "true",
        "diff.noprefix": "true",
        "diff.renames": "false",
        "core.quotePath": "true",
        "diff.algorithm": "patience",
        "status.short": "true",
        "core.abbrev": "4",
        "color.ui": "always",
        "diff.submodule": "log",
        "diff.context": "0",
        "diff.wsErrorHighlight": "all",
        "log.date": "relative",
    }.items():
        repo.git("config", key, value)
    yield
    repo.append("a.txt")
    repo.write("new.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"})


def binary_and_large_files(repo: Playground) -> Work:
    repo.write("data.bin", os.urandom(1000))
    repo.write("huge.bin", b"\1" * 3_000_000)
    repo.write("left.bin", b"\2" * 3_000_000)
    repo.commit()
    repo.write("untracked.bin", b"\3" * 3_000_000)
    repo.write("untouched.bin", b"\4" * 3_000_000)
    yield
    repo.write("data.bin", os.urandom(1000))
    repo.write("huge.bin", b"\5" * 3_000_000)
    repo.write("untracked.bin", b"\6" * 3_000_000)
    repo.write("new.bin", b"\7" * 3_000_000)
    origins = {b"huge.bin": "working_tree", b"new.bin": "untracked", b"untracked.bin": "untracked"}
    modified = {b"data.bin", b"huge.bin", b"untracked.bin"}
    return Expected(modified=modified, added={b"new.bin"}, origins=origins, is_literal=False)


def large_files_are_committed(repo: Playground) -> Work:
    repo.write("before.bin", b"\1" * 3_000_000)
    yield
    repo.write("during.bin", b"\2" * 3_000_000)
    repo.commit()
    repo.write("staged.bin", b"\3" * 3_000_000)
    repo.git("add", "staged.bin")
    origins = {b"during.bin": "committed", b"staged.bin": "staged"}
    return Expected(added={b"during.bin", b"staged.bin"}, origins=origins, is_literal=False)


def started_in_a_folder_below(repo: Playground) -> Work:
    yield
    repo.append("a.txt")
    repo.append("src/app.py")
    return Expected(modified={b"a.txt", b"src/app.py"})


def a_bare_repository_planted_in_the_tree(repo: Playground) -> Work:
    repo.git("init", "-q", "--bare", "planted.git")
    yield
    repo.write("planted.git/config", "[core]\n\tbare = true\n\tfsmonitor = false\n")
    return Expected(modified={b"planted.git/config"}, is_literal=False)


def an_alternate_object_store(repo: Playground) -> Work:
    shared = repo.top.parent / "shared"
    repo.git("clone", "-q", "--shared", str(repo.top), str(shared))
    source = repo.top.parent / "source"
    repo.top.rename(source)
    (shared / ".git/objects/info/alternates").write_text(f"{source}/.git/objects\n")
    shared.rename(repo.top)
    yield
    repo.append("a.txt")
    repo.commit()
    return Expected(modified={b"a.txt"}, commits=1)


def awkward_folder_names(repo: Playground) -> Work:
    odd = Path(os.fsdecode(os.fsencode(repo.top.parent) + b'/od:d "name"\n\xff'))
    repo.top.rename(odd)
    repo.top = odd
    yield
    repo.append("a.txt")
    repo.commit()
    repo.write("new.txt")
    return Expected(modified={b"a.txt"}, added={b"new.txt"})


CASES: list[Case] = [
    no_commits_yet,
    no_commits_yet_and_something_staged,
    the_first_commit_is_the_task_s,
    a_file_inside_a_submodule,
    a_commit_inside_a_submodule,
    a_submodule_that_was_never_fetched,
    an_embedded_repository,
    an_embedded_repository_without_commits,
    a_repository_is_cloned_into_the_tree,
    repositories_in_repositories_appear,
    an_embedded_repository_is_removed,
    an_embedded_repository_loses_its_git,
    a_repository_two_levels_down,
    a_shallow_clone,
    a_sparse_checkout,
    the_sparse_checkout_changes,
    line_ends_only,
    line_ends_that_are_committed_as_they_are,
    a_filter_of_the_user,
    a_filter_of_the_repository,
    lfs_files_without_git_lfs,
    a_linked_worktree_is_edited_elsewhere,
    inside_a_linked_worktree,
    a_worktree_inside_the_tree,
    sha256_objects,
    split_index_and_other_features,
    settings_of_the_repository_that_would_mislead,
    binary_and_large_files,
    large_files_are_committed,
    started_in_a_folder_below,
    a_bare_repository_planted_in_the_tree,
    an_alternate_object_store,
    awkward_folder_names,
]

"""The steps of random histories. Each does one thing in a working copy, as people, agents and their scripts do, and
says whose the files are that it touched: `own` by the task, `foreign` by a merge, a pull, a switch or the like,
`sparse` only left out of the tree or back in it, `either` where both answers are right."""

from __future__ import annotations

import os
import shutil

from tests.outside.tracking.history_template import ATTRIBUTES, SETTINGS, written_config
from tests.outside.tracking.history_work import Step, Tags, Work
from tests.outside.tracking.playground import Playground

CONTENTS = (
    b"",
    b"one\n",
    b"two\n",
    b"one\r\ntwo\r\n",
    b"one\ntwo\n",
    b"\0binary",
    b"long line\n" * 12,
    b"key = '$Id$'\n",
)
RULES = (
    *("*", "*", "*.txt", "*.py", "/new.txt", "/A.TXT", "src/", "deep", "/*", "!*.log", "!/src/", "*.md", "nothing"),
    *("/.gitignore", ".gitignore", "[a-m]*", "src/*", "**/er", "!*.py", "a.txt", "*.[mp]*", "build", "\\*.txt", "d*/"),
)
BRANCHES = ("main", "side", "other")


def write(work: Work) -> Tags:
    name = work.name()
    content = work.choose.choice((*CONTENTS, work.fresh()))
    work.clear(name).write_bytes(content)
    return Tags(f"write {name} {content!r}")


def append(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    with work.repo.path(name).open("ab") as file:
        file.write(work.fresh())
    return Tags(f"append to {name}")


def stealthy_edit(work: Work) -> Tags | None:
    """Same size, same time."""
    if (name := work.there()) is None:
        return None
    path = work.repo.path(name)
    facts = path.stat()
    content = bytes(work.choose.choice(b"abcdefgh") if chr(byte).isalpha() else byte for byte in path.read_bytes())
    path.write_bytes(content)
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return Tags(f"stealthy edit of {name} {content!r}")


def back_in_time(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    os.utime(work.repo.path(name), (1_600_000_000, 1_600_000_000))
    os.utime(work.repo.path(name).parent, (1_600_000_000, 1_600_000_000))
    return Tags(f"{name} and its folder back in time")


def stealthy_addition(work: Work) -> Tags | None:
    folder = work.choose.choice([path for path in (work.top, work.top / "src", work.top / "docs") if path.is_dir()])
    if folder.is_symlink():
        return None
    facts = folder.stat()
    name = work.choose.choice(("slipped.txt", "slipped.py"))
    (folder / name).write_bytes(work.fresh())
    os.utime(folder, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    return Tags(f"{name} slipped into {folder.name}")


def save_again(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    path = work.repo.path(name)
    path.write_bytes(path.read_bytes())
    return Tags(f"{name} saved unchanged")


def line_ends(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    path = work.repo.path(name)
    content = path.read_bytes().replace(b"\r\n", b"\n")
    path.write_bytes(content if work.choose.random() < 0.4 else content.replace(b"\n", b"\r\n"))
    return Tags(f"line ends of {name}")


def change_mode(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    work.repo.path(name).chmod(work.repo.path(name).stat().st_mode ^ 0o111)
    return Tags(f"chmod {name}")


def link(work: Work) -> Tags:
    name = work.name()
    work.clear(name).symlink_to(work.choose.choice(("a.txt", "src", "nowhere")))
    return Tags(f"{name} becomes a link")


def link_to_file(work: Work) -> Tags | None:
    if (name := work.there(link=True)) is None:
        return None
    target = os.fsencode(work.repo.path(name).readlink())
    work.clear(name).write_bytes(target)
    return Tags(f"the link {name} becomes a file with its target")


def rename(work: Work) -> Tags | None:
    if (name := work.there()) is None:
        return None
    to = work.choose.choice((name.upper(), name.swapcase(), work.name()))
    if os.path.lexists(work.repo.path(to)) or not work.repo.path(to).parent.is_dir():
        return None
    work.repo.path(name).rename(work.repo.path(to))
    return Tags(f"mv {name} {to}")


def remove(work: Work) -> Tags | None:
    if (name := work.there(link=work.choose.random() < 0.2)) is None:
        return None
    work.repo.remove(name)
    return Tags(f"rm {name}")


def inside_ident(work: Work) -> Tags:
    inside = work.choose.choice((b"", b": aaaa ", b": bbbb ", b": import os ", b": %b " % (b"0123456789" * 4)))
    name = work.choose.choice(("id.py", "src/app.py", "new.txt"))
    work.clear(name).write_bytes(b"key = '$Id%b$'\n" % inside)
    return Tags(f"{name} with $Id{inside!r}$")


def ignored(work: Work) -> Tags:
    work.repo.write(work.choose.choice(("run.log", "src/run.log", "build/x.o")), work.fresh())
    return Tags("ignored output")


def stage(work: Work) -> Tags:
    how = work.choose.choice((("-A",), ("-u",), ("-N", "."), ("--", work.name())))
    work.git("add", *how)
    return Tags(f"add {how}")


def untrack(work: Work) -> Tags:
    name = work.name()
    work.git("rm", "-q", "--cached", "--", name)
    return Tags(f"rm --cached {name}")


def commit(work: Work) -> Tags:
    if work.choose.random() < 0.7:
        work.git("add", "-A")
    how = work.choose.choice(((), ("-a",), ("--amend",)))
    work.git("commit", "-qm", "work", *how)
    return Tags(f"commit {how}")


def mark(work: Work) -> Tags:
    name, how = work.name(), work.choose.choice(("--assume-unchanged", "--skip-worktree"))
    work.git("update-index", how, "--", name)
    return Tags(f"{how} {name}")


def stash(work: Work) -> Tags:
    how = work.choose.choice((("push", "-q"), ("push", "-q", "-u"), ("pop", "-q"), ("pop", "-q")))
    work.git("stash", *how)
    return Tags(f"stash {how}")


def switch(work: Work) -> Tags:
    how = work.choose.choice((("-q",), ("-q",), ("-q", "-f"), ("-q", "-m"), ("-q", "--detach")))
    branch = work.choose.choice(BRANCHES)
    work.git("checkout", *how, branch)
    return Tags(f"checkout {how} {branch}", "foreign" if "-m" not in how else "either")


def new_branch(work: Work) -> Tags:
    work.git("checkout", "-q", "-b", f"topic{work.choose.randrange(3)}")
    return Tags("a new branch")


def merge(work: Work) -> Tags:
    branch = work.choose.choice(BRANCHES)
    how = work.choose.choice(((), (), ("--no-ff",), ("--no-commit", "--no-ff"), ("-X", "theirs"), ("-X", "ours")))
    both = work.git("diff", "--name-only", "-z", f"{branch}...HEAD").split("\0")
    tags = dict.fromkeys([os.fsencode(name) for name in both], "either") if "-X" in how else {}
    work.git("merge", "-q", "--no-edit", *how, branch)
    said = f"merge {how} {branch}"
    unmerged = {line.partition("\t")[2] for line in work.git("ls-files", "-u", "-z").split("\0") if line}
    if unmerged:
        tags |= dict.fromkeys(map(os.fsencode, unmerged), "own")
        resolved = _resolve(work, sorted(unmerged))
        said += f", conflicts {sorted(unmerged)} resolved {resolved}"
    if unmerged or "--no-commit" in how:
        work.git("commit", "-qm", "merged")
    if (work.top / ".git" / "MERGE_HEAD").exists():  # it could not be committed, and is under way
        return Tags(f"{said}, under way", "either")
    return Tags(said, "foreign", tags)


def _resolve(work: Work, names: list[str]) -> str:
    how = work.choose.choice(("--ours", "--theirs", "--theirs", "by hand"))
    for name in names:
        if how == "by hand":
            work.clear(name).write_bytes(work.fresh())
        else:
            work.git("checkout", "-q", how, "--", name)
        work.git("add", "--", name)
    return how


def pull(work: Work) -> Tags:
    how = work.choose.choice((("--ff-only",), ("--no-rebase", "--no-edit"), ("--rebase",)))
    work.git("pull", "-q", *how, "origin", "main")
    if work.git("ls-files", "-u") or (work.top / ".git" / "rebase-merge").exists():
        work.git("merge", "--abort")
        work.git("rebase", "--abort")
        return Tags(f"pull {how}, given up", "either")
    return Tags(f"pull {how}", "foreign" if how != ("--rebase",) else "either")


def fetch_and_reset(work: Work) -> Tags:
    work.git("fetch", "-q", "origin")
    work.git("reset", "-q", "--hard", "origin/main")
    return Tags("fetch and reset --hard origin/main", "either" if work.line_ends else "foreign")


def rebase(work: Work) -> Tags:
    branch = work.choose.choice(BRANCHES)
    mine = work.git("diff", "--name-only", "-z", f"{branch}...HEAD").split("\0")
    work.git("rebase", "-q", branch)
    if (work.top / ".git" / "rebase-merge").exists():
        work.git("rebase", "--abort")
    return Tags(f"rebase {branch}", "foreign", dict.fromkeys([os.fsencode(name) for name in mine], "either"))


def cherry_pick(work: Work) -> Tags:
    branch, how = work.choose.choice(BRANCHES), work.choose.choice(("cherry-pick", "revert"))
    arguments = (how, "--no-edit", branch) if how == "revert" else (how, branch)
    tip = work.git("rev-parse", branch)
    work.git(*arguments)
    work.git(how, "--abort")
    is_known = work.git("rev-parse", "HEAD") == tip
    return Tags(f"{how} {branch}", "either" if is_known else "own")


def reset(work: Work) -> Tags:
    how, to = work.choose.choice(("--soft", "--mixed", "--hard")), work.choose.choice(("HEAD", "HEAD~1", "side"))
    work.git("reset", "-q", how, to)
    work.moved_head_only |= how != "--hard"
    # What git only takes for dirty, because of its line ends, is discarded as well.
    return Tags(f"reset {how} {to}", "own" if how != "--hard" else "either" if work.line_ends else "foreign")


def restore(work: Work) -> Tags:
    name, source = work.name(), work.choose.choice(("HEAD", "side", "other"))
    work.git("checkout", "-q", source, "--", name)
    return Tags(f"checkout {source} -- {name}")


def plumbing(work: Work) -> Tags | None:
    """Commits that no log of HEAD tells of, until HEAD is there."""
    head = tip = work.git("rev-parse", "HEAD")
    names = work.choose.sample(("a.txt", "b.txt", "plumbed.txt", "docs/guide.md"), work.choose.choice((1, 1, 2)))
    index = {"GIT_INDEX_FILE": str(work.top / ".git" / "plumbing")}
    for name in names:
        blob = work.git("hash-object", "-w", "--no-filters", "--stdin", given=work.fresh())
        work.repo.git("read-tree", tip, extra=index, check=False)
        work.repo.git("update-index", "--add", "--cacheinfo", f"100644,{blob},{name}", extra=index, check=False)
        tree = work.repo.git("write-tree", extra=index, check=False)
        tip = work.git("commit-tree", tree, "-p", tip, "-m", "by plumbing")
    (work.top / ".git" / "plumbing").unlink(missing_ok=True)
    how = work.choose.choice(("reset", "update-ref", "merge", "switch"))
    if how == "reset":
        work.git("reset", "-q", "--hard", tip)
    elif how == "update-ref":
        work.git("update-ref", "HEAD", tip, head)
        work.git("reset", "-q", "--hard")
    elif how == "merge":
        work.git("merge", "-q", "--no-edit", tip)
    else:
        work.git("checkout", "-q", "--detach", tip)
    return Tags(f"plumbing of {names} and {how}", "either", dict.fromkeys(map(str.encode, names), "own"))


def sparse(work: Work) -> Tags:
    how = work.choose.choice((("set", "--cone", "src"), ("set", "--cone", "docs"), ("disable",), ("reapply",)))
    work.git("sparse-checkout", *how)
    work.was_sparse = True
    return Tags(f"sparse-checkout {how}", "sparse")


def attributes(work: Work) -> Tags:
    lines = work.choose.sample(ATTRIBUTES, work.choose.choice((0, 1, 2)))
    work.attributes(lines)
    return Tags(f"attributes {lines}")


def attributes_elsewhere(work: Work) -> Tags:
    line = work.choose.choice(ATTRIBUTES)
    (work.top / ".git" / "info").mkdir(exist_ok=True)
    (work.top / ".git" / "info" / "attributes").write_text(f"{line}\n", encoding="utf-8")
    work.line_ends = work.ident = work.may_be_partial = True
    return Tags(f"info/attributes {line}")


def rules_in_tree(work: Work) -> Tags | None:
    """A .gitignore is made, changed, removed or replaced by a link; some hide themselves."""
    name = work.choose.choice((".gitignore", "src/.gitignore", "docs/.gitignore", "deep/.gitignore"))
    how = work.choose.choice(("write", "write", "append", "remove", "link"))
    lines = work.choose.sample(RULES, work.choose.choice((1, 1, 2)))
    text = "".join(f"{line}\n" for line in lines).encode()
    path = work.repo.path(name)
    if how == "append" and path.is_file() and not path.is_symlink():
        path.write_bytes(path.read_bytes() + text)
    elif how == "remove":
        if not os.path.lexists(path):
            return None
        path.unlink()
    elif how == "link":
        work.clear(name).symlink_to("/nowhere")
    else:
        work.clear(name).write_bytes(text)
    return Tags(f"{how} {name} {lines}")


def rules_elsewhere(work: Work) -> Tags:
    lines = work.choose.sample(RULES, work.choose.choice((0, 1, 2)))
    text = "".join(f"{line}\n" for line in lines)
    how = work.choose.choice(("info/exclude", "info/exclude", "user", "setting"))
    if how == "info/exclude":
        (work.top / ".git" / "info").mkdir(exist_ok=True)
        (work.top / ".git" / "info" / "exclude").write_text(text, encoding="utf-8")
    elif how == "user":
        place = work.top.parent / ".config" / "git"
        place.mkdir(parents=True, exist_ok=True)
        (place / "ignore").write_text(text, encoding="utf-8")
    else:
        file = work.top.parent / f"ignore{work.choose.randrange(2)}"
        file.write_text(text, encoding="utf-8")
        work.git("config", "core.excludesFile", str(file))
    return Tags(f"rules of {how} {lines}")


def configure(work: Work) -> Tags:
    key = work.choose.choice(sorted(SETTINGS))
    value = work.choose.choice(SETTINGS[key])
    with (work.top / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(written_config({key: value}))
    work.note_settings({key: value}, with_filter=False)
    return Tags(f"config {key} {value}")


def forget_logs(work: Work) -> Tags:
    shutil.rmtree(work.top / ".git" / "logs", ignore_errors=True)
    work.are_logs_gone = True
    return Tags("logs removed")


def inner_repository(work: Work) -> Tags:
    inner = work.top / work.choose.choice(("vendor/inner", "lib"))
    if not inner.exists():
        work.clear(str(inner.relative_to(work.top)))
        shutil.copytree(work.template.inner, inner)
        if inner.name == "lib" and work.choose.random() < 0.5:
            work.git("add", "lib")
            work.git("commit", "-qm", "a repository inside")
        return Tags(f"a repository at {inner.name}")
    if not inner.is_dir() or not (inner / ".git").exists():
        return Tags("no repository inside")
    name = work.choose.choice(("code.py", "sub/more.py", "new.py", "CODE.py"))
    (inner / name).parent.mkdir(exist_ok=True)
    (inner / name).write_bytes(work.fresh())
    if work.choose.random() < 0.3:
        Playground(inner).commit("inside")
    return Tags(f"{name} inside {inner.name}")


GIT_STEPS = (stage, untrack, commit, mark, stash, new_branch, cherry_pick, restore, plumbing)
"""Commands that may put a sparse checkout into effect."""
TASK_STEPS: tuple[Step, ...] = (
    *(
        write,
        write,
        append,
        append,
        stealthy_edit,
        stealthy_edit,
        back_in_time,
        stealthy_addition,
        save_again,
        line_ends,
    ),
    *(
        change_mode,
        link,
        link_to_file,
        rename,
        rename,
        remove,
        inside_ident,
        ignored,
        stage,
        untrack,
        commit,
        commit,
        mark,
    ),
    *(stash, switch, switch, new_branch, merge, merge, pull, fetch_and_reset, rebase, cherry_pick, reset, restore),
    *(rules_in_tree, rules_in_tree, rules_elsewhere, rules_elsewhere),
    *(plumbing, sparse, attributes, attributes_elsewhere, configure, forget_logs, inner_repository),
)

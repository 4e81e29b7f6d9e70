"""Makes a worktree, or completes one that an earlier attempt left half made.

Before anything is made, the place remembers what was asked: an existing branch is used only if Handrail made it. A
worktree that git was killed over is completed: files in it must be what git was writing, whole or truncated; anything
else is somebody's work and is left alone. What a removal left half done is restored.
"""

from __future__ import annotations

import os

from handrail.domain.journal.paths import path_text
from handrail.domain.workspaces.worktrees import MadeWorktree
from handrail.kernel.errors import WorktreeRefused
from handrail.kernel.limits import GIT_FILE_BYTES
from handrail.outside.atomic_files import drop_file
from handrail.outside.tracking.discovery import GitRepository
from handrail.outside.tracking.git_process import GitFailed, GitTimedOut
from handrail.outside.tracking.private_index import names
from handrail.outside.worktrees.git import Git
from handrail.outside.worktrees.inspect import worktree_at
from handrail.outside.worktrees.place import (
    OTHER_NAME,
    OTHER_PATH,
    BranchOrigin,
    WorktreeFolder,
    check_branch,
    check_free,
    check_path,
)
from handrail.outside.worktrees.uncommitted import keep_staged, ref_of, uncommitted
from handrail.outside.worktrees.worktree_list import (
    BEING_REMOVED,
    HEADS,
    INITIALIZING,
    WorktreeRecord,
    entry_at,
    entry_on,
    registered,
)
from handrail.regular_files import read_beginning, read_regular

SUBMODULES = "submodules are not checked out"
LFS = "files of git-lfs are pointers until `git lfs pull`"


def make(git: Git, place: WorktreeFolder, path: str, branch: str, base: str | None) -> MadeWorktree:
    """Makes a worktree at `path` on `branch`. The place must be locked."""
    check_branch(git, branch)
    entries = registered(git)
    path = check_path(place, path, entries, git)
    origin = _origin(git, place, path, branch, base)
    there, holder = entry_at(entries, path), entry_on(entries, branch)
    existed = git.branch_tip(branch) is not None
    if holder is not None and holder.path != path:
        raise WorktreeRefused(f"the branch {branch} is checked out at {holder.path}", hint=OTHER_NAME)
    if there is not None and existed:
        there = _on_its_branch(git, there, branch)
    if there is not None and there.branch != branch:
        found = f"the branch {there.branch}" if there.branch else "no branch"
        raise WorktreeRefused(f"at {path} is a worktree already, on {found}", hint=OTHER_PATH)
    if there is not None:
        _take_up(git, place, there, origin)
    else:
        _clear_a_broken_start(git, path)
        check_free(path)
        place.remember(origin)
        _add(git, path, branch, None if existed else origin.base_commit)
    return MadeWorktree(
        path=path,
        branch=branch,
        base_branch=origin.base_branch,
        base_commit=origin.base_commit,
        existed=existed,
        notes=_notes(git, branch),
    )


def _origin(git: Git, place: WorktreeFolder, path: str, branch: str, base: str | None) -> BranchOrigin:
    """Where the branch begins, or began when Handrail made it."""
    if git.branch_tip(branch) is not None:
        origin = place.origin(branch)
        if origin is None or origin.path != path:
            raise WorktreeRefused(f"there is a branch {branch} already", hint=OTHER_NAME)
        return origin
    if base is None:
        commit = git.resolved("HEAD")
        current = git.line("symbolic-ref", "--quiet", "HEAD", allowed=(0, 1))
        # A name that is not UTF-8 cannot be stored: then only the commit is kept, as if no branch were checked out.
        base_branch = current.removeprefix(HEADS) if current.startswith(HEADS) and _is_text(current) else None
    else:
        commit = git.resolved(base)
        base_branch = base if git.branch_tip(base) is not None else None
    if commit is None and git.resolved("HEAD") is None:
        raise WorktreeRefused("the repository has no commit yet", hint="commit something first")
    if commit is None:
        raise WorktreeRefused(f"there is no branch or commit {str(base)[:80]!r}", hint="name a branch that exists")
    return BranchOrigin(path=path, branch=branch, base_branch=base_branch, base_commit=commit)


def _is_text(name: str) -> bool:
    return not any("\udc80" <= letter <= "\udcff" for letter in name)


def _add(git: Git, path: str, branch: str, base: str | None) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
    asked = ("-b", branch, path, base) if base is not None else (path, branch)
    try:
        with git.locking([f"{git.repository.common_dir}/{ref_of(branch)}.lock"], base):
            git.run("worktree", "add", "--quiet", *(("--no-track",) if base is not None else ()), *asked)
    except GitTimedOut:
        raise
    except GitFailed as failed:
        if base is not None and git.branch_tip(branch) is None:
            parts = branch.split("/")
            above = ["/".join(parts[:end]) for end in range(1, len(parts)) if git.branch_tip("/".join(parts[:end]))]
            below = git.line("for-each-ref", "--count=1", "--format=%(refname:short)", f"refs/heads/{branch}/")
            if above or below:
                raise WorktreeRefused(
                    f"{branch} cannot be a branch beside {above[0] if above else below}", hint=OTHER_NAME
                ) from None
        raise WorktreeRefused(f"git made no worktree: {failed.complaint}", hint=OTHER_PATH) from failed


def _on_its_branch(git: Git, there: WorktreeRecord, branch: str) -> WorktreeRecord:
    """The entry, on the branch it was being made for. Git creates the branch, then records the worktree, then puts it
    on the branch: killed before that, it is on no commit at all, and nothing is checked out yet."""
    if there.locked != INITIALIZING or there.branch is not None or there.git_dir is None or there.head is not None:
        return there
    _drop_locks(there.git_dir)
    git.at(git.repository._replace(top=there.path, git_dir=there.git_dir)).run("symbolic-ref", "HEAD", ref_of(branch))
    return there._replace(branch=branch, head=git.branch_tip(branch))


def _take_up(git: Git, place: WorktreeFolder, there: WorktreeRecord, origin: BranchOrigin) -> None:
    """Completes a recorded worktree: whole, half made, half removed, or without its folder."""
    if not os.path.lexists(there.path) and os.path.lexists(leaving(there.path)):
        os.rename(leaving(there.path), there.path)  # noqa: PTH104
    if there.exists and there.locked == BEING_REMOVED:
        with place.scratch() as scratch:
            put_back(git, there, scratch)
        return
    if not there.exists:
        with place.scratch() as scratch:
            keep_gone_index(git, there, scratch)
        unlocked(git, there)
        git.run("worktree", "add", "--quiet", "--force", there.path, origin.branch)
        return
    finish(git, there)
    if worktree_at(git, there) is None:
        raise WorktreeRefused(
            f"the worktree at {there.path} is not linked to this repository",
            hint="`git worktree repair` fixes the link when one of the two was moved",
        )


def keep_gone_index(git: Git, there: WorktreeRecord, scratch: str) -> str | None:
    """Commits what was staged in a worktree whose folder is gone."""
    if there.git_dir is None or there.branch is None:
        return None
    gone = git.at(git.repository._replace(top=there.path, git_dir=there.git_dir))
    return keep_staged(gone, there.head, ref_of(there.branch), scratch)


def leaving(path: str) -> str:
    """A worktree's name while it is being removed."""
    above, name = os.path.split(path)
    return f"{above}/.{name}.handrail-removing"


def unlocked(git: Git, there: WorktreeRecord) -> None:
    """Unlocks a worktree that git locked while making it, or that we locked while removing it."""
    if there.locked in (INITIALIZING, BEING_REMOVED):
        git.run("worktree", "unlock", there.path, allowed=(0, 128))


def finish(git: Git, there: WorktreeRecord) -> None:
    """Checks out what is missing in a worktree whose creation was interrupted. Leaves any other alone."""
    if there.locked != INITIALIZING or there.git_dir is None:
        return
    _link(there.path, there.git_dir)
    here = git.at(git.repository._replace(top=there.path, git_dir=there.git_dir))
    branch = there.branch
    if branch is None:
        raise WorktreeRefused(f"the worktree at {there.path} was not made to the end", hint=OTHER_PATH)
    _drop_locks(there.git_dir)
    here.run("read-tree", "HEAD")
    for path in names(here.run("diff-files", "-z", "--name-only", "--diff-filter=M")):
        if not _is_cut_short(here, path):
            raise WorktreeRefused(
                f"{path_text(path)} at {there.path} is not what git was writing there", hint=OTHER_PATH
            )
    here.run("checkout-index", "--all", "--force", "--quiet", "--index")
    unlocked(git, there)


def _link(path: str, git_dir: str) -> None:
    """Restores a worktree's link to the folder that git keeps for it, if it is missing."""
    if not os.path.lexists(f"{path}/.git"):
        with open(f"{path}/.git", "xb") as file:  # noqa: PTH123
            file.write(b"gitdir: " + os.fsencode(git_dir) + b"\n")


def put_back(git: Git, there: WorktreeRecord, scratch: str) -> None:
    """Restores a worktree after an interrupted removal. Everything was committed by then, so what is missing comes from
    there; what was written since stays."""
    if there.git_dir is None:
        return
    _link(there.path, there.git_dir)
    here = git.at(git.repository._replace(top=there.path, git_dir=there.git_dir))
    found = uncommitted(here, scratch, "back")
    if found.head is not None:
        asked = ("-r", "-z", "--name-only", "--no-renames", "--diff-filter=D")
        missing = here.run("diff-tree", *asked, found.head, found.tree)
        private = {"GIT_INDEX_FILE": f"{scratch}/back.index"}
        here.run("read-tree", found.head, environment=private)
        here.run("checkout-index", "--quiet", "-z", "--stdin", given=missing, environment=private)
        if found.staged is None and found.stuck is None:
            with here.locking([f"{there.git_dir}/index.lock"]):
                here.run("read-tree", found.head)
                here.run("update-index", "-q", "--refresh", allowed=(0, 1))
    unlocked(git, there)


def _drop_locks(git_dir: str) -> None:
    """Removes locks that a killed git left in a worktree that nobody has used yet. Every git of ours holds the place's
    lock, so none is running."""
    for name in ("index.lock", "HEAD.lock"):
        drop_file(f"{git_dir}/{name}")


def _is_cut_short(git: Git, path: bytes) -> bool:
    """True if a file is the beginning of what HEAD has there."""
    name = os.fsdecode(path)
    return is_beginning(git, name, git.line("rev-parse", f":./{name}"))


def is_beginning(git: Git, path: str, content_id: str) -> bool:
    """True if a file is the beginning of an object's content, or all of it, as a checkout would write it."""
    whole = git.run("cat-file", "--filters", f"--path={path}", content_id)
    try:
        return whole.startswith(read_regular(f"{git.repository.top}/{path}", len(whole), links=False))
    except OSError:
        return False


def _clear_a_broken_start(git: Git, path: str) -> None:
    """Cleans up if git was killed before it recorded the worktree: all it left is a link to a folder git does not
    know."""
    try:
        if os.listdir(path) != [".git"]:  # noqa: PTH208
            return
        link = os.fsdecode(read_beginning(f"{path}/.git", GIT_FILE_BYTES)).removeprefix("gitdir: ").rstrip("\n")
    except OSError:
        return
    above = os.path.realpath(f"{git.repository.common_dir}/worktrees")
    if os.path.dirname(os.path.realpath(link)) == above and not os.path.exists(f"{link}/HEAD"):  # noqa: PTH110, PTH120
        os.unlink(f"{path}/.git")  # noqa: PTH108


def _notes(git: Git, branch: str) -> tuple[str, ...]:
    repository: GitRepository = git.repository
    found = []
    tip = git.branch_tip(branch)
    if tip is not None and git.run("ls-tree", "--name-only", tip, "--", ".gitmodules"):
        found.append(SUBMODULES)
    if "lfs" in repository.filters:
        found.append(LFS)
    others = sorted(repository.filters - {"lfs"})
    if others:
        found.append(f"files stand as they are stored: the filter {', '.join(others)} was not run")
    return tuple(found)

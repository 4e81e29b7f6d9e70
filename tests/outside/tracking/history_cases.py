"""The second part of the case matrix: what happens to history while a task runs."""

from __future__ import annotations

from tests.outside.tracking.cases import Case, Expected, Work
from tests.outside.tracking.playground import Playground


def others_branch(repo: Playground, count: int = 5, name: str = "other") -> list[bytes]:
    """A branch with somebody else's commit of some files; the tree is back on its own branch."""
    here = repo.git("branch", "--show-current")
    repo.git("checkout", "-q", "-b", name)
    for number in range(count):
        repo.write(f"up/{name}{number}.py", f"upstream {number}\n")
    repo.append("docs/guide.md", f"from {name}\n")
    repo.commit(f"work on {name}")
    repo.git("checkout", "-q", here)
    return sorted([b"docs/guide.md", *(b"up/%b%d.py" % (name.encode(), number) for number in range(count))])


def remote_with_news(repo: Playground) -> list[bytes]:
    """A remote whose main is one commit of somebody else ahead."""
    remote = repo.top.parent / "remote.git"
    repo.git("clone", "-q", "--bare", str(repo.top), str(remote))
    repo.git("remote", "add", "origin", str(remote))
    repo.git("fetch", "-q", "origin")
    repo.git("branch", "-q", "--set-upstream-to=origin/main")
    return push_news(repo, "news")


def push_news(repo: Playground, name: str) -> list[bytes]:
    elsewhere = repo.top.parent / f"elsewhere-{name}"
    repo.git("clone", "-q", str(repo.top.parent / "remote.git"), str(elsewhere))
    other = Playground(elsewhere)
    for number in range(4):
        other.write(f"up/{name}{number}.py", f"{name} {number}\n")
    other.append("docs/guide.md", f"from {name}\n")
    other.git("add", "-A")
    other.git("-c", "user.name=Else", "-c", "user.email=else@example.org", "commit", "-qm", name)
    other.git("push", "-q", "origin", "HEAD:main")
    return sorted([b"docs/guide.md", *(b"up/%b%d.py" % (name.encode(), number) for number in range(4))])


def switch_to_another_branch_and_edit_there(repo: Playground) -> Work:
    others = others_branch(repo, 30)
    yield
    repo.git("checkout", "-q", "other")
    repo.append("a.txt")
    repo.append("up/other3.py", "mine\n")
    external = dict.fromkeys(others, "switch")
    return Expected(modified={b"a.txt", b"up/other3.py"}, external=external)


def a_switch_that_throws_older_edits_away(repo: Playground) -> Work:
    others = others_branch(repo)
    repo.write("docs/guide.md", b"dirty first line\n" + repo.read("docs/guide.md"))
    yield
    repo.git("checkout", "-q", "-f", "other")
    return Expected(external=dict.fromkeys(others, "switch"))


def switch_there_and_back(repo: Playground) -> Work:
    others_branch(repo)
    yield
    repo.git("checkout", "-q", "other")
    repo.git("checkout", "-q", "main")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"})


def commit_on_a_new_branch_and_merge_it(repo: Playground) -> Work:
    yield
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("feature.py")
    repo.append("a.txt")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "feature")
    origins = {b"feature.py": "committed", b"a.txt": "committed"}
    return Expected(added={b"feature.py"}, modified={b"a.txt"}, origins=origins, commits=1)


def merge_an_own_branch_without_fast_forward(repo: Playground) -> Work:
    yield
    repo.git("checkout", "-q", "-b", "feature")
    repo.append("a.txt")
    repo.commit()
    repo.git("checkout", "-q", "main")
    repo.append("b.txt")
    repo.commit()
    repo.git("merge", "-q", "--no-edit", "--no-ff", "feature")
    return Expected(modified={b"a.txt", b"b.txt"})


def rebase_of_older_commits_and_a_new_one(repo: Playground) -> Work:
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("older.py", "older\n")
    repo.commit("older work")
    repo.git("checkout", "-q", "main")
    for number in range(5):
        repo.write(f"up/u{number}.py")
    repo.commit("upstream")
    repo.git("checkout", "-q", "feature")
    yield
    repo.git("rebase", "-q", "main")
    repo.append("a.txt")
    repo.commit("new work")
    external = {b"up/u%d.py" % number: "rebase" for number in range(5)}
    return Expected(modified={b"a.txt"}, external=external, origins={b"a.txt": "committed"}, commits=1)


def own_commits_rebased_onto_news(repo: Playground) -> Work:
    repo.git("checkout", "-q", "-b", "feature")
    yield
    repo.append("a.txt")
    repo.commit("mine")
    repo.git("checkout", "-q", "main")
    repo.write("up/u.py")
    repo.git("add", "-A")
    repo.git("-c", "user.email=else@example.org", "commit", "-qm", "theirs")
    repo.git("checkout", "-q", "feature")
    repo.git("rebase", "-q", "main")
    # made here during the task, whoever's name is on it
    return Expected(modified={b"a.txt"}, added={b"up/u.py"})


def amend_with_one_more_file(repo: Playground) -> Work:
    yield
    repo.write("forgotten.txt")
    repo.git("add", "-A")
    repo.git("commit", "-q", "--amend", "--no-edit")
    return Expected(added={b"forgotten.txt"}, origins={b"forgotten.txt": "committed"}, commits=1)


def amend_twice_what_the_last_commit_added(repo: Playground) -> Work:
    repo.write("fresh.txt", "one\n")
    repo.commit("adds fresh")
    yield
    for word in ("two\n", "three\n"):
        repo.append("fresh.txt", word)
        repo.git("commit", "-aq", "--amend", "--no-edit")
    return Expected(modified={b"fresh.txt"}, origins={b"fresh.txt": "committed"})


def amend_after_which_the_start_is_pruned(repo: Playground) -> Work:
    repo.append("b.txt", "dirty\n")
    yield
    repo.write("forgotten.txt")
    repo.git("add", "forgotten.txt")
    repo.git("commit", "-q", "--amend", "--no-edit")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    return Expected(added={b"forgotten.txt"})


def history_replaced_and_pruned_under_changed_files(repo: Playground) -> Work:
    repo.append("src/app.py", "only in the lost commit\n")
    repo.write("lost.py", "lost\n")
    repo.commit("to be lost")
    yield
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.append("src/app.py", "instead\n")
    repo.commit("instead")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "-q", "--prune=now")
    return Expected(modified={b"src/app.py"}, deleted={b"lost.py"}, is_literal=False)


def reset_to_an_older_commit(repo: Playground) -> Work:
    repo.write("later.py")
    repo.append("a.txt")
    repo.commit("later")
    yield
    repo.git("reset", "-q", "--hard", "HEAD~1")
    return Expected(external={b"later.py": "reset", b"a.txt": "reset"})


def a_soft_reset_changes_nothing_on_disk(repo: Playground) -> Work:
    repo.append("a.txt")
    repo.commit("later")
    yield
    repo.git("reset", "-q", "--soft", "HEAD~1")
    repo.append("b.txt")
    return Expected(modified={b"b.txt"})


def merge_of_others_and_an_own_edit(repo: Playground) -> Work:
    others = others_branch(repo, 20)
    repo.write("mine_before.py")
    repo.commit()
    yield
    repo.git("merge", "-q", "--no-edit", "other")
    repo.append("a.txt")
    external = dict.fromkeys(others, "merge")
    return Expected(modified={b"a.txt"}, external=external, origins={b"a.txt": "working_tree"})


def own_commit_before_a_merge_that_touches_the_same_file(repo: Playground) -> Work:
    repo.git("checkout", "-q", "-b", "other")
    repo.write("src/app.py", b"upstream first line\n" + repo.read("src/app.py"))
    repo.commit("top")
    repo.git("checkout", "-q", "main")
    yield
    repo.append("src/app.py", "own last line\n")
    repo.commit("bottom")
    repo.git("merge", "-q", "--no-edit", "other")
    return Expected(modified={b"src/app.py"}, external={b"src/app.py": "merge"}, commits=1)


def fast_forward_pull_and_an_uncommitted_edit(repo: Playground) -> Work:
    news = remote_with_news(repo)
    yield
    repo.git("pull", "-q", "--ff-only")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, external=dict.fromkeys(news, "pull"), commits=0)


def a_pulled_file_is_edited(repo: Playground) -> Work:
    remote_with_news(repo)
    yield
    repo.git("pull", "-q", "--ff-only")
    repo.append("up/news0.py", "mine\n")
    repo.commit("mine")
    repo.remove("up/news1.py")
    news = {b"docs/guide.md", *(b"up/news%d.py" % number for number in range(4))} - {b"up/news1.py"}
    return Expected(modified={b"up/news0.py"}, external=dict.fromkeys(news, "pull"), commits=1)


def pull_with_rebase(repo: Playground) -> Work:
    remote_with_news(repo)
    repo.write("older.py")
    repo.commit("older, not pushed")
    yield
    repo.append("a.txt")
    repo.commit("new")
    repo.git("pull", "-q", "--rebase")
    news = {b"docs/guide.md", *(b"up/news%d.py" % number for number in range(4))}
    external = dict.fromkeys(news, "pull")
    return Expected(modified={b"a.txt"}, external=external, origins={b"a.txt": "committed"}, commits=1)


def pull_that_merges(repo: Playground) -> Work:
    news = remote_with_news(repo)
    yield
    repo.append("a.txt")
    repo.commit("new")
    repo.git("pull", "-q", "--no-rebase", "--no-edit")
    return Expected(modified={b"a.txt"}, external=dict.fromkeys(news, "pull"), commits=1)


def pull_that_carries_dirt_over(repo: Playground) -> Work:
    news = remote_with_news(repo)
    repo.append("b.txt", "dirty before\n")
    yield
    repo.git("pull", "-q", "--rebase", "--autostash")
    repo.append("a.txt")
    return Expected(modified={b"a.txt"}, external=dict.fromkeys(news, "pull"))


def pull_that_merges_into_dirt(repo: Playground) -> Work:
    news = remote_with_news(repo)
    repo.write("docs/guide.md", b"dirty first line\n" + repo.read("docs/guide.md"))
    yield
    repo.git("pull", "-q", "--rebase", "--autostash")
    return Expected(external=dict.fromkeys(news, "pull"))


def a_conflict_resolved_by_the_task(repo: Playground) -> Work:
    others = others_branch(repo)
    repo.append("docs/guide.md", "ours\n")
    repo.commit()
    yield
    repo.git("merge", "-q", "other", check=False)
    repo.write("docs/guide.md", "# Guide\n\nwords\nboth\n")
    repo.commit("merged by hand")
    external = dict.fromkeys([path for path in others if path != b"docs/guide.md"], "merge")
    return Expected(modified={b"docs/guide.md"}, external=external, origins={b"docs/guide.md": "committed"})


def a_conflict_in_progress_at_the_start(repo: Playground) -> Work:
    others_branch(repo)
    repo.append("docs/guide.md", "ours\n")
    repo.commit()
    repo.git("merge", "-q", "other", check=False)
    yield
    repo.append("a.txt")
    return Expected(modified={b"a.txt"})


def without_a_log_of_head(repo: Playground) -> Work:
    news = remote_with_news(repo)
    repo.git("config", "core.logAllRefUpdates", "false")
    (repo.top / ".git/logs/HEAD").unlink()
    yield
    repo.git("pull", "-q", "--ff-only")
    repo.append("a.txt")
    repo.commit("mine")
    return Expected(modified={b"a.txt"}, external=dict.fromkeys(news, "pull"), commits=1)


def cherry_pick_from_another_branch(repo: Playground) -> Work:
    others = others_branch(repo, 2)
    repo.append("b.txt")
    repo.commit("so that it is no fast-forward")
    yield
    repo.git("cherry-pick", "other")
    added = {path for path in others if path.startswith(b"up/")}
    return Expected(added=added, modified={b"docs/guide.md"}, commits=1)


def squash_merge_of_an_own_branch(repo: Playground) -> Work:
    yield
    repo.git("checkout", "-q", "-b", "feature")
    repo.write("one.py")
    repo.commit("one")
    repo.write("two.py")
    repo.commit("two")
    repo.git("checkout", "-q", "main")
    repo.git("merge", "-q", "--squash", "feature")
    repo.git("commit", "-qm", "squashed")
    return Expected(added={b"one.py", b"two.py"}, commits=1)


def stash_hides_an_older_edit(repo: Playground) -> Work:
    repo.append("a.txt")
    yield
    repo.git("stash", "-q")
    return Expected(modified={b"a.txt"})


def an_orphan_branch(repo: Playground) -> Work:
    yield
    repo.git("checkout", "-q", "--orphan", "fresh")
    repo.write("new.txt")
    repo.commit("fresh start")
    return Expected(added={b"new.txt"}, external=None)


def detached_head(repo: Playground) -> Work:
    repo.git("checkout", "-q", "--detach")
    yield
    repo.append("a.txt")
    repo.commit()
    repo.append("b.txt")
    return Expected(modified={b"a.txt", b"b.txt"}, origins={b"a.txt": "committed", b"b.txt": "working_tree"})


def somebody_fetches_only(repo: Playground) -> Work:
    remote_with_news(repo)
    yield
    repo.git("fetch", "-q")
    repo.append("a.txt")
    repo.commit()
    return Expected(modified={b"a.txt"}, commits=1)


def interactive_squash_of_own_commits(repo: Playground) -> Work:
    yield
    repo.append("a.txt", "first\n")
    repo.commit("one")
    repo.append("a.txt", "second\n")
    repo.write("extra.py")
    repo.git("add", "-A")
    repo.git("commit", "-q", "--fixup", "HEAD")
    repo.git("-c", "sequence.editor=true", "rebase", "-q", "-i", "--autosquash", "HEAD~2")
    origins = {b"a.txt": "committed", b"extra.py": "committed"}
    return Expected(modified={b"a.txt"}, added={b"extra.py"}, origins=origins)


CASES: list[Case] = [
    switch_to_another_branch_and_edit_there,
    a_switch_that_throws_older_edits_away,
    switch_there_and_back,
    commit_on_a_new_branch_and_merge_it,
    merge_an_own_branch_without_fast_forward,
    rebase_of_older_commits_and_a_new_one,
    own_commits_rebased_onto_news,
    amend_with_one_more_file,
    amend_twice_what_the_last_commit_added,
    amend_after_which_the_start_is_pruned,
    history_replaced_and_pruned_under_changed_files,
    reset_to_an_older_commit,
    a_soft_reset_changes_nothing_on_disk,
    merge_of_others_and_an_own_edit,
    own_commit_before_a_merge_that_touches_the_same_file,
    fast_forward_pull_and_an_uncommitted_edit,
    a_pulled_file_is_edited,
    pull_with_rebase,
    pull_that_merges,
    pull_that_carries_dirt_over,
    pull_that_merges_into_dirt,
    a_conflict_resolved_by_the_task,
    a_conflict_in_progress_at_the_start,
    without_a_log_of_head,
    cherry_pick_from_another_branch,
    squash_merge_of_an_own_branch,
    stash_hides_an_older_edit,
    an_orphan_branch,
    detached_head,
    somebody_fetches_only,
    interactive_squash_of_own_commits,
]

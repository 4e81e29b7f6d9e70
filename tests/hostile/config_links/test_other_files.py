"""Every other kind of file that Handrail reads in a repository × every trick. A new kind is one line of the table.

A file that people or agents wait for is refused by name; one that is only looked for counts as absent. The good ones
beside it stay."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from handrail.outside.user_files import bundled_folder
from tests.hostile.config_links.tricks import TRICKS, Ended, Ground, check_bounds, put

ROLE = "situation-analyst-investigator"
"""The agent of a small run's first phase."""
CONTENT = ("huge", "deep", "digits")
Ask = Callable[[Ground], Ended]


class Kind(NamedTuple):
    """A file that is read, and how to have it read."""

    path: str
    ask: Ask
    is_told: bool = True
    """Whether it is refused by name; otherwise it counts as absent."""
    stays: str = ""
    """What must still be in the answer: the good files beside it."""
    prepare: Callable[[Ground], object] = lambda _: None
    in_other_words: tuple[str, ...] = ()
    """Tricks that the reader of this kind has its own words for."""


def command(*words: str) -> Ask:
    return lambda ground: ground.handrail(*words)


def call(tool: str, **arguments: object) -> Ask:
    return command("call", tool, json.dumps(arguments))


def good(kind: str, name: str) -> Callable[[Ground], object]:
    """A good file in the same folder, which has another name than the bundled one it is a copy of."""

    def prepare(ground: Ground) -> None:
        folder = ground.repo / ".handrail" / kind
        folder.mkdir(parents=True)
        text = (bundled_folder(kind) / f"{name}.yaml").read_text(encoding="utf-8")
        (folder / "sound.yaml").write_text(text.replace(f": {name}\n", ": sound\n", 1), encoding="utf-8")

    return prepare


def begin_run(ground: Ground) -> None:
    asked = call("pipeline_init", arguments="add a thing", current_branch="main")(ground)
    workspace = json.loads(asked.said)["workspace"]
    confirmed = {"effort": "S", "workspace_slug": "thing", "use_current_branch": False}
    given = {"workspace": workspace, "task_text": "add a thing", "user_confirmation": confirmed}
    begun = call("pipeline_init_with_context", **given)(ground)
    assert begun.code == 0, begun


def next_action(ground: Ground) -> Ended:
    workspace = next((ground.repo / ".specs").glob("*-thing"))
    return call("pipeline_next_action", workspace=f".specs/{workspace.name}")(ground)


def start_task(ground: Ground) -> Ended:
    made = call("start_workflow", name="W", description="w")(ground)
    check_bounds(made)
    task = {"workflow_id": json.loads(made.said)["workflow_id"], "name": "t", "goal": "g"}
    return call("start_task", **task, directory=str(ground.repo))(ground)


def add_worktree(ground: Ground) -> None:
    ground.git("worktree", "add", "-q", str(ground.repo / "linked"))


def in_worktree(ground: Ground) -> Ended:
    folder = ground.repo / "linked"
    return ground.handrail("settings", at=folder if folder.is_dir() else None)


KINDS = {
    "guide": Kind(".handrail/guides/bad.yaml", command("guide", "list"), True, "sound", good("guides", "bug-hunt")),
    "guide JSON": Kind("workflows/bad.json", command("guide", "validate"), True, "checked"),
    "flow": Kind(".handrail/flows/bad.yaml", command("flow", "list"), True, "standard"),
    "flow by its file": Kind("flows/bad.yaml", command("flow", "validate", "flows/bad.yaml")),
    "template": Kind(".handrail/templates/bad.yaml", call("template_list"), True, "sound", good("templates", "bugfix")),
    "role": Kind(f".handrail/agents/{ROLE}.md", next_action, True, "", begin_run),
    "agents/": Kind(f"agents/{ROLE}.md", next_action, True, "", begin_run),
    "run's state": Kind(".specs/run/state.json", command("pipeline", "import", "run"), False),
    "run's index": Kind(".specs/index.json", command("pipeline", "list"), False),
    "run's document": Kind(".specs/run/design.md", command("pipeline", "import", "run"), False),
    "import": Kind("plans/plan.md", command("import", "plans/plan.md", "--dry-run"), in_other_words=("huge",)),
    "import JSON": Kind("plans/tasks.json", command("import", "plans/tasks.json", "--dry-run"), in_other_words=CONTENT),
    "client's JSON": Kind(".cursor/mcp.json", command("init", "--client", "cursor", "--print")),
    "client's TOML": Kind(".codex/config.toml", command("init", "--client", "codex", "--print")),
    "client's file, examined": Kind(".cursor/mcp.json", command("doctor")),
    "instructions": Kind("AGENTS.md", command("init", "--client", "cursor", "--print")),
    "what init wrote": Kind(".handrail/init.json", command("init", "--client", "cursor", "--print")),
    "manifest": Kind("package.json", call("pipeline_init", arguments="add a thing", current_branch="main"), False),
    ".git of a worktree": Kind("linked/.git", in_worktree, False, "approvals", add_worktree),
    "commondir": Kind(".git/worktrees/linked/commondir", in_worktree, False, "approvals", add_worktree),
    "reflog": Kind(".git/logs/HEAD", start_task, False),
    "git's index": Kind(".git/index", start_task, False),
    "ignore rules": Kind(".git/info/exclude", start_task, False),
}


LONG = ("agents/", "run's document", "client's file, examined", "git's index", "ignore rules")
"""Kinds that take several processes, or the same one as another kind: torture alone."""


def _cells() -> list[Any]:
    """The whole table is torture; each kind with one trick, and so each trick with some kind, is not."""
    found = []
    for row, kind in enumerate(KINDS):
        fitting = [name for name, trick in TRICKS.items() if not trick.only or KINDS[kind].path.endswith(trick.only)]
        if "/" not in KINDS[kind].path:
            fitting.remove("folder-out")
        for column, trick in enumerate(fitting):
            is_quick = column == row % len(fitting) and kind not in LONG
            found.append(pytest.param(kind, trick, marks=() if is_quick else pytest.mark.torture))
    return found


@pytest.mark.parametrize(("kind", "trick"), _cells())
def test_it_is_not_waited_for_nor_followed_nor_read_without_end(tmp_path: Path, kind: str, trick: str) -> None:
    ground, asked = Ground(tmp_path), KINDS[kind]
    asked.prepare(ground)
    put(ground, trick, ground.repo / asked.path)
    ended = asked.ask(ground)
    check_bounds(ended)
    name = Path(asked.path).parent.name if trick == "folder-out" else Path(asked.path).name
    if asked.is_told and TRICKS[trick].says and trick not in asked.in_other_words:
        assert name in ended.said, ended.said
        assert re.search(TRICKS[trick].says, ended.said), ended.said
    assert asked.stays in ended.said or trick == "folder-out"


@pytest.mark.parametrize(
    "words",
    [("guide", "new", "mine"), ("flow", "new", "mine"), ("import", "guide.json")],
    ids=lambda words: " ".join(words[:2]),
)
def test_nothing_is_written_through_a_folder_that_leads_out(tmp_path: Path, words: tuple[str, ...]) -> None:
    ground = Ground(tmp_path)
    step = {"id": "one", "title": "One", "prompt": "Do it."}
    guide = {"id": "mine", "name": "Mine", "version": "1.0.0", "description": "d", "steps": [step]}
    (ground.repo / "guide.json").write_text(json.dumps(guide), encoding="utf-8")
    (ground.repo / ".handrail").mkdir()
    for name in ("guides", "flows"):
        (ground.repo / ".handrail" / name).symlink_to(ground.outside)
    ended = ground.handrail(*words)
    check_bounds(ended)
    assert ended.code == 1, ended
    assert "leads out of the project" in ended.said
    assert [*ground.outside.iterdir()] == []

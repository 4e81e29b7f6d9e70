"""Repositories as tools: one repository is one entry, however its path is spelled."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from handrail.kernel.errors import InvalidParams
from handrail.kernel.ledger import Actor
from handrail.surfaces.invocation import invoke
from handrail.toolsets.plan.repository import OPERATIONS
from tests.world import World, through_bare_method, through_tools_call


class Tools:
    """The three tools over one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._call = world.handrail().call
        self._operations = {operation.name: operation for operation in OPERATIONS}

    def __call__(self, tool: str, /, **arguments: Any) -> Any:
        return invoke(self._operations[f"repository_{tool}"], self._call, arguments, actor=Actor("tester", "test"))


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(World(tmp_path, toolsets="repository"))


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


def test_a_path_is_tidied_before_it_is_kept(tools: Tools) -> None:
    first = tools("register", path="/srv/shop")
    for spelled in ("/srv/shop/", "/srv//shop", "/srv/./shop", "/srv/other/../shop"):
        assert tools("register", path=spelled) == first
        assert tools("get", path=spelled)["id"] == first["id"]
    assert tools("list")["total"] == 1


def test_a_repository_is_named_after_its_folder_until_it_is_given_a_name(tools: Tools) -> None:
    tools("register", path="/srv/shop")
    assert tools("get", path="/srv/shop")["name"] == "shop"
    tools("register", path="/srv/shop", name="The shop")
    tools("register", path="/srv/shop")
    assert tools("get", path="/srv/shop")["name"] == "The shop"
    tools("register", path="/")
    assert tools("get", path="/")["name"] == "/"


def test_a_linked_worktree_a_link_and_a_folder_inside_are_the_repository_itself(tools: Tools, tmp_path: Path) -> None:
    main, linked, link = tmp_path / "main", tmp_path / "linked", tmp_path / "link"
    (main / "src").mkdir(parents=True)
    git(main, "init", "-q")
    git(main, "commit", "-q", "--allow-empty", "-m", "first")
    git(main, "worktree", "add", "-q", str(linked))
    link.symlink_to(main)
    ids = {tools("register", path=str(path))["id"] for path in (linked, main, link, main / "src")}
    assert len(ids) == 1
    (only,) = tools("list")["repositories"]
    assert (only["path"], only["name"]) == (str(main), "main")
    assert tools("get", path=str(linked)) == only


def test_a_relative_path_is_refused_and_found_nowhere(tools: Tools) -> None:
    with pytest.raises(InvalidParams, match="path must be absolute, not shop"):
        tools("register", path="shop")
    assert tools("get", path="shop") is None


def test_an_unknown_path_is_null_in_both_call_styles(tools: Tools) -> None:
    for surface in (through_bare_method, through_tools_call):
        assert surface(tools.world, "repository_get", {"path": "/no/such/place"}) == ("ok", None)


def test_the_list_comes_in_pages_by_path(tools: Tools) -> None:
    for name in ("b", "c", "a"):
        tools("register", path=f"/srv/{name}")
    pages = [tools("list", limit=2, offset=offset) for offset in (0, 2, 4)]
    assert [[one["path"] for one in page["repositories"]] for page in pages] == [["/srv/a", "/srv/b"], ["/srv/c"], []]
    assert {page["total"] for page in pages} == {3}

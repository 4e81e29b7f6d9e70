"""One store over many repositories, as real processes use it."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.process.peer import handrail_serve

TOOLSETS = ("--toolsets", "workflow,repository")


class Machine:
    """A home folder and two repositories."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.shop = folder / "shop"
        self.blog = folder / "blog"
        for made in (self.home, self.shop, self.blog):
            made.mkdir()
        self.store = self.home / ".handrail" / "handrail.db"
        self._env = {**os.environ, "HOME": str(self.home)}

    def run(self, where: Path, *argv: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "handrail", *argv]
        return subprocess.run(command, cwd=where, env=self._env, capture_output=True, text=True, check=False)

    def json(self, where: Path, *argv: str) -> Any:
        done = self.run(where, *argv, "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        return msgspec.json.decode(done.stdout)

    def call(self, where: Path, tool: str, *options: str, **arguments: Any) -> Any:
        text = msgspec.json.encode(arguments).decode()
        return self.json(where, "call", tool, text, *TOOLSETS, *options)

    def create(self, where: Path, name: str, *options: str, **more: Any) -> str:
        made = self.call(
            where, "workflow_create", *options, name=name, source_type="prompt", source_content="x", **more
        )
        return str(made["id"])

    def names(self, where: Path, *options: str, **filters: Any) -> list[str]:
        listed = self.call(where, "workflow_list", *options, **filters)
        assert listed["total"] == len(listed["workflows"])
        return sorted(workflow["name"] for workflow in listed["workflows"])


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_two_repositories_see_each_other_in_the_global_store_and_can_be_told_apart(machine: Machine) -> None:
    machine.create(machine.shop, "in shop", "--global")
    machine.create(machine.blog, "in blog", "--global")
    for where in (machine.shop, machine.blog):
        assert machine.names(where, "--global") == ["in blog", "in shop"]
        assert machine.names(where, "--global", repository_path=str(machine.shop)) == ["in shop"]
        assert machine.names(where, "--global", repository_path=str(machine.blog)) == ["in blog"]
        assert machine.names(where, "--global", repository_path="/no/such/place") == []
    assert machine.names(machine.shop) == []  # its own store is another


def test_the_global_store_is_the_users_alone_and_leaves_the_project_untouched(machine: Machine) -> None:
    assert machine.json(machine.shop, "db", "path", "--global")["path"] == str(machine.store)
    assert not machine.store.parent.exists()
    machine.create(machine.shop, "x", "--global")
    assert stat.S_IMODE(machine.store.parent.stat().st_mode) == 0o700
    assert machine.store.exists()
    assert list(machine.shop.iterdir()) == []


@pytest.mark.parametrize(
    "argv",
    [
        ("db", "check"),
        ("db", "verify"),
        ("db", "upgrade"),
        ("log",),
        ("undo",),
        ("settings",),
        ("tools",),
        ("guide", "list"),
        ("version",),
    ],
)
def test_every_command_takes_the_option(machine: Machine, argv: tuple[str, ...]) -> None:
    machine.create(machine.shop, "x", "--global")
    machine.json(machine.blog, *argv, "--global")
    assert list(machine.blog.iterdir()) == []


def test_a_config_file_chooses_it_too_and_db_on_the_command_line_wins(machine: Machine) -> None:
    machine.create(machine.blog, "there", "--global")
    (machine.shop / ".handrail").mkdir()
    (machine.shop / ".handrail" / "config.toml").write_text("global_store = true\n", encoding="utf-8")
    machine.run(machine.shop, "trust", "--yes")
    assert machine.names(machine.shop) == ["there"]
    assert machine.names(machine.shop, "--db", "own.db") == []


def test_a_file_and_the_global_store_at_once_are_refused(machine: Machine) -> None:
    done = machine.run(machine.shop, "db", "check", "--global", "--db", "x.db", "--json")
    assert done.returncode == 2
    error = msgspec.json.decode(done.stdout)["error"]
    assert error["code"] == "SETTING_INVALID"
    assert "--global" in error["hint"]
    assert list(machine.shop.iterdir()) == []


def test_two_servers_work_in_one_global_store(machine: Machine) -> None:
    env = {"HOME": str(machine.home)}
    with (
        handrail_serve(machine.shop, "--global", *TOOLSETS, env=env) as shop,
        handrail_serve(machine.blog, "--set", "global_store=true", *TOOLSETS, env=env) as blog,
    ):
        for server, name in ((shop, "in shop"), (blog, "in blog")):
            server.initialize()
            made = server.ask("workflow_create", {"name": name, "source_type": "prompt", "source_content": "x"})
            assert made["result"]["status"] == "planning"
        listed = shop.ask("workflow_list", {})["result"]["workflows"]
        assert {one["name"]: one["repository_path"] for one in listed} == {
            "in shop": str(machine.shop),
            "in blog": str(machine.blog),
        }
        filtered = blog.ask("workflow_list", {"repository_path": str(machine.shop)})["result"]
        assert [one["name"] for one in filtered["workflows"]] == ["in shop"]


def test_a_home_that_cannot_hold_the_store_is_told(machine: Machine) -> None:
    (machine.home / ".handrail").write_text("", encoding="utf-8")
    done = machine.run(machine.shop, "db", "check", "--global", "--json")
    assert done.returncode == 1
    assert msgspec.json.decode(done.stdout)["error"]["code"] == "STORE_UNUSABLE"


def test_one_template_serves_every_repository(machine: Machine) -> None:
    options = ("--global", "--toolsets", "template,workflow")
    definition = {"tasks": [{"name": "release {{what}}", "description": "", "sequence": 1}]}
    machine.json(machine.shop, "call", "template_create", *options, "name=release", f"template={encoded(definition)}")
    for where in (machine.shop, machine.blog):
        values = encoded({"what": where.name})
        arguments = ("template_id=release", f"workflow_name=Release {where.name}", f"variables={values}")
        made = machine.json(where, "call", "template_apply", *options, *arguments)
        assert made["tasks_created"] == 1
        assert machine.names(machine.home, "--global", repository_path=str(where)) == [f"Release {where.name}"]


def encoded(value: Any) -> str:
    return msgspec.json.encode(value).decode()

"""A store on a PostgreSQL server: hooks read it with the same statements, and a server that is away is no store."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.hooks.place import Options, find_place
from handrail.outside.trusted_stores import trust
from tests.hooks.scene import Scene
from tests.process.peer import handrail_serve
from tests.store.server import running, schema_of_its_own


@pytest.fixture
def address() -> Iterator[str]:
    with running() as server, schema_of_its_own(server, "hooks") as address:
        yield address


def fill(scene: Scene, *options: str) -> None:
    """One plan with a task under way, a decision, an error and a reservation."""
    scene._server = handrail_serve(scene.repo, "--profile", "team", *options, env={"HOME": str(scene.home)})
    scene._server.initialize()
    task = scene.task("wrap the imports")
    scene.call("checkpoint_add", task_id=task, type="decision", summary="a decorator")
    scene.call("checkpoint_add", task_id=task, type="error", summary="it hangs")
    agent = scene.call("agent_register", name="Anna", runtime="custom")["id"]
    scene.call("reserve_paths", agent_id=agent, paths=["a.py"], reason="moving")


def test_a_server_is_read_like_a_file(scene: Scene, address: str) -> None:
    fill(scene, "--db", address)
    told = scene.said("start", "--db", address)
    assert "wrap the imports" in told
    assert "a decorator" in told
    assert "Solve the last error" in told
    given = {"tool_name": "Edit", "tool_input": {"file_path": str(scene.repo / "a.py")}}
    warned = json.loads(scene.said("before", "--db", address, given=given))
    assert "a.py is kept by Anna" in warned["systemMessage"]
    assert scene.said("start") == "", "the project's own store is another"
    assert "still open" in scene.said("stop", "--db", address)
    assert scene.said("stop", "--db", address) == "", "once a session, also here"
    scene.stop_server()


def test_a_server_that_a_project_names_is_asked_once_somebody_trusts_it(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(scene.home))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.2)
        address = f"postgresql://u@127.0.0.1:{listening.getsockname()[1]}/d"
        scene.store.parent.mkdir()
        (scene.store.parent / "config.toml").write_text(f'db = "{address}"\n', encoding="utf-8")
        for event in ("start", "before", "stop", "edited", "precompact", "prompt"):
            given = {"tool_name": "Edit", "tool_input": {"file_path": str(scene.repo / "a.py")}}
            assert scene.said(event, "--client", "copilot", given=given) == ""
        with pytest.raises(TimeoutError):
            listening.accept()
        assert find_place(str(scene.repo), Options([]), os.environ) is None
        trust(address, project=scene.repo, home=scene.home)
        found = find_place(str(scene.repo), Options([]), os.environ)
        assert found is not None
        assert found.server == address
        began = time.monotonic()
        assert scene.said("start") == "", "it accepts, and never answers"
        assert time.monotonic() - began < 20
        listening.accept()[0].close()


def test_an_address_that_libpq_would_read_otherwise_is_not_asked(scene: Scene) -> None:
    for address in ("postgresql://u:p@ss@127.0.0.1:1/d", "mysql://127.0.0.1/d", "postgresql://127.0.0.1:1/d"):
        assert scene.said("start", "--db", address) == ""


def test_what_is_remembered_of_a_server_is_in_the_user_s_folder(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(scene.home))
    found = find_place(str(scene.repo), Options(["--db", "postgresql://h/d"]), os.environ)
    assert found is not None
    assert Path(found.store).parent == scene.home / ".handrail"

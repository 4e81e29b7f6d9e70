"""Whatever is wrong, a hook ends with 0 and says nothing: garbage, locks, broken files, closed pipes, silence."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import apsw
import pytest

from handrail.hooks.memory import notes_path
from tests.hooks.scene import HOOK, Scene

EVENTS = ("start", "stop", "edited")


def quiet(scene: Scene, event: str, *options: str) -> None:
    assert scene.said(event, *options, given={"tool_input": {"file_path": str(scene.repo / "a.py")}}) == ""


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("given", [b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"cwd": {"a": 1}}', b"[" * 5000])
def test_garbage_on_standard_input(scene: Scene, event: str, given: bytes) -> None:
    done = scene.hook(event, given=given)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("words", [(), ("",), ("precompact",), ("begin",), ("start", "--what"), ("start", "--db")])
def test_words_nobody_knows(scene: Scene, words: tuple[str, ...]) -> None:
    scene.task()
    done = subprocess.run(
        [*HOOK, *words], cwd=scene.repo, env=scene.environment, input=b"", capture_output=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_an_empty_standard_input_means_the_folder_it_runs_in(scene: Scene) -> None:
    scene.task()
    done = subprocess.run(
        [*HOOK, "start"], cwd=scene.repo, env=scene.environment, input=b"", capture_output=True, check=False
    )
    assert b"wrap" in done.stdout


@pytest.mark.parametrize("event", EVENTS)
def test_a_store_that_is_none(scene: Scene, event: str) -> None:
    scene.store.parent.mkdir()
    for content in (b"", b"no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096):
        scene.store.write_bytes(content)
        quiet(scene, event)
        assert scene.store.read_bytes() == content


@pytest.mark.parametrize("event", EVENTS)
def test_a_store_whose_pages_are_broken(scene: Scene, event: str) -> None:
    scene.task()
    scene.stop_server()
    content = bytearray(scene.store.read_bytes())
    content[4096:] = b"\x5a" * (len(content) - 4096)
    scene.store.write_bytes(content)
    quiet(scene, event)


def test_a_database_of_something_else(scene: Scene) -> None:
    scene.store.parent.mkdir()
    apsw.Connection(str(scene.store)).execute("CREATE TABLE task (id)")
    for event in EVENTS:
        quiet(scene, event)


def test_a_store_behind_a_link_that_came_with_the_repository(scene: Scene) -> None:
    scene.task()
    scene.stop_server()
    scene.store.parent.rename(scene.home / "elsewhere")
    scene.store.parent.symlink_to(scene.home / "elsewhere")
    quiet(scene, "start")
    scene.store.parent.unlink()
    scene.store.parent.mkdir()
    scene.store.symlink_to(scene.home / "elsewhere" / scene.store.name)
    quiet(scene, "start")


@pytest.mark.parametrize("event", EVENTS)
def test_a_locked_store_is_not_waited_for(scene: Scene, event: str) -> None:
    scene.task()
    scene.stop_server()
    holder = apsw.Connection(str(scene.store))
    holder.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    holder.execute("BEGIN EXCLUSIVE")
    began = time.monotonic()
    quiet(scene, event)
    assert time.monotonic() - began < 10, "about the limit, on a machine that is busy"
    holder.close()


def test_locked_notes_are_not_waited_for(scene: Scene) -> None:
    scene.task()
    scene.edit()
    holder = apsw.Connection(notes_path(str(scene.store)))
    holder.execute("BEGIN EXCLUSIVE")
    quiet(scene, "edited")
    quiet(scene, "stop")
    told = scene.said("start")
    assert "wrap" in told, "a hint is left out, not the task"
    assert "edited here" not in told
    holder.close()


def test_notes_that_are_none_or_lead_elsewhere(scene: Scene) -> None:
    scene.task()
    notes = Path(notes_path(str(scene.store)))
    notes.write_bytes(b"nothing that can be read" * 50)
    quiet(scene, "stop")
    quiet(scene, "edited")
    assert "wrap" in scene.said("start")
    notes.unlink()
    target = scene.home / "target"
    notes.symlink_to(target)
    quiet(scene, "edited")
    assert not target.exists()


def test_a_killed_server_leaves_a_store_that_is_told_of(scene: Scene) -> None:
    scene.task()
    scene.stop_server(kill=True)
    before = scene.files()
    assert "wrap" in scene.said("start")
    assert scene.files() == before, "its log is the next writer's to put away"


def test_a_store_at_rest_is_left_as_it_was(scene: Scene) -> None:
    scene.task()
    scene.stop_server()
    before, content = scene.files(), scene.store.read_bytes()
    assert "wrap" in scene.said("start")
    assert (scene.files(), scene.store.read_bytes()) == (before, content)


def test_a_folder_that_cannot_be_written(scene: Scene) -> None:
    scene.task()
    scene.stop_server()
    scene.store.parent.chmod(0o500)
    try:
        for event in EVENTS:
            done = scene.hook(event)
            assert (done.returncode, done.stderr) == (0, b"")
    finally:
        scene.store.parent.chmod(0o700)


@pytest.mark.parametrize("event", EVENTS)
def test_a_client_that_closes_its_pipes(scene: Scene, event: str) -> None:
    scene.task()
    for redirection in ("<&-", ">&-", "2>&-", "<&- >&- 2>&-"):
        command = f'exec "$@" {redirection}'
        done = subprocess.run(
            ["/bin/sh", "-c", command, "sh", *HOOK, event],
            cwd=scene.repo,
            env=scene.environment,
            stderr=subprocess.PIPE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*HOOK, event],
        cwd=scene.repo,
        env=scene.environment,
        input=b"",
        stdout=writing,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_client_that_never_ends_its_input_is_left_after_the_limit(scene: Scene) -> None:
    scene.task()
    process = subprocess.Popen(
        [*HOOK, "start"], cwd=scene.repo, env=scene.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert process.wait(30) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.communicate()

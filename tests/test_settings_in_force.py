"""Settings of a running process: stricter at once, never weaker, and cheap to ask for."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import settings_in_force
from handrail.settings import FileLayer, Settings, file_layer, load_settings
from handrail.settings_in_force import FOLLOWED, QUIET_NS, LiveSettings
from handrail.strictness import CAUTIONS, Agreed, mark_of
from tests.test_strictness import VALUES


class Running:
    """A process over a project's file; its clock is far enough ahead for every file to have been left alone."""

    def __init__(self, folder: Path, text: str = "", *, ahead_ns: int = QUIET_NS * 10, **given: Any) -> None:
        self.project, self.ahead_ns = folder, ahead_ns
        self.file = folder / ".handrail" / "config.toml"
        self.file.parent.mkdir(exist_ok=True)
        self.agreed = Agreed()
        self.agreement = folder / "agreement"
        self.told: list[str] = []
        self.write(text)
        self.settings = load_settings(given=given, environ={}, project=folder)
        self.live = LiveSettings(
            folder,
            self.settings,
            agreed=lambda: self.agreed,
            agreement=self.agreement,
            log=self.told.append,
            now_ns=lambda: time.time_ns() + self.ahead_ns,
        )

    def write(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    def agree(self, agreed: Agreed) -> None:
        self.agreed = agreed
        self.agreement.write_text("another", encoding="utf-8")


def toml(name: str, value: Any) -> str:
    if isinstance(value, dict):
        return f"[{name}]\n" + "".join(f'"{key}" = {amount}\n' for key, amount in value.items())
    if isinstance(value, tuple):
        return f"{name} = [{', '.join(repr(one) for one in value)}]\n"
    return f"{name} = {value!r}\n"


@pytest.mark.parametrize("name", FOLLOWED)
@given(data=st.data())
def test_nothing_an_agent_writes_ever_loosens(
    name: str, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    texts = data.draw(st.lists(st.one_of(VALUES[name].map(lambda v: toml(name, v)), st.sampled_from(["", "[["]))))
    running = Running(tmp_path_factory.mktemp("project"))
    stricter = CAUTIONS[name].stricter
    before = getattr(running.live.now(), name)
    for text in texts:
        running.write(text)
        now = getattr(running.live.now(), name)
        assert stricter(now, before) == now
        before = now


def test_a_stricter_file_is_heard_and_told_once(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write('approvals = "human"\n[budget]\nhard_money = 2\n')
    now = running.live.now()
    assert (now.approvals, now.budget, now.profile) == ("human", {"hard_money": 2.0}, "solo")
    running.live.now()
    assert len([line for line in running.told if "approvals" in line]) == 1


def test_what_a_start_fixed_stays(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write('profile = "team"\ndurable = true\nhttp = "127.0.0.1:1"\nmax_message_bytes = 2048\n')
    assert running.live.now() == running.settings


def test_a_broken_file_is_told_once_and_changes_nothing(tmp_path: Path) -> None:
    running = Running(tmp_path, 'approvals = "human"\n')
    running.write("approvals = [[[")
    assert running.live.now().approvals == running.live.now().approvals == "human"
    assert len(running.told) == 1
    assert "settings stay as they are" in running.told[0]


def test_what_was_overridden_by_a_person_is_touched_only_by_a_change_of_it(tmp_path: Path) -> None:
    running = Running(tmp_path, "max_children = 2\n", max_children=9)
    running.write("max_children = 2\n# a remark\n")
    assert running.live.now().max_children == 9
    running.write("max_children = 3\n")
    assert running.live.now().max_children == 3


def test_checks_are_those_that_were_trusted_last(tmp_path: Path) -> None:
    running = Running(tmp_path)
    running.write('[checks]\na = ["a"]\n')
    assert (running.live.now().checks, [one.name for one in running.live.waiting()]) == ({}, ["checks"])
    root = str(tmp_path)
    running.agree(Agreed(project=root, marks={"checks": mark_of(root, "checks", {"a": ["a"]})}))
    assert (running.live.now().checks, running.live.waiting()) == ({"a": ("a",)}, ())
    running.write("")  # taking them out is no way to be merged unchecked
    assert running.live.now().checks == {"a": ("a",)}
    running.write('[checks]\na = ["b"]\n')
    assert [one.name for one in running.live.waiting()] == ["checks"]


def test_a_persons_own_checks_do_not_wait(tmp_path: Path) -> None:
    running = Running(tmp_path, '[checks]\na = ["a"]\n', checks={"b": ["b"]})
    assert (running.live.now().checks, running.live.waiting()) == ({"b": ("b",)}, ())


def test_agreeing_to_less_is_heard_at_the_next_start(tmp_path: Path) -> None:
    running = Running(tmp_path, 'approvals = "human"\n')
    running.agree(Agreed(limits={"approvals": "agent"}))
    running.write('approvals = "agent"\n')
    assert running.live.now().approvals == "human"


def test_a_file_left_alone_is_not_read_again_and_a_fresh_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = Running(tmp_path, 'approvals = "agent"\n')
    read: list[int] = []

    def counted(project: Path, agreed: Agreed) -> FileLayer:
        read.append(1)
        return file_layer(project, agreed)

    monkeypatch.setattr(settings_in_force, "file_layer", counted)
    running.live.now()
    read.clear()
    for _ in range(5):
        running.live.now()
    assert read == []
    running.ahead_ns = 0
    running.write('approvals = "agent" \n')
    for _ in range(5):
        running.live.now()
    assert len(read) == 5


def test_a_change_between_reading_settings_and_serving_is_not_missed(tmp_path: Path) -> None:
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "config.toml").write_text('identity = "strict"\n', encoding="utf-8")
    live = LiveSettings(tmp_path, Settings(), agreed=Agreed, agreement=tmp_path / "none")
    assert live.now().identity == "strict"

"""Processes that reserve the same path at the same moment: exactly one has it, and the others hear who. On SQLite and
on PostgreSQL."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from handrail.domain.workspaces.records import reservations_stream
from handrail.wiring import WorkPlace, ledger_at, settings_at
from tests.store.server import ROOT, running, schema_of_its_own

RIVALS = 3
ROUNDS = 6


@contextlib.contextmanager
def address_on(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield str(folder / "paths.db")
        return
    with running(of_its_own=True) as server, schema_of_its_own(server, "paths") as address:
        yield address


class Rival:
    """A process that asks for paths, and its pipes."""

    def __init__(self, folder: Path, address: str, name: str) -> None:
        command = [sys.executable, "-m", "tests.process.path_rival", str(folder), address, name]
        self.process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.id = self.heard()["id"]

    def wants(self, path: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n".encode())
        self.process.stdin.flush()

    def heard(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it has ended"
        answer: dict[str, Any] = msgspec.json.decode(line)
        return answer

    def end(self) -> None:
        self.process.communicate(timeout=30)


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_of_processes_that_ask_at_once_exactly_one_is_granted(kind: str, tmp_path: Path) -> None:
    with address_on(kind, tmp_path) as address:
        rivals = [Rival(tmp_path, address, f"a{number}") for number in range(RIVALS)]
        for number in range(ROUNDS):
            for at, rival in enumerate(rivals):
                rival.wants(f"src/{number}/" if at % 2 else f"src/{number}/code.py")
            answers = [rival.heard() for rival in rivals]
            (first,) = [rival.id for rival, answer in zip(rivals, answers, strict=True) if answer["granted"]]
            for answer in answers:
                assert answer["granted"] or [one["agent_id"] for one in answer["conflicts"]] == [first]
        for rival in rivals:
            rival.end()
        place = WorkPlace(project=tmp_path, home=Path.home(), environ={})
        store = ledger_at(place, settings_at(place, {"db": address})).open()
        kinds = [event.kind for event in store.events(reservations_stream(str(tmp_path)))]
        assert kinds == ["paths.reserved"] * ROUNDS
        assert store.verify() == []
        store.engine.close()

"""Who is measured, in which section, against whom, and how each is started. Starts nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from bench.environments import python_in
from bench.store.crews import Effort
from bench.store.server import Server

PEER_PINS = {
    "langgraph": ("langgraph-checkpoint-sqlite==3.1.2", "langgraph-checkpoint==4.3.1"),
    "dbos": ("dbos==3.3.0", "psycopg[binary]==3.3.8"),
}
CREW = 8
THREADS = 64


class Place(msgspec.Struct, frozen=True):
    """Where a contestant may put its data."""

    home: Path
    folder: Path
    """Its own, new."""
    server: Server | None
    name: str

    def schema(self) -> str:
        assert self.server is not None
        return self.server.schema(self.name)


class Contestant(msgspec.Struct, frozen=True):
    """A name, how its workers' commands are found (which may install packages), its effort, and its reference."""

    name: str
    commands: Callable[[Place], list[list[str]]]
    effort: Effort
    against: str | None = None
    by: Literal["p50_us", "per_s"] = "p50_us"
    aim: float | None = None
    keeps: bool = True
    """Keeps Handrail's tables, which are verified in the end."""


def _module(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", f"bench.store.{name}", *arguments]


def _sqlite(kind: str, synchronous: str, workers: int = 1) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        path = str(place.folder / "bench.db")
        return [_module("on_sqlite", kind, path, synchronous, str(lane)) for lane in range(workers)]

    return commands


def _postgres(kind: str, workers: int = 1) -> Callable[[Place], list[list[str]]]:
    def commands(place: Place) -> list[list[str]]:
        address = place.schema()
        return [_module("on_postgres", kind, address, str(lane)) for lane in range(workers)]

    return commands


def _langgraph(place: Place) -> list[list[str]]:
    python = python_in(place.home / "python-langgraph", PEER_PINS["langgraph"])
    return [[str(python), "-m", "bench.store.peers.langgraph_put", str(place.folder / "langgraph.db")]]


def _dbos(place: Place) -> list[list[str]]:
    assert place.server is not None
    python = python_in(place.home / "python-dbos", PEER_PINS["dbos"])
    return [[str(python), "-m", "bench.store.peers.dbos_step", place.server.database("dbos")]]


def _one_writer(synchronous: str, effort: Effort, claim_aim: float) -> list[Contestant]:
    row, unit = f"raw apsw, one row, {synchronous}", f"raw apsw, the same SQL, {synchronous}"
    return [
        Contestant(row, _sqlite("raw-row", synchronous), effort, keeps=False),
        Contestant(unit, _sqlite("raw-unit", synchronous), effort),
        Contestant(f"engine.commit, {synchronous}", _sqlite("commit", synchronous), effort, unit, aim=0.8),
        Contestant(f"claim, {synchronous}", _sqlite("claim", synchronous), effort, row, aim=claim_aim),
    ]


def _crowd(kind: str, effort: Effort, aim: float | None) -> Contestant:
    reference = "raw apsw, one row, FULL"
    return Contestant(f"{THREADS} threads, {kind}, FULL", _sqlite(kind, "FULL"), effort, reference, "per_s", aim)


def _processes(synchronous: str, effort: Effort) -> list[Contestant]:
    one = f"1 process, {synchronous}"
    own, shared = f"{CREW} processes, a workflow each, {synchronous}", f"{CREW} processes, one workflow, {synchronous}"
    return [
        Contestant(one, _sqlite("claim-again", synchronous), effort),
        Contestant(own, _sqlite("claim-again", synchronous, CREW), effort, one, "per_s", 0.7),
        Contestant(shared, _sqlite("claim-shared", synchronous, CREW), effort, one, "per_s"),
    ]


def sections(scale: float) -> dict[str, list[Contestant]]:
    """Everything, in the order it is told. `scale` shortens all slices alike."""

    def steps(count: int, threads: int = 1) -> Effort:
        return Effort(max(10, int(count * scale)), threads=threads)

    timed = Effort(1_000_000, seconds=2.0 * scale)
    row = "raw psycopg, one row"
    return {
        "sqlite": [
            *_one_writer("NORMAL", steps(1500), 0.15),
            *_one_writer("FULL", steps(300), 0.6),
            _crowd("claim", steps(20, THREADS), 2.5),
            _crowd("commit", steps(20, THREADS), None),
            Contestant("LangGraph put", _langgraph, steps(150), "raw apsw, one row, FULL", keeps=False),
        ],
        "processes": [*_processes("NORMAL", timed), *_processes("FULL", timed)],
        "postgres": [
            Contestant(row, _postgres("raw-row"), steps(400), keeps=False),
            Contestant("engine.commit", _postgres("commit"), steps(400), row, aim=0.6),
            Contestant("claim", _postgres("claim"), steps(200), row),
            Contestant(
                f"{CREW} processes, engine.commit, a workflow each",
                _postgres("commit", CREW),
                Effort(int(2000 * scale), seconds=2.0 * scale),
                row,
                "per_s",
                1.4,
            ),
            Contestant(
                f"{CREW} processes, claims, a workflow each", _postgres("claim-again", CREW), timed, row, "per_s"
            ),
            Contestant(f"{CREW} processes, claims, one workflow", _postgres("claim-shared", CREW), timed, row, "per_s"),
            Contestant("DBOS workflow of one step", _dbos, steps(100), row, keeps=False),
        ],
    }

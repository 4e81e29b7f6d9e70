"""Who takes part: what a place of its own needs, how its servers are started, what one write is and where it is kept.

Standard input and output, one store for all processes. A peer's write is its smallest that others can see: a task, or
an entity. It counts as acknowledged only where the reply says so. What is kept is read from the files afterwards.
"""

from __future__ import annotations

import re
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bench.crew.burst import Ask, Burst, Script
from bench.crew.checking import doubled, lost
from bench.crew.lines import Line, PipeLine, Reply
from bench.crew.packages import node_command
from bench.store.server import PREFIX, Server

BODY = "The importer's tests fail since the queue was moved: read the log of the last run, then tell me what you see. "
"""About a hundred bytes, twice of which is a message."""


class Unreadable(Exception):  # noqa: N818 - a fact about a store
    """The store cannot be read any more, so all of it is lost."""


class Place(msgspec.Struct, frozen=True):
    """A new, empty folder of one's own for a round, and a database where one is needed."""

    folder: Path
    server: Server | None
    name: str


class Findings(msgspec.Struct, frozen=True):
    """What was found in the store after a burst."""

    lost: int
    doubled: int = 0
    out_of_order: int = 0
    problem: str | None = None


class Contestant(ABC):
    """One kind of server. Has no state: a round brings its place."""

    name: str
    floor: str | None = None
    """The bare writer it is held against."""
    takes_part_unasked = True

    @abstractmethod
    def command(self, place: Place) -> Sequence[str]:
        """How one of its processes is started. May install packages."""

    def environ(self, place: Place) -> Mapping[str, str]:
        return {}

    def lay_out(self, place: Place) -> None:  # noqa: B027 - most need nothing
        """What must be there before the first process starts."""

    def start(self, place: Place, processes: int, agents: int) -> list[Line]:
        """All processes, ready to be called. The first is alone while it makes the store; the others start together."""
        self.lay_out(place)
        command, environ, log = self.command(place), self.environ(place), place.folder / "stderr"
        lines: list[PipeLine] = []
        try:
            for _ in range(processes):
                lines.append(PipeLine(command, place.folder, environ, log))
                if len(lines) == 1:
                    lines[0].greet()
            for line in lines[1:]:
                line.greet()
        except BaseException:
            for line in lines:
                line.end()
            raise
        return list(lines)

    @abstractmethod
    def ask(self, place: Place, mark: str, agent: int) -> Ask: ...

    def scripts(self, place: Place, lines: Sequence[Line], agents: int) -> list[Script]:
        def script(agent: int) -> Script:
            number = 0
            while True:
                number += 1
                yield self.ask(place, f"a{agent:02}-n{number:05}", agent)

        return [script(agent) for agent in range(agents)]

    def is_acknowledged(self, ask: Ask, reply: Reply) -> bool:
        return not reply.refused and ask.mark in reply.text

    @abstractmethod
    def kept(self, place: Place) -> list[str]:
        """The marks that are in the store. Raises Unreadable."""

    def findings(self, place: Place, lines: Sequence[Line], done: Burst) -> Findings:
        acknowledged = [written.ask.mark for written in done.written]
        try:
            kept = self.kept(place)
        except Unreadable as unreadable:
            return Findings(len(acknowledged), problem=f"store unreadable: {unreadable}")
        return Findings(len(lost(acknowledged, kept)), len(doubled(kept)))


# -- the bare writers ------------------------------------------------------------------------------------------------


class Floor(Contestant):
    """One row, one commit, one line back: a server that knows nothing else."""

    def __init__(self, engine: str) -> None:
        self.name = f"floor, {engine}"
        self._engine = engine

    def lay_out(self, place: Place) -> None:
        lay_out_database(place, self._engine)

    def command(self, place: Place) -> Sequence[str]:
        return [sys.executable, "-m", "bench.crew.floor", address(place, self._engine)]

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        return Ask(mark, "write", {"mark": mark, "body": BODY * 2})

    def kept(self, place: Place) -> list[str]:
        from bench.crew.floor import marks_in

        return marks_in(address(place, self._engine))


SQLITE, POSTGRES = "SQLite", "PostgreSQL"


def lay_out_database(place: Place, engine: str) -> None:
    if engine == POSTGRES:
        assert place.server is not None
        place.server.database(place.name)


def address(place: Place, engine: str) -> str:
    """The place's own file or database."""
    if engine == SQLITE:
        return str(place.folder / "bench.db")
    assert place.server is not None
    return database_address(place.server, place.name)


def database_address(server: Server, name: str) -> str:
    """Where a database is that `Server.database` has made."""
    return urlunsplit(urlsplit(server.address)._replace(path=f"/{PREFIX}{name}"))


# -- the peers -------------------------------------------------------------------------------------------------------


class ServerMemory(Contestant):
    """An entity with one observation."""

    name = "server-memory"

    def command(self, place: Place) -> Sequence[str]:
        return ["node", str(node_command("server-memory", "mcp-server-memory"))]

    def environ(self, place: Place) -> Mapping[str, str]:
        return {"MEMORY_FILE_PATH": str(place.folder / "memory.jsonl")}

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        entity = {"name": mark, "entityType": "message", "observations": [BODY * 2]}
        return Ask(mark, "create_entities", {"entities": [entity]})

    def kept(self, place: Place) -> list[str]:
        text = (place.folder / "memory.jsonl").read_text()
        return [_json(line)["name"] for line in text.splitlines() if line]


class Shrimp(Contestant):
    """A list of one task, appended."""

    name = "shrimp-task-manager"

    def command(self, place: Place) -> Sequence[str]:
        return ["node", str(node_command("shrimp", "mcp-shrimp-task-manager"))]

    def environ(self, place: Place) -> Mapping[str, str]:
        return {"DATA_DIR": str(place.folder / "data"), "TEMPLATES_USE": "en", "ENABLE_GUI": "false"}

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        task = {
            "name": mark,
            "description": BODY * 2,
            "implementationGuide": "Read, then answer.",
            "dependencies": [],
            "relatedFiles": [],
            "verificationCriteria": "It is answered.",
        }
        raw = msgspec.json.encode([task]).decode()
        return Ask(
            mark, "split_tasks", {"updateMode": "append", "tasksRaw": raw, "globalAnalysisResult": "One message."}
        )

    def kept(self, place: Place) -> list[str]:
        return [task["name"] for task in _json((place.folder / "data" / "tasks.json").read_text())["tasks"]]


class Backlog(Contestant):
    """A task, which is a file of its own."""

    name = "backlog.md"

    def lay_out(self, place: Place) -> None:
        command = str(node_command("backlog", "backlog"))
        for line in (["git", "init", "-q"], [command, "init", "bench", "--defaults", "--integration-mode", "mcp"]):
            subprocess.run(line, cwd=place.folder, check=True, capture_output=True)

    def command(self, place: Place) -> Sequence[str]:
        return [str(node_command("backlog", "backlog")), "mcp", "start"]

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        return Ask(mark, "task_create", {"title": mark, "description": BODY * 2})

    def kept(self, place: Place) -> list[str]:
        files = (place.folder / "backlog" / "tasks").glob("*.md")
        return [title[1] for file in files if (title := re.search(r"^title: '?(\S+?)'?$", file.read_text(), re.M))]


class TaskMaster(Contestant):
    """A task given in full, so that no model is asked."""

    name = "task-master-ai"
    takes_part_unasked = False

    def lay_out(self, place: Place) -> None:
        folder = place.folder / ".taskmaster"
        (folder / "tasks").mkdir(parents=True)
        (folder / "config.json").write_text("{}")
        when = "2026-01-01T00:00:00Z"
        empty = {"tasks": [], "metadata": {"created": when, "updated": when, "description": "bench"}}
        (folder / "tasks" / "tasks.json").write_bytes(msgspec.json.encode({"master": empty}))

    def command(self, place: Place) -> Sequence[str]:
        return ["node", str(node_command("task-master", "task-master-mcp"))]

    def environ(self, place: Place) -> Mapping[str, str]:
        return {"TASK_MASTER_TOOLS": "all"}

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        root = str(place.folder)
        return Ask(mark, "add_task", {"projectRoot": root, "title": mark, "description": BODY * 2})

    def is_acknowledged(self, ask: Ask, reply: Reply) -> bool:
        return not reply.refused and "Successfully added new task" in reply.text

    def kept(self, place: Place) -> list[str]:
        text = (place.folder / ".taskmaster" / "tasks" / "tasks.json").read_text()
        return [task["title"] for task in _json(text)["master"]["tasks"]]


def _json(text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Unreadable(str(error)) from error

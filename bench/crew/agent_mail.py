"""mcp-agent-mail as it takes part: one HTTP server that all agents share, a connection for each."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Sequence

from bench.crew.burst import Ask, Script
from bench.crew.contestants import BODY, Contestant, Place
from bench.crew.lines import DEADLINE_S, HttpLine, Line, Reply, ask
from bench.crew.packages import agent_mail_python
from bench.started import Stuck, end, surroundings

ADJECTIVES = ("Amber", "Blue", "Green", "Red", "White", "Black")
NOUNS = ("Lake", "Castle", "Stone", "Creek", "Hill")
"""It takes names of this form only."""


class AgentMail(Contestant):
    """`send_message` between registered agents, each to the next."""

    name = "mcp-agent-mail"
    takes_part_unasked = False

    def command(self, place: Place) -> Sequence[str]:
        return [str(agent_mail_python()), "-m", "mcp_agent_mail.cli", "serve-http"]

    def start(self, place: Place, processes: int, agents: int) -> list[Line]:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        environ = {
            "STORAGE_ROOT": str(place.folder / "mailbox"),
            "DATABASE_URL": f"sqlite+aiosqlite:///{place.folder / 'mail.sqlite3'}",
            "LLM_ENABLED": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "true",
            "HOME": str(place.folder),
        }
        command = [*self.command(place), "--host", "127.0.0.1", "--port", str(port)]
        with (place.folder / "stderr").open("ab") as log:
            process = subprocess.Popen(
                command, cwd=place.folder, env={**surroundings(), **environ}, stdout=log, stderr=log
            )
        lines: list[Line] = []
        try:
            url = f"http://127.0.0.1:{port}/mcp/"
            _wait_for(process, port)
            self._register(url, place, agents)
            lines += [_Shared(url, process if number == 0 else None) for number in range(agents)]
        except BaseException:
            process.kill()
            process.wait()
            raise
        return lines

    def _register(self, url: str, place: Place, agents: int) -> None:
        steps = [("ensure_project", {"human_key": str(place.folder)})]
        steps += [
            ("register_agent", {"project_key": str(place.folder), "program": "bench", "model": "none", "name": name})
            for name in names(agents)
        ]
        line = HttpLine(url)
        for number, (tool, arguments) in enumerate(steps):
            reply = ask(line, number + 1, tool, arguments)
            if reply.refused:
                raise Stuck(f"{tool}: {reply.text[:200]}")
        line.end()

    def ask(self, place: Place, mark: str, agent: int) -> Ask:
        known = names(agent + 2)
        arguments = {
            "project_key": str(place.folder),
            "sender_name": known[agent],
            "to": [known[agent - 1] if agent else known[1]],
            "subject": mark,
            "body_md": BODY * 2,
        }
        return Ask(mark, "send_message", arguments)

    def scripts(self, place: Place, lines: Sequence[Line], agents: int) -> list[Script]:
        assert len(lines) == agents
        return super().scripts(place, lines, agents)

    def is_acknowledged(self, ask: Ask, reply: Reply) -> bool:
        return not reply.refused and '"count":1' in reply.text.replace(" ", "")

    def kept(self, place: Place) -> list[str]:
        import apsw

        connection = apsw.Connection(str(place.folder / "mail.sqlite3"))
        try:
            return [str(row[0]) for row in connection.execute("SELECT subject FROM messages")]
        finally:
            connection.close()


class _Shared(HttpLine):
    """A connection; the first one ends the server too."""

    def __init__(self, url: str, process: subprocess.Popen[bytes] | None) -> None:
        self._process = process
        super().__init__(url, greets=False)

    def end(self) -> None:
        super().end()
        if self._process is not None:
            self._process.terminate()
            end(self._process)


def names(count: int) -> list[str]:
    return [adjective + noun for noun in NOUNS for adjective in ADJECTIVES][:count]


def _wait_for(process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise Stuck("the server did not start")

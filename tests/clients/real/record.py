"""`python -m tests.clients.real.record`: runs each client once more and writes what happened to docs/clients.md.

Everything shown is taken from the run: the tools from the model's first request, calls and results from its last, the
words of the hooks from the request in which they arrived, the rest from Handrail's own command line.
"""

from __future__ import annotations

import datetime as dt
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.clients.real.clients import CLIENTS, Client
from tests.clients.real.install import MissingClientsError, install, versions
from tests.clients.real.scripted_model import ScriptedModel, Turn, say
from tests.clients.real.seat import Seat
from tests.clients.real.stories import RAILS, WORKFLOW, standing, walk

PAGE = Path(__file__).parent.parent.parent.parent / "docs" / "clients.md"
HEADING = "## Recordings"
WIDTH = 108
OPENING = """
What was really run: each client from npm, headless, in a project set up by `handrail init --yes --allow-tools`, with a
scripted model on loopback that judges nothing. `call` is what the model asked for, `→` what it read then, `hook` what
the client's hooks put into a request to it, `store` what `handrail journal` says afterwards. `./run clients` tries this
and more; `python -m tests.clients.real.record` writes this section.
"""


def recording(client: Client, installed: Path, base: Path) -> str:
    """One client's section."""
    script = walk()
    with ScriptedModel(*script) as model:
        seat = Seat(client, installed, base / "home", base / "project", model)
        seat.home.mkdir(parents=True)
        subprocess.run(["git", "init", "-q", str(seat.project)], check=True)
        seat.settle()
        ended = seat.run("Lay the rails.")
        assert ended.code == 0, ended.errors
        lines = _work(seat, script)
        lines += _hook(seat)
    today = dt.datetime.now(dt.UTC).date()
    shown = "\n".join(lines).replace(str(base), "…")
    return f"\n### {client.title} {versions()[client.package]}, {today.isoformat()}\n\n```\n{shown}\n```\n"


def _work(seat: Seat, script: list[Turn]) -> list[str]:
    requests = seat.model.conversation()
    own = sorted(name for name in requests[0].tools if "handrail" in name)
    lines = [f"tools  {len(own)} of {len(requests[0].tools)} are Handrail's: {own[0]}, {own[1]}, {own[2]} …"]
    calls = [wanted for turn in script for wanted in turn.calls]
    for wanted, answered in zip(calls, requests[1:], strict=False):
        lines.append(_cut(f"call   {wanted.tool}"))
        lines.append(_cut(f"  →    {_flat(answered.results[-1])}"))
    for moment in seat.told("journal", WORKFLOW)["moments"]:
        lines.append(_cut(f"store  {moment['kind']}: {_flat(moment['text'])}"))
    return lines


def _hook(seat: Seat) -> list[str]:
    """A task is started from the command line; the next conversation begins with it."""
    workflow = seat.call("start_workflow", name="Lay more rails", description="Rails to hold on to")["workflow_id"]
    seat.call("start_task", workflow_id=workflow, name=RAILS[1], goal="A rail that bears")
    before = seat.model.play(say("Going on."))
    seat.run("Go on.")
    words = seat.model.conversation(before)[0].words
    told = next((line for line in words.splitlines() if standing(RAILS[1]) in line), "nothing")
    return [_cut(f"hook   {_flat(told)}")]


def _flat(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else line[: WIDTH - 2] + " …"


def main() -> int:
    try:
        installed = install()
    except MissingClientsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        sections = [recording(client, installed, Path(folder) / client.name) for client in CLIENTS]
    before = PAGE.read_text().partition(f"\n{HEADING}\n")[0].rstrip("\n")
    PAGE.write_text(f"{before}\n\n{HEADING}\n{OPENING}{''.join(sections)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

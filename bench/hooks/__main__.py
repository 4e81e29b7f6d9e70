"""`python -m bench.hooks`: runs every hook as a client runs it, in interleaved rounds beside `python -c pass`, and
prints medians and ratios of CPU time.

The store is made by a real server: one workflow with many tasks, one of them open with decisions, notes and a plan.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import apsw

ROUNDS = 21
TASKS = 400
NOTES = 40
FLOOR = "floor: python -c pass"


class Hook(NamedTuple):
    """A hook as a client runs it, and whether it has something to say there."""

    name: str
    words: tuple[str, ...]
    given: dict[str, Any] | None
    speaks: bool = False
    tokens: str = "1500"


class Cost(NamedTuple):
    """What one run took, in milliseconds."""

    cpu: float
    wall: float


class Server:
    """A server on a pipe, as far as this needs one."""

    def __init__(self, folder: Path, home: Path) -> None:
        command = [sys.executable, "-m", "handrail", "serve", "--profile", "team"]
        self._process = subprocess.Popen(
            command, cwd=folder, env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self._ask("initialize", hello)

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        result = self._ask("tools/call", {"name": tool, "arguments": arguments})["result"]
        assert not result.get("isError"), result
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def end(self) -> None:
        self._process.communicate()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}) + "\n")
        self._process.stdin.flush()
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply


def environment(home: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HANDRAIL_", "CLAUDE_"))}
    return {**kept, "HOME": str(home)}


def filled(repo: Path, home: Path, *, tasks: int) -> None:
    """A repository with a store in which one task is open."""
    repo.mkdir()
    (repo / "a.py").write_text("a = 1\n")
    subprocess.run(["git", "init", "-q"], cwd=repo, check=True)
    server = Server(repo, home)
    workflow = server.call("workflow_create", name="Imports", source_type="prompt", source_content="Survive. " * 200)
    drafts = [{"name": f"task {n}", "description": "Do it well. " * 20, "sequence": n} for n in range(1, tasks + 1)]
    server.call("workflow_set_plan", id=workflow["id"], plan={"summary": "s", "approach": "a", "tasks": drafts})
    first = server.call("workflow_next_tasks", workflow_id=workflow["id"])["tasks"][0]
    plan = {"approach": "Step by step", "steps": [f"Do part {number}" for number in range(1, 13)]}
    server.call("task_set_plan", id=first["id"], plan=plan)
    started = server.call("start_task", workflow_id=workflow["id"], name=first["name"], goal="Get it done")["task_id"]
    for number in range(1, NOTES + 1):
        kind = "decision" if number % 3 == 0 else "progress"
        text = f"Note {number}: " + "what was seen, and what follows from it; " * 4
        server.call("checkpoint_add", task_id=started, type=kind, summary=text, detail={"step": number // 8 + 1})
    agent = server.call("agent_register", name="Anna", runtime="custom")["id"]
    server.call("reserve_paths", agent_id=agent, paths=["a.py", "docs/*.md"], reason="moving things")
    server.end()


def stay_present(repo: Path) -> None:
    """The agent that reserved something does not leave while this runs."""
    store = apsw.Connection(str(repo / ".handrail" / "handrail.db"))
    store.execute("UPDATE lease SET expires_ms = expires_ms + 86400000 WHERE id IN (SELECT id FROM agent)")
    store.close()


def cost(command: list[str], given: bytes, cwd: Path, env: dict[str, str]) -> tuple[Cost, bytes]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, input=given, cwd=cwd, env=env, capture_output=True, check=True)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu * 1000, wall * 1000), done.stdout


def hooks_in(repo: Path, empty: Path) -> list[Hook]:
    here = {"cwd": str(repo), "session_id": "s"}
    edit = {**here, "tool_name": "Edit", "tool_input": {"file_path": str(repo / "a.py"), "new_string": "x" * 4000}}
    other = {**edit, "tool_input": {"file_path": str(repo / "b.py")}}
    hook = ("-m", "handrail.hooks")
    return [
        Hook(FLOOR, ("-c", "pass"), None),
        Hook("python -c 'import apsw'", ("-c", "import apsw"), None),
        Hook("any event, no store", (*hook, "start"), {"cwd": str(empty)}),
        Hook("start, turned off", (*hook, "start"), here, tokens="0"),
        Hook("start, 1,500 tokens", (*hook, "start"), here, speaks=True),
        Hook("stop, reminds", (*hook, "stop"), {**here, "session_id": "{}"}, speaks=True),
        Hook("stop, has reminded", (*hook, "stop"), here),
        Hook("edited", (*hook, "edited"), edit),
        Hook("before an edit, not reserved", (*hook, "before", "--client", "codex"), other),
        Hook("before an edit, reserved", (*hook, "before", "--client", "codex"), edit, speaks=True),
    ]


def one_round(number: int, hooks: list[Hook], home: Path) -> dict[str, Cost]:
    """Every hook once, in an order that rotates."""
    found = {}
    turn = number % len(hooks)
    for hook in (*hooks[turn:], *hooks[:turn]):
        given = json.dumps(hook.given).replace('"{}"', f'"session {number}"').encode() if hook.given else b""
        command = [sys.executable, *hook.words]
        found[hook.name], said = cost(command, given, home, {**environment(home), "HANDRAIL_HOOK_TOKENS": hook.tokens})
        assert bool(said) == hook.speaks or (hook.name == "stop, has reminded" and number == 0), hook.name
    return found


def print_table(rounds: list[dict[str, Cost]]) -> None:
    """Medians; x is the median of the rounds' own ratios to the floor."""
    print("| hook | CPU ms | x | wall ms |")
    print("|---|--:|--:|--:|")
    for name in sorted(rounds[0], key=lambda name: statistics.median(one[name].cpu for one in rounds)):
        cpu, wall = (statistics.median(getattr(one[name], kind) for one in rounds) for kind in ("cpu", "wall"))
        ratio = statistics.median(one[name].cpu / one[FLOOR].cpu for one in rounds)
        print(f"| {name} | {cpu:.0f} | {ratio:.2f} | {wall:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.hooks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three rounds on a small plan: shows that it runs")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        root = Path(folder).resolve()
        home, empty, repo = root / "home", root / "empty", root / "repo"
        home.mkdir()
        empty.mkdir()
        filled(repo, home, tasks=20 if given.quick else TASKS)
        hooks = hooks_in(repo, empty)
        stay_present(repo)
        rounds = [one_round(number, hooks, home) for number in range((3 if given.quick else given.rounds) + 1)]
        print_table(rounds[1:])


if __name__ == "__main__":
    main()

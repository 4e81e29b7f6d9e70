"""Inspector's command line against the fixture and against `handrail serve`, over stdio and HTTP, in both eras.

`tools/list --strict` holds every published schema against what clients are known to understand.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from conformance.hosting import FIXTURE, hosted_fixture
from conformance.outcomes import Outcome
from conformance.packages import ROOT
from conformance.processes import HOST, Finished, free_port, run, serving

DEADLINE_S = 60.0
ERAS = ("legacy", "modern")

HANDRAIL = (sys.executable, "-m", "handrail", "serve")

Result = dict[str, Any]


class Inspector:
    """Runs one method at a time and records how it came out."""

    def __init__(self, command: tuple[str, ...], outcome: Outcome, work: Path) -> None:
        self._command = command
        self._outcome = outcome
        self._work = work

    def ask(self, where: str, target: Sequence[str], asked: Sequence[str], holds: Callable[[Result], bool]) -> None:
        """One method in each era; `holds` says whether its result is the right one."""
        for era in ERAS:
            options = ["--protocol-era", era, "--format", "json", "--method", *asked]
            done = run(
                [*self._command, *target, *options],
                cwd=self._work,
                deadline_s=DEADLINE_S,
                extra_env=home_in(self._work),
            )
            self._outcome.check(f"{where}, {era}, {' '.join(asked)}", _problem(done, holds))


def inspector(command: tuple[str, ...], work: Path) -> Outcome:
    outcome = Outcome(suite="inspector --strict")
    inspector = Inspector(command, outcome, work)
    _fixture_methods(inspector, "fixture on stdio", [*FIXTURE, "--cwd", str(ROOT)])
    with hosted_fixture(outcome, work) as server:
        _fixture_methods(inspector, "fixture over HTTP", [server.url])
    for profile in ("solo", "workflowlookup"):
        _handrail_methods(inspector, f"handrail {profile} on stdio", [*HANDRAIL, "--profile", profile])
    port, token = free_port(), secrets.token_hex(16)
    serve = [*HANDRAIL, "--http", f"{HOST}:{port}", "--token", token]
    with serving(serve, port, cwd=work, log=work / "inspected-handrail.log", extra_env=home_in(work)) as server:
        _handrail_methods(inspector, "handrail over HTTP", [server.url, "--header", f"Authorization: Bearer {token}"])
        outcome.check("handrail over HTTP", None if (code := server.end()) == 0 else f"ended with {code} on SIGTERM")
    return outcome


def home_in(work: Path) -> dict[str, str]:
    """Neither Inspector nor Handrail reads or writes anything of the user's."""
    return {"HOME": str(work), "MCP_CATALOG_PATH": str(work / "inspector.json")}


def _fixture_methods(inspector: Inspector, where: str, target: Sequence[str]) -> None:
    inspector.ask(where, target, ["tools/list", "--strict"], lambda result: len(result["tools"]) > 30)
    greet = ["tools/call", "--tool-name", "greet", "--tool-arg", "name=Ada"]
    inspector.ask(where, target, greet, lambda result: _text(result) == "Hello, Ada!")
    read = ["resources/read", "--uri", "test://template/7/data"]
    inspector.ask(where, target, read, lambda result: "Data for ID: 7" in result["contents"][0]["text"])
    prompt = ["prompts/get", "--prompt-name", "test_simple_prompt"]
    inspector.ask(where, target, prompt, lambda result: len(result["messages"]) == 1)


def _handrail_methods(inspector: Inspector, where: str, target: Sequence[str]) -> None:
    inspector.ask(where, target, ["tools/list", "--strict"], lambda result: len(result["tools"]) > 3)
    call = ["tools/call", "--tool-name", "workflow_list"]
    inspector.ask(where, target, call, lambda result: bool(msgspec.json.decode(_text(result))))


def _text(result: Result) -> str:
    text: str = result["content"][0]["text"]
    return text


def _problem(done: Finished, holds: Callable[[Result], bool]) -> str | None:
    if done.code != 0:
        said = (done.errors.strip() or done.output.strip() or "nothing").splitlines()[-1]
        return f"Inspector ended with {done.code}, saying {said}"
    try:
        if holds(msgspec.json.decode(done.output)["result"]):
            return None
    except (msgspec.DecodeError, KeyError, IndexError, TypeError) as problem:
        return f"an answer of another shape ({type(problem).__name__}): {done.output[:200]}"
    return f"not the expected answer: {done.output[:200]}"

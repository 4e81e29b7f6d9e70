"""Clients: is the server each of them starts there, does it answer, is it this one? Do their hooks run something that
is there, and are the instructions for agents those of today?"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail import __version__
from handrail.domain.setup import jsonc, toml_editing
from handrail.domain.setup.blocks import state_of
from handrail.domain.setup.claude_code import commands_in, is_ours
from handrail.domain.setup.clients import (
    CLIENTS,
    SERVER,
    WORKSPACE,
    Client,
    environment_of,
    servers_path,
    words_of,
)
from handrail.domain.setup.edits import NotUnderstood
from handrail.kernel.errors import PlaceUnusable
from handrail.outside.server_trial import Trial, has_module, try_server
from handrail.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE
from handrail.setup.findings import Finding, Patient, broken, look, well

HOOK_FILES = (".claude/settings.json", ".claude/settings.local.json")
_Trials = dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], Trial]


def check_clients(patient: Patient) -> Iterator[Finding]:
    """Every client that has a server of ours, started exactly as it says."""
    trials: _Trials = {}
    seen = False
    for client in CLIENTS:
        for finding in _client(patient, client, trials):
            seen = True
            yield finding
    if not seen:
        yield look("clients", "no client here is set up for Handrail", "handrail init --client NAME, or --all")
    yield from _ignored_place(patient)
    yield from _manifest(patient)


def _client(patient: Patient, client: Client, trials: _Trials) -> Iterator[Finding]:
    file = patient.files.file_of(client)
    again = f"handrail init --client {client.name}"
    try:
        text = patient.files.read(file)
        whole: Any = (toml_editing.plain if client.form == "toml" else jsonc.plain)(text or "")
    except NotUnderstood as problem:
        yield broken(client.name, f"{file}: {problem}", f"mend the file; then {again}")
        return
    entry = toml_editing.found_at(whole, (*servers_path(client, whole), SERVER)) if isinstance(whole, dict) else None
    if entry is None:
        if patient.files.is_present(client):
            yield look(client.name, f"{client.title} is here and has no server {SERVER}", again)
        return
    words = words_of(entry)
    if words is None:
        yield well(client.name, f"{file}: reached at an address, not started here")
        return
    yield _started(patient, client, file, words, environment_of(entry), trials)


def _started(
    patient: Patient, client: Client, file: str, words: list[str], variables: dict[str, str], trials: _Trials
) -> Finding:
    again = f"handrail init --client {client.name}"
    filled = [word.replace(WORKSPACE, str(patient.project)) for word in words]
    if not _program(filled[0], patient):
        return broken(client.name, f"{file} starts {filled[0]}, which is not there", again)
    root = _root_of(filled)
    if root is not None and not Path(root).is_dir():
        return broken(client.name, f"{file} names the project {root}, which is not there", again)
    key = (tuple(filled), tuple(sorted(variables.items())))
    if key not in trials:
        environ = {**patient.environ, **variables}
        trials[key] = try_server(
            filled,
            folder=str(patient.project),
            environ=environ,
            protocol=NEWEST_HANDSHAKE,
            timeout_s=patient.timeout_s,
        )
    return _judged(patient, client, file, trials[key], root, again)


def _judged(patient: Patient, client: Client, file: str, trial: Trial, root: str | None, again: str) -> Finding:
    if trial.problem:
        return broken(client.name, f"{file}: started as it says there, {trial.problem}", again)
    if trial.protocol not in HANDSHAKE_REVISIONS:
        what = f"{file}: the server speaks revision {trial.protocol or 'unknown'}, not one of MCP's that we know"
        return broken(client.name, what, again)
    if trial.version != __version__:
        what = f"{file} starts {trial.name} {trial.version}; this is handrail {__version__}"
        return look(client.name, what, f"{again}, from the installation you want")
    if root is not None and os.path.realpath(root) != os.path.realpath(patient.project):
        return look(client.name, f"{file} serves {root}, not this project", again)
    return well(client.name, f"{file}: answers with {trial.tools} tools, revision {trial.protocol}")


def _root_of(words: list[str]) -> str | None:
    for number, word in enumerate(words):
        if word == "--root" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--root="):
            return word.removeprefix("--root=")
    return None


def _program(name: str, patient: Patient) -> str | None:
    """The program's path; None where nobody could start it."""
    return shutil.which(name, path=patient.environ.get("PATH", ""))


def _ignored_place(patient: Patient) -> Iterator[Finding]:
    """Claude Code reads no servers from its user settings, and says nothing about it."""
    file = f"{patient.home}/.claude/settings.json"
    try:
        whole = jsonc.plain(patient.files.read(file) or "")
    except NotUnderstood:
        return
    if toml_editing.found_at(whole if isinstance(whole, dict) else {}, ("mcpServers", SERVER)) is not None:
        fix = f"handrail init --client claude-code, and take {SERVER} out of that file"
        yield broken("claude-code", f"{file} has a server {SERVER}, but Claude Code reads none from there", fix)


def _manifest(patient: Patient) -> Iterator[Finding]:
    try:
        known = patient.files.manifest()
    except PlaceUnusable as problem:
        yield broken("init", problem.message, problem.hint)
        return
    for written in known.files:
        if not Path(written.file).exists():
            yield look("init", f"{written.file} was written by init and is gone", "handrail init writes it again")


def check_hooks(patient: Patient) -> Iterator[Finding]:
    """Hooks of ours that run something that is not there: a client may show that at every edit."""
    known: dict[tuple[str, str], bool] = {}
    for file in (*(f"{patient.project}/{name}" for name in HOOK_FILES), f"{patient.home}/.claude/settings.json"):
        try:
            found = commands_in(jsonc.plain(patient.files.read(file) or ""))
        except NotUnderstood as problem:
            yield broken("hooks", f"{file}: {problem}", "mend the file")
            continue
        ours = [(event, command) for event, command in found if is_ours(command)]
        wrong = [(event, why) for event, command in ours if (why := _hook_problem(patient, command, known))]
        for event, why in wrong:
            yield broken("hooks", f"{file}: the hook {event} {why}", "handrail init --client claude-code")
        if ours and not wrong:
            yield well("hooks", f"{file}: {len(ours)} hooks, all there")


def _hook_problem(patient: Patient, command: str, known: dict[tuple[str, str], bool]) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        return "is no command"
    program = _program(words[0], patient)
    if program is None:
        return f"runs {words[0]}, which is not there"
    if "-m" in words[:-1]:
        module = words[words.index("-m") + 1]
        if (program, module) not in known:
            known[program, module] = has_module(
                program, module, folder=str(patient.project), timeout_s=patient.timeout_s
            )
        if not known[program, module]:
            return f"runs {module}, which {words[0]} does not have"
    return ""


def check_instructions(patient: Patient) -> Iterator[Finding]:
    """The block for agents: missing, old, or half of it gone."""
    for file in patient.files.instruction_files():
        try:
            text = patient.files.read(file)
        except NotUnderstood as problem:
            yield look("instructions", f"{file}: {problem}", "agents are told the rules by the server alone")
            continue
        state = state_of(text or "")
        if state == "missing":
            yield look("instructions", f"{file} does not tell agents of Handrail", "handrail init")
        elif state == "stale":
            yield broken("instructions", f"{file} has the rules of another Handrail", "handrail init")
        elif state == "broken":
            yield broken("instructions", f"{file}: the markers do not pair", "mend them by hand, then handrail init")
        elif state == "edited":
            yield look("instructions", f"{file}: somebody changed the rules in it", "fine if you meant it")
        else:
            yield well("instructions", f"{file}: current")

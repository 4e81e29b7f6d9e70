"""Clients: does the server that each of them starts exist, does it answer, is it this one? Do their hooks run something
that exists, and are the instructions for agents up to date?

A command that a file of the project names is started only if it is this very Handrail, or if the user asked for that:
such a file may have come with a repository, and checking a setup must not run what a repository brings along.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from handrail import __version__
from handrail.domain.setup import jsonc, toml_edit
from handrail.domain.setup.blocks import state_of
from handrail.domain.setup.clients import (
    CLIENTS,
    SERVER,
    WORKSPACE,
    Client,
    environment_of,
    servers_path,
    words_of,
)
from handrail.domain.setup.edits import NotUnderstood, value_at
from handrail.domain.setup.hook_files import HOOK_FILES, commands_in, is_ours
from handrail.kernel.errors import PlaceUnusable
from handrail.outside.installation import MODULE, launch
from handrail.outside.server_probe import Trial, has_module, try_server
from handrail.protocol.revisions import HANDSHAKE_REVISIONS, NEWEST_HANDSHAKE
from handrail.setup.findings import Finding, Patient, broken, run_checks, well

_HOOKS_OF = {one.file: one.client for one in HOOK_FILES if one.form != "plugin"}
_HOOKS_OF |= {".claude/settings.local.json": "claude-code"}
SHOWN = 120
"""How much of a command is shown."""
_Trials = dict[tuple[tuple[str, ...], tuple[tuple[str, str], ...]], Trial]


def check_clients(patient: Patient) -> Iterator[Finding]:
    """Checks every client that has a server of ours, started exactly as its file says."""
    trials: _Trials = {}
    seen = False
    told: set[str] = set()
    for client in CLIENTS:
        file = patient.files.file_of(client)
        if file in told and not patient.files.is_present(client):
            continue  # a file that several clients read, and this one is not here
        for finding in _client(patient, client, trials):
            seen = True
            told.add(file)
            yield finding
    if not seen:
        yield run_checks("clients", "no client here is set up for Handrail", "handrail init --client NAME, or --all")
    yield from _ignored_place(patient)
    yield from _manifest(patient)


def set_up(patient: Patient) -> list[Client]:
    """The clients here that have a server of ours, by our plugin or by their own file."""
    files = patient.files
    found = []
    for client in CLIENTS:
        whole = files.parsed_as(client.form, files.file_of(client))
        if files.has_plugin(client) or (files.is_present(client) and _entry(client, whole) is not None):
            found.append(client)
    return found


def _entry(client: Client, whole: Any) -> Any:
    """The server of ours in a client's parsed file."""
    return value_at(whole, (*servers_path(client, whole), SERVER)) if isinstance(whole, dict) else None


def _client(patient: Patient, client: Client, trials: _Trials) -> Iterator[Finding]:
    file = patient.files.file_of(client)
    again = f"handrail init --client {client.name}"
    try:
        text = patient.files.read(file)
        whole: Any = (toml_edit.plain if client.form == "toml" else jsonc.plain)(text or "")
    except NotUnderstood as problem:
        yield broken(client.name, f"{file}: {problem}", f"fix the file; then {again}")
        return
    entry = _entry(client, whole)
    has_plugin = patient.files.has_plugin(client)
    if entry is None:
        if has_plugin:
            yield well(client.name, f"{client.title} has the plugin, which brings the server")
        elif patient.files.is_present(client):
            yield run_checks(client.name, f"{client.title} is here and has no server {SERVER}", again)
        return
    if has_plugin:
        what = f"{client.title} has the plugin and {file} as well: two servers of the same name"
        yield run_checks(client.name, what, f"take {SERVER} out of {file}, or the plugin off")
    words = words_of(entry)
    if words is None:
        yield well(client.name, f"{file}: reached at an address, not started here")
    else:
        yield _started(patient, client, file, words, environment_of(entry), trials)
    yield from _reach(patient, client, file)


def _reach(patient: Patient, client: Client, file: str) -> Iterator[Finding]:
    """Whether the client gets to see the file at all: it may have to trust the folder first, or be started there."""
    if patient.files.trusts_folder(client) is False:
        what = f"{client.title} reads {file} only in a folder that you trust, and does not trust this one yet"
        yield run_checks(client.name, what, f"start {client.programs[0]} in {patient.project} once and say yes")
    if client.subfolder and patient.below:
        what = f"{client.title}, started in {patient.below}: {client.subfolder}"
        yield run_checks(client.name, what, f"start it in {patient.project}")


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
    if not _may_start(patient, file, filled, variables):
        what = f"{file} names {_shown(filled)}, which is not what init writes here; it was not started"
        return run_checks(client.name, what, f"{again}; or, if you trust the file, handrail doctor --start")
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
    return _finding_of_trial(patient, client, file, trials[key], root, again)


def _may_start(patient: Patient, file: str, words: list[str], variables: Mapping[str, str]) -> bool:
    """Whether this may be run: from the project's own files, only the server of the Handrail that is already running.
    Any other of its commands could do anything, and a variable may lead a program anywhere, so only our own settings
    pass."""
    own = [*_own(patient), "serve"]
    ours = words[: len(own)] == own
    return _is_trusted(patient, file) or (ours and all(name.startswith("HANDRAIL_") for name in variables))


def _is_trusted(patient: Patient, file: str) -> bool:
    """Whether what a file names may be run: the user's own files, and all files if that was asked for."""
    inside = Path(os.path.realpath(file)).is_relative_to(os.path.realpath(patient.project))
    return patient.starts_all or not inside


def _shown(words: list[str]) -> str:
    line = shlex.join(words)
    return line if len(line) <= SHOWN else line[:SHOWN] + "…"


def _finding_of_trial(
    patient: Patient, client: Client, file: str, trial: Trial, root: str | None, again: str
) -> Finding:
    if trial.problem:
        return broken(client.name, f"{file}: started as it says there, {trial.problem}", again)
    if trial.protocol not in HANDSHAKE_REVISIONS:
        what = f"{file}: the server speaks revision {trial.protocol or 'unknown'}, not one of MCP's that we know"
        return broken(client.name, what, again)
    if trial.version != __version__:
        what = f"{file} starts {trial.name} {trial.version}; this is handrail {__version__}"
        return run_checks(client.name, what, f"{again}, from the installation you want")
    if root is not None and os.path.realpath(root) != os.path.realpath(patient.project):
        return run_checks(client.name, f"{file} serves {root}, not this project", again)
    return well(client.name, f"{file}: answers with {trial.tools} tools, revision {trial.protocol}")


def _root_of(words: list[str]) -> str | None:
    for number, word in enumerate(words):
        if word == "--root" and number + 1 < len(words):
            return words[number + 1]
        if word.startswith("--root="):
            return word.removeprefix("--root=")
    return None


def _program(name: str, patient: Patient) -> str | None:
    """The program's path; None if nobody could start it."""
    return shutil.which(name, path=patient.environ.get("PATH", ""))


def _ignored_place(patient: Patient) -> Iterator[Finding]:
    """Claude Code reads no servers from its user settings, and does not say so."""
    file = f"{patient.home}/.claude/settings.json"
    try:
        whole = jsonc.plain(patient.files.read(file) or "")
    except NotUnderstood:
        return
    if value_at(whole if isinstance(whole, dict) else {}, ("mcpServers", SERVER)) is not None:
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
            yield run_checks("init", f"{written.file} was written by init and is gone", "handrail init writes it again")


def check_hooks(patient: Patient) -> Iterator[Finding]:
    """Finds hooks of ours that run something that does not exist: a client may report that at every edit."""
    known: dict[tuple[str, str], bool] = {}
    files = {f"{patient.project}/{name}": client for name, client in _HOOKS_OF.items()}
    files |= {f"{patient.home}/.claude/settings.json": "claude-code"}
    for file, client in files.items():
        again = f"handrail init --client {client}"
        try:
            found = commands_in(jsonc.plain(patient.files.read(file) or ""))
        except NotUnderstood as problem:
            yield broken("hooks", f"{file}: {problem}", "fix the file")
            continue
        ours = [(event, command) for event, command in found if is_ours(command)]
        trusted = _is_trusted(patient, file)
        strange = [command for _, command in ours if not (trusted or _is_this_python(patient, command))]
        if strange:
            runs = _shown(shlex.split(strange[0]))
            what = f"{file} runs {runs}, which is not what init writes here; it was not tried"
            yield run_checks("hooks", what, f"{again}; if you trust it, handrail doctor --start")
        tried = [(event, command) for event, command in ours if command not in strange]
        wrong = [(event, why) for event, command in tried if (why := _hook_problem(patient, command, known))]
        for event, why in wrong:
            yield broken("hooks", f"{file}: the hook {event} {why}", again)
        if tried and not wrong:
            yield well("hooks", f"{file}: {len(tried)} hooks, all there")


def _is_this_python(patient: Patient, command: str) -> bool:
    """Whether a hook starts the interpreter that is running now, or nothing that could be started."""
    try:
        words = shlex.split(command)
    except ValueError:
        return True
    return _is_own(patient, words) or _program(words[0], patient) is None


def _is_own(patient: Patient, words: list[str]) -> bool:
    """Whether a command begins with the words that start this very interpreter."""
    own = _own(patient)[: -len(MODULE)]
    return words[: len(own)] == own


def _own(patient: Patient) -> list[str]:
    """The words that start this very Handrail."""
    try:
        return [*launch(patient.environ)]
    except PlaceUnusable:  # it could not be set up, and can still look
        return [sys.executable, *MODULE]


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
        if _is_own(patient, words):
            known[program, module] = find_spec(module) is not None
        elif (program, module) not in known:
            known[program, module] = has_module(
                program, module, folder=str(patient.project), timeout_s=patient.timeout_s
            )
        if not known[program, module]:
            return f"runs {module}, which {words[0]} does not have"
    return ""


def check_instructions(patient: Patient) -> Iterator[Finding]:
    """Checks the block for agents in the file that each client really reads: missing, outdated, or incomplete."""
    readers: dict[str, list[str]] = {}
    clients = set_up(patient)
    for client in clients:
        path = patient.files.instruction_file(client)
        if path is not None:
            readers.setdefault(os.path.realpath(path), []).append(client.title)
    for file in patient.files.instruction_files(clients):
        named = ", ".join(readers.get(os.path.realpath(file), ()))
        yield _instructions(patient, f"{file} (for {named})" if named else file, file)


def _instructions(patient: Patient, name: str, file: str) -> Finding:
    try:
        text = patient.files.read(file)
    except NotUnderstood as problem:
        return run_checks("instructions", f"{name}: {problem}", "agents are told the rules by the server alone")
    state = state_of(text or "")
    if state == "missing":
        return run_checks("instructions", f"{name} does not tell agents of Handrail", "handrail init")
    if state == "stale":
        return broken("instructions", f"{name} has the rules of another Handrail", "handrail init")
    if state == "broken":
        return broken("instructions", f"{name}: the markers do not pair", "fix them by hand, then handrail init")
    if state == "edited":
        return run_checks("instructions", f"{name}: somebody changed the rules in it", "fine if you meant it")
    return well("instructions", f"{name}: current")

"""What init writes for a project: one list of steps, built from the chosen clients and the answers given."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from handrail.domain.setup import file_entries, jsonc, toml_edit
from handrail.domain.setup.clients import (
    SERVER,
    Allowance,
    Client,
    entry_for,
    is_native,
    servers_path,
    words_for,
    words_of,
)
from handrail.domain.setup.edits import Edit, NotUnderstood, fingerprint, value_at
from handrail.domain.setup.file_entries import FileEntry, Put, WriteStep
from handrail.domain.setup.hook_files import hook_steps
from handrail.domain.setup.slash_commands import COMMANDS, as_markdown
from handrail.domain.setup.state_files import STATE_FILES

CONFIG = ".handrail/config.toml"
IGNORE = ".handrail/.gitignore"
MANIFEST = ".handrail/init.json"
SYSTEM_PROMPT = ".claude/prompts/system.md"
IGNORED = f"""\
# These are this machine's; everything else in this folder is the team's to commit.
{STATE_FILES}\
init.json
"""


class InitOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What init was asked for."""

    project: str
    launch: tuple[str, ...]
    """The words that start Handrail, an absolute path first; without the last two they start its interpreter."""
    options: tuple[str, ...] = ()
    """More words after `serve`."""
    clients: tuple[tuple[Client, str], ...]
    """The chosen clients, each with its file."""
    named: frozenset[str] = frozenset()
    """Clients that were asked for by name: for these, a conflicting server entry may be replaced."""
    approvals: str | None
    """None: leave the setting alone."""
    allows: bool = False
    """Whether the clients may call the tools without asking each time."""
    instructions: tuple[str, ...]
    """Files that get the block for agents."""
    ours: Mapping[str, str]
    """Fingerprints of the files that init wrote before."""


def steps_for(wanted: InitOptions) -> list[WriteStep]:
    """Everything to write, in the order it is shown."""
    steps = [step for client, file in wanted.clients for step in _server_steps(client, file, wanted)]
    names = [client.name for client, _ in wanted.clients]
    steps += hook_steps(names, wanted.project, wanted.launch[:-2], wanted.ours.get)
    if "claude-code" in names:
        steps += _claude_code(wanted)
    steps += [WriteStep(file, "when agents call which tool", file_entries.instructions) for file in wanted.instructions]
    if wanted.approvals is not None:
        file = f"{wanted.project}/{CONFIG}"
        steps.append(WriteStep(file, "who may answer a gate", file_entries.key("approvals", wanted.approvals)))
    steps.append(ignoring_step(wanted.project))
    return steps


def ignoring_step(project: str) -> WriteStep:
    """The step that tells git which files in Handrail's folder no team commits; goes with any other write there."""
    return WriteStep(f"{project}/{IGNORE}", "what is this machine's alone", file_entries.lines(IGNORED, ("init.json",)))


def _server_steps(client: Client, file: str, wanted: InitOptions) -> list[WriteStep]:
    """A client's server; before it what the client would add to the file, behind it the permission, if it is given."""
    first = (
        [WriteStep(file, "its $schema", file_entries.new_member(("$schema",), client.schema))] if client.schema else []
    )
    server = _server(client, wanted, is_named=client.name in wanted.named)
    steps = [*first, WriteStep(file, f"{client.title}: the server", server)]
    if wanted.allows and client.allowance is not None:
        steps.append(_allowing(client, file, client.allowance, wanted.project))
    return steps


def _allowing(client: Client, file: str, allowance: Allowance, project: str) -> WriteStep:
    purpose = f"{client.title}: calls it without asking each time"
    if allowance.file:
        put = file_entries.item(allowance.path, allowance.value, lambda _: False)
        return WriteStep(f"{project}/{allowance.file}", purpose, put)
    if client.form == "toml":
        return WriteStep(file, purpose, file_entries.table_key((*client.path, SERVER), allowance.key, allowance.value))
    return WriteStep(file, purpose, file_entries.new_member((*client.path, SERVER, allowance.key), allowance.value))


def _server(client: Client, wanted: InitOptions, *, is_named: bool) -> Put:
    words = words_for(client, wanted.project, wanted.launch, wanted.options)

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        whole = toml_edit.plain(text) if client.form == "toml" else jsonc.plain(text)
        path = (*servers_path(client, whole), SERVER)
        entry = entry_for(client, words, native=is_native(whole))
        there = value_at(whole, path) if isinstance(whole, dict) else None
        _check_free(there, words, replaces=is_named or not client.is_personal)
        if client.form == "toml":
            return file_entries.table(path, entry)(text)
        return file_entries.member(path, entry)(text)

    return put


def _check_free(there: Any, words: Sequence[str], *, replaces: bool) -> None:
    """Raises NotUnderstood if there already is a server of that name that we may not replace."""
    if there is None or words_of(there) == list(words):
        return
    if words_of(there) is None:
        raise NotUnderstood(f"it has a server {SERVER} that is not started by a command; remove it there first")
    if not replaces:
        raise NotUnderstood(f"its server {SERVER} is another project's; name the client with --client to replace it")


def _claude_code(wanted: InitOptions) -> list[WriteStep]:
    steps = []
    for command in COMMANDS:
        path = f"{wanted.project}/.claude/commands/handrail-{command.name}.md"
        own = file_entries.whole(as_markdown(command), is_ours=_written_before(wanted.ours.get(path)))
        steps.append(WriteStep(path, f"Claude Code: /handrail-{command.name}", own))
    return steps


def _written_before(known: str | None) -> Callable[[str], bool]:
    return lambda text: fingerprint(text) == known

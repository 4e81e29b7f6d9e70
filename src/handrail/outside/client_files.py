"""Clients' files on this machine: which clients are present, what their files say, and writing them so that nothing
is ever half written. A project's file that leads out of the project is not followed: it may have come with the
repository."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from handrail.domain.setup import folder_trust, jsonc, toml_edit
from handrail.domain.setup.blocks import state_of
from handrail.domain.setup.clients import AGENTS, CLIENTS, Client, ClientMachine, context_names, located
from handrail.domain.setup.edits import NotUnderstood
from handrail.domain.setup.file_plan import FileEdit, SetupManifest, as_text
from handrail.domain.setup.hook_files import HOOK_FILES
from handrail.domain.setup.steps import CONFIG, IGNORE, MANIFEST, SYSTEM_PROMPT
from handrail.kernel.errors import PlaceUnusable
from handrail.kernel.limits import CLIENT_FILE_BYTES, PROJECT_FILE_BYTES
from handrail.outside.atomic_files import write_whole
from handrail.outside.machine_key import known_key, machine_key
from handrail.outside.record_files import record_in
from handrail.regular_files import FileRefused, read_regular, reason_of

_EVERYWHERE = {
    *(AGENTS, SYSTEM_PROMPT, CONFIG, IGNORE),
    *(hooks.file for hooks in HOOK_FILES),
    *(name for client in CLIENTS for name in client.instructions),
    *(client.allowance.file for client in CLIENTS if client.allowance),
}
"""The files in a project that init writes whatever is said there."""
_COMMAND = re.compile(r"\.claude/commands/handrail-[a-z-]+\.md", re.ASCII)


def this_machine(home: Path, environ: Mapping[str, str]) -> ClientMachine:
    return ClientMachine(home=str(home), platform=sys.platform, environ=environ)


class ClientFiles:
    """The files of a project and its user that clients read."""

    def __init__(self, project: Path, machine: ClientMachine) -> None:
        self.project = project
        self.machine = machine

    # -- which ------------------------------------------------------------------------------------------------------

    def present(self) -> list[Client]:
        """The clients that have left traces here: a file, a folder, or a program on the PATH."""
        return [client for client in CLIENTS if self.is_present(client)]

    def is_present(self, client: Client) -> bool:
        if any(os.path.lexists(located(sign, str(self.project), self.machine)) for sign in client.signs):
            return True
        path = self.machine.environ.get("PATH", "")
        return any(shutil.which(program, path=path) for program in client.programs)

    def file_of(self, client: Client) -> str:
        """The file that has this client's servers, or would have them."""
        files = [located(name, str(self.project), self.machine) for name in client.files]
        return next((file for file in files if os.path.lexists(file)), files[0])

    def has_plugin(self, client: Client) -> bool:
        """Whether the client has our plugin or extension, which brings server, hooks and commands by itself."""
        if not client.plugin_file:
            return False
        text = self._text(client.plugin_file)
        told = {"claude-code": folder_trust.claude_plugin, "codex": folder_trust.codex_plugin}.get(client.name)
        return told(text) if told else bool(text)

    def trusts_folder(self, client: Client) -> bool | None:
        """Whether a client trusts this project's folder; None if it does not need to, or nobody can tell."""
        if not client.trust_file:
            return None
        if client.name == "gemini" and folder_trust.has_folder_trust_off(self._text("~/.gemini/settings.json")):
            return True
        folders = (str(self.project), os.path.realpath(self.project))
        trusts = folder_trust.codex_trusts if client.form == "toml" else folder_trust.gemini_trusts
        return trusts(self._text(client.trust_file), folders)

    def parsed_as(self, form: str, file: str) -> Any:
        """A client's file; empty if it is missing or cannot be understood."""
        try:
            return (toml_edit.plain if form == "toml" else jsonc.plain)(self.read(file) or "")
        except NotUnderstood:
            return {}

    def _text(self, name: str) -> str:
        with contextlib.suppress(NotUnderstood):
            return self.read(located(name, str(self.project), self.machine)) or ""
        return ""

    # -- instructions -----------------------------------------------------------------------------------------------

    def instruction_file(self, client: Client) -> Path | None:
        """The file in which a client reads this project's instructions, or would; None if it needs none."""
        if client.plugin_tells and self.has_plugin(client):
            return None
        settings = [located(name, str(self.project), self.machine) for name in client.context_names]
        named = next(filter(None, (context_names(self.parsed_as("json", file)) for file in settings)), ())
        names, makes = named or client.instructions, named[0] if named else client.makes
        there = next((self.project / name for name in names if (self.project / name).is_file()), None)
        if there is None:
            return self.project / makes if makes else None
        return self._included(there) if client.follows else there

    def instruction_files(self, clients: Sequence[Client]) -> list[str]:
        """The files that get the block: for each client the one it reads, which need not exist yet; AGENTS.md and a
        system prompt that exist, whoever reads them; and those that have a block already. No file under two names."""
        known = {AGENTS, SYSTEM_PROMPT, *(name for client in CLIENTS for name in client.instructions)}
        read = [file for client in clients if (file := self.instruction_file(client)) is not None]
        there = [self.project / name for name in (AGENTS, SYSTEM_PROMPT) if (self.project / name).is_file()]
        marked = [self.project / name for name in sorted(known) if self._has_block(self.project / name)]
        distinct: dict[str, Path] = {}
        for path in sorted([*read, *there, *marked], key=lambda path: path.name != AGENTS):
            distinct.setdefault(os.path.realpath(path), path)
        return [str(path) for path in distinct.values()]

    def _has_block(self, path: Path) -> bool:
        with contextlib.suppress(NotUnderstood):
            return state_of(self.read(str(path)) or "") != "missing"
        return False

    def _included(self, path: Path) -> Path:
        """The instruction file that a file brings in by an @ line, as CLAUDE.md may; or the file itself."""
        with contextlib.suppress(NotUnderstood):
            lines = {line.strip() for line in (self.read(str(path)) or "").splitlines()}
            others = {name for client in CLIENTS for name in client.instructions if (self.project / name).is_file()}
            for name in sorted(others, key=lambda name: name != AGENTS):
                if {f"@{name}", f"@./{name}"} & lines and self.project / name != path:
                    return self.project / name
        return path

    def may_be_ours(self, file: str, *, is_sealed: bool) -> bool:
        """Whether init writes such a file. What a manifest says that this machine has not sealed may have come with the
        repository: it counts for files that init writes in every project, and for no file elsewhere."""
        clients = {located(name, str(self.project), self.machine) for client in CLIENTS for name in client.files}
        if not Path(file).is_relative_to(self.project):
            return is_sealed and file in clients
        name = self._short(file)
        return name in _EVERYWHERE or file in clients or _COMMAND.fullmatch(name) is not None or is_sealed

    # -- reading ----------------------------------------------------------------------------------------------------

    def read(self, file: str) -> str | None:
        """A file's text with its line ends unchanged; None if there is no file. Raises NotUnderstood."""
        is_theirs = Path(file).is_relative_to(self.project)
        if is_theirs and self._is_gits(file):
            raise NotUnderstood("it is git's own")
        most = PROJECT_FILE_BYTES if is_theirs else CLIENT_FILE_BYTES
        try:
            return read_regular(file, most, within=self.project if is_theirs else None).decode()
        except FileNotFoundError:
            return None
        except UnicodeDecodeError:
            raise NotUnderstood("it is not UTF-8 text") from None
        except FileRefused as problem:
            raise NotUnderstood(reason_of(problem)) from None
        except OSError as problem:
            raise NotUnderstood(f"it cannot be read: {problem.strerror}") from None

    def _is_gits(self, file: str) -> bool:
        """Whether a file of the project is, or leads, below a folder of git's."""
        real, top = Path(os.path.realpath(file)), Path(os.path.realpath(self.project))
        return real.is_relative_to(top) and ".git" in (part.lower() for part in real.relative_to(top).parts)

    def is_sealed(self, manifest: SetupManifest) -> bool:
        """Whether this machine wrote a manifest, all of it."""
        key = known_key(Path(self.machine.home)) if manifest.seal else None
        return key is not None and manifest.seal == key.seal(self._shortened(manifest).sealed_text())

    def own_part(self, manifest: SetupManifest) -> SetupManifest:
        """What of a manifest can be init's own."""
        sealed = self.is_sealed(manifest)
        return SetupManifest(tuple(one for one in manifest.files if self.may_be_ours(one.file, is_sealed=sealed)))

    def manifest(self) -> SetupManifest:
        """What init has written here before. Raises PlaceUnusable if that cannot be determined."""
        file = self.project / MANIFEST
        try:
            text = self.read(str(file))
            if text is None:
                return SetupManifest()
            kept = record_in(text.encode(), SetupManifest)
            if kept is None:
                raise NotUnderstood("it is not valid JSON, or not what init writes")  # noqa: TRY301 - told like the rest
        except NotUnderstood as problem:
            raise PlaceUnusable(
                f"{file} cannot be read: {problem}", hint="it says what init wrote; fix it, or move it away"
            ) from None
        files = tuple(msgspec.structs.replace(one, file=self._full(one.file)) for one in kept.files)
        return msgspec.structs.replace(kept, files=files)

    def _full(self, file: str) -> str:
        return file if Path(file).is_absolute() else f"{self.project}/{file}"

    def _short(self, file: str) -> str:
        return file.removeprefix(f"{self.project}/")

    # -- writing ----------------------------------------------------------------------------------------------------

    def missing_folders(self, file: str) -> list[str]:
        """Folders that must be created for a file, the outermost first."""
        missing: list[str] = []
        folder = Path(os.path.realpath(file)).parent
        while not folder.exists():
            missing.insert(0, str(folder))
            folder = folder.parent
        return missing

    def keep(self, manifest: SetupManifest) -> None:
        """Seals and writes the manifest, or deletes it if it names nothing any more."""
        short = self._shortened(manifest)
        if short.files:
            short = msgspec.structs.replace(short, seal=machine_key(Path(self.machine.home)).seal(short.sealed_text()))
        self.write(str(self.project / MANIFEST), as_text(short) if short.files else None)

    def _shortened(self, manifest: SetupManifest) -> SetupManifest:
        """The manifest as it is kept: the project's files by their names in it."""
        short = (msgspec.structs.replace(one, file=self._short(one.file)) for one in manifest.files)
        return msgspec.structs.replace(manifest, files=tuple(short))

    def apply(self, change: FileEdit) -> None:
        """Writes or deletes one file, if it still is what the change was made for."""
        try:
            now = self.read(change.file)
        except NotUnderstood as problem:
            raise PlaceUnusable(f"{change.file}: {problem}", hint="run it again") from None
        if now != change.before:
            raise PlaceUnusable(f"{change.file} was changed meanwhile", hint="run it again; it was left as it is")
        self.write(change.file, change.after)

    def write(self, file: str, text: str | None) -> None:
        real = Path(os.path.realpath(file))
        try:
            if text is None:
                real.unlink(missing_ok=True)
                return
            real.parent.mkdir(parents=True, exist_ok=True)
            write_whole(real, text.encode())
        except OSError as problem:
            raise PlaceUnusable(
                f"{file} cannot be written: {problem.strerror}", hint="make it writable, then run it again"
            ) from None

    def drop_folders(self, folders: list[str]) -> None:
        """Removes folders that init made, if they are empty."""
        for folder in sorted(set(folders), key=len, reverse=True):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()

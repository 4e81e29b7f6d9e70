"""The hooks that `init` gives each client, as data: which file, which events, which command. Another client is another
record here. What the command does says `handrail.hooks`; its forms of answer are known there by the same names.

Three clients read files of the same form. Copilot CLI and OpenCode get a file of their own.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from handrail.domain.setup import file_entries, jsonc
from handrail.domain.setup.edits import Edit, fingerprint
from handrail.domain.setup.file_entries import FileEntry, Put, WriteStep

MODULE = "handrail.hooks"
_OLD_WORDS = ("-m handrail hook pre-tool-use", f"-m {MODULE} start", f"-m {MODULE} edited", f"-m {MODULE} stop")
"""How commands of ours ended that earlier versions wrote."""


class HookEvent(NamedTuple):
    """One hook: the client's event, which of those are meant, and our word for it."""

    event: str
    matcher: str
    word: str
    timeout_s: int = 5


class HookFile(NamedTuple):
    """The hooks of one client."""

    client: str
    title: str
    file: str
    form: Literal["grouped", "copilot", "cursor", "plugin"]
    events: tuple[HookEvent, ...] = ()
    milliseconds: bool = False
    """Whether a timeout is in milliseconds, not seconds."""
    note: str = ""
    """What a person still has to do."""


HOOK_FILES: tuple[HookFile, ...] = (
    HookFile(
        client="claude-code",
        title="Claude Code",
        file=".claude/settings.json",
        form="grouped",
        events=(
            HookEvent("SessionStart", "startup|resume|clear|compact", "start", 10),
            HookEvent("PreToolUse", "Edit|Write|MultiEdit|NotebookEdit", "before"),
            HookEvent("PostToolUse", "Edit|Write|MultiEdit|NotebookEdit", "edited"),
            HookEvent("Stop", "", "stop"),
        ),
    ),
    HookFile(
        client="codex",
        title="Codex",
        file=".codex/hooks.json",
        form="grouped",
        events=(
            HookEvent("SessionStart", "startup|resume|clear|compact", "start", 10),
            HookEvent("PreToolUse", "apply_patch|Edit|Write|Bash", "before"),
            HookEvent("PostToolUse", "apply_patch|Edit|Write|Bash", "edited"),
            HookEvent("Stop", "", "stop"),
        ),
        note="it runs the project's hooks once you have looked at them: /hooks in codex shows them and asks",
    ),
    HookFile(
        client="gemini",
        title="Gemini CLI",
        file=".gemini/settings.json",
        form="grouped",
        milliseconds=True,
        events=(
            HookEvent("SessionStart", "", "start", 10),
            HookEvent("BeforeTool", "write_file|replace", "before"),
            HookEvent("AfterTool", "write_file|replace", "edited"),
            HookEvent("PreCompress", "", "precompact"),
            HookEvent("BeforeAgent", "", "prompt"),
            HookEvent("AfterAgent", "", "stop"),
        ),
        note="it warns once that the project brings hooks, and runs them in a trusted folder",
    ),
    HookFile(
        client="copilot",
        title="Copilot CLI",
        file=".github/hooks/handrail.json",
        form="copilot",
        events=(
            HookEvent("SessionStart", "", "start", 10),
            HookEvent("PreToolUse", "", "before"),
            HookEvent("PostToolUse", "", "edited"),
            HookEvent("PreCompact", "", "precompact"),
            HookEvent("UserPromptSubmit", "", "prompt"),
        ),
        note="it runs the project's hooks in a trusted folder",
    ),
    HookFile(
        client="cursor",
        title="Cursor",
        file=".cursor/hooks.json",
        form="cursor",
        events=(
            HookEvent("sessionStart", "", "start", 10),
            HookEvent("preToolUse", "Write|StrReplace|Edit|Delete|ApplyPatch|EditNotebook|TabWrite", "before"),
            HookEvent("postToolUse", "", "edited"),
            HookEvent("preCompact", "", "precompact"),
        ),
        note="it runs the project's hooks in a trusted workspace; Settings, Hooks shows them",
    ),
    HookFile(client="opencode", title="OpenCode", file=".opencode/plugins/handrail.js", form="plugin"),
)


def hook_steps(
    clients: Sequence[str], project: str, interpreter: Sequence[str], ours: Callable[[str], str | None]
) -> list[WriteStep]:
    """What is written for the hooks of these clients. `interpreter` is the words that start this Python; `ours` gives
    the fingerprint of a file that init wrote before."""
    steps: list[WriteStep] = []
    for hooks in HOOK_FILES:
        if hooks.client not in clients:
            continue
        file = f"{project}/{hooks.file}"
        if hooks.form in ("copilot", "plugin"):
            text = plugin(interpreter) if hooks.form == "plugin" else copilot_file(hooks, interpreter)
            own = file_entries.whole(text, is_ours=_written_before(ours(file)))
            steps.append(WriteStep(file, f"{hooks.title}: the hooks", own))
            continue
        if hooks.form == "cursor":
            steps.append(WriteStep(file, f"{hooks.title}: the hooks", _version))
        steps += [
            WriteStep(file, f"{hooks.title}: the hook {event.event}", _put(hooks, event, interpreter))
            for event in hooks.events
        ]
    return steps


def hook_notes(clients: Sequence[str]) -> dict[str, str]:
    """What a person still has to do for the hooks of these clients, by their titles."""
    return {hooks.title: hooks.note for hooks in HOOK_FILES if hooks.note and hooks.client in clients}


def command_of(hooks: HookFile, event: HookEvent, interpreter: Sequence[str]) -> str:
    return shlex.join([*interpreter, "-m", MODULE, event.word, "--client", hooks.client])


def copilot_file(hooks: HookFile, interpreter: Sequence[str]) -> str:
    """A file of hooks that is entirely ours. Its events have Claude Code's names, which brings Claude Code's fields."""
    listed = {
        event.event: [
            {"type": "command", "bash": command_of(hooks, event, interpreter), "timeoutSec": event.timeout_s},
        ]
        for event in hooks.events
    }
    return json.dumps({"version": 1, "hooks": listed}, indent=2) + "\n"


def entry_of(hooks: HookFile, event: HookEvent, interpreter: Sequence[str]) -> dict[str, Any]:
    """A hook as an entry in the list of its event."""
    matcher = {"matcher": event.matcher} if event.matcher else {}
    command = command_of(hooks, event, interpreter)
    timeout = event.timeout_s * (1000 if hooks.milliseconds else 1)
    if hooks.form == "cursor":
        return {"command": command, **matcher, "timeout": timeout}
    return {**matcher, "hooks": [{"type": "command", "command": command, "timeout": timeout}]}


def commands_in(settings: Any) -> list[tuple[str, str]]:
    """Every hook's event and command, in any of the forms."""
    hooks = settings.get("hooks") if isinstance(settings, dict) else None
    found: list[tuple[str, str]] = []
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in groups if isinstance(groups, list) else ():
            runs = group.get("hooks", [group]) if isinstance(group, dict) else ()
            for run in runs if isinstance(runs, list) else ():
                command = (run.get("command") or run.get("bash")) if isinstance(run, dict) else None
                found += [(event, command)] if isinstance(command, str) else []
    return found


def is_ours(command: str) -> bool:
    """Whether a hook's command runs Handrail."""
    return "-m handrail" in command or "handrail hook" in command


def _put(hooks: HookFile, event: HookEvent, interpreter: Sequence[str]) -> Put:
    command = command_of(hooks, event, interpreter)
    path = ("hooks", event.event)
    ending = f"-m {MODULE} {event.word} --client {hooks.client}"

    def is_old(item: Any) -> bool:
        """Whether it is a hook of ours that starts another installation, or an earlier version's."""
        commands = [found for _, found in commands_in({"hooks": {event.event: [item]}})]
        return bool(commands) and all(found.endswith((ending, *_OLD_WORDS)) for found in commands)

    def put(text: str) -> tuple[list[Edit], list[FileEntry]]:
        if (event.event, command) in commands_in(jsonc.plain(text)):
            return [], []
        return file_entries.item(path, entry_of(hooks, event, interpreter), is_old)(text)

    return put


def _version(text: str) -> tuple[list[Edit], list[FileEntry]]:
    """The version that Cursor's file of hooks has, unless it says one."""
    whole = jsonc.plain(text)
    return ([], []) if isinstance(whole, dict) and "version" in whole else file_entries.member(("version",), 1)(text)


def _written_before(known: str | None) -> Callable[[str], bool]:
    return lambda text: fingerprint(text) == known


def plugin(interpreter: Sequence[str]) -> str:
    """OpenCode's plugin: it runs the hook program, and puts what that says where the model reads it."""
    return _PLUGIN.replace("COMMAND_WORDS", json.dumps([*interpreter, "-m", MODULE]))


_PLUGIN = """\
// Handrail's hooks for OpenCode, written by `handrail init`; `handrail init --remove` takes the file away.
import { spawn } from "node:child_process"

const COMMAND = COMMAND_WORDS
const EDITING = new Set(["edit", "write", "multiedit", "patch", "apply_patch"])
const LIMIT_MS = 5000

// What the hook program says about an event. Whatever goes wrong, it says nothing.
function ask(word, given) {
  return new Promise((resolve) => {
    const said = []
    const options = { stdio: ["pipe", "pipe", "ignore"] }
    const child = spawn(COMMAND[0], [...COMMAND.slice(1), word, "--client", "opencode"], options)
    const timer = setTimeout(() => child.kill(), LIMIT_MS)
    const end = (text) => {
      clearTimeout(timer)
      resolve(text)
    }
    child.on("error", () => end(""))
    child.on("close", () => end(Buffer.concat(said).toString("utf8")))
    child.stdout.on("data", (chunk) => said.push(chunk))
    child.stdin.on("error", () => {})
    child.stdin.end(JSON.stringify(given))
  }).catch(() => "")
}

function decoded(text) {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

export const Handrail = async ({ directory }) => {
  const told = new Set() // the sessions that know their task
  const compacted = new Set() // those that lost it
  const warnings = new Map()
  const event = (name, session, more) => ({ hook_event_name: name, session_id: session, cwd: directory, ...more })
  return {
    event: async ({ event: news }) => {
      if (news.type === "session.compacted") compacted.add(news.properties.sessionID)
    },
    "chat.message": async ({ sessionID }, output) => {
      if (told.has(sessionID) && !compacted.has(sessionID)) return
      told.add(sessionID)
      compacted.delete(sessionID)
      const text = await ask("start", event("SessionStart", sessionID))
      const first = output.parts.find((part) => part.type === "text")
      if (text && first) output.parts.push({ ...first, id: first.id + "h", text, synthetic: true })
    },
    // The request right after a compaction has no message of its own to carry the text.
    "experimental.chat.system.transform": async ({ sessionID }, output) => {
      if (!compacted.has(sessionID)) return
      const text = await ask("start", event("SessionStart", sessionID))
      if (text) output.system.push(text)
    },
    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      if (!EDITING.has(tool)) return
      const given = event("PreToolUse", sessionID, { tool_name: tool, tool_input: args })
      const { deny, warning } = decoded(await ask("before", given))
      if (deny) throw new Error(deny)
      if (warning) warnings.set(callID, warning)
    },
    "tool.execute.after": async ({ tool, sessionID, callID, args }, output) => {
      const texts = [warnings.get(callID)]
      warnings.delete(callID)
      if (EDITING.has(tool)) {
        await ask("edited", event("PostToolUse", sessionID, { tool_name: tool, tool_input: args }))
      }
      if (compacted.delete(sessionID)) texts.push(await ask("start", event("SessionStart", sessionID)))
      const text = texts.filter(Boolean).join("\\n")
      if (text) output.output = `${output.output ?? ""}\\n\\n${text}`
    },
  }
}
"""

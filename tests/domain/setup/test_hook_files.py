"""The hooks that init gives each client: known to the hook program, put into files as people have them, taken out
again, and the plugin is a program."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from handrail.domain.setup.file_plan import SetupManifest, plan, recorded, removal
from handrail.domain.setup.hook_files import HOOK_FILES, commands_in, hook_notes, hook_steps, is_ours, plugin
from handrail.hooks.__main__ import EVENTS
from handrail.hooks.callers import CALLERS, OWN_FILES
from handrail.hooks.event_input import EDITING

PYTHON = ("/opt/py thon/bin/python", "-P")
NAMES = [hooks.client for hooks in HOOK_FILES]


def written(texts: dict[str, str], python: tuple[str, ...] = PYTHON) -> tuple[dict[str, str], SetupManifest]:
    todo = plan(hook_steps(NAMES, "/p", python, lambda _: None), texts.get)
    assert todo.left == ()
    known, after = SetupManifest(), dict(texts)
    for change in todo.changes:
        assert change.after is not None
        after[change.file] = change.after
        known = recorded(known, change, ())
    return after, known


def test_every_client_with_hooks_is_known_to_the_program() -> None:
    assert sorted(NAMES) == sorted(CALLERS)
    assert {hooks.client: hooks.file for hooks in HOOK_FILES if hooks.client in OWN_FILES} == OWN_FILES
    for hooks in HOOK_FILES:
        assert {event.word for event in hooks.events} <= set(EVENTS)
        for event in hooks.events:
            if event.matcher and event.word in ("before", "edited"):
                assert {name.lower() for name in event.matcher.split("|")} <= {*EDITING, "bash"}


def test_every_client_gets_its_task_at_the_start_and_is_told_before_an_edit() -> None:
    for hooks in HOOK_FILES:
        if hooks.form != "plugin":
            assert {"start", "before", "edited"} <= {event.word for event in hooks.events}, hooks.client


def test_what_is_written_runs_this_python_and_names_the_client() -> None:
    files, _ = written({})
    for hooks in HOOK_FILES:
        text = files[f"/p/{hooks.file}"]
        if hooks.form == "plugin":
            assert json.dumps([*PYTHON, "-m", "handrail.hooks"]) in text
            continue
        found = commands_in(json.loads(text))
        assert len(found) == len(hooks.events)
        for _, command in found:
            assert command.startswith("'/opt/py thon/bin/python' -P -m handrail.hooks ")
            assert command.endswith(f" --client {hooks.client}")
            assert is_ours(command)


def test_again_changes_nothing_another_python_replaces_and_all_of_it_comes_out() -> None:
    theirs = '{\n  "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say"}]}]}\n}\n'
    before = {"/p/.claude/settings.json": theirs, "/p/.cursor/hooks.json": '{"version": 1, "hooks": {}}'}
    first, known = written(before)
    second, nothing = written(first)
    assert second == first
    assert nothing.files == ()
    moved = plan(hook_steps(NAMES, "/p", ("/new", "-P"), {one.file: one.after for one in known.files}.get), first.get)
    for change in moved.changes:
        assert "/opt/py thon" not in (change.after or "")
    for change in removal(known, first.get, {}).changes:
        assert change.after == before.get(change.file)


def test_hooks_of_an_earlier_version_are_replaced() -> None:
    old = [{"matcher": "Edit", "hooks": [{"type": "command", "command": "/o/python -P -m handrail hook pre-tool-use"}]}]
    files, _ = written({"/p/.claude/settings.json": json.dumps({"hooks": {"PreToolUse": old}})})
    (group,) = json.loads(files["/p/.claude/settings.json"])["hooks"]["PreToolUse"]
    assert group["hooks"][0]["command"].endswith("-m handrail.hooks before --client claude-code")


def test_a_person_is_told_whose_hooks_wait_for_trust() -> None:
    assert "Codex" in hook_notes(["codex", "claude-code"])
    assert "Claude Code" not in hook_notes(["claude-code"])


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")
def test_the_plugin_is_a_program_that_tells_warns_and_refuses(tmp_path: Path) -> None:
    """Run by node as OpenCode runs it, with a stand-in for the hook program."""
    fake = tmp_path / "fake.mjs"
    fake.write_text(
        "let given = ''; process.stdin.on('data', (one) => (given += one)).on('end', () => {\n"
        "  const word = process.argv[4], { tool_input } = JSON.parse(given)\n"
        "  if (word === 'start') process.stdout.write('TOLD')\n"
        "  if (word === 'before') process.stdout.write(JSON.stringify(tool_input.filePath === 'no'"
        " ? { deny: 'REFUSED' } : { warning: 'WARNED' }))\n})\n",
        encoding="utf-8",
    )
    made = tmp_path / "handrail.mjs"
    made.write_text(plugin([str(shutil.which("node")), str(fake)]), encoding="utf-8")
    play = tmp_path / "play.mjs"
    play.write_text(
        f"""import {{ Handrail }} from {json.dumps(str(made))}
const hooks = await Handrail({{ directory: "/x" }})
const parts = () => [{{ id: "prt_1", type: "text", text: "hello" }}]
const say = async () => {{
  const output = {{ parts: parts() }}
  await hooks["chat.message"]({{ sessionID: "s" }}, output)
  return output.parts.map((part) => part.text)
}}
const use = async (filePath) => {{
  const call = {{ tool: "write", sessionID: "s", callID: filePath }}
  await hooks["tool.execute.before"](call, {{ args: {{ filePath }} }})
  const output = {{ output: "done" }}
  await hooks["tool.execute.after"]({{ ...call, args: {{ filePath }} }}, output)
  return output.output
}}
const found = {{ first: await say(), second: await say(), warned: await use("yes") }}
found.refused = await use("no").catch((problem) => problem.message)
await hooks.event({{ event: {{ type: "session.compacted", properties: {{ sessionID: "s" }} }} }})
found.compacted = await use("yes")
found.later = await say()
console.log(JSON.stringify(found))
""",
        encoding="utf-8",
    )
    done = subprocess.run(["node", str(play)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "first": ["hello", "TOLD"],
        "second": ["hello"],
        "warned": "done\n\nWARNED",
        "refused": "REFUSED",
        "compacted": "done\n\nWARNED\nTOLD",
        "later": ["hello"],
    }

"""`handrail init` on files as people have them: what is there stays, what is added can be taken back to the byte, and
nothing is touched that is not understood."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import click.testing
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail import __version__
from handrail.domain.setup import jsonc
from handrail.domain.setup.clients import CLIENTS, ClientMachine
from handrail.domain.setup.steps import IGNORED
from handrail.outside.client_files import ClientFiles
from handrail.store.open_engine import open_engine
from handrail.surfaces.cli.main import cli
from tests.domain.setup.texts import json_texts, toml_texts
from tests.setup.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_who_has_no_client_learns_it_before_the_question(desk: Desk) -> None:
    said = desk.init("--approvals", "human", answer="n\n").output
    assert said.index("No client was found here") < said.index("Write this?")


JSON_FILES = (
    ".mcp.json",
    ".claude/settings.json",
    ".cursor/mcp.json",
    ".vscode/mcp.json",
    "opencode.jsonc",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".zed/settings.json",
    "~/.codeium/windsurf/mcp_config.json",
    "~/.config/Claude/claude_desktop_config.json",
)
MARKDOWN = st.sampled_from(["# Rules\r\nbe kind\r\n", "no newline", "\t\n", "# A\n\n- b\n", ""])


@settings(max_examples=20)
@given(
    st.dictionaries(st.sampled_from(JSON_FILES), st.one_of(json_texts(), st.sampled_from(["", "{", "\n"])), max_size=4),
    st.dictionaries(st.sampled_from([".codex/config.toml", ".handrail/config.toml"]), toml_texts()),
    st.dictionaries(st.sampled_from(["AGENTS.md", "CLAUDE.md", "GEMINI.md", ".claude/prompts/system.md"]), MARKDOWN),
)
def test_whatever_was_there_comes_back_to_the_byte(
    jsons: dict[str, str], tomls: dict[str, str], markdowns: dict[str, str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        desk = Desk(Path(folder))
        for name, text in {**jsons, **tomls, **markdowns}.items():
            desk.write(name, text)
        before = desk.everything()
        desk.well("--all", "--yes", "--allow-tools")
        written = desk.everything()
        assert written != before
        assert "nothing to do" in desk.well("--all", "--yes", "--allow-tools")
        assert desk.everything() == written
        desk.well("--remove", "--yes")
        assert desk.everything() == before


def test_hooks_of_others_are_kept_and_ours_added(desk: Desk) -> None:
    theirs = {"matcher": "Bash", "hooks": [{"type": "command", "command": "lint"}]}
    file = desk.write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": [theirs]}, "model": "m"}, indent=4))
    desk.well("--client", "claude-code", "--yes")
    now = json.loads(file.read_text(encoding="utf-8"))
    assert now["hooks"]["PreToolUse"][0] == theirs
    assert now["model"] == "m"
    ours = {
        event: [run["command"] for group in now["hooks"][event] for run in group["hooks"]] for event in now["hooks"]
    }
    words = {"SessionStart": "start", "PreToolUse": "before", "PostToolUse": "edited", "Stop": "stop"}
    for event, word in words.items():
        assert ours[event][-1].endswith(f"-m handrail.hooks {word} --client claude-code")


def test_hooks_of_another_installation_are_renewed_not_doubled(desk: Desk) -> None:
    old = {"hooks": [{"type": "command", "command": "/old/python -P -m handrail.hooks stop", "timeout": 5}]}
    theirs = {"hooks": [{"type": "command", "command": "say done"}]}
    text = json.dumps({"hooks": {"Stop": [old, theirs]}}, indent=2)
    file = desk.write(".claude/settings.json", text)
    desk.well("--client", "claude-code", "--yes")
    stop = json.loads(file.read_text(encoding="utf-8"))["hooks"]["Stop"]
    assert stop[0] == theirs
    assert len(stop) == 2
    desk.well("--remove", "--yes")
    assert file.read_text(encoding="utf-8") == text


def test_print_shows_and_writes_nothing(desk: Desk) -> None:
    before = desk.everything()
    shown = desk.well("--all", "--print")
    assert "+++ .mcp.json" in shown
    assert "mcp_servers.handrail" in shown
    assert desk.everything() == before


def test_it_asks_first_and_a_no_writes_nothing(desk: Desk) -> None:
    before = desk.everything()
    done = desk.init("--client", "cursor", answer="y\nn\n")
    assert done.exit_code == 1
    assert "Write this?" in done.output
    assert desk.everything() == before


def test_who_answers_gates_is_asked_once(desk: Desk) -> None:
    config = desk.write(".handrail/config.toml", "# ours\n[checks]\n")
    assert desk.init("--client", "cursor", answer="n\ny\n").exit_code == 0
    assert config.read_text(encoding="utf-8") == 'approvals = "agent"\n# ours\n[checks]\n'
    again = desk.init("--client", "gemini", answer="n\ny\n")
    assert "Gates" not in again.output
    assert again.exit_code == 0
    desk.well("--yes", "--approvals", "human")
    assert config.read_text(encoding="utf-8") == 'approvals = "human"\n# ours\n[checks]\n'
    weaker = desk.init("--yes", "--approvals", "agent")
    assert weaker.exit_code == 2
    assert "only a person" in weaker.output
    desk.well("--remove", "--yes")
    assert config.read_text(encoding="utf-8") == "# ours\n[checks]\n"


def test_with_yes_gates_are_for_people(desk: Desk) -> None:
    desk.well("--yes")
    assert (desk.project / ".handrail/config.toml").read_text(encoding="utf-8") == 'approvals = "human"\n'


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        (".mcp.json", "{ not json", "not valid JSON at line 1"),
        (".mcp.json", '{"mcpServers": {"handrail": {"type": "http", "url": "u"}}}', "not started by a command"),
        (".codex/config.toml", "x = ", "not valid TOML"),
        (".codex/config.toml", 'mcp_servers = {a = {command = "b"}}', "cannot be added to"),
        (".claude/commands/handrail-plan.md", "mine", "not made by init"),
        (".claude/settings.json", '{"hooks": {"Stop": {}}}', "no list"),
    ],
)
def test_what_is_not_understood_is_left_alone_and_named(desk: Desk, name: str, text: str, why: str) -> None:
    file = desk.write(name, text)
    shown = desk.well("--all", "--yes")
    assert f"left alone {name}" in shown
    assert why in shown
    assert file.read_text(encoding="utf-8") == text


def test_bytes_that_are_no_text_are_left_alone(desk: Desk) -> None:
    (desk.project / ".mcp.json").write_bytes(b"\xff\xfe{")
    assert "not UTF-8" in desk.well("--client", "claude-code", "--yes")
    assert (desk.project / ".mcp.json").read_bytes() == b"\xff\xfe{"


def test_a_link_that_came_with_the_repository_leads_nowhere(desk: Desk) -> None:
    secret = desk.write("~/.profile", "mine\n")
    (desk.project / "AGENTS.md").symlink_to(secret)
    (desk.project / ".cursor").symlink_to(desk.home)
    shown = desk.well("--client", "cursor", "--yes")
    assert shown.count("it leads out of the project") == 3, "servers, hooks and instructions"
    assert secret.read_text(encoding="utf-8") == "mine\n"
    assert not (desk.home / "mcp.json").exists()


def test_a_manifest_that_is_a_link_out_of_the_project_is_neither_read_nor_written(desk: Desk) -> None:
    target = desk.home / "kept"
    (desk.project / ".handrail").mkdir()
    (desk.project / ".handrail" / "init.json").symlink_to(target)
    refused = desk.init("--client", "cursor", "--yes")
    assert refused.exit_code == 1
    assert "it leads out of the project" in " ".join(refused.output.split())
    assert not target.exists()
    assert not (desk.project / ".cursor").exists()


def test_a_manifest_from_a_repository_drops_no_folder_that_its_files_did_not_lie_in(desk: Desk) -> None:
    desk.well("--client", "cursor", "--yes")
    elsewhere = desk.home / "empty"
    elsewhere.mkdir()
    manifest = desk.project / ".handrail" / "init.json"
    known = json.loads(manifest.read_text(encoding="utf-8"))
    known["files"][0]["folders"] = [*known["files"][0].get("folders", []), str(elsewhere)]
    manifest.write_text(json.dumps(known), encoding="utf-8")
    desk.well("--remove", "--yes")
    assert not (desk.project / ".cursor").exists(), "what init made is gone"
    assert elsewhere.is_dir()


def test_a_users_server_for_another_project_stays_unless_the_client_is_named(desk: Desk) -> None:
    text = '{"mcpServers": {"handrail": {"command": "python", "args": ["serve", "--root", "/other"]}}}'
    file = desk.write("~/.codeium/windsurf/mcp_config.json", text)
    assert "another project's" in desk.well("--all", "--yes")
    assert file.read_text(encoding="utf-8") == text
    desk.well("--client", "windsurf", "--yes")
    assert str(desk.project) in file.read_text(encoding="utf-8")
    desk.well("--remove", "--yes")
    assert file.read_text(encoding="utf-8") == text


def test_a_users_server_that_another_project_took_over_is_not_taken_out(tmp_path: Path, desk: Desk) -> None:
    other = Desk(tmp_path / "other")
    other.home = desk.home
    desk.well("--client", "windsurf", "--yes")
    other.well("--client", "windsurf", "--yes")
    file = desk.home / ".codeium/windsurf/mcp_config.json"
    theirs = file.read_text(encoding="utf-8")
    assert "changed since init" in desk.well("--remove", "--yes")
    assert file.read_text(encoding="utf-8") == theirs
    other.well("--remove", "--yes")
    assert str(desk.project) in file.read_text(encoding="utf-8")
    desk.well("--remove", "--yes")
    assert not file.exists()


def test_a_file_that_went_on_loses_only_what_is_ours(desk: Desk) -> None:
    file = desk.write(".mcp.json", '{\n  "mcpServers": {\n    "a": {"command": "a"} // mine\n  }\n}\n')
    agents = desk.write("AGENTS.md", "# Rules\n")
    desk.well("--client", "claude-code", "--yes")
    file.write_text(file.read_text().replace('"a": {"command"', '"b": {"command": "b"},\n    "a": {"command"'))
    agents.write_text(agents.read_text() + "\nMore.\n")
    settings_file = desk.project / ".claude/settings.json"
    settings_file.write_text(json.dumps({**json.loads(settings_file.read_text()), "model": "m"}, indent=4))
    desk.well("--remove", "--yes")
    assert jsonc.plain(file.read_text()) == {"mcpServers": {"b": {"command": "b"}, "a": {"command": "a"}}}
    assert "// mine" in file.read_text()
    assert agents.read_text() == "# Rules\n\nMore.\n"
    assert json.loads(settings_file.read_text()) == {"model": "m"}
    assert not (desk.project / ".claude/commands").exists()


def test_another_profile_is_written_and_everything_comes_back(desk: Desk) -> None:
    file = desk.write(".codex/config.toml", 'model = "m"')
    desk.well("--client", "codex", "--yes")
    desk.well("--client", "codex", "--yes", "--profile", "team")
    assert '"--profile", "team"' in file.read_text(encoding="utf-8")
    desk.well("--remove", "--yes")
    assert file.read_text(encoding="utf-8") == 'model = "m"'


def test_a_manifest_from_a_repository_reaches_no_file_that_init_never_writes(desk: Desk) -> None:
    desk.well("--client", "claude-code", "--yes")
    manifest = desk.project / ".handrail" / "init.json"
    known = json.loads(manifest.read_text(encoding="utf-8"))
    (entry,) = [one for one in known["files"] if one["file"] == ".mcp.json"]
    target = desk.home / "own" / "servers.json"
    target.parent.mkdir(parents=True)
    target.write_bytes((desk.project / ".mcp.json").read_bytes())
    known["files"].append({**entry, "file": str(target), "folders": [str(target.parent)]})
    manifest.write_text(json.dumps(known), encoding="utf-8")
    assert "not known on this machine" in " ".join(desk.well("--remove", "--yes").split())
    assert target.exists()
    assert not (desk.project / ".mcp.json").exists()
    assert not manifest.exists()


def shipped(desk: Desk, file: Path) -> None:
    """A manifest of the repository's that calls all of a file init's work, to be taken back."""
    entry = {"kind": "line", "value": file.read_text(encoding="utf-8").strip()}
    known = {"file": str(file), "made": True, "before": "", "after": "", "edits": [], "entries": [entry]}
    desk.write(".handrail/init.json", json.dumps({"files": [known]}))


@pytest.mark.parametrize("name", [".git/config", "src/main.py", "~/.codeium/windsurf/mcp_config.json"])
@pytest.mark.parametrize("first", [(), ("--client", "cursor", "--yes")], ids=["at once", "after init"])
def test_a_manifest_that_came_along_is_not_believed(desk: Desk, name: str, first: tuple[str, ...]) -> None:
    """Not even after init has added to it: what it said before is not sealed along with it."""
    file = desk.write(name, "{}\n")
    shipped(desk, file)
    if first:
        desk.well(*first)
    desk.well("--remove", "--yes")
    assert file.read_text(encoding="utf-8") == "{}\n"


def test_instructions_that_lead_into_git_s_folder_are_left_alone(desk: Desk) -> None:
    config = desk.write(".git/config", "[core]\n")
    (desk.project / "CLAUDE.md").symlink_to(config)
    assert "it is git's own" in desk.well("--client", "claude-code", "--yes")
    assert config.read_text(encoding="utf-8") == "[core]\n"


def test_the_database_stays_out_of_commits_after_a_removal(desk: Desk) -> None:
    desk.well("--yes")
    desk.write(".handrail/handrail.db", "")
    assert "database beside it" in desk.well("--remove", "--yes")
    assert (desk.project / ".handrail/.gitignore").read_text(encoding="utf-8") == IGNORED
    assert not (desk.project / ".handrail/init.json").exists()


def test_the_ignored_files_are_those_of_the_store_and_inits_own(tmp_path: Path) -> None:
    open_engine("", project=tmp_path, version=__version__, durable=False).close()
    of_store = (tmp_path / ".handrail/.gitignore").read_text(encoding="utf-8").splitlines()
    missing = [line for line in of_store if not line.startswith("#") and line not in IGNORED.splitlines()]
    assert missing == []


def test_a_file_of_the_newer_opencode_keeps_its_way(desk: Desk) -> None:
    file = desk.write("opencode.jsonc", '{"mcp": {"servers": {"a": {"type": "local", "command": ["a"]}}}}')
    desk.well("--client", "opencode", "--yes")
    servers = json.loads(file.read_text(encoding="utf-8"))["mcp"]["servers"]
    assert servers["handrail"]["type"] == "local"
    assert "enabled" not in servers["handrail"]


def test_instructions_go_where_agents_read_them_and_only_once(desk: Desk) -> None:
    agents = desk.write("AGENTS.md", "# Rules\n")
    (desk.project / "CLAUDE.md").write_text("@AGENTS.md\n", encoding="utf-8")
    system = desk.write(".claude/prompts/system.md", "Be kind.\n")
    desk.well("--yes")
    assert "handrail:begin" in agents.read_text(encoding="utf-8")
    assert "handrail:begin" in system.read_text(encoding="utf-8")
    assert (desk.project / "CLAUDE.md").read_text(encoding="utf-8") == "@AGENTS.md\n"


def test_one_instruction_file_under_two_names_gets_one_block(desk: Desk) -> None:
    agents = desk.write("AGENTS.md", "# Rules\n")
    (desk.project / "CLAUDE.md").symlink_to("AGENTS.md")
    desk.well("--yes")
    assert agents.read_text(encoding="utf-8").count("handrail:begin") == 1
    assert (desk.project / "CLAUDE.md").is_symlink()


def test_rights_of_a_file_stay(desk: Desk) -> None:
    file = desk.write("~/.codeium/windsurf/mcp_config.json", "{}")
    file.chmod(0o600)
    desk.well("--client", "windsurf", "--yes")
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--client", "cursr"], "did you mean cursor?"),
        (["--profile", "sol"], "did you mean solo?"),
        (["--global"], "would not agree"),
        (["--db", "x.db"], "would not agree"),
        (["--json"], "--json asks nothing"),
    ],
)
def test_what_cannot_be_meant_is_refused(desk: Desk, options: list[str], said: str) -> None:
    done = desk.init(*options)
    assert done.exit_code == 2
    assert said in done.output
    assert not (desk.project / ".handrail").exists()


def test_a_home_folder_is_no_project(desk: Desk) -> None:
    runner = click.testing.CliRunner(env={"HOME": str(desk.home)})
    done = runner.invoke(cli, ["init", "--yes", "--root", str(desk.home)])
    assert done.exit_code == 1
    assert "home folder" in done.output


def test_programs_are_told_in_json(desk: Desk) -> None:
    told: Any = json.loads(desk.well("--client", "cursor", "--yes", "--json"))
    assert told["wrote"] is True
    made = {change["file"]: change["action"] for change in told["changes"]}
    assert made[f"{desk.project}/.cursor/mcp.json"] == "make"


def test_no_copy_of_a_secret_is_kept(desk: Desk) -> None:
    desk.write(".mcp.json", '{"mcpServers": {"a": {"command": "a", "env": {"KEY": "hush-hush"}}}}')
    desk.well("--client", "claude-code", "--yes")
    assert "hush-hush" not in (desk.project / ".handrail/init.json").read_text(encoding="utf-8")


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_a_client_is_found_by_its_signs_and_programs(client: Any, tmp_path: Path) -> None:
    home, project, programs = tmp_path / "home", tmp_path / "project", tmp_path / "bin"
    for folder in (home, project, programs):
        folder.mkdir()
    machine = ClientMachine(home=str(home), platform="linux", environ={"PATH": str(programs)})
    files = ClientFiles(project, machine)
    assert files.present() == []
    for program in client.programs:
        (programs / program).write_text("#!/bin/sh\n", encoding="utf-8")
        (programs / program).chmod(0o755)
        assert client in files.present()
        (programs / program).unlink()
    for sign in client.signs:
        path = Path(sign.replace("~", str(home)).replace("{config}", str(home / ".config")))
        path = path if path.is_absolute() else project / path
        path.mkdir(parents=True)
        assert client in files.present()
        path.rmdir()


@pytest.mark.parametrize(
    ("platform", "environ", "file"),
    [
        ("darwin", {}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", {}, "/h/.config/Claude/claude_desktop_config.json"),
        ("linux", {"XDG_CONFIG_HOME": "/x"}, "/x/Claude/claude_desktop_config.json"),
        ("win32", {"APPDATA": "/a"}, "/a/Claude/claude_desktop_config.json"),
    ],
)
def test_a_users_file_is_where_its_system_has_it(platform: str, environ: dict[str, str], file: str) -> None:
    files = ClientFiles(Path("/p"), ClientMachine(home="/h", platform=platform, environ=environ))
    assert files.file_of(next(client for client in CLIENTS if client.name == "claude-desktop")) == file


def test_it_ends_with_a_word_about_the_page(desk: Desk) -> None:
    assert (
        desk.well("--client", "cursor", "--yes").rstrip().splitlines()[-1].startswith("`handrail up` serves the page")
    )

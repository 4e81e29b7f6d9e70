"""Before an edit: files that others have reserved are told of or refused, in each client's own form, and the answer is
the domain's."""

from __future__ import annotations

import contextlib
import json
import os
import time
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from handrail.hooks.before_edit import RULES, before, kept_from, rule_of
from handrail.hooks.callers import CALLERS, CANNOT_ASK, caller
from handrail.hooks.event_input import EDITING, parse
from handrail.hooks.open_tasks import open_store
from handrail.hooks.place import Options, Place, find_place
from handrail.outside.trusted_settings import agree
from handrail.settings import load_settings
from handrail.strictness import CAUTIONS
from tests.hooks.shop import Shop
from tests.outside.tracking.playground import Playground, make_base, write_global_config

PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-a
+*** Update File: src/quoted.py
*** Update File: README
*** Move to: src/app.py
*** End Patch
"""


@pytest.fixture
def repo(tmp_path: Path) -> Playground:
    write_global_config()
    return make_base((tmp_path / "shop").resolve())


@pytest.fixture
def shop(repo: Playground) -> Shop:
    return Shop(repo)


def edit(file: Path | str, cwd: Path, tool: str = "Edit", **more: Any) -> bytes:
    return msgspec.json.encode({"tool_name": tool, "tool_input": {"file_path": str(file)}, "cwd": str(cwd), **more})


def answer(given: bytes, *options: str, client: str = "claude-code") -> dict[str, Any] | None:
    said = before(parse(given.decode()), Options(list(options)), os.environ, client, time.time_ns() // 1_000_000)
    return json.loads(said) if said else None


@pytest.mark.parametrize("file", ["a.txt", "src.py", "../elsewhere/src/app.py"])
def test_what_nobody_keeps_is_edited_without_a_word(shop: Shop, file: str) -> None:
    shop.keeps("src/app.py", "src/lib.py")
    assert answer(edit(file, shop.repo.top)) is None


@pytest.mark.parametrize("ended", ["released_at = 1", "expires_at = 1", "repository = '/elsewhere'"])
def test_what_is_kept_no_longer_or_elsewhere_is_edited_without_a_word(shop: Shop, ended: str) -> None:
    shop.keeps("src/")
    given = edit("src/app.py", shop.repo.top)
    assert answer(given) is not None
    with contextlib.closing(apsw.Connection(str(shop.repo.path(".handrail/handrail.db")))) as store:
        store.execute(f"UPDATE reservation SET {ended}")
    assert answer(given) is None
    assert shop.kept_from(["src/app.py"]) == []


def test_a_file_that_is_not_there_yet_may_be_kept_too(shop: Shop) -> None:
    shop.keeps("src/new/")
    assert answer(edit(shop.repo.path("src/new/deep/file.py"), shop.repo.top, tool="Write")) is not None


def test_a_notebook_has_another_argument(shop: Shop) -> None:
    shop.keeps("*.ipynb")
    given = {"tool_name": "NotebookEdit", "tool_input": {"notebook_path": str(shop.repo.path("n.ipynb"))}}
    assert answer(msgspec.json.encode({**given, "cwd": str(shop.repo.top)})) is not None


def test_reading_is_nobodys_trouble(shop: Shop) -> None:
    shop.keeps("src/")
    assert answer(edit("src/app.py", shop.repo.top, tool="Read")) is None


def test_a_file_in_a_linked_worktree_is_the_same_file(shop: Shop, tmp_path: Path) -> None:
    shop.keeps("src/")
    shop.repo.git("worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    assert answer(edit(tmp_path / "side" / "src" / "app.py", shop.repo.top)) is not None
    assert answer(edit(tmp_path / "side" / "a.txt", shop.repo.top)) is None


def test_without_git_the_clients_folder_is_the_project(tmp_path: Path) -> None:
    folder = (tmp_path / "plain").resolve()
    (folder / "src").mkdir(parents=True)
    Shop(Playground(folder)).keeps("src/")
    assert answer(edit(folder / "src" / "a.c", folder)) is not None
    assert answer(edit(folder / "b.c", folder)) is None


@pytest.mark.parametrize("tool", [*EDITING, "Write", "NotebookEdit", "StrReplace"])
def test_every_tool_that_edits_is_known(shop: Shop, tool: str) -> None:
    shop.keeps("src/")
    assert answer(edit("src/app.py", shop.repo.top, tool=tool)) is not None


@pytest.mark.parametrize("member", ["command", "patchText", "patch", "input"])
def test_a_patch_names_its_files_itself(shop: Shop, member: str) -> None:
    shop.keeps("src/")
    given = {"tool_name": "apply_patch", "cwd": str(shop.repo.top)}
    told = answer(msgspec.json.encode({**given, "tool_input": {member: PATCH}}))
    assert told is not None
    assert told["systemMessage"].startswith("src/app.py is kept by Anna"), "neither a line of content, nor another file"
    assert answer(msgspec.json.encode({**given, "tool_input": {member: PATCH.replace("src/app", "app")}})) is None
    shell = {**given, "tool_name": "Bash", "tool_input": {"command": f"apply_patch <<'EOF'\n{PATCH}EOF"}}
    assert answer(msgspec.json.encode(shell)) is not None, "Codex applies that itself"
    shell["tool_input"] = {"command": "cat src/app.py"}
    assert answer(msgspec.json.encode(shell)) is None


def test_what_is_warned_of_is_what_the_domain_says(shop: Shop) -> None:
    anna = shop.keeps("src/", "docs/*.md", "!src/free.py", "auth")
    shop.keeps("b.txt", name="Ben")
    files = ["src/app.py", "src/free.py", "docs/a.md", "docs/deep/a.md", "lib/oauth.py", "a.txt", "b.txt", '"odd']
    place = find_place(str(shop.repo.top), Options([]), os.environ)
    assert place is not None
    for agent in ("", anna):
        place.agent = agent
        connection = open_store(place)
        assert connection is not None
        ours = kept_from(connection, place, files, time.time_ns() // 1_000_000)
        connection.close()
        theirs = shop.kept_from(files, agent or None)
        assert [(one.agent, one.name, one.files) for one in ours] == [
            (one.reservation.agent_id, one.name, one.files) for one in theirs
        ]
        assert theirs


def test_a_reservation_counts_as_long_as_its_agent_is_there(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.keeps("src/")
    given = parse(edit("src/app.py", shop.repo.top).decode())
    now = time.time_ns() // 1_000_000
    assert before(given, Options([]), os.environ, "codex", now)
    monkeypatch.setattr("handrail.hooks.before_edit.lease_time", lambda _connection, now_ms: now_ms + 10 * 60_000)
    assert before(given, Options([]), os.environ, "codex", now) == b"", "it went away without a word"


@pytest.mark.parametrize("client", CALLERS)
@pytest.mark.parametrize("rule", RULES)
def test_the_rule_is_a_decision_that_the_client_honours(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, client: str, rule: str
) -> None:
    shop.keeps("src/", reason="moving things")
    monkeypatch.setenv("HANDRAIL_RESERVATIONS", rule)
    told = answer(edit("src/app.py", shop.repo.top), client=client)
    assert told is not None
    text = json.dumps(told)
    assert "src/app.py is kept by Anna" in text
    assert "moving things" in text
    assert "message_send" not in text, "whether such a tool is on is not known here"
    decided = "deny" if rule == "ask" and client in CANNOT_ASK else rule
    nested = told.get("hookSpecificOutput", {})
    assert {
        "claude-code": nested.get("permissionDecision", "warn"),
        "codex": nested.get("permissionDecision", "warn"),
        "gemini": told.get("decision", "warn"),
        "copilot": told.get("permissionDecision", "warn"),
        "cursor": told.get("permission", "warn"),
        "opencode": "deny" if "deny" in told else "warn",
    }[client] == decided
    both = "additionalContext" in told and bool(nested)
    assert not both, "Codex drops an answer that has both forms"


def test_the_strictest_that_is_said_counts(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    place = Place(folder=str(shop.repo.top), project=str(shop.repo.top), store="", shared=False, agent="")
    place.home = str(Path.home())
    assert rule_of(place, os.environ) == "warn"
    shop.repo.write(".handrail/config.toml", 'reservations = "ask"\n')
    assert rule_of(place, os.environ) == "ask", "what restricts applies at once"
    assert load_settings(given={}, environ={}, project=shop.repo.top).reservations == "ask"
    for said, held in (("deny", "deny"), ("warn", "ask"), ("nonsense", "ask")):
        monkeypatch.setenv("HANDRAIL_RESERVATIONS", said)
        assert rule_of(place, os.environ) == held
        if said != "nonsense":
            environ = {"HANDRAIL_RESERVATIONS": said}
            assert load_settings(given={}, environ=environ, project=shop.repo.top).reservations == held
    monkeypatch.delenv("HANDRAIL_RESERVATIONS")
    agree(shop.repo.top, Path.home(), {"reservations": "deny"}, now_ms=1)
    shop.repo.write(".handrail/config.toml", 'reservations = "warn"\n')
    assert rule_of(place, os.environ) == "deny", "the file alone weakens nothing"
    stricter = CAUTIONS["reservations"].stricter
    pairs = [(one, two) for one in RULES for two in RULES]
    assert [stricter(*pair) for pair in pairs] == [max(pair, key=RULES.index) for pair in pairs]


def test_copilot_is_warned_once_although_it_runs_two_files(shop: Shop) -> None:
    shop.keeps("src/")
    given = edit("src/app.py", shop.repo.top, timestamp="2026-11-18T16:18:50.016Z", hook_event_name="PreToolUse")
    client = caller("claude-code", parse(given.decode()), os.environ)
    assert client == "copilot"
    told = answer(given, "--client", "claude-code", client=client)
    assert told is not None
    assert set(told) == {"additionalContext"}
    shop.repo.write(".github/hooks/handrail.json", '{"bash": "python -m handrail.hooks before"}')
    assert answer(given, "--client", "claude-code", client=client) is None
    assert answer(given, "--client", "claude-code", "--refuse", client=client) is not None, "twice refused is refused"
    assert answer(given, "--client", "copilot", client=client) is not None
